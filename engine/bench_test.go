package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/engine"
)

// A step that does nothing costs what the engine costs. One operation is a job: submitted, done and waited for through the
// public package, each answer on the disk. docs/production.md has figures.

// BenchmarkThreeSteps is many jobs at once, of three steps each.
func BenchmarkThreeSteps(b *testing.B) {
	eng := idle(b, 3, "")
	measure(b, 3, func() { throughAll(b, eng, b.N, 0) })
}

// BenchmarkInlineThreeSteps is the same with inline steps.
func BenchmarkInlineThreeSteps(b *testing.B) {
	eng := idle(b, 3, ", inline: true")
	measure(b, 3, func() { throughAll(b, eng, b.N, 0) })
}

// BenchmarkChainThreeSteps is the same with steps in a chain.
func BenchmarkChainThreeSteps(b *testing.B) {
	eng := idle(b, 3, ", inline: true, exclusive: false")
	measure(b, 3, func() { throughAll(b, eng, b.N, 0) })
}

// throughAll submits n jobs, numbered from first on, 64 at a time, and waits for each.
func throughAll(tb testing.TB, eng *engine.Engine, n, first int) {
	numbers := make(chan int)
	var submitters, waiters sync.WaitGroup
	for range 64 {
		submitters.Go(func() {
			for i := range numbers {
				id := submitNumber(tb, eng, i)
				waiters.Go(func() { waitDone(tb, eng, id) })
			}
		})
	}
	for i := range n {
		numbers <- first + i
	}
	close(numbers)
	submitters.Wait()
	waiters.Wait()
}

// BenchmarkTenInARow is one job after the other, of ten steps each.
func BenchmarkTenInARow(b *testing.B) { inARow(b, idle(b, 10, "")) }

// BenchmarkInlineTenInARow is the same with inline steps.
func BenchmarkInlineTenInARow(b *testing.B) { inARow(b, idle(b, 10, ", inline: true")) }

// BenchmarkChainTenInARow is the same with steps in a chain.
func BenchmarkChainTenInARow(b *testing.B) {
	inARow(b, idle(b, 10, ", inline: true, exclusive: false"))
}

func inARow(b *testing.B, eng *engine.Engine) {
	measure(b, 10, func() {
		for i := range b.N {
			waitDone(b, eng, submitNumber(b, eng, i))
		}
	})
}

// idle opens an engine on a folder of its own, whose only workflow has so many steps in a row that do nothing. Each has
// the fields more.
func idle(b testing.TB, steps int, more string) *engine.Engine {
	text := "name: row\nsteps:\n"
	for i := range steps {
		text += fmt.Sprintf("  - {name: step%02d, agent: idle%s}\n", i, more)
	}
	eng, err := engine.Open(b.Context(), engine.Options{
		Dir: b.TempDir(), Workflows: fstest.MapFS{"row.yaml": {Data: []byte(text)}}, Agents: []agent.Handler{idler{}},
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		b.Fatal(err)
	}
	ran := make(chan error, 1)
	go func() { ran <- eng.Run(context.Background()) }()
	b.Cleanup(func() {
		if err := eng.Close(); err != nil {
			b.Error(err)
		}
		if err := <-ran; err != nil {
			b.Error(err)
		}
	})
	return eng
}

type idler struct{}

func (idler) Name() string { return "idle" }

func (idler) Handle(context.Context, makegood.Task) (json.RawMessage, error) {
	return json.RawMessage(`"ok"`), nil
}

func submitNumber(tb testing.TB, eng *engine.Engine, i int) string {
	id := fmt.Sprintf("job-%08d", i)
	if _, err := eng.Submit(context.Background(), makegood.Submission{Workflow: "row", ID: id, Input: json.RawMessage(`{"sku":"a-17","quantity":3}`)}); err != nil {
		tb.Error(err)
	}
	return id
}

func waitDone(tb testing.TB, eng *engine.Engine, id string) {
	if j, err := eng.Wait(context.Background(), id); err != nil || j.ProcessState != makegood.JobProcessed {
		tb.Errorf("job %s: got %s, %v, want %s", id, j.ProcessState, err, makegood.JobProcessed)
	}
}

// measure reports what work costs: jobs a second, and of each step the time of the processor, allocations and bytes.
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
	b.ReportMetric(float64(after.NumGC-before.NumGC), "GCs")
}

func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
