//go:build !race

package engine_test

import (
	"runtime"
	"testing"
)

// The bounds of TestAStepAllocatesNoMoreThanItDid. Commit 0980d3c needed 300 allocations and 40,600 bytes for a step, without this
// package, and then they were nearly twice as many. Measured are 231 and 26,600; a machine that is busy adds a few, by looks
// at jobs that take more than a second.
const (
	mostAllocs = 255
	mostBytes  = 29_500
)

// The allocations of many jobs of three steps, through the public package, stay below a limit. The figure differs by one
// percent between machines.
func TestAStepAllocatesNoMoreThanItDid(t *testing.T) {
	const jobs, steps = 500, 3
	eng := idle(t, steps, "")
	throughAll(t, eng, 50, 0) // The first jobs fill the caches and pools of the engine.
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	throughAll(t, eng, jobs, 50)
	runtime.ReadMemStats(&after)
	allocs, bytes := (after.Mallocs-before.Mallocs)/(jobs*steps), (after.TotalAlloc-before.TotalAlloc)/(jobs*steps)
	t.Logf("a step took %d allocations of %d bytes together", allocs, bytes)
	if allocs > mostAllocs || bytes > mostBytes {
		t.Errorf("a step took %d allocations of %d bytes together, want at most %d of %d", allocs, bytes, mostAllocs, mostBytes)
	}
}
