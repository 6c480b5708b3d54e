package scheduler_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/notify"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/queue/localqueue"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/faultstore"
	"github.com/makegood-dev/makegood/internal/store/sqlitestore"
	"github.com/makegood-dev/makegood/internal/wire"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// world is a Scheduler on a real store and real queues, whose batches the test writes itself.
type world struct {
	t     *testing.T
	now   time.Time
	file  *sqlitestore.Store
	local *localqueue.Queues
	// s is what config makes.
	s      *scheduler.Scheduler
	config scheduler.Config
	told   teller // the operator
	heard  teller // whoever listens

	mu sync.Mutex
	// calls counts what the store was asked; strike may let a call fail, or do something first.
	calls  map[string]int
	strike func(op, job string) faultstore.Effect
	// sends are the calls of Send, each with the names of its queue and of the jobs of its messages.
	sends []send
	// deny may let a message fail.
	deny  func(name string, m queue.Message) error
	saved []job.Job
	// again is what was sent with a delay, by queue, since watchLeft.
	again map[string][]string
	ids   int
}

type send struct {
	queue string
	jobs  []string
}

// teller is a notifier that keeps what it was told, and may be deaf.
type teller struct {
	deaf    error
	before  func()
	notices []notify.Notice
	silent  []string
}

func (r *teller) Announce(_ context.Context, n notify.Notice) error {
	if r.before != nil {
		r.before()
	}
	r.notices = append(r.notices, n)
	return r.deaf
}

func (r *teller) AgentAlert(_ context.Context, agent, _ string) error {
	r.silent = append(r.silent, agent)
	return r.deaf
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), calls: map[string]int{}}
	var err error
	if w.file, err = sqlitestore.Open(t.Context(), sqlitestore.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.file.Shut(); err != nil {
			t.Error(err)
		}
	})
	w.local, err = localqueue.New(localqueue.Options{Queues: []localqueue.Queue{
		{Name: "events"}, {Name: "submissions"}, {Name: "quarantine"}, {Name: "tasks-a"}, {Name: "tasks-b"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	faulty := faultstore.New(w.file, w.plan)
	w.config = scheduler.Config{
		Jobs: faulty, Closings: faulty, Payloads: faulty, Definitions: faulty, Queue: w, Notifier: &w.told, Listener: &w.heard,
		Events: "events", Quarantine: "quarantine", Tasks: func(agent string) string { return "tasks-" + agent },
		Instance: "test", Saved: w.keep, Now: func() time.Time { return w.now }, Random: func() uint64 { return 7 },
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	w.s = scheduler.New(w.config)
	return w
}

// with is a Scheduler on the same store and queues, but for what change puts in their place.
func (w *world) with(change func(*scheduler.Config)) *scheduler.Scheduler {
	c := w.config
	change(&c)
	return scheduler.New(c)
}

// use puts such a Scheduler in the place of the world's own. It has counted nothing.
func (w *world) use(change func(*scheduler.Config)) {
	change(&w.config)
	w.s = scheduler.New(w.config)
}

func (w *world) plan(c faultstore.Call) faultstore.Effect {
	w.mu.Lock()
	w.calls[c.Op]++
	strike := w.strike
	w.mu.Unlock()
	if strike == nil {
		return faultstore.None
	}
	return strike(c.Op, c.Job)
}

func (w *world) keep(j job.Job) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.saved = append(w.saved, j)
}

// jobOf returns the job that a message is about; empty: none.
func jobOf(m queue.Message) string {
	if task, err := wire.DecodeTask(m.Body); err == nil {
		return task.Job
	}
	in, _ := wire.DecodeIncoming(m.Body)
	return in.Job
}

// Send is the queues', noted.
func (w *world) Send(ctx context.Context, name string, messages ...queue.Message) []error {
	w.mu.Lock()
	defer w.mu.Unlock()
	noted := send{queue: name}
	errs := make([]error, len(messages))
	for i, m := range messages {
		noted.jobs = append(noted.jobs, jobOf(m))
		if w.deny != nil {
			errs[i] = w.deny(name, m)
		}
		if errs[i] != nil {
			continue
		}
		if one := w.local.Send(ctx, name, m); one != nil {
			errs[i] = one[0]
		}
	}
	w.sends = append(w.sends, noted)
	if errors.Join(errs...) == nil {
		return nil // As a queue does that has sent them all.
	}
	return errs
}

// Depth is the queues'.
func (w *world) Depth(ctx context.Context, name string) (queue.Depth, error) {
	return w.local.Depth(ctx, name)
}

// forget forgets what was counted so far.
func (w *world) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sends, w.saved = nil, nil
	clear(w.calls)
}

func (w *world) define(yaml string) *workflowfile.Compiled {
	w.t.Helper()
	c, err := workflowfile.Parse("test.yaml", []byte(yaml))
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.file.PutDefinition(w.t.Context(), c.Workflow.Name, c.Hash, c.Definition); err != nil {
		w.t.Fatal(err)
	}
	return c
}

func (w *world) submit(c *workflowfile.Compiled, id string) job.Job {
	w.t.Helper()
	j, _, err := w.s.Submit(w.t.Context(), scheduler.Submission{ID: id, Definition: c.Hash, Input: json.RawMessage(`{}`)})
	if err != nil {
		w.t.Fatal(err)
	}
	return j
}

func (w *world) job(id string) job.Job {
	w.t.Helper()
	j, err := w.file.Load(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return j
}

// open is the attempt of a step that is out; 0: none is.
func (w *world) open(id, step string) int {
	w.t.Helper()
	state, _ := w.job(id).Step(step)
	for _, a := range []job.Activity{state.Forward, state.Undo} {
		if a.State == job.Dispatched {
			return a.Attempt
		}
	}
	return 0
}

// slot names the claim item of a step.
func (w *world) slot(id, step string) store.Slot {
	w.t.Helper()
	j := w.job(id)
	body, err := w.file.Definition(w.t.Context(), j.Definition)
	if err != nil {
		w.t.Fatal(err)
	}
	c, err := workflowfile.Load(body)
	if err != nil {
		w.t.Fatal(err)
	}
	return store.Slot{Agent: machine.AgentOf(c.Workflow, step, false), Job: id, Birth: j.Birth, Step: step}
}

// claimUntil is the ClaimUntil of the latest attempt of a step.
func (w *world) claimUntil(id, step string) time.Time {
	w.t.Helper()
	state, _ := w.job(id).Step(step)
	return state.Forward.ClaimUntil()
}

// held says who holds the attempt of a step that is out.
func (w *world) held(id, step string) job.Claim {
	w.t.Helper()
	held, err := w.s.Held(w.t.Context(), w.job(id))
	if err != nil {
		w.t.Fatal(err)
	}
	return held[step]
}

// claim claims the open attempt of a step, as an agent does.
func (w *world) claim(id, step string) job.Claim {
	w.t.Helper()
	claim := job.Claim{
		Attempt: w.open(id, step), LockedBy: id + "/" + step, StartedAt: w.now, CompleteBy: w.now.Add(30 * time.Second),
	}
	if err := w.file.Claim(w.t.Context(), w.slot(id, step), claim, w.claimUntil(id, step)); err != nil {
		w.t.Fatal(err)
	}
	return claim
}

// by is what the reply of a claim says of itself.
func (w *world) by(id, step string, c job.Claim) job.Reply {
	w.t.Helper()
	return job.Reply{
		Step: step, Attempt: c.Attempt, Token: machine.Token(w.job(id), step, c.Attempt), LockedBy: c.LockedBy, StartedAt: c.StartedAt,
	}
}

// succeeded is the success of a claim, failed its failure.
func (w *world) succeeded(id, step string, c job.Claim) record {
	w.t.Helper()
	return w.record(id, job.StepSucceeded{Reply: w.by(id, step, c), Output: wire.Inline(json.RawMessage(`"ok"`))})
}

func (w *world) failed(id, step string, c job.Claim, why job.StepError) record {
	w.t.Helper()
	return w.record(id, job.StepFailed{Reply: w.by(id, step, c), Error: why})
}

// done claims the open attempt of a step and returns the reply of its success.
func (w *world) done(id, step string) record {
	w.t.Helper()
	return w.succeeded(id, step, w.claim(id, step))
}

// record is a message on the events queue.
type record = events.SQSMessage

func (w *world) record(job string, e job.Event) record {
	w.t.Helper()
	body, err := wire.EncodeEvent(job, e)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.raw(body)
}

func (w *world) raw(body string) record {
	w.ids++
	return record{MessageId: fmt.Sprintf("m%d", w.ids), Body: body}
}

// handle lets the Scheduler handle a batch, and returns the ids of the records that it wants again.
func (w *world) handle(records ...record) (failed []string) {
	w.t.Helper()
	response, err := w.s.HandleSQS(w.t.Context(), events.SQSEvent{Records: records})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, f := range response.BatchItemFailures {
		failed = append(failed, f.ItemIdentifier)
	}
	slices.Sort(failed)
	return failed
}

// deadline is the Supervisor's event for a job whose key has passed by now.
func (w *world) deadline(id string) record {
	w.t.Helper()
	key := w.job(id).CompleteBy
	if key.After(w.now) {
		w.now = key
	}
	return w.record(id, job.DeadlinePassed{Key: key})
}

// checkCalls compares what the store was asked since forget.
func (w *world) checkCalls(want map[string]int) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for op, n := range want {
		if w.calls[op] != n {
			w.t.Errorf("%s: got %d calls of the store, want %d", op, w.calls[op], n)
		}
	}
}

// checkSends compares the calls of Send since forget, in any order of queues and jobs.
func (w *world) checkSends(want ...send) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if got, want := sorted(w.sends), sorted(want); got != want {
		w.t.Errorf("sent %s, want %s", got, want)
	}
}

func sorted(sends []send) string {
	var all []string
	for _, s := range sends {
		jobs := slices.Sorted(slices.Values(s.jobs))
		all = append(all, fmt.Sprintf("to %s %v", s.queue, jobs))
	}
	slices.Sort(all)
	return fmt.Sprint(all)
}

// beforeSave lets something happen just before the next Save of a job.
func (w *world) beforeSave(job string, do func()) { w.before("Save", job, do) }

// before lets something happen just before the next call of an operation on a job.
func (w *world) before(operation, job string, do func()) {
	w.strike = func(op, of string) faultstore.Effect {
		if op == operation && of == job {
			w.strike = nil
			do()
		}
		return faultstore.None
	}
}

// handleWith lets another Scheduler handle a batch, of which nothing may fail.
func (w *world) handleWith(s *scheduler.Scheduler, records ...record) {
	w.t.Helper()
	response, err := s.HandleSQS(w.t.Context(), events.SQSEvent{Records: records})
	if err != nil || len(response.BatchItemFailures) > 0 {
		w.t.Errorf("the other Scheduler: got %v, %v, want no failures", response.BatchItemFailures, err)
	}
}
