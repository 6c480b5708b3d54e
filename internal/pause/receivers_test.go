package pause_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood/internal/pause"
)

// world is some receivers in a bubble, their log, and a call that hangs until it is let go.
type world struct {
	*pause.Receivers
	log  bytes.Buffer
	free chan struct{}
}

const (
	within = 5 * time.Second
	grace  = 200 * time.Millisecond
)

func newWorld() *world {
	w := &world{free: make(chan struct{})}
	w.Receivers = pause.NewReceivers(slog.New(slog.NewTextHandler(&w.log, nil)))
	return w
}

func (w *world) call(receiver string, call func() error) error {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	return w.Call(ctx, receiver, grace, call)
}

func (w *world) hang() error { <-w.free; return nil }

func fine() error { return nil }

var errNo = errors.New("no")

// A call that comes back is heard, in the grace too; one that panics or ends its goroutine is an error.
func TestWhatACallSaysIsHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		late := func() error { time.Sleep(within + grace/2); return errNo }
		for name, call := range map[string]func() error{"at once": func() error { return errNo }, "in the grace": late} {
			if err := w.call("shop", call); !errors.Is(err, errNo) {
				t.Errorf("%s: got %v, want %v", name, err, errNo)
			}
		}
		if err := w.call("shop", func() error { panic("oh") }); err == nil || !strings.Contains(err.Error(), "panicked: oh") {
			t.Errorf("got %v, want that it panicked", err)
		}
		if err := w.call("shop", func() error { runtime.Goexit(); return nil }); err == nil || errors.Is(err, pause.ErrHangs) {
			t.Errorf("got %v, want that its goroutine is over", err)
		}
		if w.log.Len() > 0 {
			t.Errorf("nothing hangs, and the log has %s", &w.log)
		}
	})
}

// A receiver that hangs is given up when its time and the grace are over, an error of the log names it, and after MaxHanging
// calls it is left alone. Other receivers are called as before.
func TestWhoHangsIsLeftAloneAndNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		defer close(w.free)
		for i := range pause.MaxHanging {
			began := time.Now()
			if err := w.call("shop", w.hang); !errors.Is(err, pause.ErrHangs) || time.Since(began) != within+grace {
				t.Fatalf("call %d: got %v after %v, want %v after %v", i, err, time.Since(began), pause.ErrHangs, within+grace)
			}
		}
		if got := strings.Count(w.log.String(), "level=ERROR"); got != pause.MaxHanging || !strings.Contains(w.log.String(), "receiver=shop hanging=16 pause=1m0s") {
			t.Errorf("got %d errors, want %d that name shop:\n%s", got, pause.MaxHanging, &w.log)
		}
		began := time.Now()
		if err := w.call("shop", fine); !errors.Is(err, pause.ErrHangs) || time.Since(began) != 0 {
			t.Errorf("one more: got %v after %v, want that it is not called", err, time.Since(began))
		}
		if err := w.call("operator", fine); err != nil {
			t.Errorf("another receiver: got %v, want that it is told", err)
		}
	})
}

// A receiver that is left alone is called once after each rest, which doubles up to an hour; when a call comes back, it is
// called as before, and the next that hangs begins with a short rest.
func TestWhoHangsIsTriedAgainAfterARest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		defer close(w.free)
		for range pause.MaxHanging {
			_ = w.call("shop", w.hang)
		}
		var called atomic.Int64
		hang := func() error { called.Add(1); return w.hang() }
		rests := []time.Duration{1, 2, 4, 8, 16, 32, 60, 60}
		for i, rest := range rests {
			time.Sleep(rest*time.Minute - time.Second)
			if _ = w.call("shop", hang); called.Load() != int64(i) {
				t.Fatalf("called %d times, want %d: %v are not over", called.Load(), i, rest*time.Minute)
			}
			time.Sleep(time.Second)
			go func() { time.Sleep(time.Second); _ = w.call("shop", hang) }() // beside the one that tries
			if _ = w.call("shop", hang); called.Load() != int64(i+1) {
				t.Fatalf("called %d times after the rest, want %d", called.Load(), i+1)
			}
		}
		time.Sleep(time.Hour)
		for range 3 {
			if err := w.call("shop", fine); err != nil {
				t.Errorf("it comes back, and is called again: got %v", err)
			}
		}
		_ = w.call("shop", w.hang)
		time.Sleep(time.Minute - time.Second)
		if err := w.call("shop", fine); err == nil {
			t.Error("it hangs again: got a call, want a rest")
		}
		time.Sleep(time.Second)
		if err := w.call("shop", fine); err != nil {
			t.Errorf("after a minute: got %v, want a call", err)
		}
	})
}

// Calls that come back late count no more.
func TestCallsThatComeBackLateAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		for range pause.MaxHanging {
			_ = w.call("shop", w.hang)
		}
		close(w.free)
		synctest.Wait()
		w.free = make(chan struct{})
		defer close(w.free)
		for i := range pause.MaxHanging {
			if err := w.call("shop", fine); err != nil {
				t.Errorf("call %d: got %v, want that it is called", i, err)
			}
			_ = w.call("shop", w.hang)
		}
		if err := w.call("shop", fine); err == nil {
			t.Errorf("got a call, want a rest after %d that hang", pause.MaxHanging)
		}
	})
}
