// Package login lets known callers in: by a bearer token, by a header that a trusted reverse proxy sets, or by the
// cookie of a browser that has signed in with a token. It gives each caller a name and a role, and refuses a reader
// every request that could make a change.
//
// It knows no route by heart: Config says which patterns are open and which are those of agents. Every other request
// needs a reader or an operator, so a forgotten route is closed. The patterns are matched by http.ServeMux, as they are
// matched behind the guard, and a path that is not clean is redirected before anything else is asked of it.
package login

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/makegood-dev/makegood/internal/origin"
)

// Role is the set of requests that a caller may make.
type Role string

// The roles.
const (
	// Reader may see everything, and make no change.
	Reader Role = "reader"
	// Operator may do everything but speak as an agent.
	Operator Role = "operator"
	// Agent may take the tasks of the agent of its name, and reply to them.
	Agent Role = "agent"
)

// Caller is a caller that was let in.
type Caller struct {
	Name string
	Role Role
	// session: it is a browser that has signed in with a token, and may sign out.
	session bool
}

// Signed reports whether the caller is a browser that has signed in here, and may sign out.
func (c Caller) Signed() bool { return c.session }

// Config configures a Guard. Tokens, Proxy or both must be set.
type Config struct {
	// Tokens are the tokens that callers may show. Nil: no tokens, and no login form.
	Tokens *Tokens
	// Proxy names callers by a header. The zero value trusts no proxy.
	Proxy Proxy
	// Open are the patterns of http.ServeMux that need no login: health, and completion links, which carry a token.
	Open []string
	// Agents are the patterns of agents, with {agent} in them. Without Tokens they are open here: the handler checks.
	Agents []string
	// Host and Names are those under which browsers may sign in: see origin.Rules.
	Host  string
	Names []string
	// Secure: browsers reach this process by https, through a proxy, too.
	Secure bool
	// Logger hears of refusals. Default: slog.Default().
	Logger *slog.Logger
	// Now defaults to time.Now.
	Now func() time.Time
}

// Guard stands before a handler.
type Guard struct {
	Config
	next     http.Handler
	mux      *http.ServeMux
	sessions sessions
}

type callerKey struct{}

// CallerOf returns the caller of a request that a Guard let in; ok is false for a request that needs no login.
func CallerOf(ctx context.Context) (c Caller, ok bool) {
	c, ok = ctx.Value(callerKey{}).(Caller)
	return c, ok
}

// New puts a guard before next.
func New(c Config, next http.Handler) *Guard {
	c.Logger = cmp.Or(c.Logger, slog.Default())
	if c.Now == nil {
		c.Now = time.Now
	}
	g := &Guard{Config: c, next: next, mux: http.NewServeMux(), sessions: sessions{by: map[[sha256.Size]byte]session{}}}
	for _, pattern := range c.Open {
		g.mux.Handle(pattern, next)
	}
	for _, pattern := range c.Agents {
		g.mux.HandleFunc(pattern, g.agent)
	}
	if c.Tokens != nil {
		same := origin.Rules{Host: c.Host, Names: c.Names, Refuse: func(w http.ResponseWriter, r *http.Request, status int, text string) { g.refuse(w, r, status, text) }}
		for pattern, handle := range map[string]http.HandlerFunc{"GET /login": g.showForm, "POST /login": g.signIn, "POST /logout": g.signOut} {
			g.mux.Handle(pattern, same.Guard(handle))
		}
	}
	g.mux.HandleFunc("/", g.person)
	return g
}

// ServeHTTP answers a request, or passes it on.
func (g *Guard) ServeHTTP(w http.ResponseWriter, r *http.Request) { g.mux.ServeHTTP(w, r) }

var (
	// errNone: the request has no credentials.
	errNone = errors.New("login needed: show a token, in the header Authorization behind \"Bearer \"; the command takes --token-file or MAKEGOOD_TOKEN")
	// errWrong: the request has unknown credentials.
	errWrong = errors.New("this token is not known here, or no longer")
)

// person lets in operators, and readers with safe methods.
func (g *Guard) person(w http.ResponseWriter, r *http.Request) {
	caller, err := g.callerOf(r)
	switch {
	case errors.Is(err, errNone) && g.Tokens != nil && wantsPage(r):
		http.Redirect(w, r, "/login?next="+url.QueryEscape(r.URL.RequestURI()), http.StatusSeeOther)
	case errors.Is(err, errNone), errors.Is(err, errWrong):
		g.unauthorized(w, r, err)
	case err != nil:
		g.Logger.ErrorContext(r.Context(), "no login is possible", "error", err)
		g.refuse(w, r, http.StatusServiceUnavailable, "no login is possible just now; the log of the process says why")
	case caller.Role == Agent:
		g.refuse(w, r, http.StatusForbidden, fmt.Sprintf("this is the token of agent %s, which may take its tasks and no more", caller.Name))
	case caller.Role != Operator && r.Method != http.MethodGet && r.Method != http.MethodHead:
		g.refuse(w, r, http.StatusForbidden, fmt.Sprintf("%s may read, and make no changes: this needs the role operator", caller.Name))
	default:
		g.next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, caller)))
	}
}

// agent lets in the agent of the path by its token. A proxy cannot name an agent.
func (g *Guard) agent(w http.ResponseWriter, r *http.Request) {
	if g.Tokens == nil {
		g.next.ServeHTTP(w, r)
		return
	}
	name := r.PathValue("agent")
	known, err := g.byBearer(r)
	switch {
	case errors.Is(err, errNone), errors.Is(err, errWrong):
		g.unauthorized(w, r, err)
	case err != nil:
		g.Logger.ErrorContext(r.Context(), "no login is possible", "error", err)
		g.refuse(w, r, http.StatusServiceUnavailable, "no login is possible just now; the log of the process says why")
	case known.Role != Agent || known.Name != name:
		g.refuse(w, r, http.StatusForbidden, fmt.Sprintf("this is the token of %s, with the role %s: it does not speak as agent %.70q", known.Name, known.Role, name))
	default:
		g.next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, known)))
	}
}

// callerOf returns the caller of a request: from a trusted proxy, a token, or a session, in this order.
func (g *Guard) callerOf(r *http.Request) (Caller, error) {
	if caller, known, err := g.Proxy.callerOf(r); known || err != nil {
		return caller, err
	}
	if g.Tokens == nil {
		return Caller{}, errNone
	}
	if r.Header.Get("Authorization") != "" {
		return g.byBearer(r)
	}
	return g.bySession(r)
}

func (g *Guard) byBearer(r *http.Request) (Caller, error) {
	kind, shown, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(kind, "Bearer") || shown == "" {
		return Caller{}, errNone
	}
	known, ok, err := g.Tokens.find(sha256.Sum256([]byte(shown)))
	if err != nil {
		return Caller{}, err
	}
	if !ok {
		return Caller{}, errWrong
	}
	return Caller{Name: known.Name, Role: known.Role}, nil
}

// wantsPage reports whether a browser asks for a page.
func wantsPage(r *http.Request) bool {
	return r.Method == http.MethodGet && !strings.HasPrefix(r.URL.Path, "/api/") && strings.Contains(r.Header.Get("Accept"), "text/html")
}

func (g *Guard) unauthorized(w http.ResponseWriter, r *http.Request, err error) {
	g.Logger.WarnContext(r.Context(), "a caller was not let in", "from", r.RemoteAddr, "why", err)
	w.Header().Set("WWW-Authenticate", `Bearer realm="makegood"`)
	g.refuse(w, r, http.StatusUnauthorized, err.Error())
}

// refuse says why a request is not let in: to browsers in words, to programs in JSON as the API has it.
func (g *Guard) refuse(w http.ResponseWriter, r *http.Request, status int, text string) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if strings.Contains(r.Header.Get("Accept"), "text/html") {
		g.writeForm(w, status, form{Said: text, Refused: true})
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": text}) // A caller that has gone needs no answer.
}
