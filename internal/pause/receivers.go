package pause

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

const (
	// MaxHanging is how many calls of one receiver may hang before it is called less often.
	MaxHanging = 16
	// firstRest and longestRest are how long a receiver with so many is not called; a further one doubles the rest.
	firstRest   = time.Minute
	longestRest = time.Hour
)

// ErrHangs is the error of a receiver that does not come back although the time is over.
var ErrHangs = errors.New("does not come back, and ignores that the time is over")

// Receivers calls code of others, which may hang, panic, or ignore its context. Calls that hang are counted for each
// receiver alone, so that one does not hold up the others. The log names it as an error.
type Receivers struct {
	logger *slog.Logger

	mu sync.Mutex
	// hung are the receivers with calls that hang, by name.
	hung map[string]*hung
}

// hung is a receiver with calls that hang.
type hung struct {
	calls int
	// rest is the pause that followed the last call that hung, and until its end: no call is made before.
	rest  time.Duration
	until time.Time
}

// NewReceivers makes Receivers.
func NewReceivers(logger *slog.Logger) *Receivers {
	return &Receivers{logger: logger, hung: map[string]*hung{}}
}

// Call calls a receiver, and gives up on the call when it has not come back a grace after ctx ended; the call goes on
// then, and its answer is dropped. The error is the call's, or that it panicked, or ErrHangs. A receiver with
// MaxHanging calls that hang is called once after each rest, until a call comes back.
func (r *Receivers) Call(ctx context.Context, receiver string, grace time.Duration, call func() error) error {
	if err := r.enter(receiver); err != nil {
		return err
	}
	answer := make(chan error) // Without room: an answer was taken, or the call was given up.
	left := make(chan struct{})
	go func() {
		err := errors.New("ended its goroutine")
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("panicked: %v", p)
			}
			select {
			case answer <- err:
			case <-left:
				r.cameBack(receiver)
			}
		}()
		err = call()
	}()
	select {
	case err := <-answer:
		r.answered(receiver)
		return err
	case <-ctx.Done():
	}
	late := time.NewTimer(grace)
	defer late.Stop()
	select {
	case err := <-answer:
		r.answered(receiver)
		return err
	case <-late.C:
	}
	r.gaveUp(ctx, receiver)
	close(left)
	return fmt.Errorf("%s: %w", receiver, ErrHangs)
}

// enter refuses the call of a receiver that is left alone. The first call after a rest is let in, alone.
func (r *Receivers) enter(receiver string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.hung[receiver]
	if h == nil || h.until.IsZero() {
		return nil
	}
	now := time.Now()
	if now.Before(h.until) {
		return fmt.Errorf("%s: %w: %d calls hang", receiver, ErrHangs, h.calls)
	}
	h.until = now.Add(h.rest)
	return nil
}

// answered notes that a receiver comes back.
func (r *Receivers) answered(receiver string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if h := r.hung[receiver]; h != nil {
		h.rest, h.until = 0, time.Time{}
	}
}

// gaveUp notes that a call hangs, and says so.
func (r *Receivers) gaveUp(ctx context.Context, receiver string) {
	r.mu.Lock()
	h := r.hung[receiver]
	if h == nil {
		h = &hung{}
		r.hung[receiver] = h
	}
	if h.calls++; h.calls >= MaxHanging {
		h.rest = min(max(2*h.rest, firstRest), longestRest)
		h.until = time.Now().Add(h.rest)
	}
	calls, rest := h.calls, h.rest
	r.mu.Unlock()
	r.logger.ErrorContext(ctx, "a receiver does not come back, and was given up", "receiver", receiver, "hanging", calls, "pause", rest)
}

// cameBack notes that a call has ended that was given up.
func (r *Receivers) cameBack(receiver string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.hung[receiver]
	if h.calls--; h.calls < MaxHanging {
		h.rest, h.until = 0, time.Time{}
	}
	if h.calls == 0 {
		delete(r.hung, receiver)
	}
}
