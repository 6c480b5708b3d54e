package embedded_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/embedded"
)

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
