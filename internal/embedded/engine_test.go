package embedded_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// actor is an agent made of one function, so that a test sees every task.
type actor struct {
	name string
	do   func(ctx context.Context, task makegood.Task) (json.RawMessage, error)
}

func (a actor) Name() string { return a.name }
func (a actor) Handle(ctx context.Context, task makegood.Task) (json.RawMessage, error) {
	return a.do(ctx, task)
}

// ok does nothing, successfully.
func ok(context.Context, makegood.Task) (json.RawMessage, error) { return json.RawMessage(`"ok"`), nil }

// world is an engine that runs, and what it has saved.
type world struct {
	t      testing.TB
	engine *embedded.Engine
	ended  map[string]makegood.Job
	mu     sync.Mutex
	more   chan struct{}
	stop   func()
}

// open opens an engine and lets it run until the test ends, or stop is called.
func open(t testing.TB, c embedded.Config) *world {
	w := &world{t: t, ended: map[string]makegood.Job{}, more: make(chan struct{}, 1)}
	if c.Logger == nil {
		c.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	c.Saved = w.saved
	engine, err := embedded.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	w.engine = engine
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- engine.Run(ctx) }()
	var once sync.Once
	w.stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				t.Errorf("run: %v", err)
			}
			if err := engine.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		})
	}
	t.Cleanup(w.stop)
	return w
}

func (w *world) saved(job makegood.Job) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if job.Rev < w.ended[job.ID].Rev {
		return
	}
	w.ended[job.ID] = job
	select {
	case w.more <- struct{}{}:
	default:
	}
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

func (w *world) submit(c *workflowfile.Compiled, id, input string) makegood.Job {
	w.t.Helper()
	job, _, err := w.engine.Submit(w.t.Context(), scheduler.Submission{ID: id, Definition: c.Hash, Input: json.RawMessage(input)})
	if err != nil {
		w.t.Fatal(err)
	}
	return job
}

// until waits until a job is as wanted, for at most 20 seconds.
func (w *world) until(id string, is func(makegood.Job) bool) makegood.Job {
	w.t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		w.mu.Lock()
		job, ok := w.ended[id]
		w.mu.Unlock()
		if ok && is(job) {
			return job
		}
		select {
		case <-w.more:
		case <-time.After(50 * time.Millisecond):
		case <-deadline:
			text, _ := json.MarshalIndent(job, "", " ")
			w.t.Fatalf("job %s is not as wanted: %s", id, text)
		}
	}
}

func atEnd(j makegood.Job) bool {
	return j.ProcessState.Finished() || j.ProcessState == makegood.Error
}

func TestAChainOfSixtyStepsEndsProcessed(t *testing.T) {
	w := open(t, embedded.Config{Agents: []agent.Handler{actor{"a", ok}}})
	yaml := "name: chain\nsteps:\n"
	for i := range 60 {
		yaml += fmt.Sprintf("  - {name: s%d, agent: a}\n", i)
	}
	w.submit(w.define(yaml), "j", `{"n": 1}`)
	job := w.until("j", atEnd)
	if job.ProcessState != makegood.Processed {
		t.Errorf("got %s: %s", job.ProcessState, job.Reason)
	}
}

func BenchmarkThreeSteps(b *testing.B) {
	w := open(b, embedded.Config{Dir: b.TempDir(), Agents: []agent.Handler{actor{"a", ok}}})
	c := w.define("name: three\nsteps: [{name: x, agent: a}, {name: y, agent: a}, {name: z, agent: a}]")
	var wg sync.WaitGroup
	jobs := make(chan string)
	b.ResetTimer()
	for range 64 {
		wg.Go(func() {
			for id := range jobs {
				w.submit(c, id, `{"sku":"a-17","quantity":3}`)
			}
		})
	}
	for i := range b.N {
		jobs <- fmt.Sprintf("job-%d", i)
	}
	close(jobs)
	wg.Wait()
	for i := range b.N {
		w.until(fmt.Sprintf("job-%d", i), atEnd)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
}
