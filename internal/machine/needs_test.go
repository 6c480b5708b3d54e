package machine_test

import (
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
)

// A release that knows no heartbeats must not decide about a job that has them; about any other it may.
func TestAJobNeedsWhatItsStepsAsk(t *testing.T) {
	heartbeats := makegood.Step{Name: "s", Agent: "a", Heartbeat: makegood.Minute}
	undoes := makegood.Step{Name: "s", Agent: "a", Undo: &makegood.Undo{Action: "u", Heartbeat: makegood.Minute}}
	for name, c := range map[string]struct {
		step makegood.Step
		want int
	}{
		"nothing new":            {makegood.Step{Name: "s", Agent: "a", Undo: &makegood.Undo{Action: "u"}}, 0},
		"a step that heartbeats": {heartbeats, job.LevelWaits},
		"an undo that does":      {undoes, job.LevelWaits},
	} {
		w := domain.WithDefaults(makegood.Workflow{Name: "w", Steps: []makegood.Step{c.step}})
		j, v := machine.Submit(w, machine.Submission{ID: "j", Later: true}, machine.Facts{}, time.UnixMilli(1))
		if v.Kind != machine.Applied || j.Needs != c.want {
			t.Errorf("%s: %v, and needs %d, want %d", name, v, j.Needs, c.want)
		}
	}
}
