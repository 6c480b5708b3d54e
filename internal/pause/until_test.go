package pause_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood/internal/pause"
)

type key struct{}

// A context of Until ends at its time or by cancel, asked for Done before, after or never, and outlives the context
// with its values. Those that are made of it end with it.
func TestAContextEndsAtItsTimeWhetherItIsWaitedForOrNot(t *testing.T) {
	errOuter := errors.New("outer")
	for _, c := range []struct {
		name            string
		waited          bool
		cancelled, late bool
		want            error
	}{
		{"waited for, in time", true, false, false, nil},
		{"not waited for, in time", false, false, false, nil},
		{"waited for, late", true, false, true, context.DeadlineExceeded},
		{"not waited for, late", false, false, true, context.DeadlineExceeded},
		{"waited for, cancelled", true, true, false, context.Canceled},
		{"not waited for, cancelled", false, true, false, context.Canceled},
	} {
		synctest.Test(t, func(t *testing.T) {
			outer, end := context.WithCancelCause(context.WithValue(t.Context(), key{}, "value"))
			at := time.Now().Add(time.Minute)
			ctx, cancel := pause.Until(outer, at)
			defer cancel()
			end(errOuter)
			if c.waited {
				ctx.Done()
			}
			if c.cancelled {
				cancel()
			}
			if c.late {
				time.Sleep(time.Minute)
				synctest.Wait()
			}
			if got := ctx.Err(); got != c.want {
				t.Errorf("%s: got %v, want %v", c.name, got, c.want)
			}
			if got := context.Cause(ctx); got != c.want {
				t.Errorf("%s: got the cause %v, want %v", c.name, got, c.want)
			}
			inner, stop := context.WithCancel(ctx)
			defer stop()
			if got := inner.Err(); got != c.want {
				t.Errorf("%s: one that is made of it: got %v, want %v", c.name, got, c.want)
			}
			if got, ok := ctx.Deadline(); !ok || !got.Equal(at) || ctx.Value(key{}) != "value" {
				t.Errorf("%s: got the deadline %v, %v, and the value %v", c.name, got, ok, ctx.Value(key{}))
			}
			began := time.Now()
			<-inner.Done()
			<-ctx.Done()
			if took := time.Since(began); (took == time.Minute) != (c.want == nil) {
				t.Errorf("%s: it ended after %v", c.name, took)
			}
		})
	}
}
