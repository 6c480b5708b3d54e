package store_test

import (
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
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

// A job that has ended keeps a key as long as somebody is to be told; one that goes on may have lost its key by a fault.
func TestOnlyWhatHasEndedAndHasNoKeyMayExpire(t *testing.T) {
	key := time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC)
	for _, row := range []struct {
		state makegood.ProcessState
		key   time.Time
		want  bool
	}{
		{makegood.JobProcessed, time.Time{}, true},
		{makegood.JobProcessed, key, false},
		{makegood.JobProcessing, time.Time{}, false},
		{makegood.JobError, key, false},
	} {
		if got := store.EndedAndTold(job.Job{ProcessState: row.state, CompleteBy: row.key}); got != row.want {
			t.Errorf("%s with the key %v: got %t, want %t", row.state, row.key, got, row.want)
		}
	}
}
