package embedded_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/notify"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store/sqlitestore"
	"github.com/makegood-dev/makegood/internal/wire"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// world is an engine that runs, and what it has saved.
type world struct {
	t      testing.TB
	engine *embedded.Engine
	// patience is how long until waits, on the clock of the test.
	patience time.Duration
	// stop closes the engine, die ends it as the death of its process does.
	stop, die func()

	mu    sync.Mutex
	jobs  map[string]job.Job
	saves int
	// parked is how often a job was parked.
	parked map[string]int
	more   chan struct{}
}

// open opens an engine and lets it run until the test ends, or stop is called.
func open(t testing.TB, c embedded.Config) *world {
	t.Helper()
	w := &world{t: t, patience: usualPatience(), jobs: map[string]job.Job{}, parked: map[string]int{}, more: make(chan struct{}, 1)}
	if c.Logger == nil {
		c.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	if _, measured := t.(*testing.B); c.WrapStore == nil && !measured {
		c.WrapStore = guarded(t)
	}
	c.Saved, c.Parked = w.saved, w.wasParked
	engine, err := embedded.Open(t.Context(), c)
	for began := time.Now(); errors.Is(err, sqlitestore.ErrLocked) && time.Since(began) < w.patience; engine, err = embedded.Open(t.Context(), c) {
		time.Sleep(time.Second) // An agent of the engine before may still be at work.
	}
	if err != nil {
		t.Fatal(err)
	}
	w.engine = engine
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- engine.Run(ctx) }()
	var once sync.Once
	end := func(end func() error) func() {
		return func() {
			once.Do(func() {
				cancel()
				if err := <-done; err != nil {
					t.Errorf("run: %v", err)
				}
				if err := end(); err != nil {
					t.Errorf("end: %v", err)
				}
			})
		}
	}
	w.stop, w.die = end(engine.Close), end(engine.Die)
	t.Cleanup(w.stop)
	return w
}

func (w *world) saved(j job.Job) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.saves++
	if j.Rev < w.jobs[j.ID].Rev {
		return
	}
	w.jobs[j.ID] = j
	select {
	case w.more <- struct{}{}:
	default:
	}
}

func (w *world) wasParked(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.parked[id]++
}

// define makes a workflow known.
func (w *world) define(yaml string) *workflowfile.Compiled {
	w.t.Helper()
	c, err := workflowfile.Parse("test.yaml", []byte(yaml))
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.engine.Define(w.t.Context(), c); err != nil {
		w.t.Fatal(err)
	}
	return c
}

// defineErr returns the error of making a workflow known.
func (w *world) defineErr(yaml string) error {
	w.t.Helper()
	c, err := workflowfile.Parse("test.yaml", []byte(yaml))
	if err != nil {
		w.t.Fatal(err)
	}
	return w.engine.Define(w.t.Context(), c)
}

func (w *world) submit(c *workflowfile.Compiled, id, input string) job.Job {
	w.t.Helper()
	j, _, err := w.engine.Submit(w.t.Context(), scheduler.Submission{ID: id, Definition: c.Hash, Input: json.RawMessage(input)})
	if err != nil {
		w.t.Fatal(err)
	}
	return j
}

// request asks something of a job that must be granted.
func (w *world) request(id string, verb makegood.Verb) job.Job {
	w.t.Helper()
	j, verdict, err := w.engine.Parts().Scheduler.Request(w.t.Context(), id, job.Requested{Verb: verb, Request: fmt.Sprintf("%s-%s", verb, time.Now())})
	if err != nil || verdict.Kind != machine.Applied {
		w.t.Fatalf("%s of %s: got %s %q, %v, want applied", verb, id, verdict.Kind, verdict.Reason, err)
	}
	return j
}

// until waits until a job is as wanted, for as long as there is patience.
func (w *world) until(id string, is func(job.Job) bool) job.Job {
	w.t.Helper()
	deadline := time.After(w.patience)
	for {
		w.mu.Lock()
		j, ok := w.jobs[id]
		w.mu.Unlock()
		if ok && is(j) {
			return j
		}
		select {
		case <-w.more:
		case <-time.After(50 * time.Millisecond):
		case <-deadline:
			text, _ := json.MarshalIndent(j, "", " ")
			w.t.Fatalf("job %s is not as wanted: %s", id, text)
		}
	}
}

// stored waits until a job is as wanted in the store. Unlike until it also sees a save whose answer was
// lost.
func (w *world) stored(id string, is func(job.Job) bool) job.Job {
	w.t.Helper()
	for deadline := time.Now().Add(w.patience); ; time.Sleep(time.Second) {
		j, err := w.engine.Job(w.t.Context(), id)
		if err == nil && is(j) {
			return j
		}
		if time.Now().After(deadline) {
			text, _ := json.MarshalIndent(j, "", " ")
			w.t.Fatalf("job %s is not as wanted: %v, %s", id, err, text)
		}
	}
}

// ends waits for the end of a job, which must be this one.
func (w *world) ends(id string, want makegood.ProcessState) job.Job {
	w.t.Helper()
	j := w.until(id, atEnd)
	if j.ProcessState != want {
		text, _ := json.MarshalIndent(j, "", " ")
		w.t.Fatalf("job %s: got %s (%s), want %s\n%s", id, j.ProcessState, j.Reason, want, text)
	}
	return j
}

func atEnd(j job.Job) bool {
	return j.ProcessState.Finished() || j.ProcessState == makegood.JobError
}

func inState(s makegood.ProcessState) func(job.Job) bool {
	return func(j job.Job) bool { return j.ProcessState == s }
}

// stepOf returns a step of a job, which must be there.
func stepOf(t testing.TB, j job.Job, name string) job.StepState {
	t.Helper()
	s, ok := j.Step(name)
	if !ok {
		t.Fatalf("job %s has no step %s", j.ID, name)
	}
	return s
}

// actor is an agent made of one function.
type actor struct {
	name string
	do   work
}

type work func(ctx context.Context, task makegood.Task) (json.RawMessage, error)

func (a actor) Name() string { return a.name }

func (a actor) Handle(ctx context.Context, task makegood.Task) (json.RawMessage, error) {
	return a.do(ctx, task)
}

// ok does nothing, successfully.
func ok(context.Context, makegood.Task) (json.RawMessage, error) { return json.RawMessage(`"ok"`), nil }

// troupe is agents that note every task and do what the script says for its action; for an action
// that is not in the script they do nothing, successfully.
type troupe struct {
	script map[string]work

	mu    sync.Mutex
	tasks []makegood.Task
	times []time.Time
}

func (r *troupe) handle(ctx context.Context, task makegood.Task) (json.RawMessage, error) {
	r.mu.Lock()
	r.tasks, r.times = append(r.tasks, task), append(r.times, time.Now())
	do := r.script[task.Action]
	r.mu.Unlock()
	if do == nil {
		do = ok
	}
	return do(ctx, task)
}

// agents returns handlers of these names that all act as r says.
func (r *troupe) agents(names ...string) []agent.Handler {
	var handlers []agent.Handler
	for _, name := range names {
		handlers = append(handlers, actor{name, r.handle})
	}
	return handlers
}

// seen returns the tasks of an action, of any if it is empty, in the order in which they were begun.
func (r *troupe) seen(action string) []makegood.Task {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.tasks), func(t makegood.Task) bool { return action != "" && t.Action != action })
}

// moments returns when the tasks of an action were begun.
func (r *troupe) moments(action string) []time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	var moments []time.Time
	for i, t := range r.tasks {
		if t.Action == action {
			moments = append(moments, r.times[i])
		}
	}
	return moments
}

// order returns the actions in the order in which they were begun.
func (r *troupe) order() string {
	var actions []string
	for _, t := range r.seen("") {
		actions = append(actions, t.Action)
	}
	return strings.Join(actions, " ")
}

// once fails at its first call, and succeeds from then on.
func once(err error) work {
	var calls int
	var mu sync.Mutex
	return func(context.Context, makegood.Task) (json.RawMessage, error) {
		mu.Lock()
		defer mu.Unlock()
		calls++
		if calls == 1 {
			return nil, err
		}
		return json.RawMessage(`"ok"`), nil
	}
}

func always(err error) work {
	return func(context.Context, makegood.Task) (json.RawMessage, error) { return nil, err }
}

func gives(output string) work {
	return func(context.Context, makegood.Task) (json.RawMessage, error) { return json.RawMessage(output), nil }
}

// silent works until it is told to stop, and then says what a context says.
func silent(ctx context.Context, _ makegood.Task) (json.RawMessage, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

// door holds work until it is opened.
type door struct {
	arrived chan makegood.Task
	open    chan struct{}
}

func newDoor() *door {
	return &door{arrived: make(chan makegood.Task, 100), open: make(chan struct{})}
}

func (d *door) wait(ctx context.Context, task makegood.Task) (json.RawMessage, error) {
	d.arrived <- task
	select {
	case <-d.open:
		return json.RawMessage(`"ok"`), nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// tap is queues that a test can look into, hold, and refuse at.
type tap struct {
	embedded.Queues

	mu     sync.Mutex
	sent   map[string][]queue.Message
	times  map[string][]time.Time
	calls  map[string]int
	held   map[string]chan struct{}
	refuse func(name string, m queue.Message) error
}

func newTap() *tap {
	return &tap{sent: map[string][]queue.Message{}, times: map[string][]time.Time{}, calls: map[string]int{}, held: map[string]chan struct{}{}}
}

func (p *tap) wrap(q embedded.Queues) embedded.Queues {
	p.Queues = q
	return p
}

// hold lets nothing be received from a queue until release is called.
func (p *tap) hold(name string) (release func()) {
	held := make(chan struct{})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held[name] = held
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.held, name)
		close(held)
	})
}

func (p *tap) Send(ctx context.Context, name string, messages ...queue.Message) []error {
	p.mu.Lock()
	refuse := p.refuse
	p.calls[name]++
	for _, m := range messages {
		p.sent[name] = append(p.sent[name], m)
		p.times[name] = append(p.times[name], time.Now())
	}
	p.mu.Unlock()
	if refuse == nil {
		return p.Queues.Send(ctx, name, messages...)
	}
	errs := make([]error, len(messages))
	for i, m := range messages {
		if errs[i] = refuse(name, m); errs[i] != nil {
			continue
		}
		if one := p.Queues.Send(ctx, name, m); one != nil {
			errs[i] = one[0]
		}
	}
	return errs
}

func (p *tap) Receive(ctx context.Context, name string, limit int) ([]events.SQSMessage, error) {
	p.mu.Lock()
	held := p.held[name]
	p.mu.Unlock()
	if held != nil {
		select {
		case <-held:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return p.Queues.Receive(ctx, name, limit)
}

// count is how many messages were sent to a queue.
func (p *tap) count(name string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.sent[name])
}

// tasks decodes what was sent to the queue of an agent, with the times of sending.
func (p *tap) tasks(t testing.TB, agent string) (tasks []makegood.Task, sent []time.Time) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.sent["tasks-"+agent] {
		task, err := wire.DecodeTask(m.Body)
		if err != nil {
			t.Fatal(err)
		}
		tasks = append(tasks, task)
	}
	return tasks, slices.Clone(p.times["tasks-"+agent])
}

// bell is a notifier whose first tellings fail.
type bell struct {
	mu      sync.Mutex
	fail    int
	notices []notify.Notice
	times   []time.Time
	silent  []string
	alerts  []time.Time
}

var errDeaf = errors.New("nobody answers the telephone")

func (b *bell) Announce(_ context.Context, n notify.Notice) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.notices, b.times = append(b.notices, n), append(b.times, time.Now())
	if len(b.notices) <= b.fail {
		return errDeaf
	}
	return nil
}

func (b *bell) AgentAlert(_ context.Context, agent, _ string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.silent, b.alerts = append(b.silent, agent), append(b.alerts, time.Now())
	return nil
}

// heard returns the notices so far, those whose telling failed too.
func (b *bell) heard() []notify.Notice {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.notices)
}

// defineStubbornly makes a workflow known to a store that fails now and then.
func (w *world) defineStubbornly(yaml string) *workflowfile.Compiled {
	w.t.Helper()
	c, err := workflowfile.Parse("test.yaml", []byte(yaml))
	if err != nil {
		w.t.Fatal(err)
	}
	for range 100 {
		if err = w.engine.Define(w.t.Context(), c); err == nil {
			return c
		}
	}
	w.t.Fatal(err)
	return nil
}

// submitStubbornly submits until it is answered, as a submitter must.
func (w *world) submitStubbornly(c *workflowfile.Compiled, id, input string) {
	var err error
	for range 100 {
		if _, _, err = w.engine.Submit(w.t.Context(), scheduler.Submission{ID: id, Definition: c.Hash, Input: json.RawMessage(input)}); err == nil {
			return
		}
	}
	w.t.Errorf("submit %s: %v", id, err)
}
