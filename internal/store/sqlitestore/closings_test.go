package sqlitestore_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/sqlitestore"
)

// The loss of power leaves a log that ends anywhere. Wherever it ends, a save that is in it has the closing before it,
// although the closing asked for no flush: otherwise an attempt whose end is saved could be claimed again.
func TestNoSaveOutlivesTheCloseBeforeIt(t *testing.T) {
	s, path := openFile(t)
	j := create(t, s, 1)
	found, err := s.Close(t.Context(), slotOf(j.ID), store.Closing{Attempt: 1, Until: j.CompleteBy, Now: j.CreatedAt})
	check(t, err)
	same(t, "finding", found.Finding, job.FoundNobody)
	check(t, s.Save(t.Context(), store.Change{Job: j, Seen: j.CompleteBy}))
	file, err := os.ReadFile(path)
	check(t, err)
	log, err := os.ReadFile(path + "-wal")
	check(t, err)

	const header, frame = 32, 24 + 4096
	saved, closedOnly := 0, 0
	for end := header; end <= len(log); end += frame {
		rev, closed := afterPowerLoss(t, file, log[:end], j.ID)
		if rev == 2 && !closed {
			t.Errorf("a log of %d of its %d bytes has the save and not the closing", end, len(log))
		}
		if rev == 2 {
			saved++
		}
		if rev == 1 && closed {
			closedOnly++
		}
	}
	if saved == 0 || closedOnly == 0 {
		t.Errorf("the save was there %d times and the closing alone %d times, want both to have been seen", saved, closedOnly)
	}
}

// afterPowerLoss opens what is left, and returns the job's revision, 0 if there is none, and whether its attempt is closed.
func afterPowerLoss(t *testing.T, file, log []byte, id string) (rev int64, closed bool) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "jobs.db")
	check(t, os.WriteFile(path, file, 0o600))
	check(t, os.WriteFile(path+"-wal", log, 0o600))
	s, err := sqlitestore.Open(t.Context(), sqlitestore.Options{Path: path})
	check(t, err)
	defer s.Shut()
	if j, err := s.Load(t.Context(), id); err == nil {
		rev = j.Rev
	}
	return rev, look(t, s, id).Finding == job.FoundClosed
}

// A retention deletes a job, and not what keeps its late tasks from running.
func TestWhatWasClosedStaysClosedWhenItsJobHasExpired(t *testing.T) {
	s, _ := openFile(t)
	j, now := create(t, s, 1), domain.Instant(time.Now())
	until := now.Add(limits.MaxClaimDelay)
	_, err := s.Close(t.Context(), slotOf(j.ID), store.Closing{Attempt: 1, Until: until, Now: now})
	check(t, err)
	finish(t, s, j, makegood.JobProcessed, now)
	if jobs, _ := expireAll(t, s, now.Add(time.Hour)); jobs != 1 {
		t.Fatalf("got %d jobs deleted, want 1", jobs)
	}
	late := job.Claim{Attempt: 1, LockedBy: "x", StartedAt: now.Add(2 * time.Hour), CompleteBy: now.Add(3 * time.Hour)}
	if err := s.Claim(t.Context(), slotOf(j.ID), late, until); !errors.Is(err, store.ErrWithdrawn) {
		t.Errorf("claim by a late task: got %v, want %v", err, store.ErrWithdrawn)
	}
}
