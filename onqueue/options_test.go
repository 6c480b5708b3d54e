package onqueue

import (
	"errors"
	"testing"

	"github.com/makegood-dev/makegood/agent"
)

// What an agent may have under way at once is the same number wherever it runs.
func TestHowManyAttemptsRunAtOnce(t *testing.T) {
	if o, err := (Options{}).complete(); err != nil || o.Concurrency != 64 {
		t.Errorf("where nothing is said: %d, %v, want 64", o.Concurrency, err)
	}
	for _, n := range []int{-1, 1001} {
		if _, err := (Options{Concurrency: n}).complete(); !errors.Is(err, agent.ErrOptions) {
			t.Errorf("%d: got %v, want it refused", n, err)
		}
	}
}
