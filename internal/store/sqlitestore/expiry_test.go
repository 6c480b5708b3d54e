package sqlitestore_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/sqlitestore"
)

// finish brings a job to its end, told.
func finish(t *testing.T, s *sqlitestore.Store, j job.Job, state makegood.ProcessState, at time.Time) {
	t.Helper()
	seen := j.CompleteBy
	j.ProcessState, j.CompleteBy, j.FinishedAt = state, time.Time{}, domain.Instant(at)
	check(t, s.Save(t.Context(), store.Change{Job: j, Seen: seen}))
}

// expireAll deletes what was at its end at that time, and says how many jobs and transactions it were.
func expireAll(t *testing.T, s *sqlitestore.Store, finished time.Time) (jobs, batches int) {
	t.Helper()
	for more := true; more; batches++ {
		n, left, err := s.Expire(t.Context(), finished)
		check(t, err)
		jobs, more = jobs+len(n), left
	}
	for more := true; more; {
		var err error
		more, err = s.Shrink(t.Context())
		check(t, err)
	}
	return jobs, batches
}

// Only what is at its end and told goes, with its payloads, and its id is free.
func TestOnlyWhatIsAtItsEndAndToldExpires(t *testing.T) {
	s, _ := openFile(t)
	now := domain.Instant(time.Now())
	old, limit := now.Add(-time.Hour), now.Add(-time.Minute)
	for i, state := range []makegood.ProcessState{makegood.JobProcessed, makegood.JobUndone, makegood.JobCancelled} {
		j := create(t, s, i)
		check(t, s.PutPayload(t.Context(), j.ID, "input", []byte("1")))
		finish(t, s, j, state, old)
	}
	young, untold, unfinished, revived, parked := create(t, s, 10), create(t, s, 11), create(t, s, 12), create(t, s, 13), create(t, s, 14)
	check(t, s.PutPayload(t.Context(), young.ID, "input", []byte("1")))
	finish(t, s, young, makegood.JobProcessed, now)
	untold.ProcessState, untold.FinishedAt = makegood.JobProcessed, old
	check(t, s.Save(t.Context(), store.Change{Job: untold, Seen: untold.CompleteBy}))
	finish(t, s, revived, makegood.JobUndone, old)
	again := load(t, s, revived.ID)
	again.ProcessState, again.FinishedAt, again.CompleteBy = makegood.JobProcessing, time.Time{}, now.Add(time.Minute)
	check(t, s.Save(t.Context(), store.Change{Job: again}))
	finish(t, s, parked, makegood.JobUndone, old)
	check(t, s.Park(t.Context(), parked.ID, time.Time{}, "damaged", now.Add(time.Hour)))

	if jobs, _ := expireAll(t, s, limit); jobs != 3 {
		t.Errorf("%d jobs expired, want 3", jobs)
	}
	for i := range 3 {
		id := benchJob(i).ID
		_, loadErr := s.Load(t.Context(), id)
		_, payloadErr := s.Payload(t.Context(), id, "input")
		if !errors.Is(loadErr, store.ErrNotFound) || !errors.Is(payloadErr, store.ErrNotFound) {
			t.Errorf("%s: got %v, and of its payload %v, want %v", id, loadErr, payloadErr, store.ErrNotFound)
		}
		create(t, s, i)
	}
	for _, j := range []job.Job{young, untold, unfinished, revived, parked} {
		load(t, s, j.ID)
	}
	if _, err := s.Payload(t.Context(), young.ID, "input"); err != nil {
		t.Errorf("payload of a job that is young: %v", err)
	}
}

// Thousands of jobs pass through, and the file is as large as what it keeps.
func TestTheFileShrinksWhenItsJobsExpire(t *testing.T) {
	s, path := openFile(t)
	const jobs, kept = 3000, 30
	end := domain.Instant(time.Now())
	payload := make([]byte, 8<<10)
	var batch []func() error
	for i := range jobs {
		j := benchJob(i)
		batch = append(batch, func() error {
			if err := s.PutPayload(t.Context(), j.ID, "input", payload); err != nil {
				return err
			}
			if err := s.Create(t.Context(), j); err != nil {
				return err
			}
			seen := j.CompleteBy
			j.Rev, j.ProcessState, j.CompleteBy, j.FinishedAt = 1, makegood.JobProcessed, time.Time{}, end.Add(time.Duration(i)*time.Second)
			return s.Save(t.Context(), store.Change{Job: j, Seen: seen})
		})
	}
	// Side by side, so that they share flushes.
	const hands = 32
	var writing sync.WaitGroup
	for hand := range hands {
		writing.Go(func() {
			for i := hand; i < jobs; i += hands {
				if err := batch[i](); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writing.Wait()
	check(t, s.Checkpoint())
	before := fileSize(t, path)
	deleted, batches := expireAll(t, s, end.Add((jobs-kept-1)*time.Second))
	check(t, s.Checkpoint())
	after := fileSize(t, path)
	t.Logf("%d jobs deleted in %d transactions: the file shrank from %d to %d bytes", deleted, batches, before, after)
	if deleted != jobs-kept || batches < deleted/64 {
		t.Errorf("%d jobs were deleted in %d transactions, want %d in small ones", deleted, batches, jobs-kept)
	}
	// What is kept, and 4 MB and a little for the jobs to come.
	if limit := int64(6 << 20); before < 2*limit || after > limit {
		t.Errorf("the file shrank from %d to %d bytes, want at most %d", before, after, limit)
	}
	for i := jobs - kept; i < jobs; i++ {
		load(t, s, benchJob(i).ID)
	}
	// What comes next needs no more room than what is free.
	for i := range 300 {
		check(t, s.PutPayload(t.Context(), fmt.Sprint(i), "input", payload))
	}
	check(t, s.Checkpoint())
	if grown := fileSize(t, path); grown > after {
		t.Errorf("the file grew from %d to %d bytes, want it to use the pages that it kept", after, grown)
	}
}
