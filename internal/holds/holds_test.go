package holds_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/holds"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/memstore"
	"github.com/makegood-dev/makegood/internal/wire"
)

// world is a store with jobs that are held, and an events queue whose messages let them go on when their delay is over.
type world struct {
	*testing.T
	store *memstore.Store
	// lost, if set, says that a message of a job never arrives.
	lost func(id string) bool
	// dies, if set, says that the process dies instead of sending.
	dies func() bool

	mu      sync.Mutex
	resumed map[string][]time.Time
}

func newWorld(t *testing.T) *world {
	return &world{T: t, store: memstore.New(), resumed: map[string][]time.Time{}}
}

func (w *world) keeper() *holds.Keeper {
	return holds.New(holds.Config{Store: w.store, Queue: w, Events: "events", Agents: []string{"payments", "shop"}, Logger: slog.New(slog.DiscardHandler)})
}

// Send delivers what is sent when its delay is over, to whoever lets jobs go on.
func (w *world) Send(_ context.Context, _ string, messages ...queue.Message) []error {
	errs := make([]error, len(messages))
	if w.dies != nil && w.dies() {
		for i := range errs {
			errs[i] = errors.New("dead")
		}
		return errs
	}
	for _, m := range messages {
		id, event, err := wire.DecodeEvent(m.Body)
		if _, is := event.(job.DeadlinePassed); err != nil || !is {
			w.Errorf("sent %s: %v", m.Body, err)
		}
		if w.lost != nil && w.lost(id) {
			continue
		}
		time.AfterFunc(m.Delay, func() { w.goesOn(id) })
	}
	return errs
}

// Depth is never asked for.
func (w *world) Depth(context.Context, string) (queue.Depth, error) { panic("depth") }

// goesOn is what the Scheduler does with the hint: a job whose hold is over goes on.
func (w *world) goesOn(id string) {
	ctx := context.Background()
	j, err := w.store.Load(ctx, id)
	if err != nil {
		w.Errorf("load %s: %v", id, err)
		return
	}
	held, _ := w.store.Holds(ctx, true)
	if _, on := held.Holds.On(j.HeldBy); on || j.HeldBy == "" {
		return
	}
	j.PausedAt, j.HeldBy = time.Time{}, ""
	if err := w.store.Save(ctx, store.Change{Job: j, Seen: j.CompleteBy}); err != nil {
		w.Errorf("save %s: %v", id, err)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.resumed[id] = append(w.resumed[id], time.Now())
}

// gone is how many jobs went on.
func (w *world) gone() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.resumed)
}

// held makes jobs that a hold keeps still.
func (w *world) held(n int, hold string) {
	for i := range n {
		w.hold(fmt.Sprintf("%s-%05d", strings.Fields(hold)[1], i), hold, time.Duration(i)*time.Millisecond)
	}
}

func (w *world) hold(id, hold string, born time.Duration) {
	w.Helper()
	now := domain.Instant(time.Now())
	w.ok(w.store.Create(w.Context(), job.Job{
		ID: id, ProcessState: makegood.JobProcessing, CreatedAt: now.Add(born), PausedAt: now, HeldBy: hold, CompleteBy: now.Add(limits.FarKey), Birth: "b",
	}))
}

// supervise sweeps each minute until nothing is released any more, or for a while.
func (w *world) supervise(k *holds.Keeper, most int) (minutes int) {
	w.Helper()
	for minutes = range most {
		for shard := range w.store.Shards() {
			due, err := w.store.Due(w.Context(), shard, domain.Instant(time.Now()), store.Entry{}, 10)
			w.ok(err)
			for _, e := range due {
				if e.Holds {
					w.ok(k.Release(w.Context()))
				}
			}
		}
		if held, _ := w.store.Holds(w.Context(), true); held.Key().IsZero() {
			return minutes
		}
		time.Sleep(time.Minute)
	}
	return most
}

func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) pause(k *holds.Keeper, kind makegood.HoldKind, name string) job.Hold {
	w.Helper()
	h, err := k.Pause(w.Context(), kind, name, "the bank is down", "anna")
	w.ok(err)
	return h
}

func (w *world) resume(k *holds.Keeper, kind makegood.HoldKind, name string) job.Hold {
	w.Helper()
	h, err := k.Resume(w.Context(), kind, name, "bert")
	w.ok(err)
	return h
}

// everyOnce fails unless n jobs went on, each once.
func (w *world) everyOnce(n int) {
	w.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.resumed) != n {
		w.Errorf("%d jobs went on, want %d", len(w.resumed), n)
	}
	for id, at := range w.resumed {
		if len(at) != 1 {
			w.Errorf("job %s went on %d times", id, len(at))
		}
	}
}

// Ten thousand jobs go on, each once: at most sixty in the first minute, twice as many in each that follows, and spread over it.
func TestJobsThatWereHeldGoOnLittleByLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		k := w.keeper()
		w.pause(k, makegood.HoldAgent, "payments")
		w.held(10_000, "agent payments")
		released := w.resume(k, makegood.HoldAgent, "payments").ReleasedAt
		minutes := w.supervise(k, 60)
		w.everyOnce(10_000)
		if minutes < 7 || minutes > 10 {
			t.Errorf("it took %d minutes, want 7 to 10", minutes)
		}
		inMinute, inSecond := map[int]int{}, map[int]int{}
		for _, at := range w.resumed {
			inMinute[int(at[0].Sub(released)/time.Minute)]++
			inSecond[int(at[0].Sub(released)/time.Second)]++
		}
		most := limits.ResumeFirst
		for minute := range minutes {
			if inMinute[minute] > most {
				t.Errorf("in minute %d %d jobs went on, want %d at most", minute, inMinute[minute], most)
			}
			most *= 2
		}
		for second := range 60 {
			if inSecond[second] > 2 {
				t.Errorf("in second %d %d jobs went on, want 2 at most", second, inSecond[second])
			}
		}
		if at := w.resumed["payments-00000"]; len(at) != 1 || at[0].Sub(released) > time.Second {
			t.Errorf("the oldest went on at %v, want at once", at)
		}
		held, err := w.store.Holds(t.Context(), true)
		if err != nil || len(held.Holds) != 0 {
			t.Errorf("got %v, %v, want nothing held any more", held.Holds, err)
		}
	})
}

// A process that dies after it has written down a step, before it told of any job, leaves them to the next steps; messages
// that get lost do, too.
func TestAReleaseThatIsCutOffGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		k := w.keeper()
		w.pause(k, makegood.HoldAgent, "payments")
		w.held(1000, "agent payments")
		w.resume(k, makegood.HoldAgent, "payments")
		step, lost := 0, map[string]bool{}
		w.dies = func() bool { step++; return step%2 == 1 }
		w.lost = func(id string) bool {
			first := strings.HasSuffix(id, "7") && !lost[id]
			lost[id] = true
			return first
		}
		w.supervise(k, 60)
		w.everyOnce(1000)
	})
}

// Two who make the same step at once: one does, and no minute has more than its share.
func TestAStepIsMadeOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		k := w.keeper()
		w.pause(k, makegood.HoldAgent, "payments")
		w.held(500, "agent payments")
		w.resume(k, makegood.HoldAgent, "payments")
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if err := w.keeper().Release(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		time.Sleep(time.Minute - time.Millisecond)
		w.everyOnce(limits.ResumeFirst)
	})
}

// What is paused again while it is being released keeps the jobs that have not gone on; resumed, it begins gently.
func TestWhatIsPausedAgainKeepsWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		k := w.keeper()
		w.pause(k, makegood.HoldAgent, "payments")
		w.held(500, "agent payments")
		w.resume(k, makegood.HoldAgent, "payments")
		w.supervise(k, 2)
		time.Sleep(30 * time.Second)
		again := w.pause(k, makegood.HoldAgent, "payments")
		if !again.On() || again.Resumed != 0 || time.Since(again.Since) > time.Second {
			t.Errorf("got %+v, want it held anew", again)
		}
		gone := w.gone()
		if gone < limits.ResumeFirst || gone > 3*limits.ResumeFirst {
			t.Errorf("%d jobs went on, want %d to %d", gone, limits.ResumeFirst, 3*limits.ResumeFirst)
		}
		w.supervise(k, 10)
		time.Sleep(time.Hour)
		w.everyOnce(gone)
		w.resume(k, makegood.HoldAgent, "payments")
		w.supervise(k, 60)
		w.everyOnce(500)
	})
}

// Two that are released at once go on beside each other, and one that is paused meanwhile is not touched.
func TestTwoReleasesGoOnBesideEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		k := w.keeper()
		w.pause(k, makegood.HoldAgent, "payments")
		w.pause(k, makegood.HoldWorkflow, "order")
		w.held(300, "agent payments")
		w.held(200, "workflow order")
		w.resume(k, makegood.HoldAgent, "payments")
		w.supervise(k, 1)
		w.resume(k, makegood.HoldWorkflow, "order")
		w.pause(k, makegood.HoldAgent, "shop")
		w.held(10, "agent shop")
		first := w.resume(k, makegood.HoldAgent, "payments")
		if first.Steps == 0 {
			t.Error("a second release began anew")
		}
		w.supervise(k, 60)
		w.everyOnce(500)
		list, err := k.List(t.Context())
		if err != nil || len(list) != 1 || list[0].String() != "agent shop" || list[0].Jobs != 10 || list[0].AtLeast {
			t.Errorf("got %+v, %v, want agent shop with 10 jobs", list, err)
		}
	})
}

// A job that is held late, by who knew an older state of things, is found before the hold is removed.
func TestAJobThatIsHeldLateIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		k := w.keeper()
		w.pause(k, makegood.HoldAgent, "payments")
		w.resume(k, makegood.HoldAgent, "payments")
		w.ok(k.Release(t.Context()))
		time.Sleep(limits.HoldsFresh)
		w.hold("late", "agent payments", -time.Hour)
		w.supervise(k, 10)
		w.everyOnce(1)
	})
}

// A job that never goes on does not keep a release for ever.
func TestAReleaseEndsThoughAJobStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		k := w.keeper()
		w.pause(k, makegood.HoldAgent, "payments")
		w.held(1, "agent payments")
		w.lost = func(string) bool { return true }
		w.resume(k, makegood.HoldAgent, "payments")
		if minutes := w.supervise(k, 2*24*60); minutes > 24*60+1 {
			t.Errorf("it took %d minutes", minutes)
		}
	})
}

// What cannot be paused is refused, and why.
func TestWhatCannotBePausedIsRefused(t *testing.T) {
	w := newWorld(t)
	k := holds.New(holds.Config{
		Store: w.store, Queue: w, Events: "events", Agents: []string{"payments"},
		Knows: func(_ context.Context, name string) error {
			if name != "order" {
				return fmt.Errorf("%w: there is no workflow %q", holds.ErrInvalid, name)
			}
			return nil
		},
	})
	for _, c := range []struct {
		kind   makegood.HoldKind
		name   string
		reason string
		want   string
	}{
		{makegood.HoldAgent, "payment", "", `there is no agent "payment"; there are [payments]`},
		{makegood.HoldAgent, makegood.AgentApproval, "", "no task is ever sent to it"},
		{makegood.HoldAgent, "no name", "", "no name"},
		{makegood.HoldWorkflow, "orders", "", `there is no workflow "orders"`},
		{"tenant", "acme", "", `"tenant" cannot be paused`},
		{makegood.HoldAgent, "payments", strings.Repeat("x", 513), "513 bytes, the limit is 512"},
		{makegood.HoldAgent, "payments", "\xff", "not UTF-8"},
	} {
		if _, err := k.Pause(t.Context(), c.kind, c.name, c.reason, ""); !errors.Is(err, holds.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("pause %s %s: got %v, want %q", c.kind, c.name, err, c.want)
		}
	}
	if _, err := k.Resume(t.Context(), makegood.HoldAgent, "payments", ""); !errors.Is(err, holds.ErrNotHeld) {
		t.Errorf("resume what is not paused: got %v, want that it is not", err)
	}
	first := w.pause(k, makegood.HoldAgent, "payments")
	if again, err := k.Pause(t.Context(), makegood.HoldAgent, "payments", "another reason", "bert"); err != nil || again != first {
		t.Errorf("paused twice: got %+v, %v, want %+v", again, err, first)
	}
	any := w.keeper
	for i := 1; i < limits.MaxHolds; i++ {
		w.pause(any(), makegood.HoldWorkflow, fmt.Sprint("w-", i))
	}
	if _, err := any().Pause(t.Context(), makegood.HoldWorkflow, "one-more", "", ""); !errors.Is(err, holds.ErrInvalid) || !strings.Contains(err.Error(), "100") {
		t.Errorf("one more than the limit: got %v", err)
	}
}

// counting counts how often it is read.
type counting struct {
	*memstore.Store
	reads, sure int
	err         error
}

func (c *counting) Holds(ctx context.Context, sure bool) (store.Held, error) {
	c.reads++
	if sure {
		c.sure++
	}
	if c.err != nil {
		return store.Held{}, c.err
	}
	return c.Store.Holds(ctx, sure)
}

// A reader reads once in five seconds, and not at all while nobody asks; that something is held rests on a sure read.
func TestAReaderReadsWhenItIsAskedAndKnowsNothingOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &counting{Store: memstore.New()}
		r := holds.NewReader(source, nil)
		want := func(what string, held bool, reads, sure int) {
			t.Helper()
			got, err := r.Holds(t.Context(), makegood.Task{Job: "j", Agent: "payments", Workflow: "order"})
			if got != held || err != nil || source.reads != reads || source.sure != sure {
				t.Errorf("%s: got %v, %v after %d reads, %d sure, want %v after %d, %d", what, got, err, source.reads, source.sure, held, reads, sure)
			}
		}
		time.Sleep(time.Hour)
		want("at first", false, 1, 0)
		want("again", false, 1, 0)
		hold := job.Hold{Kind: makegood.HoldAgent, Name: "payments"}
		if err := source.PutHolds(t.Context(), store.Held{Holds: job.Holds{hold}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(limits.HoldsFresh - time.Millisecond)
		want("as long as it counts as fresh", false, 1, 0)
		time.Sleep(time.Millisecond)
		want("then", true, 3, 1)
		hold.ReleasedAt = time.Now()
		if err := source.PutHolds(t.Context(), store.Held{Rev: 1, Holds: job.Holds{hold}}); err != nil {
			t.Fatal(err)
		}
		want("released", false, 4, 2)
		source.err = errors.New("down")
		want("while it is fresh", false, 4, 2)
		time.Sleep(limits.HoldsFresh)
		if _, err := r.Holds(t.Context(), makegood.Task{Job: "j", Agent: "payments", Workflow: "order"}); !errors.Is(err, source.err) {
			t.Errorf("got %v, want what the store says", err)
		}
	})
}
