package embedded_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/notify"
	"github.com/makegood-dev/makegood/internal/queue/faultqueue"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/faultstore"
	"github.com/makegood-dev/makegood/internal/testkit/layers"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// effect is what happens to a call; the effects of faultstore and faultqueue are in the same order.
type effect int

const (
	goesOn effect = iota
	failBefore
	failAfter
	crashBefore
	crashAfter
)

func (e effect) String() string {
	return [...]string{"goes on", "fails before", "executed but error", "crash before", "crash after"}[e]
}

// strike says what happens to a call, by its name and its number among those of its name since the
// last one that was struck.
type strike func(call string, n int) effect

// voyage is one job with one submitter, over as many lives of the engine as it takes.
type voyage struct {
	golden
	dir    string
	remote *services

	mu     sync.Mutex
	strike strike
	calls  map[string]int
	dead   bool
	kill   context.CancelFunc
	inner  store.Store
	again  []string
	heard  map[int]makegood.ProcessState
	// last is the job at the end, and callsAtEnd the calls until then.
	last job.Job
	// children are the jobs that did its steps: when it ended, and in the end.
	children, later []job.Job
	// workflow is the job's, and saved the job as it was last saved.
	workflow   makegood.Workflow
	saved      job.Job
	callsAtEnd map[string]int

	engine *embedded.Engine
	// arrived counts the calls since the submission; atCancel are those until the cancel was asked for, and atEnd those
	// until the job ended. settled: the cancel was answered, and granted or not.
	arrived, atCancel, atEnd map[string]int
	asked, settled, granted  bool

	charging chan struct{}
	answered chan struct{}
}

// newVoyage begins a voyage, in a bubble.
func newVoyage(t *testing.T, g golden) *voyage {
	v := &voyage{golden: g, dir: memoryDir(t), remote: newServices(0), calls: map[string]int{}, arrived: map[string]int{}, heard: map[int]makegood.ProcessState{}}
	v.charging, v.answered = make(chan struct{}), make(chan struct{})
	if !v.cancel {
		close(v.answered)
	}
	return v
}

// memoryDir returns a folder in memory where there is one: nothing here rests on flushes, and many runs
// would wait for them.
func memoryDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "makegood-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// call counts a call of the life that runs, and says what happens to it.
func (v *voyage) call(name string) effect {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.dead {
		return crashBefore
	}
	v.calls[name]++
	if v.strike == nil || v.cancelBefore.n > 0 && !v.asked {
		return goesOn
	}
	e := v.strike(name, v.calls[name])
	if e != goesOn {
		v.calls = map[string]int{}
	}
	return e
}

// crash ends the life: every later call of store, queues, services and notifier finds it dead.
func (v *voyage) crash() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.dead = true
	v.kill()
}

func (v *voyage) isDead() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.dead
}

// visibility is that of events, short so that few ticks pass until all has come that will.
const visibility = 2 * time.Second

var errStruck = errors.New("struck")

// suffer makes a call that is neither the store's nor a queue's.
func (v *voyage) suffer(name string, execute func() error) error {
	v.arrives(name)
	e := v.call(name)
	switch e {
	case failBefore:
		return errStruck
	case crashBefore:
		v.crash()
		return errStruck
	}
	err := execute()
	switch e {
	case failAfter:
		return errStruck
	case crashAfter:
		v.crash()
		return errStruck
	}
	return err
}

// notes says what a save shows.
func (v *voyage) notes(j job.Job) {
	if v.seen == nil || j.ID != "j" {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.seen.Moved(layers.Move{Workflow: v.workflow, Before: v.saved, After: j})
	v.saved = j
}

func (v *voyage) config() embedded.Config {
	c := embedded.Config{
		Dir: v.dir, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), Notifier: v, Listener: v, Replies: []string{"shop"},
		Visibility: visibility, Saved: v.notes,
		WrapStore: func(inner store.Store) store.Store {
			v.inner = inner
			s := faultstore.New(inner, func(c faultstore.Call) faultstore.Effect {
				return faultstore.Effect(v.call(c.Op))
			})
			s.OnCrash = v.crash
			return faultstore.Around(s, func(c faultstore.Call, execute func() error) error {
				v.arrives(c.Op)
				return execute()
			})
		},
		WrapQueues: func(inner embedded.Queues) embedded.Queues {
			return gate{v, faultqueue.New(inner, faultqueue.Options{
				Plan: func(c faultqueue.Call) faultqueue.Fault {
					return faultqueue.Fault(v.call(callOf(c.Op, c.Queue)))
				},
				OnCrash: func(faultqueue.Call) { v.crash() },
			})}
		},
	}
	for _, name := range v.agents() {
		c.Agents = append(c.Agents, actor{name, v.handle})
	}
	return c
}

// agents are those whom the workflow names. An agent without work would only receive.
func (v *voyage) agents() (names []string) {
	for _, name := range []string{"inventory", "payments", "shipping"} {
		if strings.Contains(v.yaml+v.child, "agent: "+name) {
			names = append(names, name)
		}
	}
	return names
}

// Announce is what the listener hears.
func (v *voyage) Announce(_ context.Context, n notify.Notice) error {
	return v.suffer("Announce", func() error {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.heard[n.Seq] = n.ProcessState
		return nil
	})
}

// AgentSilent is what an operator hears.
func (v *voyage) AgentAlert(context.Context, string, string) error {
	return v.suffer("AgentSilent", func() error { return nil })
}

// handle is the agents: they note a step that is asked for although the store has it as done.
func (v *voyage) handle(ctx context.Context, task makegood.Task) (json.RawMessage, error) {
	if j, err := v.inner.Load(context.WithoutCancel(ctx), task.Job); err == nil {
		step, _ := j.Step(task.Step)
		done := step.Forward.State == job.Done
		if task.Undo != nil {
			done = step.Undo.State == job.Done
		}
		if done {
			v.mu.Lock()
			v.again = append(v.again, fmt.Sprintf("%s#%d", task.Action, task.Attempt))
			v.mu.Unlock()
		}
	}
	if task.Action == "charge" {
		v.noteCharging()
		select {
		case <-v.answered:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	var output json.RawMessage
	err := v.suffer("request "+task.Action, func() (err error) {
		output, err = v.remote.handle(ctx, task)
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case task.Action == v.unanswered:
		return nil, errStruck
	case v.large:
		return json.RawMessage(largeJSON), nil
	}
	return output, nil
}

func (v *voyage) noteCharging() {
	v.mu.Lock()
	defer v.mu.Unlock()
	select {
	case <-v.charging:
	default:
		close(v.charging)
	}
}

// live lets the engine live until the job has ended or the process died, and reports which.
func (v *voyage) live(t *testing.T, s strike) (ended bool) {
	t.Helper()
	ctx, kill := context.WithCancel(context.Background())
	defer kill()
	v.strike, v.dead, v.kill = s, false, kill
	engine, err := embedded.Open(t.Context(), v.config())
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- engine.Run(ctx) }()
	ended = v.sail(t, engine)
	kill()
	if err := <-done; err != nil && !v.isDead() {
		t.Errorf("run: %v", err)
	}
	if err := engine.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	return ended
}

// sail is the submitter: they ask until they are answered, or the process is dead.
func (v *voyage) sail(t *testing.T, engine *embedded.Engine) (ended bool) {
	t.Helper()
	c, err := workflowfile.Parse("order.yaml", []byte(v.yaml))
	if err != nil {
		t.Fatal(err)
	}
	v.mu.Lock()
	v.workflow = c.Workflow // an engine that was opened again saves already
	v.mu.Unlock()
	if !v.insist(func() error { return engine.Define(t.Context(), c) }) {
		return false
	}
	if v.child != "" && !v.defines(t, engine) {
		return false
	}
	synctest.Wait() // Until the engine works: before, no attempt is inline.
	v.submits(engine)
	if !v.insist(func() error {
		_, _, err := engine.Submit(t.Context(), scheduler.Submission{
			ID: "j", Definition: c.Hash, Input: json.RawMessage(v.input), ReplyTo: v.replyTo,
		})
		return err
	}) {
		return false
	}
	if v.cancel && !v.cancelled() {
		return false
	}
	for range 3600 {
		synctest.Wait()
		if v.isDead() || v.asks() && !v.insist(v.asksCancel) {
			return false
		}
		if v.last, err = v.inner.Load(t.Context(), "j"); err == nil && atEnd(v.last) {
			return v.rests(t)
		}
		time.Sleep(time.Second)
	}
	return true
}

// rests lets come in what is still under way when the job has ended, and tells what is still untold.
func (v *voyage) rests(t *testing.T) bool {
	t.Helper()
	v.mu.Lock()
	v.callsAtEnd, v.atEnd = maps.Clone(v.calls), maps.Clone(v.arrived)
	v.mu.Unlock()
	v.children = v.born(t)
	// What was not told is told after a minute; what was not deleted comes again after its visibility.
	for minutes := 0; minutes < 3 && !v.isDead(); minutes++ {
		time.Sleep(visibility + time.Second)
		var err error
		if v.last, err = v.inner.Load(t.Context(), "j"); err != nil {
			t.Errorf("load: %v", err)
		}
		if v.last.CompleteBy.IsZero() {
			break
		}
		time.Sleep(time.Minute)
	}
	v.later = v.born(t)
	return !v.isDead()
}

// defines defines the workflow of the children.
func (v *voyage) defines(t *testing.T, engine *embedded.Engine) bool {
	t.Helper()
	c, err := workflowfile.Parse("child.yaml", []byte(v.child))
	if err != nil {
		t.Fatal(err)
	}
	return v.insist(func() error { return engine.Define(t.Context(), c) })
}

// born returns the children of all attempts of the job, and theirs, as they are now.
func (v *voyage) born(t *testing.T) []job.Job {
	t.Helper()
	return v.bornOf(t, v.last, func(i int) bool { return v.workflow.Steps[i].Agent == makegood.AgentWorkflow })
}

func (v *voyage) bornOf(t *testing.T, j job.Job, isChild func(i int) bool) (children []job.Job) {
	t.Helper()
	for i, s := range j.Steps {
		for n := 1; n <= s.Attempt && isChild(i); n++ {
			child, err := v.inner.Load(t.Context(), domain.ChildID(j.ID, j.Birth, s.Name, n))
			switch {
			case err == nil:
				children = append(children, child)
				children = append(children, v.bornOf(t, child, func(i int) bool { return strings.HasPrefix(child.Steps[i].Name, "part_") })...)
			case !errors.Is(err, store.ErrNotFound):
				t.Errorf("load: %v", err)
			}
		}
	}
	return children
}

// checkChildren: none goes on when its parent has ended, the one whose work counts stands as the step does, and what the
// services did for each is what its end says.
func (v *voyage) checkChildren(t *testing.T) {
	t.Helper()
	for _, child := range v.children {
		if !child.ProcessState.Finished() {
			t.Errorf("the job is %s, and its child %s %s", v.last.ProcessState, child.ID, child.ProcessState)
		}
	}
	processed := 0
	for _, child := range v.later {
		own := child
		own.Steps = slices.DeleteFunc(slices.Clone(child.Steps), func(s job.StepState) bool { return strings.HasPrefix(s.Name, "part_") })
		v.remote.check(t, own)
		if is, _ := domain.ChildOf(child.ID); is.Parent == "j" && child.ProcessState == makegood.JobProcessed {
			processed++
		}
		if !child.CompleteBy.IsZero() {
			t.Errorf("child %s is %s, with the key %s", child.ID, child.ProcessState, child.CompleteBy)
		}
	}
	want := 0
	if v.want == makegood.JobProcessed {
		want = 1
	}
	if processed != want || v.child != "" && len(v.later) == 0 && v.cancelBefore.n == 0 {
		t.Errorf("%d of %d children are Processed, want %d", processed, len(v.later), want)
	}
}

// cancelled cancels the job once its charge has begun, and lets the charge go on then.
func (v *voyage) cancelled() bool {
	for began := false; !began && !v.asks(); {
		select {
		case <-v.charging:
			began = true
		case <-v.answered:
			return true
		case <-time.After(time.Second):
			if v.isDead() {
				return false
			}
		}
	}
	if v.still {
		synctest.Wait()
	}
	return v.insist(v.asksCancel)
}

func (v *voyage) insist(ask func() error) bool {
	for !v.isDead() {
		if ask() == nil {
			return true
		}
		time.Sleep(10 * time.Millisecond)
	}
	return false
}

// check checks what must hold at the end, however often the engine died.
func (v *voyage) check(t *testing.T) {
	t.Helper()
	j := v.last
	if j.ProcessState != v.want || !j.CompleteBy.IsZero() {
		text, _ := json.MarshalIndent(j, "", " ")
		t.Errorf("got %s, key %s, want %s, out of the index: %s", j.ProcessState, j.CompleteBy, v.want, text)
	}
	j.Steps = slices.Clone(j.Steps)
	if v.child != "" {
		v.checkChildren(t)
		j.Steps = slices.DeleteFunc(j.Steps, func(s job.StepState) bool { return s.Name == "pay" })
	}
	v.remote.check(t, j)
	v.remote.checkAttempts(t)
	if len(v.again) > 0 {
		t.Errorf("asked for although finished: %v", v.again)
	}
	for seq := 1; v.replyTo != "" && seq <= len(v.heard); seq++ {
		if _, heard := v.heard[seq]; !heard {
			t.Errorf("announcement %d was not heard, of %v", seq, v.heard)
		}
	}
	if got := v.heard[len(v.heard)]; v.replyTo != "" && got != v.want {
		t.Errorf("the listener heard %v, want %s in the end", v.heard, v.want)
	}
}
