package sim

import (
	"testing"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/storetest"
)

// What the simulated store answers is what SQLite and DynamoDB answer: one suite holds all three.
func TestTheSimulatedStoreKeepsTheContract(t *testing.T) {
	storetest.Run(t, func(*testing.T) storetest.Harness {
		s := NewStore()
		return storetest.Harness{Open: func() store.Store { return s }, Damage: s.Damage}
	})
}

// The latest attempt of a step is found, whichever agent has it, and that of no other job or step.
func TestTheLatestClaimOfAStepIsFound(t *testing.T) {
	s := NewStore()
	lay := func(agent, of, step string, attempt int, lockedBy string) {
		slot := store.Slot{Agent: agent, Job: of, Birth: "first", Step: step}
		s.Lay(slot, store.ClaimItem{Claim: job.Claim{Attempt: attempt, LockedBy: lockedBy}})
	}
	lay("a", "j", "pay", 1, "a:1")
	lay("b", "j", "pay", 3, "b:3")
	lay("b", "j", "ship", 9, "b:9")
	lay("b", "k", "pay", 8, "b:8")
	if got := s.latestOf(job.Job{ID: "j", Birth: "first"}, "pay"); got.Attempt != 3 || got.LockedBy != "b:3" {
		t.Errorf("got %+v, want attempt 3, held by b:3", got)
	}
}
