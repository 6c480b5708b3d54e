package deployed

import (
	"math"
	"runtime/debug"
	"testing"
)

// A function of 256 MB was killed in the middle of its batch, again and again, while Go knew of no limit.
func TestGoKnowsTheMemoryOfTheFunction(t *testing.T) {
	was := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(was)
	for _, c := range []struct {
		memory      string
		limit       int64
		evaluations int
	}{
		{"", math.MaxInt64, 0}, {"128", 114085045, 1}, {"256", 228170090, 1}, {"512", 456340265, 2}, {"3008", 2680999110, 11},
	} {
		debug.SetMemoryLimit(math.MaxInt64)
		environment := good()
		environment[varMemory] = c.memory
		s, err := readScheduler(func(name string) string { return environment[name] })
		if err != nil {
			t.Fatal(err)
		}
		s.limitMemory()
		if got := debug.SetMemoryLimit(-1); got != c.limit || s.evaluations() != c.evaluations {
			t.Errorf("of %q MB Go may have %d bytes and %d evaluations at a time, want %d and %d", c.memory, got, s.evaluations(), c.limit, c.evaluations)
		}
	}
}
