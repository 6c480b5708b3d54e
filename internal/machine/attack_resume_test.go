package machine_test

import (
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
)

// The job's timeout counts from its start: a pause before that takes nothing of it, and gives nothing back.
func TestAPauseBeforeTheStartDoesNotMoveTheTimeout(t *testing.T) {
	x := newAttacked(t, makegood.Step{})
	x.w.Timeout = makegood.Duration(time.Hour)
	j, _ := machine.Submit(x.w, machine.Submission{ID: "j", Definition: "d", StartAt: x.now.Add(48 * time.Hour)}, x.facts(nil), x.now)
	want := j.Deadline
	for i, verb := range []makegood.Verb{makegood.VerbPause, makegood.VerbResume} {
		j, _ = machine.Apply(x.w, j, job.Requested{Verb: verb, Request: string(verb)}, x.facts(nil), x.now.Add(time.Duration(i)*24*time.Hour))
	}
	if !j.Deadline.Equal(want) {
		t.Errorf("the timeout of an hour ends %s after the start", j.Deadline.Sub(j.StartAt))
	}
}
