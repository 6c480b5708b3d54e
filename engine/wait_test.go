package engine

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/control"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/httpagent"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
)

// loads counts the reads of jobs.
type loads struct {
	store.Store
	n atomic.Int64
}

func (l *loads) Load(ctx context.Context, id string) (job.Job, error) {
	l.n.Add(1)
	return l.Store.Load(ctx, id)
}

// openCounted opens an engine with a workflow, whose reads of jobs are counted, and lets it run.
func openCounted(t *testing.T, workflow string, work agent.Handler) (*Engine, *loads) {
	t.Helper()
	counted := new(loads)
	http, err := httpagent.New(httpagent.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	e := &Engine{http: http, waiting: control.NewWaiting()}
	config := Options{Dir: t.TempDir()}.config([]agent.Handler{work}, e.waiting)
	e.agents = config.Named()
	config.WrapStore = func(inner store.Store) store.Store {
		counted.Store = inner
		return counted
	}
	if e.inner, err = embedded.Open(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	e.answer()
	if _, err := e.Define(t.Context(), "test.yaml", []byte(workflow)); err != nil {
		t.Fatal(err)
	}
	ran := make(chan error, 1)
	go func() { ran <- e.Run(context.Background()) }()
	t.Cleanup(func() {
		if err := errors.Join(e.Close(), <-ran); err != nil {
			t.Error(err)
		}
	})
	return e, counted
}

// waitFor begins to wait for the job j, and returns the channel of its end.
func waitFor(t *testing.T, e *Engine) <-chan makegood.Job {
	ended := make(chan makegood.Job, 1)
	go func() {
		j, err := e.Wait(t.Context(), "j")
		if err != nil {
			t.Error(err)
		}
		ended <- j
	}()
	synctest.Wait()
	return ended
}

// gated works when it may.
type gated struct {
	open chan struct{}
	err  error
}

func (gated) Name() string { return "gated" }

func (g gated) Handle(ctx context.Context, t makegood.Task) (json.RawMessage, error) {
	if t.Undo != nil {
		return nil, nil
	}
	select {
	case <-g.open:
	case <-ctx.Done():
	}
	if t.Step == "last" {
		return json.RawMessage(`{"last":true}`), g.err
	}
	return json.RawMessage(`{"n":1}`), nil
}

const threeGated = `
name: three
steps:
  - {name: first, agent: gated, undo: {action: takeBack}}
  - {name: second, agent: gated, undo: none}
  - {name: last, agent: gated}
`

// Wait reads the job once, however many saves the job takes: the last save hands the finished job to the waiter.
func TestWhoWaitsForAJobReadsItOnce(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		tail string
		want makegood.ProcessState
	}{
		"done":     {nil, "", makegood.JobProcessed},
		"undone":   {agent.Final(errors.New("no")), "onFailure: undo\n", makegood.JobUndone},
		"in Error": {agent.Final(errors.New("no")), "onFailure: stop\n", makegood.JobError},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				work := gated{make(chan struct{}), c.err}
				e, counted := openCounted(t, threeGated+c.tail, work)
				if _, err := e.Submit(t.Context(), makegood.Submission{Workflow: "three", ID: "j", Input: json.RawMessage(`{"sku":"a-17"}`)}); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				before := counted.n.Load()
				const waiters = 5
				ended := make(chan makegood.Job, waiters)
				for range waiters {
					go func() {
						j, err := e.Wait(t.Context(), "j")
						if err != nil {
							t.Error(err)
						}
						ended <- j
					}()
				}
				synctest.Wait()
				if n := counted.n.Load() - before; n != waiters {
					t.Errorf("%d who wait read the job %d times at first, want once each", waiters, n)
				}
				saves := e.savesOf(t, "j")
				close(work.open)
				synctest.Wait()
				for range waiters {
					got := <-ended
					if got.ProcessState != c.want {
						t.Errorf("got %s, want %s", got.ProcessState, c.want)
					}
				}
				// The Scheduler reads the job once for each move, and the waiters add no read.
				if n, moves := counted.n.Load()-before-waiters, e.savesOf(t, "j")-saves; n > moves+1 {
					t.Errorf("the job was read %d times in %d saves: those who wait have looked", n, moves)
				}
			})
		})
	}
}

// savesOf is how often a job was saved.
func (e *Engine) savesOf(t *testing.T, id string) int64 {
	t.Helper()
	j, err := e.inner.Job(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return j.Rev
}

// What Wait returns is what Get does, of a job that nothing has touched since its end.
func TestWaitReturnsTheJobAsGetDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		work := gated{make(chan struct{}), nil}
		e, _ := openCounted(t, threeGated, work)
		s := makegood.Submission{Workflow: "three", ID: "j", Input: json.RawMessage(`{"b":2, "a":1}`), Labels: map[string]string{"color": "red"}}
		if _, err := e.Submit(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		waited := waitFor(t, e)
		close(work.open)
		got := <-waited
		synctest.Wait()
		want, err := e.Get(t.Context(), "j")
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
	})
}

// An end that is told late, of a job that was resubmitted since, is not the one that is waited for.
func TestAnEndFromBeforeTheWaitIsNotItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		work := gated{make(chan struct{}), nil}
		e, _ := openCounted(t, threeGated, work)
		if _, err := e.Submit(t.Context(), makegood.Submission{Workflow: "three", ID: "j"}); err != nil {
			t.Fatal(err)
		}
		waited := waitFor(t, e)
		e.waiting.Saved(job.Job{ID: "j", ProcessState: makegood.JobError, Rev: 1})
		synctest.Wait()
		select {
		case j := <-waited:
			t.Errorf("got %s, want to go on waiting", j.ProcessState)
		default:
		}
		close(work.open)
		if j := <-waited; j.ProcessState != makegood.JobProcessed {
			t.Errorf("got %s, want %s", j.ProcessState, makegood.JobProcessed)
		}
	})
}

// Who waits looks when the job was parked, and otherwise ever less often: at first after a second, at last every half minute.
func TestWhoWaitsLooksSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		work := gated{make(chan struct{}), nil}
		e, counted := openCounted(t, threeGated, work)
		if _, err := e.Submit(t.Context(), makegood.Submission{Workflow: "three", ID: "j"}); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() {
			_, err := e.Wait(t.Context(), "j")
			ended <- err
		}()
		synctest.Wait()
		before := counted.n.Load()
		e.waiting.Parked("j")
		synctest.Wait()
		if n := counted.n.Load() - before; n != 1 {
			t.Errorf("when it was parked: %d looks, want one", n)
		}
		before = counted.n.Load()
		time.Sleep(16 * time.Second)
		if n := counted.n.Load() - before; n != 4 {
			t.Errorf("within 16 seconds: %d looks, want 4, after 1, 3, 7 and 15", n)
		}
		close(work.open)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// Who waits for a job that is not there hears so.
func TestNobodyWaitsForAJobThatIsNotThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := openCounted(t, threeGated, gated{})
		synctest.Wait()
		if _, err := e.Wait(t.Context(), "nobody"); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("got %v, want %v", err, api.ErrNotFound)
		}
	})
}
