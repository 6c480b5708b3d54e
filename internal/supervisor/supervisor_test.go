package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/queue/faultqueue"
	"github.com/makegood-dev/makegood/internal/queue/localqueue"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/sqlitestore"
	"github.com/makegood-dev/makegood/internal/supervisor"
	"github.com/makegood-dev/makegood/internal/wire"
)

// noon is the time in these tests.
var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// world is an index of shards, a queue, and a Supervisor between them. It has nothing else: no jobs
// table, no workflow, no core.
type world struct {
	t      *testing.T
	shards shards
	queue  *localqueue.Queues
	config supervisor.Config
}

// shards is an index made of several stores; it counts the pages that were read.
type shards struct {
	stores []*sqlitestore.Store
	broken map[int]error
	pages  int
}

var _ store.Index = (*shards)(nil)

func (s *shards) Shards() int { return len(s.stores) }

func (s *shards) Due(ctx context.Context, shard int, now time.Time, after store.Entry, limit int) ([]store.Entry, error) {
	s.pages++
	if err := s.broken[shard]; err != nil {
		return nil, err
	}
	return s.stores[shard].Due(ctx, 0, now, after, limit)
}

func newWorld(t *testing.T, shardCount int) *world {
	t.Helper()
	w := &world{t: t}
	for range shardCount {
		s, err := sqlitestore.Open(t.Context(), sqlitestore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Shut(); err != nil {
				t.Error(err)
			}
		})
		w.shards.stores = append(w.shards.stores, s)
	}
	var err error
	if w.queue, err = localqueue.New(localqueue.Options{Queues: []localqueue.Queue{{Name: "events"}}}); err != nil {
		t.Fatal(err)
	}
	w.config = supervisor.Config{
		Index: &w.shards, Queue: w.queue, Events: "events", Now: func() time.Time { return noon },
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	return w
}

// job puts a job into a shard, whose key is ahead of noon.
func (w *world) job(shard int, id string, ahead time.Duration) {
	w.t.Helper()
	err := w.shards.stores[shard].Create(w.t.Context(), job.Job{
		ID: id, ProcessState: makegood.JobProcessing, CompleteBy: noon.Add(ahead), CreatedAt: noon.Add(-time.Hour),
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// overdue puts n jobs into a shard whose keys passed, each a second after the one before.
func (w *world) overdue(shard, n int) {
	for i := range n {
		w.job(shard, fmt.Sprintf("s%d-job-%03d", shard, i), time.Duration(i-n)*time.Second)
	}
}

func (w *world) sweep(want supervisor.Result) {
	w.t.Helper()
	got, err := supervisor.New(w.config).Sweep(w.t.Context())
	if err != nil || got != want {
		w.t.Errorf("sweep: got %+v, %v, want %+v", got, err, want)
	}
}

// told takes everything off the events queue: how often the Scheduler was told of which job.
func (w *world) told() map[string]int {
	w.t.Helper()
	told := map[string]int{}
	for {
		if depth, err := w.queue.Depth(w.t.Context(), "events"); err != nil || depth.Waiting == 0 {
			return told
		}
		records, err := w.queue.Receive(w.t.Context(), "events", 10)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, record := range records {
			id, event, err := wire.DecodeEvent(record.Body)
			if err != nil {
				w.t.Fatal(err)
			}
			if _, ok := event.(job.DeadlinePassed); !ok {
				w.t.Errorf("job %s: got %T, want DeadlinePassed and nothing else", id, event)
			}
			told[id]++
			if err := w.queue.Delete(w.t.Context(), "events", record.ReceiptHandle); err != nil {
				w.t.Fatal(err)
			}
		}
	}
}

func TestASweepTellsOfWhatIsOverdueWithTheKeyThatItSaw(t *testing.T) {
	w := newWorld(t, 1)
	w.job(0, "long", -time.Hour)
	w.job(0, "just", 0)
	w.job(0, "soon", time.Millisecond)
	w.job(0, "far", 24*time.Hour)
	w.sweep(supervisor.Result{Overdue: 2, Sent: 2})
	want := map[string]time.Time{"long": noon.Add(-time.Hour), "just": noon}
	records, err := w.queue.Receive(t.Context(), "events", 10)
	if err != nil || len(records) != 2 {
		t.Fatalf("got %d events, %v, want 2", len(records), err)
	}
	for _, record := range records {
		id, event, err := wire.DecodeEvent(record.Body)
		if got := (job.DeadlinePassed{Key: want[id]}); err != nil || event != got {
			t.Errorf("job %s: got %+v, %v, want %+v", id, event, err, got)
		}
		if got := record.Attributes["MessageGroupId"]; got != id {
			t.Errorf("group of the event of job %s: got %q, want the job", id, got)
		}
	}
}

func TestASweepReadsInPagesAndTellsOfEachJobOnce(t *testing.T) {
	for n, pages := range map[int]int{0: 1, 9: 1, 10: 2, 25: 3, 40: 5} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			w := newWorld(t, 1)
			w.config.Page = 10
			w.overdue(0, n)
			w.sweep(supervisor.Result{Overdue: n, Sent: n})
			told := w.told()
			for job, times := range told {
				if times != 1 {
					t.Errorf("told %d times of %s, want once", times, job)
				}
			}
			if len(told) != n || w.shards.pages != pages {
				t.Errorf("told of %d jobs, in %d pages, want %d in %d", len(told), w.shards.pages, n, pages)
			}
		})
	}
}

// Many keys are the same moment. None is skipped where a page ends among them.
func TestKeysOfOneMomentAreAllTold(t *testing.T) {
	w := newWorld(t, 1)
	w.config.Page = 3
	for i := range 10 {
		w.job(0, fmt.Sprint("job-", i), -time.Minute)
	}
	w.sweep(supervisor.Result{Overdue: 10, Sent: 10})
	if told := w.told(); len(told) != 10 {
		t.Errorf("told of %d jobs, want 10", len(told))
	}
}

func TestASweepIsBoundedAndTheOldestComeFirst(t *testing.T) {
	w := newWorld(t, 1)
	w.config.Page, w.config.MaxPages = 10, 2
	w.overdue(0, 50)
	w.sweep(supervisor.Result{Overdue: 20, Sent: 20})
	told := slices.Sorted(maps.Keys(w.told()))
	if len(told) != 20 || told[0] != "s0-job-000" || told[19] != "s0-job-019" {
		t.Errorf("told of %v, want the twenty oldest", told)
	}
}

func TestASweepSeesEveryShardThoughOneIsBroken(t *testing.T) {
	w := newWorld(t, 4)
	for shard := range 4 {
		w.overdue(shard, 5)
	}
	broken := errors.New("the index is away")
	w.shards.broken = map[int]error{2: broken}
	got, err := supervisor.New(w.config).Sweep(t.Context())
	if want := (supervisor.Result{Overdue: 15, Sent: 15}); got != want || !errors.Is(err, broken) || !strings.Contains(err.Error(), "sweep shard 2") {
		t.Errorf("got %+v, %v, want %+v and the error of shard 2", got, err, want)
	}
	w.shards.broken = nil
	w.sweep(supervisor.Result{Overdue: 20, Sent: 20})
}

// When the queue side is down, the Supervisor must not multiply messages.
func TestASweepHoldsBackWhenTheEventsQueueIsDeep(t *testing.T) {
	w := newWorld(t, 1)
	w.config.Page, w.config.Depth = 10, 25
	w.overdue(0, 100)
	// Depths before the pages: 0, 10, 20, and then 30, which is above the limit.
	w.sweep(supervisor.Result{Overdue: 30, Sent: 30, Braked: true})
	// Nobody took anything: nothing more is sent, however often it sweeps.
	for range 5 {
		w.sweep(supervisor.Result{Braked: true})
	}
	if depth, err := w.queue.Depth(t.Context(), "events"); err != nil || depth.Waiting != 30 {
		t.Errorf("got %d events, %v, want 30", depth.Waiting, err)
	}
	w.told()
	w.sweep(supervisor.Result{Overdue: 30, Sent: 30, Braked: true})
}

// late gives its first message to a poller only after its depth was first asked for.
type late struct {
	*localqueue.Queues
	asked int
}

func (q *late) Depth(ctx context.Context, name string) (queue.Depth, error) {
	depth, err := q.Queues.Depth(ctx, name)
	if q.asked++; q.asked == 1 {
		_, err = q.Receive(ctx, name, 1)
	}
	return depth, err
}

// While nobody takes events, each sweep would leave one more for every job. The first that finds the queue empty tells of
// all jobs, however many pages they are.
func TestASweepHoldsBackWhenNobodyTakesEvents(t *testing.T) {
	w := newWorld(t, 2)
	w.config.Page, w.config.Unpolled = 10, time.Millisecond
	w.overdue(0, 45)
	w.overdue(1, 45)
	w.sweep(supervisor.Result{Overdue: 90, Sent: 90})
	for range 30 {
		w.sweep(supervisor.Result{Braked: true})
	}
	if depth, err := w.queue.Depth(t.Context(), "events"); err != nil || depth.Waiting != 90 {
		t.Errorf("got %d events, %v, want 90", depth.Waiting, err)
	}
	moving := &late{Queues: w.queue}
	w.config.Queue = moving
	w.sweep(supervisor.Result{Overdue: 90, Sent: 90})
	w.sweep(supervisor.Result{Overdue: 90, Sent: 90}) // One is in flight now.
	if want := 2 + 10 + 1 + 10; moving.asked != want {
		t.Errorf("asked for the depth %d times, want %d: twice, then once, and before each page", moving.asked, want)
	}
}

// A queue that is empty, or whose events are in somebody's hands, is polled: a sweep waits for nothing then.
func TestASweepOfAQueueThatIsPolledDoesNotWait(t *testing.T) {
	w := newWorld(t, 1)
	w.overdue(0, 3)
	w.config.Unpolled = time.Hour
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for range 2 {
		got, err := supervisor.New(w.config).Sweep(ctx)
		if want := (supervisor.Result{Overdue: 3, Sent: 3}); got != want || err != nil || ctx.Err() != nil {
			t.Errorf("got %+v, %v, want %+v, at once", got, err, want)
		}
		if _, err := w.queue.Receive(ctx, "events", 1); err != nil {
			t.Fatal(err)
		}
	}
}

// A depth that is not known is no reason to send.
func TestASweepSendsNothingWhenTheDepthIsNotKnown(t *testing.T) {
	w := newWorld(t, 1)
	w.overdue(0, 3)
	w.config.Queue = faultqueue.New(w.queue, faultqueue.Options{Plan: func(c faultqueue.Call) faultqueue.Fault {
		if c.Op == faultqueue.Depth {
			return faultqueue.FailBefore
		}
		return faultqueue.None
	}})
	for _, unpolled := range []time.Duration{0, time.Millisecond} {
		w.config.Unpolled = unpolled
		got, err := supervisor.New(w.config).Sweep(t.Context())
		if got != (supervisor.Result{}) || !errors.Is(err, faultqueue.ErrInjected) {
			t.Errorf("unpolled %v: got %+v, %v, want nothing and the error", unpolled, got, err)
		}
	}
	if told := w.told(); len(told) != 0 {
		t.Errorf("told of %v, want nothing", told)
	}
}

// Nor is one that was not known once: whether anybody takes the events is asked again by the next sweep.
func TestASweepSendsNothingWhenTheFirstDepthIsNotKnown(t *testing.T) {
	w := newWorld(t, 1)
	w.overdue(0, 3)
	w.config.Unpolled = time.Millisecond
	asked := 0
	w.config.Queue = faultqueue.New(w.queue, faultqueue.Options{Plan: func(c faultqueue.Call) faultqueue.Fault {
		if c.Op == faultqueue.Depth {
			if asked++; asked == 1 {
				return faultqueue.FailBefore
			}
		}
		return faultqueue.None
	}})
	got, err := supervisor.New(w.config).Sweep(t.Context())
	if got != (supervisor.Result{}) || !errors.Is(err, faultqueue.ErrInjected) {
		t.Errorf("got %+v, %v, want nothing and the error", got, err)
	}
}

// picky fails every third message.
type picky struct {
	*localqueue.Queues
	sends int
}

func (p *picky) Send(ctx context.Context, name string, messages ...queue.Message) []error {
	errs := make([]error, len(messages))
	for i, m := range messages {
		if p.sends++; p.sends%3 == 0 {
			errs[i] = errors.New("line engaged")
			continue
		}
		if one := p.Queues.Send(ctx, name, m); one != nil {
			errs[i] = one[0]
		}
	}
	return errs
}

func TestWhatCouldNotBeSentIsNotCountedAndFoundAgain(t *testing.T) {
	w := newWorld(t, 1)
	w.overdue(0, 10)
	w.config.Queue = &picky{Queues: w.queue}
	got, err := supervisor.New(w.config).Sweep(t.Context())
	if want := (supervisor.Result{Overdue: 10, Sent: 7}); got != want || err == nil || !strings.Contains(err.Error(), "line engaged") {
		t.Errorf("got %+v, %v, want %+v and the error", got, err, want)
	}
	if told := w.told(); len(told) != 7 {
		t.Errorf("told of %d jobs, want 7", len(told))
	}
	w.config.Queue = w.queue
	w.sweep(supervisor.Result{Overdue: 10, Sent: 10})
}

// Several Supervisors at once tell of the same jobs, each with the same key, and of nothing else. It is
// for the Scheduler to act on a key once.
func TestSeveralSupervisorsAtOnceTellTheSame(t *testing.T) {
	w := newWorld(t, 1)
	w.config.Page = 7
	w.overdue(0, 60)
	w.job(0, "soon", time.Minute)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { w.sweepOnce() })
	}
	wg.Wait()
	told := w.told()
	for job, times := range told {
		if times != 4 {
			t.Errorf("told %d times of %s, want once by each of 4", times, job)
		}
	}
	if len(told) != 60 || told["soon"] > 0 {
		t.Errorf("told of %d jobs, %d times of the one that is not due, want 60, 0", len(told), told["soon"])
	}
}

func (w *world) sweepOnce() {
	// Each has an index of its own, because this one counts.
	c := w.config
	c.Index = &shards{stores: w.shards.stores}
	if got, err := supervisor.New(c).Sweep(w.t.Context()); err != nil || got.Sent != 60 {
		w.t.Errorf("got %+v, %v, want 60 sent", got, err)
	}
}

func TestSweepAfterTellsOfTheYoungKeysOnly(t *testing.T) {
	w := newWorld(t, 1)
	w.job(0, "old", -time.Hour)
	w.job(0, "edge", -time.Second)
	w.job(0, "young", -time.Millisecond)
	w.job(0, "soon", time.Millisecond)
	got, err := supervisor.New(w.config).SweepAfter(t.Context(), noon.Add(-time.Second))
	if want := (supervisor.Result{Overdue: 2, Sent: 2}); err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	if told, want := w.told(), map[string]int{"edge": 1, "young": 1}; !maps.Equal(told, want) {
		t.Errorf("told of %v, want %v", told, want)
	}
}

// What SweepAfter has just told of a whole Sweep leaves alone for a while.
func TestASweepLeavesTheYoungKeysToSweepAfter(t *testing.T) {
	w := newWorld(t, 1)
	w.config.Grace = time.Second
	w.job(0, "old", -time.Second)
	w.job(0, "young", -time.Second+time.Millisecond)
	w.sweep(supervisor.Result{Overdue: 1, Sent: 1})
	if told, want := w.told(), map[string]int{"old": 1}; !maps.Equal(told, want) {
		t.Errorf("told of %v, want %v", told, want)
	}
}

func TestASweepThatIsToldToStopStops(t *testing.T) {
	w := newWorld(t, 3)
	for shard := range 3 {
		w.overdue(shard, 3)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	got, err := supervisor.New(w.config).Sweep(ctx)
	if got.Sent != 0 || !errors.Is(err, context.Canceled) || w.shards.pages > 1 {
		t.Errorf("got %+v after %d pages, %v, want nothing sent, one page at most, and Canceled", got, w.shards.pages, err)
	}
}
