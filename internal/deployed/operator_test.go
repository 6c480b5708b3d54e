package deployed

import (
	"errors"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// A file with an agent that nobody deployed is refused before anything is stored, and says which agents there are.
func TestAFileWithAnAgentThatHasNoQueueIsNotPublished(t *testing.T) {
	c, err := workflowfile.Parse("pay.yaml", []byte("name: pay\nsteps: [{name: charge, agent: payments}]"))
	if err != nil {
		t.Fatal(err)
	}
	o := &operator{agents: []string{"inventory", "shipping"}} // Without a store: it must not be asked.
	err = o.Publish(t.Context(), c)
	if !errors.Is(err, scheduler.ErrInvalid) || !strings.Contains(err.Error(), "step charge: the agent payments has no queue here; those that have one are [inventory shipping]") {
		t.Errorf("got %v, want that it is invalid, and which agents there are", err)
	}
}
