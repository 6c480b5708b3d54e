package embedded_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/queue/faultqueue"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/faultstore"
	"github.com/makegood-dev/makegood/internal/store/sqlitestore"
)

// reference is the job of the budgets: five steps, one after the other, one agent.
const reference = `
name: reference
steps:
  - {name: stepnr01, agent: a}
  - {name: stepnr02, agent: a}
  - {name: stepnr03, agent: a}
  - {name: stepnr04, agent: a}
  - {name: stepnr05, agent: a}
`

// meter counts what an engine asks of its store and its queues.
type meter struct {
	store.Store
	file *sqlitestore.Store
	*tap

	mu sync.Mutex
	// asked counts calls by name; moves are the saves that moved an index key.
	asked map[string]int
	moves int
}

func newMeter() *meter {
	return &meter{tap: newTap(), asked: map[string]int{}}
}

func (m *meter) config(c embedded.Config) embedded.Config {
	c.WrapStore = func(inner store.Store) store.Store {
		m.file = inner.(*sqlitestore.Store)
		m.Store = faultstore.New(inner, func(c faultstore.Call) faultstore.Effect {
			m.count(c.Op)
			return faultstore.None
		})
		return m
	}
	c.WrapQueues = func(inner embedded.Queues) embedded.Queues {
		return m.tap.wrap(faultqueue.New(inner, faultqueue.Options{Plan: func(c faultqueue.Call) faultqueue.Fault {
			m.count(fmt.Sprintf("%s %s", c.Op, c.Queue))
			return faultqueue.None
		}}))
	}
	return c
}

func (m *meter) count(what string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked[what]++
}

func (m *meter) loads() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.asked["Load"]
}

// take returns the counts so far, but for those of looking whether there is something to do, and begins
// anew.
func (m *meter) take() map[string]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	asked := m.asked
	m.asked = map[string]int{}
	maps.DeleteFunc(asked, func(what string, _ int) bool {
		return what == "Due" || strings.HasPrefix(what, "Depth ") || strings.HasPrefix(what, "Receive ")
	})
	return asked
}

func (m *meter) Save(ctx context.Context, c store.Change) error {
	if !c.Job.CompleteBy.Equal(c.Seen) {
		m.mu.Lock()
		m.moves++
		m.mu.Unlock()
	}
	return m.Store.Save(ctx, c)
}

// What a job costs is counted and not timed: a task and a reply for each step, a claim and a save, one
// load, and the index key moved once more than it is written at the birth.
func TestTheReferenceJobCostsExactlyWhatItMust(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r troupe
		m := newMeter()
		w := open(t, m.config(embedded.Config{Dir: t.TempDir(), Agents: r.agents("a")}))
		c := w.define(reference)
		synctest.Wait()
		m.take()
		before := m.file.Stats()
		w.submit(c, "job-00000001", `{"sku":"a-17"}`)
		w.ends("job-00000001", makegood.JobProcessed)
		synctest.Wait()
		after := m.file.Stats()

		want := map[string]int{
			"Create": 1, "Definition": 1, "Claim": 5, "Load": 5, "Save": 5,
			"Send tasks-a": 5, "Send events": 5, "Delete tasks-a": 5, "Delete events": 5,
		}
		if got := m.take(); !maps.Equal(got, want) {
			t.Errorf("calls: got %v, want %v", got, want)
		}
		if tasks, events := m.tap.count("tasks-a"), m.tap.count("events"); tasks != 5 || events != 5 || len(m.sent) != 2 {
			t.Errorf("got %d tasks and %d events, in %d queues, want 5 and 5 in 2", tasks, events, len(m.sent))
		}
		if m.moves != 1 {
			t.Errorf("the index key was moved %d times after the birth, want once, out of the index", m.moves)
		}
		if w.saves != 6 {
			t.Errorf("Saved saw %d jobs, want the birth and one save a reply", w.saves)
		}
		// Nobody else writes, so each write is a group of its own; claims are not flushed. One more keeps, once in the life of an
		// engine, that something was done in it.
		if groups, durable, syncs := after.Groups-before.Groups, after.Durable-before.Durable, after.Syncs-before.Syncs; groups != 12 || durable != 6 || syncs != 6 {
			t.Errorf("got %d groups, %d durable, %d flushes, want 12, 6, 6", groups, durable, syncs)
		}
	})
}

// Nothing is asked of anybody about a job that rests.
func TestAFinishedJobCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r troupe
		m := newMeter()
		w := open(t, m.config(embedded.Config{Agents: r.agents("a")}))
		w.submit(w.define(reference), "j", `{}`)
		w.ends("j", makegood.JobProcessed)
		synctest.Wait()
		m.take()
		sent := m.tap.count("events")
		time.Sleep(time.Hour)
		synctest.Wait()
		if asked := m.take(); len(asked) != 0 || m.tap.count("events") != sent {
			t.Errorf("within an hour: got calls %v and %d events, want nothing but looks at the index", asked, m.tap.count("events")-sent)
		}
	})
}

// slowDisk is a store on a disk whose flush takes a millisecond. It counts the writes of each flush.
type slowDisk struct {
	store.Store
	mu      sync.Mutex
	flushes map[time.Time]int
}

func (d *slowDisk) Create(ctx context.Context, j job.Job) error {
	d.flush()
	return d.Store.Create(ctx, j)
}

func (d *slowDisk) Save(ctx context.Context, c store.Change) error {
	d.flush()
	return d.Store.Save(ctx, c)
}

// flush waits for the next flush.
func (d *slowDisk) flush() {
	next := time.Now().Truncate(time.Millisecond).Add(time.Millisecond)
	time.Sleep(time.Until(next))
	d.mu.Lock()
	defer d.mu.Unlock()
	d.flushes[next]++
}

// Under load the writes of many jobs share a flush: far fewer than saves. The disk is slow in virtual time, since one
// that flushes at once, as one of memory does, has no writes that wait together. The file has at most one flush a group.
func TestTheWritesOfManyJobsShareFlushes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r troupe
		var file *sqlitestore.Store
		disk := slowDisk{flushes: map[time.Time]int{}}
		w := open(t, embedded.Config{Dir: t.TempDir(), Agents: r.agents("a"), WrapStore: func(inner store.Store) store.Store {
			file = inner.(*sqlitestore.Store)
			disk.Store = inner
			return &disk
		}})
		c := w.define(reference)
		before := file.Stats()
		const jobs = 200
		var wg sync.WaitGroup
		for _, id := range ids(jobs) {
			wg.Go(func() { w.submit(c, id, `{"sku":"a-17"}`) })
		}
		wg.Wait()
		for _, id := range ids(jobs) {
			w.ends(id, makegood.JobProcessed)
		}
		after := file.Stats()
		groups, durable, syncs := after.Groups-before.Groups, after.Durable-before.Durable, after.Syncs-before.Syncs
		t.Logf("%d jobs of 5 steps: %d flushes of a slow disk; %d groups of the file, %d of them durable, %d flushes", jobs, len(disk.flushes), groups, durable, syncs)
		if syncs > durable || durable > groups {
			t.Errorf("got %d flushes of %d durable groups of %d, want at most one flush a group", syncs, durable, groups)
		}
		if most := jobs * 6 / 20; len(disk.flushes) > most {
			t.Errorf("got %d flushes for %d births and saves, want at most %d", len(disk.flushes), jobs*6, most)
		}
	})
}

// Measured and printed, not asserted.
func TestTwoThousandJobsOfThreeSteps(t *testing.T) {
	var r troupe
	m := newMeter()
	w := open(t, m.config(embedded.Config{Dir: t.TempDir(), Agents: r.agents("a")}))
	w.patience = 5 * time.Minute
	c := w.define("name: three\nsteps: [{name: x, agent: a}, {name: y, agent: a}, {name: z, agent: a}]")
	before, start := m.file.Stats(), time.Now()
	todo := make(chan string)
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for id := range todo {
				w.submit(c, id, `{"sku":"a-17"}`)
			}
		})
	}
	for _, id := range ids(2000) {
		todo <- id
	}
	close(todo)
	wg.Wait()
	for _, id := range ids(2000) {
		w.ends(id, makegood.JobProcessed)
	}
	took, after := time.Since(start), m.file.Stats()
	t.Logf("2000 jobs of 3 steps in %s: %.0f steps a second, %.2f flushes a step",
		took.Round(time.Millisecond), 6000/took.Seconds(), float64(after.Syncs-before.Syncs)/6000)
	if syncs, durable := after.Syncs-before.Syncs, after.Durable-before.Durable; syncs > durable {
		t.Errorf("got %d flushes of %d durable groups, want at most one each", syncs, durable)
	}
}
