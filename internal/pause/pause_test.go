package pause_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood/internal/pause"
)

// A pause is as long as it should be, unless its context ends before; one that has ended allows none.
func TestAPauseEndsWithItsTimeOrItsContext(t *testing.T) {
	for _, c := range []struct {
		ends, wait, want time.Duration
		err              error
	}{
		{time.Minute, time.Second, time.Second, nil},
		{time.Minute, 0, 0, nil},
		{time.Minute, -time.Second, 0, nil},
		{time.Second, time.Minute, time.Second, context.DeadlineExceeded},
		{0, time.Minute, 0, context.DeadlineExceeded},
		{0, 0, 0, context.DeadlineExceeded},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), c.ends)
			defer cancel()
			began := time.Now()
			err := pause.For(ctx, c.wait)
			if took := time.Since(began); took != c.want || err != c.err {
				t.Errorf("%v in a context of %v: got %v after %v, want %v after %v", c.wait, c.ends, err, took, c.err, c.want)
			}
		})
	}
}
