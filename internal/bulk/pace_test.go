package bulk

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func upTo(n int) iter.Seq2[int, error] {
	return func(yield func(int, error) bool) {
		for i := range n {
			if !yield(i, nil) {
				return
			}
		}
	}
}

// In virtual time: twenty-one a second are begun in two seconds and a tenth of the next, and never more than three are
// under way, though each takes a quarter of a second and fifty a second would be allowed.
func TestNoMoreAtOnceAndNoMoreASecondThanIsSaid(t *testing.T) {
	for _, c := range []struct {
		pace Pace
		want time.Duration
	}{
		{Pace{AtOnce: 100, PerSecond: 10}, 2*time.Second + 250*time.Millisecond},
		{Pace{AtOnce: 3, PerSecond: 50}, 7 * 250 * time.Millisecond},
		{Pace{AtOnce: 3}, 7 * 250 * time.Millisecond},
		{Pace{}, 21 * 250 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			var now, most atomic.Int64
			began, heard := time.Now(), 0
			err := Do(t.Context(), upTo(21), c.pace, func(context.Context, int) int64 {
				defer now.Add(-1)
				if n := now.Add(1); n > most.Load() {
					most.Store(n)
				}
				time.Sleep(250 * time.Millisecond)
				return 0
			}, func(int, int64) error { heard++; return nil })
			took := time.Since(began)
			if slack := took - c.want; err != nil || heard != 21 || slack < -catchUp || slack > catchUp {
				t.Errorf("%+v: %v, %d heard of in %s, want 21 in %s", c.pace, err, heard, took, c.want)
			}
			if most.Load() > int64(max(1, c.pace.AtOnce)) {
				t.Errorf("%+v: %d at once", c.pace, most.Load())
			}
		})
	}
}

// What was begun is brought to its end and heard of, though whoever asked has gone; nothing else is begun.
func TestWhatWasBegunIsBroughtToItsEnd(t *testing.T) {
	asked, gone := context.WithCancelCause(t.Context())
	reason := errors.New("interrupted")
	release := make(chan struct{})
	var begun atomic.Int64
	heard := 0
	err := Do(asked, upTo(1000), Pace{AtOnce: 4}, func(ctx context.Context, _ int) error {
		if begun.Add(1) == 4 {
			gone(reason)
			close(release)
		}
		<-release
		return ctx.Err()
	}, func(_ int, err error) error {
		if heard++; err != nil {
			t.Errorf("got %v, want it not to end with its asker", err)
		}
		return nil
	})
	if !errors.Is(err, reason) || heard != int(begun.Load()) || heard > 8 {
		t.Errorf("got %v, %d begun and %d heard of, want all of those, few, and %v", err, begun.Load(), heard, reason)
	}
}

// An error of whoever hears, or of the items, ends it, also where it comes with the last.
func TestAnErrorEndsIt(t *testing.T) {
	enough := errors.New("enough")
	for _, last := range []int{0, 7, 99} {
		heard := 0
		err := Do(t.Context(), upTo(100), Pace{}, func(_ context.Context, i int) int { return i }, func(i, _ int) error {
			heard++
			if i == last {
				return enough
			}
			return nil
		})
		if !errors.Is(err, enough) || heard > last+3 {
			t.Errorf("at %d: got %v after %d, want %v", last, err, heard, enough)
		}
	}
	torn := func(yield func(int, error) bool) { _ = yield(1, nil) && yield(0, enough) }
	heard := 0
	err := Do(t.Context(), torn, Pace{AtOnce: 2}, func(context.Context, int) bool { return true }, func(int, bool) error { heard++; return nil })
	if !errors.Is(err, enough) || heard != 1 {
		t.Errorf("got %v, %d heard of, want 1 and %v", err, heard, enough)
	}
}
