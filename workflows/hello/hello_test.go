package hello_test

import (
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/makegoodtest"
	"github.com/makegood-dev/makegood/workflows/hello"
)

// The first job of a fresh stack needs nothing but the stack, and shows both ends: done, and undone.
func TestTheFirstJobNeedsNoService(t *testing.T) {
	for name, c := range map[string]struct {
		input map[string]any
		ends  makegood.ProcessState
		order string
	}{
		"posted":  {map[string]any{"name": "Ada"}, makegood.JobProcessed, "write post"},
		"refused": {map[string]any{"name": "Ada", "refuse": true}, makegood.JobUndone, "write post shred"},
	} {
		job := makegoodtest.Run(t, makegoodtest.Case{YAML: hello.YAML, Input: c.input, Services: func() makegoodtest.Services {
			return makegoodtest.Services{Agents: hello.Agents()}
		}})
		if job.ProcessState != c.ends || job.Order() != c.order {
			t.Errorf("%s: got %s after %q, want %s after %q", name, job.ProcessState, job.Order(), c.ends, c.order)
		}
	}
}
