//go:build !race

package works

import (
	"runtime"
	"testing"
)

// budgets are the most that a step may take, through the public package: of many jobs of three steps, and of jobs of
// ten, one after the other. Each is some eight percent above the count of 2026-11-26 on a machine with other work (97
// allocations of 19,500 bytes for the first). A step that takes less gets a smaller one. Commit 0980d3c needed 300
// allocations of 40,600 bytes for a step of three, without package engine.
var budgets = []struct {
	lane   lane
	steps  int
	allocs uint64
	bytes  uint64
}{
	{lanes[0], 3, 106, 20_900},
	{lanes[1], 3, 94, 17_900},
	{lanes[2], 3, 81, 15_000},
	{lanes[0], 10, 132, 27_900},
	{lanes[1], 10, 96, 25_000},
	{lanes[2], 10, 52, 11_500},
}

// A step allocates no more than its budget, so that no feature can cost speed unseen. The counts differ by one
// percent between machines; a machine that is busy adds a few, by looks at jobs that take more than a second, so the
// least of three counts.
func TestAStepAllocatesNoMoreThanItsBudget(t *testing.T) {
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
	return (after.Mallocs - before.Mallocs) / n, (after.TotalAlloc - before.TotalAlloc) / n
}
