package httpapi

import (
	"mime"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// guard lets in only requests that name this host, and no changes that a page of another origin asks
// for. A page whose own name was made to lead to this machine sends that name in Host.
func (a *api) guard(next http.Handler) http.Handler {
	origins := http.NewCrossOriginProtection()
	origins.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		a.refuse(w, newProblem(http.StatusForbidden, "a page of another origin may not ask for this"))
	}))
	// Whoever knows the token of a link may answer, from wherever they come; nobody else can, whatever their browser sends.
	origins.AddInsecureBypassPattern(linkPattern)
	inner := origins.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		if !a.knows(r.Host) {
			a.refuse(w, newProblem(http.StatusMisdirectedRequest, "the host %.100q is not this one: use its loopback address or the one of --addr", r.Host))
			return
		}
		inner.ServeHTTP(w, r)
	})
}

// knows reports whether host, as a request has it, is one under which this API may be asked.
func (a *api) knows(host string) bool {
	name := host
	if only, _, err := net.SplitHostPort(host); err == nil {
		name = only
	}
	return hostAllowed(host, a.Host) || slices.ContainsFunc(a.Names, func(known string) bool { return strings.EqualFold(known, name) })
}

// hostAllowed reports whether host, as a request has it, with or without a port, is ours. An address in
// it cannot be the work of a foreign name server, so all are allowed where all are listened on.
func hostAllowed(host, configured string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	if strings.EqualFold(host, "localhost") || configured != "" && strings.EqualFold(host, configured) {
		return true
	}
	address, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	everywhere := configured == "" || configured == "0.0.0.0" || configured == "::"
	return address.IsLoopback() || everywhere
}

// mustBeJSON wants a body to be declared as JSON: no page can send that to another origin unasked.
func mustBeJSON(r *http.Request) *problem {
	kind, parameters, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	charset := parameters["charset"]
	if err != nil || kind != "application/json" || charset != "" && !strings.EqualFold(charset, "utf-8") {
		return newProblem(http.StatusUnsupportedMediaType, "the header Content-Type must be application/json")
	}
	return nil
}

// strangers answers what no route answers, in JSON as all else.
func (a *api) strangers(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, pattern := mux.Handler(r); pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		probe := statusOnly{header: http.Header{}}
		mux.ServeHTTP(&probe, r)
		if allow := probe.header.Get("Allow"); allow != "" {
			w.Header().Set("Allow", allow)
			a.refuse(w, newProblem(http.StatusMethodNotAllowed, "%s is not allowed here; allowed are %s", r.Method, allow))
			return
		}
		a.refuse(w, newProblem(http.StatusNotFound, "there is nothing at this path; GET /api/openapi.json says what there is"))
	})
}

// statusOnly keeps the header of an answer and drops the rest.
type statusOnly struct{ header http.Header }

func (s *statusOnly) Header() http.Header { return s.header }

func (s *statusOnly) Write(p []byte) (int, error) { return len(p), nil }

func (s *statusOnly) WriteHeader(int) {}
