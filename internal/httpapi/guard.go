package httpapi

import (
	"mime"
	"net/http"
	"strings"

	"github.com/makegood-dev/makegood/internal/origin"
)

// guard lets in only requests that name this host, and no changes that a page of another origin asks for.
func (a *handlers) guard(next http.Handler) http.Handler {
	return origin.Rules{
		Host: a.Host, Names: a.Names,
		// The token of a link authorizes an answer from any origin; without it, no request succeeds.
		Bypass: []string{linkPattern},
		Refuse: func(w http.ResponseWriter, _ *http.Request, status int, text string) {
			a.refuse(w, newProblem(status, "%s", text))
		},
	}.Guard(next)
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

// strangers answers requests without a route, in JSON as all others.
func (a *handlers) strangers(mux *http.ServeMux) http.Handler {
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
		a.refuse(w, newProblem(http.StatusNotFound, "no route has this path; GET /api/openapi.json lists the routes"))
	})
}

// statusOnly keeps the header of an answer and drops the rest.
type statusOnly struct{ header http.Header }

func (s *statusOnly) Header() http.Header { return s.header }

func (s *statusOnly) Write(p []byte) (int, error) { return len(p), nil }

func (s *statusOnly) WriteHeader(int) {}
