package login

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"mime"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	// sessionTime is how long a browser stays signed in.
	sessionTime = 12 * time.Hour
	// maxSessions is how many browsers may be signed in at once; one more takes the place of the one that ends first.
	maxSessions = 10_000
	// maxLoginForm is how large the form may be, in bytes.
	maxLoginForm = 8 << 10
	// cookieName is the name of the cookie over http; over https __Host- precedes it, which no other host can set.
	cookieName = "makegood"
)

//go:embed login.html
var formSource string

//go:embed login.css
var formStyle string

var formTemplate = template.Must(template.New("login").Parse(formSource))

// session is a browser that has signed in. It lasts as long as its token is in the file: token is the hash of that.
type session struct {
	token [sha256.Size]byte
	ends  time.Time
}

// sessions are kept in memory, by the hash of the cookie's value: they end with the process.
type sessions struct {
	mu sync.Mutex
	by map[[sha256.Size]byte]session
}

func (s *sessions) add(id string, made session, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.by) >= maxSessions {
		s.drop(now)
	}
	s.by[sha256.Sum256([]byte(id))] = made
}

// drop takes the sessions that are over, and the one that would be over first.
func (s *sessions) drop(now time.Time) {
	var first [sha256.Size]byte
	var ends time.Time
	for id, each := range s.by {
		if !each.ends.After(now) {
			delete(s.by, id)
		} else if ends.IsZero() || each.ends.Before(ends) {
			first, ends = id, each.ends
		}
	}
	if len(s.by) >= maxSessions {
		delete(s.by, first)
	}
}

func (s *sessions) find(id string, now time.Time) (session, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.by[sha256.Sum256([]byte(id))]
	return found, ok && found.ends.After(now)
}

func (s *sessions) remove(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.by, sha256.Sum256([]byte(id)))
}

// bySession returns the caller of a session cookie. The token of the sign-in must still be in the file.
func (g *Guard) bySession(r *http.Request) (Caller, error) {
	cookie, err := r.Cookie(g.cookie(r).Name)
	if err != nil {
		return Caller{}, errNone
	}
	s, ok := g.sessions.find(cookie.Value, g.Now())
	if !ok {
		return Caller{}, errNone
	}
	token, ok, err := g.Tokens.find(s.token)
	if err != nil {
		return Caller{}, err
	}
	if !ok {
		return Caller{}, errNone
	}
	return Caller{Name: token.Name, Role: token.Role, session: true}, nil
}

// cookie is that of a session, for the connection of a request: no script reads it, and no other site has it sent.
func (g *Guard) cookie(r *http.Request) *http.Cookie {
	c := &http.Cookie{Name: cookieName, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode}
	if r.TLS != nil || g.Secure {
		c.Secure, c.Name = true, "__Host-"+cookieName
	}
	return c
}

// signIn takes the token of the form, and gives the browser a session.
func (g *Guard) signIn(w http.ResponseWriter, r *http.Request) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/x-www-form-urlencoded" {
		g.writeForm(w, http.StatusUnsupportedMediaType, form{Said: "This is not the form of this page."})
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxLoginForm)
	if err := r.ParseForm(); err != nil {
		g.writeForm(w, http.StatusBadRequest, form{Said: "The form cannot be read."})
		return
	}
	next := local(r.PostForm.Get("next"))
	hash := sha256.Sum256([]byte(strings.TrimSpace(r.PostForm.Get("token"))))
	token, ok, err := g.Tokens.find(hash)
	switch {
	case err != nil:
		g.Logger.ErrorContext(r.Context(), "no login is possible", "error", err)
		g.writeForm(w, http.StatusServiceUnavailable, form{Next: next, Said: "No login is possible just now; the log of the process says why."})
		return
	case !ok:
		g.Logger.WarnContext(r.Context(), "a caller was not let in", "from", r.RemoteAddr, "why", errWrong)
		g.writeForm(w, http.StatusUnauthorized, form{Next: next, Said: "This token is not known here, or no longer."})
		return
	case token.Role == Agent:
		g.writeForm(w, http.StatusForbidden, form{Next: next, Said: "This is the token of an agent, which may take its tasks and no more."})
		return
	}
	now, id := g.Now(), rand.Text()
	g.sessions.add(id, session{token: hash, ends: now.Add(sessionTime)}, now)
	cookie := g.cookie(r)
	cookie.Value, cookie.MaxAge = id, int(sessionTime/time.Second)
	http.SetCookie(w, cookie)
	w.Header().Set("Location", next)
	w.WriteHeader(http.StatusSeeOther)
}

// signOut ends the session of a browser, here and there.
func (g *Guard) signOut(w http.ResponseWriter, r *http.Request) {
	cookie := g.cookie(r)
	if has, err := r.Cookie(cookie.Name); err == nil {
		g.sessions.remove(has.Value)
	}
	cookie.MaxAge = -1
	http.SetCookie(w, cookie)
	w.Header().Set("Location", "/login")
	w.WriteHeader(http.StatusSeeOther)
}

// local is a path on this host, or "/": a link to the form must lead nowhere else.
func local(next string) string {
	if !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") || strings.ContainsFunc(next, func(r rune) bool { return r == '\\' || r <= ' ' || r == 0x7f }) {
		return "/"
	}
	return next
}

// form is the data of the login page. Refused: the page gives the reason of a refusal, without a form.
type form struct {
	Next, Said string
	Refused    bool
	Style      template.CSS
}

func (g *Guard) showForm(w http.ResponseWriter, r *http.Request) {
	g.writeForm(w, http.StatusOK, form{Next: local(r.URL.Query().Get("next"))})
}

func (g *Guard) writeForm(w http.ResponseWriter, status int, f form) {
	f.Style = template.CSS(formStyle) //nolint:gosec // it is ours
	var page bytes.Buffer
	if err := formTemplate.Execute(&page, f); err != nil {
		panic("login: the form cannot be written: " + err.Error())
	}
	sum := sha256.Sum256([]byte(formStyle))
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	w.WriteHeader(status)
	_, _ = w.Write(page.Bytes()) // A browser that has gone asks again.
}
