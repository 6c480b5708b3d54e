// Laid over internal/embedded of commit 0980d3c, which had no package engine: the work of lab/bench/works there.
package embedded_test

import (
	"fmt"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/embedded"
)

func rows(b *testing.B, steps int, work func(submit, wait func(i int))) {
	w := open(b, embedded.Config{Dir: b.TempDir(), Agents: []agent.Handler{actor{"idle", ok}}})
	text := "name: row\nsteps:\n"
	for i := range steps {
		text += fmt.Sprintf("  - {name: step%02d, agent: idle}\n", i)
	}
	c := w.define(text)
	id := func(i int) string { return fmt.Sprintf("job-%08d", i) }
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	cpu := processorTime()
	b.ResetTimer()
	work(func(i int) { w.submit(c, id(i), `{"sku":"a-17","quantity":3}`) }, func(i int) { w.until(id(i), atEnd) })
	b.StopTimer()
	cpu = processorTime() - cpu
	runtime.ReadMemStats(&after)
	n := float64(b.N * steps)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
	b.ReportMetric(float64(cpu.Microseconds())/n, "cpu-µs/step")
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/n, "allocs/step")
	b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/n, "B/step")
}

func BenchmarkManyJobs(b *testing.B) {
	b.Run("queued", func(b *testing.B) {
		rows(b, 3, func(submit, wait func(i int)) {
			numbers := make(chan int)
			var submitters sync.WaitGroup
			for range 64 {
				submitters.Go(func() {
					for i := range numbers {
						submit(i)
					}
				})
			}
			for i := range b.N {
				numbers <- i
			}
			close(numbers)
			submitters.Wait()
			for i := range b.N {
				wait(i)
			}
		})
	})
}

func BenchmarkTenInARow(b *testing.B) {
	b.Run("queued", func(b *testing.B) {
		rows(b, 10, func(submit, wait func(i int)) {
			for i := range b.N {
				submit(i)
				wait(i)
			}
		})
	})
}

func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
