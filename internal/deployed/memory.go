package deployed

import "runtime/debug"

const (
	// keptFree is the share of a function's memory, in percent, that is not Go's: the program itself, and what
	// the limit is exceeded by until the collector has caught up.
	keptFree = 15
	// memoryOfEvaluation is how many MB of a function's memory each concurrent evaluation needs: the bytes that it may make
	// and read, twice, because of garbage.
	memoryOfEvaluation = 256
)

// limitMemory tells Go the function's memory, so that it collects garbage rather than be killed with its batch.
func (p parts) limitMemory() {
	if p.memory > 0 {
		debug.SetMemoryLimit(p.memoryLimit())
	}
}

func (p parts) memoryLimit() int64 {
	const all = 100
	return int64(p.memory) << 20 / all * (all - keptFree)
}

// evaluations is how many expressions may be evaluated at a time; 0: the Scheduler's own number.
func (p parts) evaluations() int {
	if p.memory == 0 {
		return 0
	}
	return max(1, p.memory/memoryOfEvaluation)
}
