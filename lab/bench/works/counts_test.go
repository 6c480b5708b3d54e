//go:build !race

package works

import (
	"runtime"
	"runtime/debug"
	"testing"
	"testing/synctest"
)

// budgets are the most that a step may take, through the public package: of many jobs of three steps, and of jobs of
// ten, one after the other. Those of many are some six percent above the count of 2026-11-26 (99 allocations of 19,600
// bytes for the first), the others three: their counts hardly differ between runs. A step that takes less gets a smaller
// one. Commit 0980d3c needed 300 allocations of 40,600 bytes for a step of three, without package engine.
var budgets = []struct {
	lane   lane
	steps  int
	allocs uint64
	bytes  uint64
}{
	{lanes[0], 3, 106, 20_900},
	{lanes[1], 3, 94, 17_900},
	{lanes[2], 3, 81, 15_000},
	{lanes[0], 10, 123, 26_900},
	{lanes[1], 10, 93, 24_700},
	{lanes[2], 10, 52, 11_500},
}

// A step allocates no more than its budget, so that no feature can cost speed unseen. It counts in a bubble, where no
// time passes while there is work: on a busy machine the engine looks at jobs that take more than a second. And it
// counts without the collector, which empties pools: when it comes is chance. Jobs of many at once share writes where
// several threads run, on however many processors: how many of them is chance, too, so the least of three counts.
func TestAStepAllocatesNoMoreThanItsBudget(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	for _, row := range budgets {
		allocs, bytes := allocated(t, row.lane, row.steps)
		for range 2 {
			if allocs <= row.allocs && bytes <= row.bytes {
				break
			}
			again, less := allocated(t, row.lane, row.steps)
			allocs, bytes = min(allocs, again), min(bytes, less)
		}
		t.Logf("%s, %d steps: a step took %d allocations of %d bytes together", row.lane.name, row.steps, allocs, bytes)
		if allocs > row.allocs || bytes > row.bytes {
			t.Errorf("%s, %d steps: a step took %d allocations of %d bytes together, want at most %d of %d", row.lane.name, row.steps, allocs, bytes, row.allocs, row.bytes)
		}
	}
}

// allocated counts the allocations and bytes of a step: jobs of three steps are many at once, others one after the
// other.
func allocated(t *testing.T, l lane, steps int) (allocs, bytes uint64) {
	const warm = 50
	jobs := 1500 / steps
	runtime.GC()
	synctest.Test(t, func(t *testing.T) {
		eng := open(t, t.TempDir(), row(steps, l), idle)
		work := func(n, first int) {
			if steps == 3 {
				throughAll(t, eng, n, first)
				return
			}
			for i := range n {
				waitDone(t, eng, submitNumber(t, eng, first+i))
			}
		}
		work(warm, 0) // The first jobs fill the caches and pools of the engine.
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		work(jobs, warm)
		runtime.ReadMemStats(&after)
		n := uint64(jobs * steps)
		allocs, bytes = (after.Mallocs-before.Mallocs)/n, (after.TotalAlloc-before.TotalAlloc)/n
	})
	return allocs, bytes
}
