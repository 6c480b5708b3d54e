package embedded_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/queue/faultqueue"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/faultstore"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// course says what is to become of a job.
type course struct {
	// refused is the action that is refused for good.
	refused string
	// cancel: the submitter cancels the job while its second step runs.
	cancel bool
	want   makegood.ProcessState
}

// voyage is one job with one submitter, over as many lives of the engine as it takes.
type voyage struct {
	course
	dir    string
	remote *services

	mu sync.Mutex
	// strike says what happens to the n-th call of this name, in the life that runs.
	strike func(call string, n int) effect
	calls  map[string]int
	dead   bool
	kill   context.CancelFunc
	inner  store.Store
	again  []string
	// last is the job at the end, and callsAtEnd the calls until then.
	last       makegood.Job
	callsAtEnd map[string]int

	charging chan struct{}
	answered chan struct{}
}

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
	return [...]string{"goes on", "fails before", "fails after", "crash before", "crash after"}[e]
}

const voyageYAML = `
name: order
steps:
  - {name: reserve, agent: inventory, startBy: 1m, timeout: 10s, retry: {backoff: 10ms, max: 1s}, undo: {action: release}}
  - {name: charge, agent: payments, startBy: 1m, timeout: 10s, retry: {backoff: 10ms, max: 1s}, undo: {action: refund}}
  - {name: ship, agent: shipping, startBy: 1m, timeout: 10s, retry: {backoff: 10ms, max: 1s}, undo: {action: recall}}
`

// newVoyage begins a voyage, in a bubble.
func newVoyage(t *testing.T, c course) *voyage {
	v := &voyage{course: c, dir: memoryDir(t), remote: newServices(0)}
	v.remote.refuses = func(task makegood.Task) bool { return task.Action == v.refused }
	v.charging, v.answered = make(chan struct{}), make(chan struct{})
	if !v.cancel {
		close(v.answered)
	}
	return v
}

// memoryDir gives a folder in memory where there is one: nothing here rests on flushes, and many runs
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
	if v.strike == nil {
		return goesOn
	}
	return v.strike(name, v.calls[name])
}

// crash ends the life: every later call of store and queues finds it dead.
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

func (v *voyage) config() embedded.Config {
	return embedded.Config{
		Dir: v.dir, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Agents: []agent.Handler{actor{"inventory", v.handle}, actor{"payments", v.handle}, actor{"shipping", v.handle}},
		WrapStore: func(inner store.Store) store.Store {
			v.inner = inner
			s := faultstore.New(inner, func(c faultstore.Call) faultstore.Fault {
				return faultstore.Fault{Effect: faultstore.Effect(v.call(c.Op))}
			})
			s.OnCrash = v.crash
			return s
		},
		WrapQueues: func(inner embedded.Queues) embedded.Queues {
			return faultqueue.New(inner, faultqueue.Options{
				Plan: func(c faultqueue.Call) faultqueue.Fault {
					return faultqueue.Fault(v.call(fmt.Sprintf("%s %s", c.Op, c.Queue)))
				},
				OnCrash: func(faultqueue.Call) { v.crash() },
			})
		},
	}
}

// handle is the agents: they note a step that is asked for although the store has it as done.
func (v *voyage) handle(ctx context.Context, task makegood.Task) (json.RawMessage, error) {
	if job, err := v.inner.Load(context.WithoutCancel(ctx), task.Job); err == nil {
		step, _ := job.Step(task.Step)
		done := step.Forward.State == makegood.Done
		if task.Undo != nil {
			done = step.Undo.State == makegood.Done
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
	return v.remote.handle(ctx, task)
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
func (v *voyage) live(t *testing.T, strike func(call string, n int) effect) (ended bool) {
	t.Helper()
	ctx, kill := context.WithCancel(context.Background())
	defer kill()
	v.calls, v.strike, v.dead, v.kill = map[string]int{}, strike, false, kill
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

// sail is the submitter: he asks until he is answered, or the process is dead.
func (v *voyage) sail(t *testing.T, engine *embedded.Engine) (ended bool) {
	t.Helper()
	c, err := workflowfile.Parse("order.yaml", []byte(voyageYAML))
	if err != nil {
		t.Fatal(err)
	}
	if !v.insist(func() error { return engine.Define(t.Context(), c) }) {
		return false
	}
	if !v.insist(func() error {
		_, _, err := engine.Submit(t.Context(), scheduler.Submission{ID: "j", Definition: c.Hash, Input: json.RawMessage(`{"sku":"a"}`)})
		return err
	}) {
		return false
	}
	if v.cancel && !v.cancelled(t, engine) {
		return false
	}
	for range 3600 {
		synctest.Wait()
		if v.isDead() {
			return false
		}
		if v.last, err = v.inner.Load(t.Context(), "j"); err == nil && atEnd(v.last) {
			return v.rests(t)
		}
		time.Sleep(time.Second)
	}
	return true
}

// rests lets come in what is still under way when the job has ended.
func (v *voyage) rests(t *testing.T) bool {
	t.Helper()
	v.mu.Lock()
	v.callsAtEnd = maps.Clone(v.calls)
	v.mu.Unlock()
	time.Sleep(time.Minute)
	if v.isDead() {
		return false
	}
	var err error
	if v.last, err = v.inner.Load(t.Context(), "j"); err != nil {
		t.Errorf("load: %v", err)
	}
	return true
}

// cancelled cancels the job once its charge has begun, and lets the charge go on then.
func (v *voyage) cancelled(t *testing.T, engine *embedded.Engine) bool {
	t.Helper()
	for began := false; !began; {
		select {
		case <-v.charging:
			began = true
		case <-time.After(time.Second):
			if v.isDead() {
				return false
			}
		}
	}
	granted := v.insist(func() error {
		_, verdict, err := engine.Request(t.Context(), "j", makegood.Requested{Verb: makegood.Cancel, Request: "c1"})
		if err == nil && verdict.Kind == machine.Refused {
			t.Errorf("cancel: refused, %s", verdict.Reason)
		}
		return err
	})
	if granted {
		select {
		case <-v.answered:
		default:
			close(v.answered)
		}
	}
	return granted
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
	if j.ProcessState != v.want || !j.CompleteBy.IsZero() || len(j.Claims.Slots) > 0 || len(j.Open) > 0 {
		text, _ := json.MarshalIndent(j, "", " ")
		t.Errorf("got %s, key %s, %d claims, want %s, out of the index, no claims: %s", j.ProcessState, j.CompleteBy, len(j.Claims.Slots), v.want, text)
	}
	v.remote.check(t, j)
	v.remote.checkAttempts(t)
	if len(v.again) > 0 {
		t.Errorf("asked for although finished: %v", v.again)
	}
}

// Whatever call of the store or of a queue fails, or is the last one of the process, before it had its
// effect or after: the job ends as it should, the ledger agrees, no attempt is made twice, and nothing
// that is finished is done again.
func TestTheJobEndsAsItShouldWhicheverCallFailsOrIsTheLast(t *testing.T) {
	for name, c := range courses() {
		t.Run(name, func(t *testing.T) {
			calls := map[string]int{}
			for range 3 {
				synctest.Test(t, func(t *testing.T) {
					v := newVoyage(t, c)
					v.live(t, nil)
					v.check(t)
					for call, n := range v.callsAtEnd {
						calls[call] = max(calls[call], n)
					}
				})
			}
			runs, struck := 0, map[effect]int{}
			for _, call := range slices.Sorted(maps.Keys(calls)) {
				for n := 1; n <= calls[call]; n++ {
					for e := failBefore; e <= crashAfter; e++ {
						runs++
						if strikeAt(t, c, call, n, e) {
							struck[e]++
						}
					}
				}
			}
			t.Logf("%d runs over the calls %v; struck: %v", runs, calls, struck)
		})
	}
}

func courses() map[string]course {
	return map[string]course{
		"an order that is processed": {want: makegood.Processed},
		"an order that is undone":    {refused: "ship", want: makegood.Undone},
		"an order that is cancelled": {cancel: true, want: makegood.Cancelled},
	}
}

// strikeAt plays a voyage in which the n-th call of this name is struck, and reports whether it came to
// that.
func strikeAt(t *testing.T, c course, call string, n int, e effect) (struck bool) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		v := newVoyage(t, c)
		ended := v.live(t, func(name string, k int) effect {
			if name == call && k == n {
				struck = true
				return e
			}
			return goesOn
		})
		if !ended {
			v.live(t, nil)
		}
		v.check(t)
	})
	if t.Failed() {
		t.Fatalf("that was: %s %d, %s", call, n, e)
	}
	return struck
}

// The engine dies again and again, at any call, also while it recovers from its last death.
func TestTheJobEndsAsItShouldHoweverOftenTheEngineDies(t *testing.T) {
	seed := newSeed(t)
	random := rand.New(rand.NewPCG(seed, 2))
	for _, name := range slices.Sorted(maps.Keys(courses())) {
		c, deaths := courses()[name], 0
		for run := range 25 {
			synctest.Test(t, func(t *testing.T) {
				v := newVoyage(t, c)
				ended := false
				for range 1 + random.IntN(8) {
					if ended = v.live(t, dieAt(1+random.IntN(30), crashBefore+effect(random.IntN(2)))); ended {
						break
					}
					deaths++
				}
				if !ended {
					v.live(t, nil)
				}
				v.check(t)
			})
			if t.Failed() {
				t.Fatalf("in run %d of %s", run, name)
			}
		}
		t.Logf("%s: 25 jobs, %d deaths", name, deaths)
	}
}

// dieAt strikes the n-th call of a life, whatever it is.
func dieAt(n int, how effect) func(string, int) effect {
	return func(string, int) effect {
		if n--; n == 0 {
			return how
		}
		return goesOn
	}
}

// An engine that is started again is back at work at once: it waits for no deadline of its last life.
func TestAfterARestartWorkGoesOnAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := memoryDir(t)
		charging := newDoor()
		r := troupe{script: map[string]work{"charge": charging.wait}}
		w := open(t, embedded.Config{Dir: dir, Agents: r.agents("inventory", "payments", "shipping")})
		c := w.define(order)
		for _, id := range ids(20) {
			w.submit(c, id, `{}`)
		}
		// All are being charged, and some of them are cancelled.
		for range 20 {
			<-charging.arrived
		}
		for _, id := range ids(10) {
			w.request(id, makegood.Cancel)
		}
		w.stop()

		start := time.Now()
		remote := troupe{}
		w = open(t, embedded.Config{Dir: dir, Agents: remote.agents("inventory", "payments", "shipping")})
		for i, id := range ids(20) {
			want := makegood.Processed
			if i < 10 {
				want = makegood.Cancelled
			}
			w.ends(id, want)
		}
		if took := time.Since(start); took > 100*time.Millisecond {
			t.Errorf("the jobs ended %s after the restart, want at once", took)
		}
	})
}
