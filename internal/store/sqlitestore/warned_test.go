package sqlitestore_test

import (
	"errors"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/sqlitestore"
)

// A job that was stored as one that operators were told of is listed as late until it is no more.
func TestAJobThatIsNoLongerWarnedOfIsNotListedAsLate(t *testing.T) {
	s, path := openFile(t)
	now := domain.Instant(time.Now())
	j := benchJob(1)
	j.ProcessState, j.Desired, j.ExpectBy, j.CompleteBy = makegood.JobProcessing, makegood.JobProcessed, now.Add(time.Minute), now.Add(24*time.Hour)
	check(t, s.Create(t.Context(), j))
	late := func() int {
		page, err := s.ListJobs(t.Context(), store.Filter{LateWithin: time.Hour, Now: now}, "", 10)
		check(t, err)
		return len(page.Jobs)
	}
	same(t, "warned of", late(), 1)
	j = load(t, s, j.ID)
	seen := j.CompleteBy
	j.ExpectBy = time.Time{}
	check(t, s.Save(t.Context(), store.Change{Job: j, Seen: seen}))
	same(t, "expected no more", late(), 0)
	same(t, "rows that say so", readText(t, path, `SELECT count(*) FROM jobs WHERE warned = 1`), "0")
}

// A walk through all jobs that cannot be read is an error, and no walk through none.
func TestAWalkThroughAStoreThatIsClosedIsAnError(t *testing.T) {
	s := open(t, sqlitestore.Options{})
	create(t, s, 1)
	check(t, s.Shut())
	if err := s.Each(t.Context(), func(job.Job) error { return nil }); !errors.Is(err, store.ErrClosed) {
		t.Errorf("got %v, want %v", err, store.ErrClosed)
	}
}
