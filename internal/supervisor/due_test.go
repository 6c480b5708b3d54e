package supervisor_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/agentrun"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/queue/localqueue"
	"github.com/makegood-dev/makegood/internal/router"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/memstore"
	"github.com/makegood-dev/makegood/internal/supervisor"
	"github.com/makegood-dev/makegood/internal/testkit/seed"
	"github.com/makegood-dev/makegood/internal/timetable"
	"github.com/makegood-dev/makegood/internal/wire"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// The rhythm of a stack: a sweep a minute, and pollers that never have more than ten records at a time.
const (
	sweepPeriod = time.Minute
	pollers     = 50
	// lag is how much later than SQS was told a message comes, at most; one in doubledIn comes twice.
	lag       = 100 * time.Millisecond
	doubledIn = 50
)

// The shards of ordered.
const (
	deadlineShard = iota
	beginShard
	scheduleShard
	orderedShards
)

// ordered is the index of a store in memory, with beginnings in shards of their own, as in DynamoDB. It keeps the keys of a
// shard in order from one write to the next, so that a page of it is read without looking at all jobs.
type ordered struct {
	store *memstore.Store

	mu     sync.Mutex
	keys   [scheduleShard]map[string]store.Entry
	sorted [scheduleShard][]store.Entry
}

func newOrdered(s *memstore.Store) *ordered {
	o := &ordered{store: s}
	for shard := range o.keys {
		o.keys[shard] = map[string]store.Entry{}
	}
	s.Wrote = func(_, after job.Job) { o.wrote(after) }
	return o
}

func (o *ordered) wrote(j job.Job) {
	o.mu.Lock()
	defer o.mu.Unlock()
	in := deadlineShard
	if store.Begins(j) {
		in = beginShard
	}
	for shard := range o.keys {
		if _, there := o.keys[shard][j.ID]; there {
			delete(o.keys[shard], j.ID)
			o.sorted[shard] = nil
		}
	}
	if !j.CompleteBy.IsZero() {
		o.keys[in][j.ID] = store.Entry{CompleteBy: j.CompleteBy, Job: j.ID}
		o.sorted[in] = nil
	}
}

func (o *ordered) Shards() int                 { return orderedShards }
func (o *ordered) OfBeginnings(shard int) bool { return shard != deadlineShard }

func (o *ordered) Due(ctx context.Context, shard int, now time.Time, after store.Entry, limit int) ([]store.Entry, error) {
	if shard == scheduleShard {
		return o.store.Due(ctx, 1, now, after, limit) // The shard that the store in memory has its schedules in.
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.sorted[shard] == nil {
		for _, e := range o.keys[shard] {
			o.sorted[shard] = append(o.sorted[shard], e)
		}
		slices.SortFunc(o.sorted[shard], compareKeys)
	}
	first, there := slices.BinarySearchFunc(o.sorted[shard], after, compareKeys)
	if there {
		first++
	}
	page := o.sorted[shard][first:]
	page = page[:min(limit, len(page))]
	until := slices.IndexFunc(page, func(e store.Entry) bool { return e.CompleteBy.After(now) })
	if until < 0 {
		until = len(page)
	}
	return slices.Clone(page[:until]), nil
}

func compareKeys(a, b store.Entry) int {
	return cmp.Or(a.CompleteBy.Compare(b.CompleteBy), cmp.Compare(a.Job, b.Job))
}

// bySecond sends as SQS does: it takes delays in whole seconds only, and a message comes a little later than that, now and then
// twice.
type bySecond struct {
	*localqueue.Queues
	t *testing.T

	mu     sync.Mutex
	random *rand.Rand
}

func (q *bySecond) Send(ctx context.Context, name string, messages ...queue.Message) []error {
	q.mu.Lock()
	defer q.mu.Unlock()
	var all []queue.Message
	for _, m := range messages {
		if m.Delay%time.Second != 0 || m.Delay > queue.MaxDelay {
			q.t.Errorf("a message of %s is sent with a delay of %s", m.Group, m.Delay)
		}
		copies := 1
		if q.random.IntN(doubledIn) == 0 {
			copies = 2
		}
		for range copies {
			late := m
			late.Delay = min(m.Delay+time.Duration(q.random.Int64N(int64(lag))), queue.MaxDelay)
			all = append(all, late)
		}
	}
	if errs := q.Queues.Send(ctx, name, all...); errs != nil {
		q.t.Errorf("send to %s: %v", name, errs)
	}
	return nil
}

// began is an agent that notes when each job began.
type began struct {
	mu   sync.Mutex
	jobs map[string][]time.Time
}

func (b *began) Name() string { return "clock" }

func (b *began) Handle(_ context.Context, task makegood.Task) (json.RawMessage, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.jobs[task.Job] = append(b.jobs[task.Job], time.Now())
	return nil, nil
}

var _ agent.Handler = (*began)(nil)

// stack is what the functions of AWS are made of, in one process and in virtual time: nothing takes time in it but waiting.
type stack struct {
	*testing.T
	store     *memstore.Store
	scheduler *scheduler.Scheduler
	table     *timetable.Timetable
	sweeps    *supervisor.Supervisor
	began     began
	// definition is the workflow of one step that all jobs here are of.
	definition *workflowfile.Compiled
}

func newStack(t *testing.T, random *rand.Rand) *stack {
	t.Helper()
	s := &stack{T: t, store: memstore.New(), began: began{jobs: map[string][]time.Time{}}}
	index := newOrdered(s.store)
	lines, err := localqueue.New(localqueue.Options{Seed: random.Uint64(), Queues: []localqueue.Queue{{Name: "events"}, {Name: "tasks"}, {Name: "quarantine"}}})
	if err != nil {
		t.Fatal(err)
	}
	sends := &bySecond{Queues: lines, t: t, random: rand.New(rand.NewPCG(random.Uint64(), 0))}
	logger := slog.New(slog.DiscardHandler)
	s.scheduler = scheduler.New(scheduler.Config{
		Jobs: s.store, Closings: s.store, Payloads: s.store, Definitions: s.store, Queue: sends, Events: "events", Quarantine: "quarantine",
		Tasks: func(string) string { return "tasks" }, Reminders: true, Period: sweepPeriod, Instance: "scheduler", Logger: logger,
	})
	s.table = timetable.New(timetable.Config{Schedules: s.store, Jobs: s.store, Submit: s.scheduler.SubmitCurrent, Stored: hint(sends), Logger: logger})
	events := router.New(router.Config{Jobs: s.scheduler.HandleSQS, Fire: s.table.Fire, Logger: logger})
	s.sweeps = supervisor.New(supervisor.Config{
		Index: index, Queue: sends, Events: "events", Leases: s.store, Holder: "supervisor", Places: s.store, Unpolled: time.Second,
		Ahead: limits.RemindWithin, Logger: logger,
	})
	runner := agentrun.New(agentrun.Config{Handlers: []agent.Handler{&s.began}, Claims: s.store, Queue: sends, Tasks: "tasks", Quarantine: "quarantine", Instance: "agent", Logger: logger})
	s.define("name: ticking\nsteps: [{name: tick, agent: clock}]")
	s.run(func(ctx context.Context) { s.poll(ctx, lines, "events", events.Handle) },
		func(ctx context.Context) { s.poll(ctx, lines, "tasks", runner.HandleSQS) }, s.sweep)
	return s
}

// hint sends a delayed message for a schedule whose key is nearer than a sweep looks: what sweeps have looked at they do not look at
// again. A deployed Scheduler does the same.
func hint(sends queue.Sender) func(ctx context.Context, name string, key time.Time) {
	return func(ctx context.Context, name string, key time.Time) {
		ahead := max(0, time.Until(key))
		if ahead > limits.RemindWithin {
			return
		}
		body, err := wire.EncodeScheduleDue(wire.ScheduleDue{Schedule: name, Key: key})
		if err != nil {
			panic(err)
		}
		sends.Send(ctx, "events", queue.Message{Body: body, Group: name, Delay: (ahead + time.Second - 1).Truncate(time.Second)})
	}
}

func (s *stack) define(yaml string) {
	s.Helper()
	var err error
	if s.definition, err = workflowfile.Parse("ticking.yaml", []byte(yaml)); err != nil {
		s.Fatal(err)
	}
	if err := s.store.PutDefinition(s.Context(), s.definition.Workflow.Name, s.definition.Hash, s.definition.Definition); err != nil {
		s.Fatal(err)
	}
}

// run runs what a stack consists of until the test ends.
func (s *stack) run(parts ...func(context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, part := range parts {
		running.Go(func() { part(ctx) })
	}
	s.Cleanup(func() {
		cancel()
		running.Wait()
	})
}

func (s *stack) poll(ctx context.Context, from queue.Receiver, name string, handle queue.Handler) {
	if err := (localqueue.Poller{Receiver: from, Queue: name, Concurrency: pollers, Handler: handle}).Run(ctx); err != nil {
		s.Error(err)
	}
}

// sweep is the schedule of the Supervisor.
func (s *stack) sweep(ctx context.Context) {
	tick := time.NewTicker(sweepPeriod)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if _, err := s.sweeps.Sweep(ctx); err != nil && ctx.Err() == nil {
			s.Error(err)
		}
	}
}

// submit submits many jobs, in an order that says nothing about their starts, and returns when each starts.
func (s *stack) submit(many int, start func() time.Time) map[string]time.Time {
	s.Helper()
	all := make(map[string]time.Time, many)
	for n := range many {
		id, at := fmt.Sprintf("due-%06d", n), domain.Instant(start())
		if _, _, err := s.scheduler.Submit(s.Context(), scheduler.Submission{ID: id, Definition: s.definition.Hash, StartAt: at}); err != nil {
			s.Fatal(err)
		}
		all[id] = at
	}
	return all
}

// wantOnce checks that each of these jobs began once, not before its time, and was processed, and that there is no other. It returns
// how late they began, in order.
func (s *stack) wantOnce(want map[string]time.Time) []time.Duration {
	s.Helper()
	late := make([]time.Duration, 0, len(want))
	for id, at := range want {
		times := s.began.jobs[id]
		if len(times) != 1 || times[0].Before(at) {
			s.Fatalf("%s began at %v, want once, from %v on", id, times, at)
		}
		if j, _ := s.store.Stored(id); j.ProcessState != makegood.JobProcessed {
			s.Fatalf("%s is %s, want it Processed", id, j.ProcessState)
		}
		late = append(late, times[0].Sub(at))
	}
	if len(s.began.jobs) != len(want) {
		s.Fatalf("%d jobs began, want %d", len(s.began.jobs), len(want))
	}
	slices.Sort(late)
	return late
}

// dueItems is how many jobs are due in the tests below; DUE says another number.
func dueItems(t *testing.T) int {
	text, said := os.LookupEnv("DUE")
	if !said {
		return 3000
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// On the rhythm of AWS each job begins once, and no more than two seconds late, at equal and at random times; so does what
// schedules fire meanwhile.
func TestManyDueItemsBeginOnceOnTheRhythmOfAWS(t *testing.T) {
	const window, every, schedules, mostLate = 10 * time.Minute, 90 * time.Second, 20, 2 * time.Second
	for name, after := range map[string]func(*rand.Rand) time.Duration{
		"at equal times": func(*rand.Rand) time.Duration { return window - time.Millisecond },
		"at random times": func(r *rand.Rand) time.Duration {
			return time.Duration(r.Int64N(int64(window))).Truncate(time.Millisecond)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				many, seed := dueItems(t), seed.Of(t)
				t.Logf("%d items", many)
				r := rand.New(rand.NewPCG(seed, 0))
				s := newStack(t, r)
				time.Sleep(time.Duration(r.Int64N(int64(sweepPeriod)))) // The sweeps come at any second of a minute.
				begin := domain.Instant(time.Now())
				want := s.submit(many, func() time.Time { return begin.Add(after(r)) })
				end := begin.Add(window + time.Minute).Truncate(every).Add(every / 2) // between two fires
				for n := range schedules {
					tick := makegood.Schedule{Name: fmt.Sprintf("tick-%d", n), Workflow: "ticking", Every: makegood.Duration(every)}
					if _, _, err := s.table.Create(t.Context(), tick, ""); err != nil {
						t.Fatal(err)
					}
					for fire := begin.Truncate(every).Add(every); fire.Before(end); fire = fire.Add(every) {
						want[domain.FireID(tick.Name, fire)] = fire
					}
				}
				time.Sleep(time.Until(end))
				synctest.Wait()
				late := s.wantOnce(want)
				p99 := late[len(late)*99/100]
				t.Logf("late: p50 %s, p99 %s, the last %s", late[len(late)/2], p99, late[len(late)-1])
				if p99 > mostLate {
					t.Errorf("p99 is %s late, the last %s, want at most %s", p99, late[len(late)-1], mostLate)
				}
			})
		})
	}
}
