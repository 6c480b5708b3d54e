package sqlitestore_test

import (
	"testing"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
)

// Shared jobs are not copied, and whoever puts something to a list of one has a list of their own then.
func TestSharedJobsAreNotCopied(t *testing.T) {
	s, _ := openFile(t)
	jobs := store.Shared(s)
	given := benchJob(1)
	given.Requests = append(make([]string, 0, 8), "cancel/1")
	if err := jobs.Create(t.Context(), given); err != nil {
		t.Fatal(err)
	}
	mine, yours := load(t, jobs, given.ID), load(t, jobs, given.ID)
	if &mine.Steps[0] != &yours.Steps[0] || &mine.Steps[0] != &given.Steps[0] {
		t.Error("the steps were copied")
	}
	mine.Requests, yours.Requests = append(mine.Requests, "mine"), append(yours.Requests, "yours")
	if mine.Requests[1] != "mine" || len(load(t, jobs, given.ID).Requests) != 1 {
		t.Errorf("got %v, want a list of their own for each", mine.Requests)
	}
	mine.Steps = append([]job.StepState(nil), mine.Steps...)
	mine.Steps[0].Attempt = 7
	if err := jobs.Save(t.Context(), store.Change{Job: mine, Seen: mine.CompleteBy}); err != nil {
		t.Fatal(err)
	}
	got := load(t, jobs, given.ID)
	if &got.Steps[0] != &mine.Steps[0] || got.Rev != mine.Rev+1 {
		t.Errorf("got revision %d, want the steps that were saved, in revision %d", got.Rev, mine.Rev+1)
	}
	if own := load(t, s, given.ID); &own.Steps[0] == &mine.Steps[0] {
		t.Error("who asks the store itself shares the steps with others")
	}
}
