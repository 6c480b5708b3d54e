package scheduler_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/wire"
)

// A workflow of an agent that has no queue would be stored and wait for ever; so it is refused, also where it is an
// undo that would be asked of that agent, and also where a message asks for it: that goes into quarantine.
func TestASubmissionToAnAgentWithoutAQueueIsRefused(t *testing.T) {
	w := newWorld(t)
	w.use(func(c *scheduler.Config) { c.Agents = []string{"a"} })
	for name, yaml := range map[string]string{
		"a step":  "name: w\nsteps:\n  - {name: s, agent: b}\n",
		"an undo": "name: w\nsteps:\n  - {name: s, agent: a, undo: {agent: b, action: u}}\n",
	} {
		c := w.define(yaml)
		_, _, err := w.s.Submit(t.Context(), scheduler.Submission{ID: "j", Definition: c.Hash, Input: []byte("{}")})
		if !errors.Is(err, scheduler.ErrInvalid) || !strings.Contains(err.Error(), "step s: the agent b has no queue here; those that have one are [a]") {
			t.Errorf("%s: got %v, want it refused with the agents that there are", name, err)
		}
		message, err := wire.EncodeSubmit(wire.Submit{Workflow: "w", ID: "j", Input: []byte("{}")})
		if err != nil {
			t.Fatal(err)
		}
		if failed := w.handle(w.raw(message)); failed != nil {
			t.Errorf("%s, by a message: got %v to be delivered again, want it in quarantine", name, failed)
		}
		if _, err := w.file.Load(t.Context(), "j"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: got %v, want no job to be stored", name, err)
		}
	}
	if depth, err := w.local.Depth(t.Context(), "quarantine"); err != nil || depth.Waiting != 2 {
		t.Errorf("got %d messages in quarantine, %v, want 2", depth.Waiting, err)
	}
	w.submit(w.define("name: w\nsteps:\n  - {name: s, agent: a}\n"), "j")
}
