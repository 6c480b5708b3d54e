package supervisor_test

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/queue/together"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/supervisor"
)

// slowIndex is an index of overdue keys, of which every page takes a while. Its last shard is of beginnings.
type slowIndex struct {
	keys [][]store.Entry
	page time.Duration
}

func newSlowIndex(shards, keys int, page time.Duration) *slowIndex {
	x := &slowIndex{keys: make([][]store.Entry, shards), page: page}
	for n := range keys {
		shard := n % shards
		x.keys[shard] = append(x.keys[shard], store.Entry{CompleteBy: time.Now().Add(-time.Hour), Job: fmt.Sprintf("job-%07d", n)})
	}
	return x
}

func (x *slowIndex) Shards() int                 { return len(x.keys) }
func (x *slowIndex) OfBeginnings(shard int) bool { return shard == len(x.keys)-1 }

func (x *slowIndex) Due(_ context.Context, shard int, _ time.Time, after store.Entry, limit int) ([]store.Entry, error) {
	time.Sleep(x.page)
	from, there := slices.BinarySearchFunc(x.keys[shard], after.Job, func(e store.Entry, id string) int { return cmp.Compare(e.Job, id) })
	if there {
		from++
	}
	page := x.keys[shard][from:]
	return page[:min(limit, len(page))], nil
}

// drained is a queue from which a Scheduler takes so many events a second, in virtual time.
type drained struct {
	perSecond int

	mu            sync.Mutex
	since         time.Time
	waiting, most int
	told          map[string]int
}

func newDrained(perSecond int) *drained {
	return &drained{perSecond: perSecond, since: time.Now(), told: map[string]int{}}
}

func (q *drained) take() {
	whole := time.Since(q.since).Truncate(time.Second)
	q.waiting = max(0, q.waiting-int(whole/time.Second)*q.perSecond)
	q.since = q.since.Add(whole)
}

func (q *drained) Send(_ context.Context, _ string, messages ...queue.Message) []error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.take()
	for _, m := range messages {
		q.told[m.Group]++
	}
	q.waiting += len(messages)
	q.most = max(q.most, q.waiting)
	return nil
}

func (q *drained) Depth(context.Context, string) (queue.Depth, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.take()
	return queue.Depth{Waiting: q.waiting}, nil
}

// A queue that is deep and is emptied gets the rest within the same sweep, and never more than its limit and a page of
// each shard that is gone through.
func TestASweepWaitsUntilEventsAreTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const depth, page, atOnce, jobs = 250, 10, 4, 3000
		index, q := newSlowIndex(8, jobs, time.Millisecond), newDrained(100)
		s := supervisor.New(supervisor.Config{
			Index: index, Queue: q, Events: "events", Page: page, Depth: depth, AskAgain: time.Second, AtOnce: atOnce, Logger: slog.New(slog.DiscardHandler),
		})
		began := time.Now()
		r, err := s.Sweep(t.Context())
		if want := (supervisor.Result{Overdue: jobs, Sent: jobs}); r != want || err != nil || len(q.told) != jobs {
			t.Errorf("got %+v, %v, %d jobs told of, want %+v", r, err, len(q.told), want)
		}
		// The queue takes 100 a second, beside the 250 that may wait.
		if took := time.Since(began); took < (jobs-depth-atOnce*page)/100*time.Second || took > jobs/100*time.Second {
			t.Errorf("it took %s", took)
		}
		if q.most > depth+atOnce*page {
			t.Errorf("%d events waited, want at most %d", q.most, depth+atOnce*page)
		}
	})
}

// A queue that nobody empties holds a sweep back until its time is over.
func TestASweepWaitsNoLongerThanItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		index, q := newSlowIndex(2, 100, time.Millisecond), newDrained(0)
		s := supervisor.New(supervisor.Config{
			Index: index, Queue: q, Events: "events", Page: 10, Depth: 25, AskAgain: time.Second, Logger: slog.New(slog.DiscardHandler),
		})
		ctx, cancel := context.WithTimeout(t.Context(), 48*time.Second)
		defer cancel()
		began := time.Now()
		r, err := s.Sweep(ctx)
		if want := (supervisor.Result{Overdue: 30, Sent: 30, Braked: true}); r != want || err != nil || time.Since(began) != 48*time.Second {
			t.Errorf("got %+v, %v after %s, want %+v after 48 s", r, err, time.Since(began), want)
		}
	})
}

// Shards are gone through at the same time, each once, and what is about to begin in them is told of once.
func TestASweepGoesThroughSeveralShardsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const shards, jobs = 16, 1600
		for atOnce, most := range map[int]time.Duration{1: shards * 2, 8: shards / 8 * 3, shards: 3} {
			index, q := newSlowIndex(shards, jobs, time.Second), newDrained(jobs)
			s := supervisor.New(supervisor.Config{
				Index: index, Queue: q, Events: "events", Page: 101, AtOnce: atOnce, Ahead: time.Minute, Logger: slog.New(slog.DiscardHandler),
			})
			began := time.Now()
			r, err := s.Sweep(t.Context())
			// The keys of the last shard are also what it would begin, since its index looks at no time.
			if r.Overdue != jobs || r.Ahead != jobs/shards || err != nil || len(q.told) != jobs {
				t.Errorf("%d at once: got %+v, %v, %d jobs told of", atOnce, r, err, len(q.told))
			}
			if took := time.Since(began); took > most*time.Second || atOnce == 1 && took < shards*time.Second {
				t.Errorf("%d at once: it took %s, want at most %ds", atOnce, took, most)
			}
		}
	})
}

// requests is a queue whose requests take five milliseconds each, and are counted.
type requests struct {
	*drained
	made int
}

func (q *requests) Send(ctx context.Context, name string, messages ...queue.Message) []error {
	time.Sleep(5 * time.Millisecond)
	q.mu.Lock()
	q.made++
	q.mu.Unlock()
	return q.drained.Send(ctx, name, messages...)
}

// On a stack with little to tell of, eight shards with a job or two each are told of by two requests in the place of eight.
func TestWhatShardsHaveAtTheSameTimeGoesTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		index, q := newSlowIndex(8, 9, time.Millisecond), &requests{drained: newDrained(100)}
		s := supervisor.New(supervisor.Config{
			Index: index, Queue: together.New(q), Events: "events", Depth: 100, AtOnce: 8, Logger: slog.New(slog.DiscardHandler),
		})
		if r, err := s.Sweep(t.Context()); r.Sent != 9 || err != nil || len(q.told) != 9 || q.made != 2 {
			t.Errorf("got %+v, %v: %d jobs told of by %d requests, want 9 by 2", r, err, len(q.told), q.made)
		}
	})
}
