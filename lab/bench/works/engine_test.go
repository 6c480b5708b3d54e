package works

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"runtime"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/engine"
)

// worker is the agent called idle.
type worker func(context.Context, makegood.Task) (json.RawMessage, error)

func (worker) Name() string { return "idle" }

func (w worker) Handle(ctx context.Context, t makegood.Task) (json.RawMessage, error) {
	return w(ctx, t)
}

// open opens an engine on a folder with one workflow, and lets it run until the test ends.
func open(tb testing.TB, dir, workflow string, work worker) *engine.Engine {
	tb.Helper()
	eng := mustOpen(tb, options(dir, workflow, work))
	stop := run(eng)
	tb.Cleanup(func() {
		if err := stop(); err != nil {
			tb.Error(err)
		}
	})
	return eng
}

func mustOpen(tb testing.TB, o engine.Options) *engine.Engine {
	tb.Helper()
	eng, err := engine.Open(context.Background(), o)
	if err != nil {
		tb.Fatal(err)
	}
	return eng
}

func options(dir, workflow string, work worker) engine.Options {
	return engine.Options{
		Dir: dir, Workflows: fstest.MapFS{"row.yaml": {Data: []byte(workflow)}}, Agents: []agent.Handler{work},
		Logger: slog.New(slog.DiscardHandler),
	}
}

// run lets an engine run, and returns the function that ends it.
func run(eng *engine.Engine) (stop func() error) {
	ran := make(chan error, 1)
	go func() { ran <- eng.Run(context.Background()) }()
	return func() error { return errors.Join(eng.Close(), <-ran) }
}

// measure reports the cost of work: jobs a second, and of each step the time of the processor, allocations and bytes.
func measure(b *testing.B, steps int, work func()) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	cpu := processorTime()
	b.ResetTimer()
	work()
	b.StopTimer()
	cpu = processorTime() - cpu
	runtime.ReadMemStats(&after)
	n := float64(b.N * steps)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
	b.ReportMetric(float64(cpu.Microseconds())/n, "cpu-µs/step")
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/n, "allocs/step")
	b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/n, "B/step")
}

func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
