package store_test

import (
	"testing"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
)

// What an agent writes into Closed is an answer of a Close only where a Close would have left it: to its own holder, too.
func TestWhatAnAgentWritesIntoClosedIsNoAnswer(t *testing.T) {
	for closed, want := range map[job.Finding]job.Finding{
		job.FoundReplied: job.FoundReplied, job.FoundSilent: job.FoundSilent,
		job.FoundNobody: job.FoundSilent, job.FoundOver: job.FoundSilent,
		job.FoundHeld: job.FoundSilent, job.FoundOpen: job.FoundSilent, "garbage": job.FoundSilent,
	} {
		item := store.ClaimItem{Claim: job.Claim{Attempt: 1, LockedBy: "a"}, Closed: closed}
		next, found := store.Closed(item, store.Closing{Attempt: 1, LockedBy: "a"})
		if found.Finding != want || next != item {
			t.Errorf("%q: its holder is told %q, want %q, and the item %+v", closed, found.Finding, want, next)
		}
	}
}
