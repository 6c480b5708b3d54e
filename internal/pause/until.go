package pause

import (
	"context"
	"sync"
	"time"
)

// Until returns a context that ends at a time, or by cancel, and has the values of another, but not its end. Its timer
// is made when a caller first asks for Done: work that never waits needs none.
func Until(values context.Context, end time.Time) (ctx context.Context, cancel context.CancelFunc) {
	u := &until{Context: context.WithoutCancel(values), end: end}
	return u, u.cancel
}

type until struct {
	context.Context // the values
	end             time.Time

	mu sync.Mutex
	// timed does the work from the first Done on; nil before.
	timed     context.Context
	stop      context.CancelFunc
	cancelled bool
}

// Deadline implements context.Context.
func (u *until) Deadline() (time.Time, bool) { return u.end, true }

// Done implements context.Context.
func (u *until) Done() <-chan struct{} {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.timed == nil {
		u.timed, u.stop = context.WithDeadline(u.Context, u.end)
		if u.cancelled {
			u.stop()
		}
	}
	return u.timed.Done()
}

// Err implements context.Context.
func (u *until) Err() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case u.timed != nil:
		return u.timed.Err()
	case u.cancelled:
		return context.Canceled
	case !time.Now().Before(u.end):
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// Value implements context.Context. Contexts that are made of this one find the timed one, and end with it.
func (u *until) Value(key any) any {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.timed != nil {
		return u.timed.Value(key)
	}
	return u.Context.Value(key)
}

func (u *until) cancel() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.cancelled = true
	if u.stop != nil {
		u.stop()
	}
}
