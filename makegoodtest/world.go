package makegoodtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/httpagent"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/notify"
	"github.com/makegood-dev/makegood/internal/queue/faultqueue"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/faultstore"
	"github.com/makegood-dev/makegood/internal/view"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

const (
	// look is how often it is looked whether the job has ended, where its time is not long.
	look = time.Second
	// looks is the number of looks at a long run, by the world and by the Supervisor; due events wake it in any case.
	looks = 40
	// visibility is after how long an event comes again that was received and lost.
	visibility = 5 * time.Second
	// calm is the wait after the end of a job for work still under way: longer than a message can be invisible and then
	// be delayed by a fault.
	calm = visibility + faultqueue.MaxDelay + time.Second
	// again is the pause of a submitter without an answer.
	again = 10 * time.Millisecond
)

// faults are the faults in one life of the engine. The zero value: none.
type faults struct {
	// strike decides the fate of a call of the engine; see life.
	strike func(call) effect
	// queues are the rates at which messages are lost, doubled and delayed.
	queues faultqueue.Options
	// handle, if set, stands between the engine and an agent.
	handle handling
}

// handling does a task with an agent, or with a fault.
type handling func(ctx context.Context, a agent.Handler, task makegood.Task) (json.RawMessage, error)

func handleIt(ctx context.Context, a agent.Handler, task makegood.Task) (json.RawMessage, error) {
	return a.Handle(ctx, task)
}

// world is one run of a case: its services, and one life of the engine after another.
type world struct {
	t *testing.T
	c Case
	// compiled is the workflow of the job, children those of the jobs that do its steps.
	compiled *workflowfile.Compiled
	children []*workflowfile.Compiled
	input    json.RawMessage
	services Services
	dir      string
	start    time.Time

	engine *embedded.Engine
	life   *life
	faults faults
	done   chan error

	mu       sync.Mutex
	inner    store.Store
	lives    int
	stored   map[string]job.Job
	attempts []Attempt
	// suffered are the faults so far, in sentences.
	suffered []string
}

// newWorld makes the services, in a bubble. The engine does not run until open.
func newWorld(t *testing.T, c Case) *world {
	t.Helper()
	all, input, err := c.compiled()
	if err != nil {
		t.Fatal(err)
	}
	last := len(all) - 1
	w := &world{t: t, c: c, compiled: all[last], children: all[:last], input: input, dir: memoryDir(t), start: time.Now(), stored: map[string]job.Job{}}
	w.services = c.Services()
	t.Cleanup(w.close)
	if w.services.Completions != nil {
		w.answer()
	}
	return w
}

// memoryDir returns a folder in memory where there is one: no test here rests on flushes, and many runs would wait
// for them.
func memoryDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "makegoodtest-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// open begins a life of the engine.
func (w *world) open(f faults) {
	w.t.Helper()
	ctx, kill := context.WithCancel(context.Background())
	w.mu.Lock()
	w.lives++
	w.faults = f
	w.life = newLife(f.strike, w.noteFault, kill)
	w.mu.Unlock()
	engine, err := embedded.Open(context.Background(), w.config())
	if err != nil {
		kill()
		w.t.Fatalf("open the engine: %v", err)
	}
	w.mu.Lock()
	w.engine, w.done = engine, make(chan error, 1)
	w.mu.Unlock()
	go func() { w.done <- engine.Run(ctx) }()
	// What a start does comes before what the submitter does, so that the n-th call is the same in every run.
	synctest.Wait()
}

func (w *world) config() embedded.Config {
	quiet := slog.New(slog.DiscardHandler)
	return embedded.Config{
		Dir: w.dir, Agents: w.agents(), Secrets: w.services.secret, Logger: quiet, Notifier: notify.Log{Logger: quiet}, Visibility: visibility,
		Tick: w.look() / 2, Asker: asker{w.services}, Asked: w.asked(),
		WrapStore: func(inner store.Store) store.Store {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.inner = inner
			return w.watch(inner, w.life)
		},
		WrapQueues: func(inner embedded.Queues) embedded.Queues {
			return &watchedQueues{Queues: faultqueue.New(inner, w.faults.queues), life: w.life}
		},
	}
}

// asked are the names of those who are asked, by all workflows of the case.
func (w *world) asked() []string {
	all := w.compiled.Asked()
	for _, child := range w.children {
		all = append(all, child.Asked()...)
	}
	return all
}

// secret is the agent.Secrets of a case.
func (s Services) secret(_ context.Context, name string) (string, error) {
	value, there := s.Secrets[name]
	if !there {
		return "", fmt.Errorf("%w: Services.Secrets has none of this name", agent.ErrNoSecret)
	}
	return value, nil
}

// close ends the life that runs, if any.
func (w *world) close() {
	if w.engine == nil {
		return
	}
	_ = w.life.Crash()
	// Whatever the dying engine says is about its death.
	<-w.done
	if err := w.engine.Close(); err != nil {
		w.t.Errorf("close the engine: %v", err)
	}
	w.mu.Lock()
	w.engine = nil
	w.mu.Unlock()
}

// submit makes the workflows and the job known; it asks until it is answered, as a submitter must. False:
// the engine died.
func (w *world) submit() bool {
	w.t.Helper()
	for _, child := range w.children {
		if !w.insist(func() error { return w.engine.Define(context.Background(), child) }) {
			return false
		}
	}
	return w.insist(func() error { return w.engine.Define(context.Background(), w.compiled) }) &&
		w.insist(func() error {
			_, _, err := w.engine.Submit(context.Background(), scheduler.Submission{ID: JobID, Definition: w.compiled.Hash, Input: w.input})
			return err
		})
}

func (w *world) insist(ask func() error) bool {
	w.t.Helper()
	for !w.life.Crashed() {
		err := ask()
		switch {
		case err == nil:
			return true
		case !errors.Is(err, faultstore.ErrInjected) && !errors.Is(err, faultstore.ErrCrashed):
			w.t.Fatal(err)
		}
		time.Sleep(again)
	}
	return false
}

// untilEnd waits for the end of the job, for at most so long, or until the engine has died.
func (w *world) untilEnd(within time.Duration) {
	for deadline := time.Now().Add(within); ; time.Sleep(w.look()) {
		synctest.Wait()
		j, err := w.load()
		ended := err == nil && (j.ProcessState.Finished() || j.ProcessState == makegood.JobError)
		if ended || w.life.Crashed() || !time.Now().Before(deadline) {
			return
		}
	}
}

// look is how often it is looked whether the job has ended.
func (w *world) look() time.Duration { return max(look, w.c.within()/looks) }

// rest waits for work still under way when the job has ended.
func (w *world) rest() {
	time.Sleep(calm)
	synctest.Wait()
}

// load reads the job past all faults.
func (w *world) load() (job.Job, error) {
	return w.inner.Load(context.Background(), JobID)
}

// job returns the job as it is now. The engine must be open.
func (w *world) job() (Job, error) {
	stored, err := w.load()
	if err != nil {
		return Job{}, fmt.Errorf("read the job: %w", err)
	}
	seen, err := view.WithPayloads(context.Background(), stored, nil, w.inner)
	if err != nil {
		return Job{}, fmt.Errorf("read the job: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	whole := Job{Job: seen, Attempts: slices.Clone(w.attempts)}
	for _, id := range slices.Sorted(maps.Keys(w.stored)) {
		if id == JobID {
			continue
		}
		child, err := w.inner.Load(context.Background(), id)
		if err != nil {
			return Job{}, fmt.Errorf("read job %s: %w", id, err)
		}
		shown, err := view.WithPayloads(context.Background(), child, nil, w.inner)
		if err != nil {
			return Job{}, fmt.Errorf("read job %s: %w", id, err)
		}
		whole.Children = append(whole.Children, shown)
	}
	return whole, nil
}

// verdict returns the job at the end of a run, and the violation, if there is one.
func (w *world) verdict() (Job, error) {
	job, err := w.job()
	switch {
	case err != nil:
		return job, err
	case !job.AtEnd():
		return job, fmt.Errorf("the job has not ended within %s: it is %s", w.c.within(), job.ProcessState)
	case w.services.Check == nil:
		return job, nil
	}
	return job, w.services.Check(job)
}

func (w *world) lastStored(id string) job.Job {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stored[id]
}

func (w *world) noteStored(j job.Job) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if j.Rev >= w.stored[j.ID].Rev {
		w.stored[j.ID] = j.Clone()
	}
}

func (w *world) noteFault(c call, e effect) {
	w.noteSuffered(c.suffers(e))
}

func (w *world) noteSuffered(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.suffered = append(w.suffered, what)
}

// agents returns the agents of the case, watched.
func (w *world) agents() []agent.Handler {
	all := append([]agent.Handler(nil), w.services.Agents...)
	if w.services.HTTP != nil {
		all = append(all, httpagent.NewOver(inProcess{w.services.HTTP}))
	}
	for i, a := range all {
		all[i] = watchedAgent{a, w}
	}
	return all
}

// watchedAgent is an agent whose attempts are noted.
type watchedAgent struct {
	agent.Handler
	w *world
}

func (a watchedAgent) Handle(ctx context.Context, task makegood.Task) (json.RawMessage, error) {
	n, handle := a.w.begun(task)
	if handle == nil {
		handle = handleIt
	}
	output, err := handle(ctx, a.Handler, task)
	a.w.answered(n, err)
	return output, err
}

// begun notes an attempt, and returns its place and the handling between the engine and the agent.
func (w *world) begun(task makegood.Task) (int, handling) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.attempts = append(w.attempts, Attempt{Task: task, At: time.Since(w.start), Life: w.lives})
	return len(w.attempts) - 1, w.faults.handle
}

func (w *world) answered(n int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.attempts[n].Answer = "done"
	if err != nil {
		w.attempts[n].Answer = "failed: " + err.Error()
	}
}
