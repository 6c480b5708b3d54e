package protocol

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
)

// within is a job with a step for each child, each under way.
func within(id string, children ...string) makegood.Job {
	j := makegood.Job{ID: id, ProcessState: makegood.JobProcessing}
	for _, child := range children {
		j.Steps = append(j.Steps, makegood.JobStep{Name: child, Child: child, Activity: makegood.Activity{State: makegood.StepClaimed}})
	}
	return j
}

// waiting is a job with one step that waits, of this name.
func waiting(id, step string) makegood.Job {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return makegood.Job{ID: id, ProcessState: makegood.JobProcessing, Steps: []makegood.JobStep{
		{Name: step, Activity: makegood.Activity{State: makegood.StepWaiting, CompleteBy: &at}},
	}}
}

// Of all jobs below one those are named that stand before a person, and no other: which are at work, wait for a time, have
// ended, or cannot be read now.
func TestTheJobsBelowAJobAreNamedThatStandBeforeAPerson(t *testing.T) {
	inError := makegood.Job{ID: "error", ProcessState: makegood.JobError, Reason: "no shelf"}
	paused, held := within("paused"), within("held")
	paused.Paused, paused.Reason = true, "lunch"
	held.Paused, held.HeldBy, held.HeldReason = true, "agent shop", "stocktaking"
	undo := makegood.Activity{State: makegood.StepWaiting}
	undone := makegood.Job{ID: "undo", ProcessState: makegood.JobUndoing, Steps: []makegood.JobStep{{Name: "sign", Undo: &undo}}}
	jobs := map[string]makegood.Job{
		"error": inError, "paused": paused, "held": held, "undo": undone, "deep": within("deep", "deeper"), "deeper": waiting("deeper", "sign"),
		"rests": waiting("rests", "rest"), "works": within("works"), "done": {ID: "done", ProcessState: makegood.JobProcessed},
	}
	reads := 0
	from := BlockerReads{
		Look: func(_ context.Context, id string) (makegood.Job, error) {
			reads++
			switch j, there := jobs[id]; {
			case id == "damaged":
				return j, fmt.Errorf("get job damaged: %w", api.ErrDamaged)
			case id == "away":
				return j, errors.New("the line breaks")
			case !there:
				return j, api.ErrNotFound
			default:
				return j, nil
			}
		},
		Definition: func(context.Context, string) (api.Definition, error) {
			return api.Definition{Workflow: makegood.Workflow{Steps: []makegood.Step{{Name: "rest", Agent: makegood.AgentWait}, {Name: "sign", Agent: makegood.AgentApproval}}}}, nil
		},
	}
	var got []string
	for _, b := range Blockers(t.Context(), from, within("o", "error", "paused", "held", "undo", "deep", "rests", "works", "done", "damaged", "away", "never")) {
		got = append(got, b.String())
	}
	want := []string{
		"waits for job error: Error: no shelf", "waits for job paused: paused: lunch", "waits for job held: paused, since agent shop is paused: stocktaking",
		"waits for job undo: the undo of step sign waits", "waits for job deeper: step sign waits until 2026-01-02T03:04:05Z",
		"waits for job damaged: it cannot be read: get job damaged: " + api.ErrDamaged.Error(),
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if reads != 12 {
		t.Errorf("%d jobs were read, want each of 12 once", reads)
	}
	reads = 0
	many := make([]string, 100)
	for i := range many {
		many[i] = "error"
	}
	if n := len(Blockers(t.Context(), from, within("o", many...))); n != MaxBlockerReads || reads != MaxBlockerReads {
		t.Errorf("of 100 jobs %d were read, and %d named, want %d", reads, n, MaxBlockerReads)
	}
	reads = 0
	ended := within("o", "error")
	ended.ProcessState = makegood.JobError
	if n := len(Blockers(t.Context(), from, ended)); n+reads != 0 {
		t.Errorf("of a job that goes on no more %d jobs were read, and %d named", reads, n)
	}
}
