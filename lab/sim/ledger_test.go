package sim

import (
	"encoding/json"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
)

// ledgerOf is a world in which nothing has happened, for a write of a job with one step.
func ledgerOf(before, after job.StepState) change {
	w := &world{ledger: map[string]*account{}, accounts: map[string][]*account{}, barred: map[string]int{}, notDone: map[string]bool{}, tried: map[string]bool{}}
	of := func(rev int64, s job.StepState) job.Job {
		return job.Job{ID: "j", Rev: rev, Round: 1, Steps: []job.StepState{s}}
	}
	return change{world: w, before: of(1, before), after: of(2, after)}
}

// No service does an approval: one that a person settles as done leaves nothing that is to be undone.
func TestAnApprovalThatIsSettledKeepsNoAccount(t *testing.T) {
	settled := job.Activity{State: job.Done, Settled: &job.Settlement{Round: 1}}
	for agent, want := range map[string]int{"a": 1, makegood.AgentApproval: 0} {
		was, is := job.StepState{Name: "s"}, job.StepState{Name: "s", Forward: settled}
		c := ledgerOf(was, is)
		c.byHand(is, was, makegood.Step{Name: "s", Agent: agent})
		if got := len(c.accounts["j"]); got != want {
			t.Errorf("agent %s: got %d accounts, want %d", agent, got, want)
		}
	}
}

// A person settles a step as not done, and another says afterwards that they had done it before: the later word counts.
// Of an attempt that was made after the settlement, the service knows better.
func TestTheLaterWordOfTwoPeopleCounts(t *testing.T) {
	def := makegood.Step{Name: "s", Agent: "a"}
	for attempt, want := range map[int]bool{1: true, 2: false} {
		output := json.RawMessage(`{"a":` + string(rune('0'+attempt)) + `,"outside":"them"}`)
		is := job.StepState{Name: "s", Forward: job.Activity{State: job.Done, Attempt: 2, Output: job.Payload{Inline: output}}}
		c := ledgerOf(job.StepState{Name: "s"}, is)
		c.notDone["j/s/1"], c.barred["j/s/1"] = true, 1
		if got := c.saidAgain(is, def); got != want || c.applied(def) != want {
			t.Errorf("attempt %d: got %t, and applied %t; want %t", attempt, got, c.applied(def), want)
		}
	}
}
