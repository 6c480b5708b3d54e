package dynamostore

import (
	"fmt"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
)

// A part of a map has many items under way: its item has room for them in a unit, since the facts about them lie apart.
// Those of a few stay, and so they do where their going apart would spare no unit.
func TestFactsAboutManyActivitiesUnderWayLieApart(t *testing.T) {
	born := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		steps, beside int
		apart         bool
	}{{100, 500, true}, {manyUnderWay + 1, 900, true}, {manyUnderWay, 900, false}, {40, 100, false}, {30, 2*unit + 100, false}} {
		j := job.Job{ID: "a", Workflow: "order~lines", ProcessState: makegood.JobProcessing, Desired: makegood.JobProcessed, Round: 1, CreatedAt: born}
		for i := range c.steps {
			a := job.Activity{State: job.Dispatched, Attempt: 1, Tries: 1, At: born.Add(time.Second), Cause: "submit"}
			j.Steps = append(j.Steps, job.StepState{Name: fmt.Sprint("item_", i), Attempt: 1, Forward: a})
		}
		p := pack(j, nil, c.beside)
		if apart := len(p.details) > 0; apart != c.apart || apart && units(p.bytes) > units(c.beside) {
			t.Errorf("%d items under way beside %d bytes: %d details, %d bytes; want them apart: %t", c.steps, c.beside, len(p.details), p.bytes, c.apart)
		}
		bodies := map[string][]byte{}
		got, stored := unpackAll(t, p, bodies)
		same(t, "job", got, inData(j))
		// An item that has ended since is described by the job itself, or by a later detail.
		j.Steps[0].Forward = job.Activity{State: job.Done, Attempt: 1, Tries: 1, At: born.Add(time.Second), FinishedAt: born.Add(time.Minute), Cause: "submit"}
		got, _ = unpackAll(t, pack(j, stored, c.beside), bodies)
		same(t, "job later", got, inData(j))
	}
}
