package bulk

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/makegood-dev/makegood/internal/pause"
)

// catchUp is how much of its time a pace may make up for after it was held up.
const catchUp = 100 * time.Millisecond

// Pace is how fast it goes.
type Pace struct {
	// AtOnce is how many are under way at most; less than 1 is 1.
	AtOnce int
	// PerSecond is how many are begun in a second at most; 0: as many as come to their end.
	PerSecond float64
}

// Do does one thing to many: it calls do for each of items, at the pace, and done with the results: one call of done at
// a time, in the order in which they end. It begins no more once ctx ends, items gives an error, or done returns one.
// Begun calls are completed, under a context that does not end with ctx, and passed to done. Then Do returns the first
// of these errors; for ctx its cause.
func Do[T, R any](ctx context.Context, items iter.Seq2[T, error], p Pace, do func(context.Context, T) R, done func(T, R) error) error {
	feed, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	todo := make(chan T)
	var one sync.Mutex
	var under sync.WaitGroup
	for range max(1, p.AtOnce) {
		under.Go(func() {
			for item := range todo {
				got := do(context.WithoutCancel(ctx), item)
				one.Lock()
				if err := done(item, got); err != nil {
					stop(err)
				}
				one.Unlock()
			}
		})
	}
	err := give(feed, items, p, todo)
	close(todo)
	under.Wait()
	if err == nil {
		// The last calls may have failed when there was no item left to begin.
		err = context.Cause(feed)
	}
	return err
}

// Each are the items of a list, for Do.
func Each[T any](list []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, item := range list {
			if !yield(item, nil) {
				return
			}
		}
	}
}

// give hands the items out, at their pace.
func give[T any](ctx context.Context, items iter.Seq2[T, error], p Pace, todo chan<- T) error {
	turn := newTurns(p)
	for item, err := range items {
		if err != nil {
			return err
		}
		if err := turn.wait(ctx); err != nil {
			return err
		}
		select {
		case todo <- item:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// turns says when the next may begin.
type turns struct {
	every time.Duration
	next  time.Time
}

func newTurns(p Pace) *turns {
	if p.PerSecond <= 0 {
		return &turns{}
	}
	return &turns{every: time.Duration(float64(time.Second) / p.PerSecond), next: time.Now()}
}

func (t *turns) wait(ctx context.Context) error {
	if t.every == 0 {
		return context.Cause(ctx)
	}
	now := time.Now()
	begin := t.next
	if held := now.Add(-catchUp); begin.Before(held) {
		begin = held
	}
	t.next = begin.Add(t.every)
	if pause.For(ctx, begin.Sub(now)) != nil {
		return context.Cause(ctx)
	}
	return nil
}
