package httpapi

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/makegood-dev/makegood/api"
)

const (
	healthPath = "/healthz"
	readyPath  = "/readyz"
	// readyFor is how long an answer about readiness is reused: each check flushes a write of the store, and callers need
	// no login.
	readyFor = time.Second
	// readyWithin is how long a look may take; a store that takes longer is not ready.
	readyWithin = 5 * time.Second
)

// health says that the process lives. It leaves the store out where readiness covers it: a supervisor that restarts
// unhealthy processes must not restart an engine that waits for room on its disk.
func (a *handlers) health(r *http.Request) (answer, error) {
	if a.Ready != nil {
		return ok(Health{Status: "ok"})
	}
	if _, err := a.Jobs.PageOf(r.Context(), api.Filter{}, "", 1); err != nil {
		return answer{}, err
	}
	return ok(Health{Status: "ok"})
}

// readiness reports whether an engine can work. Requests within a second share one answer.
type readiness struct {
	look func(context.Context) error
	now  func() time.Time

	mu sync.Mutex
	at time.Time
	is error
}

// ask looks at the engine, or returns the result of less than a second ago. The look goes on when the caller has gone.
func (r *readiness) ask(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := r.now(); r.at.IsZero() || now.Sub(r.at) >= readyFor {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyWithin)
		defer cancel()
		r.is, r.at = r.look(ctx), r.now()
	}
	return r.is
}

// serveReady answers 200 or 503. Only the log has the reason, since the route needs no login.
func (a *handlers) serveReady(r *readiness) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		if err := r.ask(req.Context()); err != nil {
			a.Logger.WarnContext(req.Context(), "not ready", "why", err)
			write(w, http.StatusServiceUnavailable, Health{Status: "not ready"})
			return
		}
		write(w, http.StatusOK, Health{Status: "ready"})
	}
}
