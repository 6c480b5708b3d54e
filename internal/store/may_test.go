package store_test

import (
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/store"
)

// What an agent writes into Closed is an answer of a Close only where a Close would have left it: to its own holder, too.
func TestWhatAnAgentWritesIntoClosedIsNoAnswer(t *testing.T) {
	for closed, want := range map[makegood.Finding]makegood.Finding{
		makegood.FoundReplied: makegood.FoundReplied, makegood.FoundSilent: makegood.FoundSilent,
		makegood.FoundNobody: makegood.FoundSilent, makegood.FoundOver: makegood.FoundSilent,
		makegood.FoundHeld: makegood.FoundSilent, makegood.FoundOpen: makegood.FoundSilent, "garbage": makegood.FoundSilent,
	} {
		item := store.ClaimItem{Claim: makegood.Claim{Attempt: 1, LockedBy: "a"}, Closed: closed}
		next, found := store.Closed(item, store.Closing{Attempt: 1, LockedBy: "a"})
		if found.Finding != want || next != item {
			t.Errorf("%q: its holder is told %q, want %q, and the item %+v", closed, found.Finding, want, next)
		}
	}
}
