package embedded_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/sqlitestore"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// crowd lets an engine run jobs to their ends, 64 at a time, and remembers none that has ended.
type crowd struct {
	t        testing.TB
	engine   *embedded.Engine
	compiled *workflowfile.Compiled
	places   chan struct{}

	mu   sync.Mutex
	left map[string]bool
	ran  int
}

// newCrowd opens an engine. Its store keeps so few jobs in memory that they are the same number from the beginning.
func newCrowd(t testing.TB) *crowd {
	t.Helper()
	c := &crowd{t: t, places: make(chan struct{}, 64), left: map[string]bool{}}
	var err error
	c.engine, err = embedded.Open(t.Context(), embedded.Config{
		Dir: t.TempDir(), Saved: c.saved, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Agents: []agent.Handler{actor{"a", func(context.Context, makegood.Task) (json.RawMessage, error) { return nil, nil }}},
		OpenStore: func(ctx context.Context, dir string, logger *slog.Logger) (store.Embedded, store.FolderLock, error) {
			s, err := sqlitestore.Open(ctx, sqlitestore.Options{Path: filepath.Join(dir, embedded.DataFile), CacheSteps: 300, Logger: logger})
			return s, nil, err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	c.compiled, err = workflowfile.Parse("three.yaml", []byte("name: three\nsteps: [{name: x, agent: a, timeout: 1h}, {name: y, agent: a}, {name: z, agent: a}]"))
	if err == nil {
		err = c.engine.Define(t.Context(), c.compiled)
	}
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.engine.Run(context.Background()) }()
	t.Cleanup(func() {
		if err := c.engine.Close(); err != nil {
			t.Error(err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return c
}

// run runs jobs to their end until there were so many in all.
func (c *crowd) run(all int) {
	for ; c.ran < all; c.ran++ {
		id := fmt.Sprint("job-", c.ran)
		c.places <- struct{}{}
		c.mu.Lock()
		c.left[id] = true
		c.mu.Unlock()
		go func() {
			if _, _, err := c.engine.Submit(context.Background(), scheduler.Submission{ID: id, Definition: c.compiled.Hash, Input: json.RawMessage(`{"sku":"a-17"}`)}); err != nil {
				c.t.Error(err)
			}
		}()
	}
	for range cap(c.places) {
		c.places <- struct{}{}
	}
	for range cap(c.places) {
		<-c.places
	}
}

func (c *crowd) saved(j job.Job) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if atEnd(j) && c.left[j.ID] {
		delete(c.left, j.ID)
		<-c.places
	}
}

// heap is how many bytes are on the heap.
func heap() int {
	runtime.GC()
	runtime.GC() // Finalizers and pools have given back what they had.
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// A job that has ended leaves nothing in memory: in a whole run not even its id would have room in what may be more.
func TestAJobThatHasEndedTakesNoMemory(t *testing.T) {
	const most, alarms = 300 << 10, 2 * 100
	few, many := 1000, 11_000
	if testing.Short() {
		many = 4000
	}
	c := newCrowd(t)
	c.run(few)
	before := heap()
	c.run(many)
	after := heap()
	// The last jobs have been saved, and the engine may still be about to rest. A leak stays.
	for until := time.Now().Add(2 * time.Minute); (after-before > most || c.engine.Alarms() > alarms) && time.Now().Before(until); after = heap() {
		time.Sleep(100 * time.Millisecond)
	}
	t.Logf("%d KB after %d jobs, %d KB after %d", before>>10, few, after>>10, many)
	if n := c.engine.Alarms(); n > alarms {
		t.Errorf("the alarm is set to %d times, want at most one each 10 ms for two ticks", n)
	}
	if more := after - before; more > most {
		t.Errorf("%d jobs more take %d bytes more, want at most %d for all", many-few, more, most)
	}
}

// BenchmarkHeap measures the live heap of an engine after a number of jobs have ended.
func BenchmarkHeap(b *testing.B) {
	for b.Loop() {
		c := newCrowd(b)
		for _, jobs := range []int{10_000, 100_000, 1_000_000} {
			c.run(jobs)
			b.ReportMetric(float64(heap()>>10), fmt.Sprintf("KB-after-%d", jobs))
		}
	}
}
