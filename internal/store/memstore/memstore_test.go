package memstore_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/memstore"
	"github.com/makegood-dev/makegood/internal/store/storetest"
)

func harness(*testing.T) storetest.Harness {
	s := memstore.New()
	same := func() store.Store { return s }
	return storetest.Harness{
		Open: same, Reopen: same, Damage: s.Damage, Overwrite: s.Overwrite, Fill: func(slot store.Slot, _ string) { s.FillClaim(slot) },
		Full: s.Overwrite,
	}
}

func TestTheContractHolds(t *testing.T) { storetest.Run(t, harness) }

func TestClaimsAndSubmissionsAreLinearizable(t *testing.T) { storetest.Linearizable(t, harness) }

// A job that is damaged is listed with what stores keep beside its data.
func TestADamagedJobIsListedWithWhatStandsBesideIt(t *testing.T) {
	s := memstore.New()
	now := domain.Instant(time.Now())
	j := job.Job{
		ID: "j", Workflow: "order", Tenant: "t", ProcessState: makegood.JobError, FailureCount: 2, CreatedAt: now, CompleteBy: now.Add(time.Hour),
		Reason: "second", FirstReason: "first",
	}
	check(t, s.Create(t.Context(), j))
	s.Damage("j")
	page, err := s.ListJobs(t.Context(), store.Filter{}, "", 10)
	check(t, err)
	want := j
	want.Tenant = ""
	if len(page.Jobs) != 1 || fmt.Sprintf("%+v", page.Jobs[0]) != fmt.Sprintf("%+v", store.ListedOf(want)) {
		t.Errorf("got %+v, want %+v", page.Jobs, store.ListedOf(want))
	}
}

// An audit sees of each job whether it has ended, and whether everybody was told, and of each schedule its key.
func TestAnAuditSeesJobsAndSchedulesAsTheyAre(t *testing.T) {
	s := memstore.New()
	now := domain.Instant(time.Now())
	untold := []job.Announcement{{Seq: 1, ProcessState: makegood.JobProcessed, At: now}}
	for _, j := range []job.Job{
		{ID: "a", ProcessState: makegood.JobProcessing, CompleteBy: now, Untold: untold},
		{ID: "b", ProcessState: makegood.JobProcessed, CompleteBy: now, Untold: untold},
		{ID: "c", ProcessState: makegood.JobProcessed},
	} {
		check(t, s.Create(t.Context(), j))
	}
	check(t, s.PutSchedule(t.Context(), store.Scheduled{Schedule: makegood.Schedule{Name: "again"}, Key: now}))
	var page []store.Audited
	for cursor, more := "", true; more; more = cursor != "" {
		some, next, err := s.AuditPage(t.Context(), cursor, 2)
		check(t, err)
		page, cursor = append(page, some...), next
	}
	want := []store.Audited{
		{Job: "a", ProcessState: makegood.JobProcessing, CompleteBy: now, Indexed: true},
		{Job: "b", ProcessState: makegood.JobProcessed, CompleteBy: now, Indexed: true, Untold: true},
		{Job: "c", ProcessState: makegood.JobProcessed, Told: true},
		{Schedule: "again", CompleteBy: now, Indexed: true},
	}
	if !slices.Equal(page, want) {
		t.Errorf("got %+v, want %+v", page, want)
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
