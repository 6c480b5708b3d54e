package pause

import (
	"context"
	"sync"
	"time"
)

// Until returns a context that ends at a time, or by cancel, and has the values of another, but not its end. Its timer
// is made when a caller first asks for Done: work that never waits needs none.
func Until(values context.Context, end time.Time) (ctx context.Context, cancel context.CancelFunc) {
	u := &until{Context: values, end: end}
	return u, u.cancel
}

type until struct {
	context.Context // its values count, and its end does not
	end             time.Time

	mu sync.Mutex
	// timed does the work from the first Done on, and when it has ended; nil before.
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
	return u.made().Done()
}

// made returns the timed one. u.mu is held.
func (u *until) made() context.Context {
	if u.timed == nil {
		u.timed, u.stop = context.WithDeadline(context.WithoutCancel(u.Context), u.end)
		if u.cancelled {
			u.stop()
		}
	}
	return u.timed
}

// Err implements context.Context.
func (u *until) Err() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.timed == nil && !u.cancelled && time.Now().Before(u.end) {
		return nil
	}
	return u.made().Err()
}

// Value implements context.Context. The cause of its end, and contexts that are made of it, are looked for after
// Err or Done, and so in the timed one.
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
