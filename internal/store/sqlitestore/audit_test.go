package sqlitestore_test

import (
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
)

// Of a job that has ended the store notes whether everybody was told. So an audit sees where another hand has taken the key of a
// job that somebody is still to be told of, and where it has given one to a job that everybody was told of.
func TestAnAuditFindsEndedJobsWhoseKeyIsWrong(t *testing.T) {
	s, path := openFile(t)
	for i, untold := range []bool{false, true} {
		j := create(t, s, i)
		seen := j.CompleteBy
		j.ProcessState, j.FinishedAt, j.Seq = makegood.JobProcessed, time.Now(), 1
		if j.CompleteBy = (time.Time{}); untold {
			j.CompleteBy = time.Now().Add(time.Hour)
			j.Untold = []job.Announcement{{Seq: 1, ProcessState: makegood.JobProcessed, At: time.Now(), Operator: true}}
		}
		check(t, s.Save(t.Context(), store.Change{Job: j, Seen: seen}))
	}
	strays := func() (got []store.Stray) {
		page, _, err := s.AuditPage(t.Context(), "", 10)
		check(t, err)
		for _, a := range page {
			got = append(got, a.Stray())
		}
		return got
	}
	same(t, "as they were saved", strays(), []store.Stray{"", ""})
	execSQL(t, path, `UPDATE jobs SET complete_by = CASE WHEN complete_by IS NULL THEN 1 END`)
	same(t, "with each other's key", strays(), []store.Stray{store.StrayKey, store.StrayUntold})
}
