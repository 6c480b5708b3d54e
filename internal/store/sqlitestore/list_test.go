package sqlitestore_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/sqlitestore"
)

func TestListsAreNewestFirstAndReadersSeeThem(t *testing.T) {
	s, path := openFile(t)
	for i := range 5 {
		create(t, s, i)
	}
	r, err := sqlitestore.OpenReader(t.Context(), path)
	check(t, err)
	defer r.Close()
	all := store.Filter{Workflow: "order"}
	for name, lister := range map[string]store.Lister{"the store": s, "a reader beside it": r} {
		first, err := lister.ListJobs(t.Context(), all, "", 3)
		check(t, err)
		rest, err := lister.ListJobs(t.Context(), all, first.Cursor, 3)
		check(t, err)
		var got []string
		for _, j := range append(first.Jobs, rest.Jobs...) {
			got = append(got, j.ID)
		}
		want := "order-000004 order-000003 order-000002 order-000001 order-000000"
		if strings.Join(got, " ") != want || rest.Cursor != "" || rest.Scanned {
			t.Errorf("%s: got %v and cursor %q, want %s and none", name, got, rest.Cursor, want)
		}
	}
}

func TestACursorThatNoPageGaveIsRefused(t *testing.T) {
	s := open(t, sqlitestore.Options{Path: filepath.Join(t.TempDir(), "jobs.db")})
	for _, cursor := range []string{"x", "-1", "0", "1.5", "99999999999999999999", store.Filter{Workflow: "order"}.Seal("1"), store.Filter{}.Seal("x")} {
		if _, err := s.ListJobs(t.Context(), store.Filter{}, cursor, 10); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("cursor %q: got %v, want %v", cursor, err, store.ErrNotFound)
		}
	}
}

// An audit goes on from a place that it gave, and from no other.
func TestAnAuditRefusesAPlaceThatItNeverGave(t *testing.T) {
	s := open(t, sqlitestore.Options{})
	for _, cursor := range []string{"x", "-1", "0", "1.5", "99999999999999999999"} {
		if _, _, err := s.AuditPage(t.Context(), cursor, 10); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("cursor %q: got %v, want %v", cursor, err, store.ErrNotFound)
		}
	}
}

// A list that wants some jobs, and to which no index leads, says that it looks at all; one that wants all does not.
func TestAListThatLooksAtEveryJobSaysSo(t *testing.T) {
	s := open(t, sqlitestore.Options{})
	for name, test := range map[string]struct {
		filter store.Filter
		want   bool
	}{
		"all": {store.Filter{}, false}, "reason": {store.Filter{ReasonPrefix: "card"}, true}, "definition": {store.Filter{Definition: "0123"}, true},
		"words": {store.Filter{Words: "card declined"}, true}, "words of a workflow": {store.Filter{Words: "card declined", Workflow: "order"}, false},
	} {
		page, err := s.ListJobs(t.Context(), test.filter, "", 10)
		check(t, err)
		same(t, name, page.Scanned, test.want)
	}
}

// No page reads the table, but one that nothing leads to, which says so; and none sorts what it has read.
func TestListsThatHaveAnIndexUseIt(t *testing.T) {
	s, _ := openFile(t)
	now := time.Now()
	for name, test := range map[string]struct {
		filter store.Filter
		want   string
	}{
		"all":        {store.Filter{}, "SEARCH jobs USING INTEGER PRIMARY KEY (rowid<?); "},
		"workflow":   {store.Filter{Workflow: "order"}, "SEARCH jobs USING INDEX jobs_workflow (workflow=? AND rowid<?); "},
		"Error":      {store.Filter{State: makegood.JobError}, "SEARCH jobs USING INDEX jobs_resting (process_state=? AND rowid<?); "},
		"kind":       {store.Filter{ReasonKind: "timeout"}, "SEARCH jobs USING INDEX jobs_resting (process_state=? AND rowid<?); "},
		"Processed":  {store.Filter{State: makegood.JobProcessed}, "SEARCH jobs USING INDEX jobs_resting (process_state=? AND rowid<?); "},
		"Processing": {store.Filter{State: makegood.JobProcessing}, "SEARCH jobs USING INDEX jobs_unfinished (id<?); "},
		"paused":     {store.Filter{Paused: true}, "SEARCH jobs USING INDEX jobs_unfinished (id<?); "},
		"step":       {store.Filter{Step: "charge"}, "SEARCH jobs USING INDEX jobs_unfinished (id<?); "},
		"late": {
			store.Filter{Late: true, Now: now},
			"SEARCH jobs USING INDEX jobs_warned (warned=? AND rowid<?); SEARCH jobs USING INDEX jobs_due ((complete_by,id)>(?,?) AND complete_by<?); ",
		},
		"due":    {store.Filter{DueWithin: time.Hour, Now: now}, "SEARCH jobs USING INDEX jobs_due ((complete_by,id)>(?,?) AND complete_by<?); "},
		"tenant": {store.Filter{Tenant: "acme", Workflow: "order"}, "SEARCH jobs USING INDEX jobs_tenant (tenant=? AND rowid<?); "},
		"label": {
			store.Filter{Labels: map[string]string{"region": "eu"}},
			"SEARCH labels USING COVERING INDEX labels_value (name=? AND value=? AND row<?); SEARCH jobs USING INTEGER PRIMARY KEY (rowid=?); ",
		},
		"the beginning of an id": {store.Filter{IDPrefix: "o-"}, "SEARCH jobs USING INDEX sqlite_autoindex_jobs_1 (id>? AND id<?); "},
		"since":                  {store.Filter{Since: now}, "SEARCH jobs USING INDEX jobs_created (created_at>? AND created_at<?); "},
	} {
		plan, err := s.ListPlan(test.filter)
		check(t, err)
		if plan != test.want {
			t.Errorf("%s: got %s, want %s", name, plan, test.want)
		}
	}
}

// A page ends where it has decoded 1,000 jobs, whatever it has found, and the next begins with the job after the last that was looked
// at: whichever way a list goes, none is skipped and none comes twice, also those on either side of that place.
func TestAPageThatEndsAtAThousandDecodedJobsSkipsNone(t *testing.T) {
	s := open(t, sqlitestore.Options{})
	const jobs, decoded = 2050, 1000
	base := domain.Instant(time.Now())
	for i := range jobs {
		j := benchJob(i)
		j.Tenant, j.Labels = "shop", map[string]string{"lane": "a"}
		j.CreatedAt, j.CompleteBy = base.Add(time.Duration(i)*time.Millisecond), base.Add(time.Hour-time.Duration(i)*time.Millisecond)
		// The last that the first page decodes, and the first of the second; so on the ways that go by row, id, birth and key.
		if left := jobs - i; left == decoded || left == decoded+1 {
			j.Reason = "odd"
		}
		check(t, s.Create(t.Context(), j))
	}
	of := benchJob(0)
	for name, filter := range map[string]store.Filter{
		"all": {}, "workflow": {Workflow: of.Workflow}, "tenant": {Tenant: "shop"}, "label": {Labels: map[string]string{"lane": "a"}},
		"state": {State: of.ProcessState}, "since": {Since: base}, "due": {DueWithin: 2 * time.Hour, Now: base}, "definition": {Definition: of.Definition},
		"the beginning of an id": {IDPrefix: of.ID[:1]},
	} {
		for _, limit := range []int{decoded - 1, decoded, decoded + 1, 5000} {
			if got := walked(t, s, filter, limit); len(got) != jobs {
				t.Errorf("%s, %d a page: got %d jobs, want %d", name, limit, len(got), jobs)
			}
		}
		filter.ReasonPrefix = "odd"
		if got := walked(t, s, filter, 10); len(got) != 2 {
			t.Errorf("%s: got %d of the two at the place where a page ends", name, len(got))
		}
	}
}

// walked are the jobs of all pages of a list, none of which comes twice.
func walked(t *testing.T, s store.Lister, filter store.Filter, limit int) map[string]bool {
	t.Helper()
	seen := map[string]bool{}
	for cursor := ""; ; {
		page, err := s.ListJobs(t.Context(), filter, cursor, limit)
		check(t, err)
		for _, j := range page.Jobs {
			if seen[j.ID] {
				t.Fatalf("job %s comes twice", j.ID)
			}
			seen[j.ID] = true
		}
		if cursor = page.Cursor; cursor == "" {
			return seen
		}
	}
}

// A list goes two ways where a warning may come first. Its place says how many of them are left; one that names a way
// that no page ends on is refused.
func TestAPlaceInAListOfTwoWaysIsReadAsItWasWritten(t *testing.T) {
	s := open(t, sqlitestore.Options{})
	now := domain.Instant(time.Now())
	const each = 5
	for i := range 2 * each {
		j := benchJob(i)
		if j.CompleteBy = now.Add(time.Duration(i-2*each) * time.Second); i < each {
			j.ExpectBy = now.Add(time.Hour)
		} else {
			j.ExpectBy, j.WarnAt = now.Add(time.Hour), now.Add(-time.Minute)
		}
		check(t, s.Create(t.Context(), j))
	}
	late := store.Filter{LateWithin: 2 * time.Hour, Now: now}
	all, err := s.ListJobs(t.Context(), late, "", 100)
	check(t, err)
	for _, limit := range []int{1, 2, each - 1, each, each + 1} {
		if got := walked(t, s, late, limit); len(got) != 2*each || len(all.Jobs) != 2*each {
			t.Errorf("%d a page: got %d jobs, and %d in one page, want %d", limit, len(got), len(all.Jobs), 2*each)
		}
	}
	for _, place := range []string{"-1+5", "0+5", "1+5", "3+5", "x+5", "2+x", "+5"} {
		if _, err := s.ListJobs(t.Context(), late, late.Seal(place), 1); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("place %q: got %v, want %v", place, err, store.ErrNotFound)
		}
	}
	if _, err := s.ListJobs(t.Context(), late, late.Seal("2+5"), 1); err != nil {
		t.Errorf("a place on the first way of two: got %v", err)
	}
}

// A page passes 2,000 rows of which it sees without decoding that they do not match, and the next goes on behind them.
func TestAPageThatPassesTwoThousandRowsIsFollowedByAnother(t *testing.T) {
	s := open(t, sqlitestore.Options{})
	const jobs, span = 2100, 2000
	for i := range jobs {
		j := benchJob(i)
		j.Tenant = "shop"
		// The first page ends between the two odd ones: the newest come first.
		if i == jobs-span-1 {
			j.Workflow = "refund"
		}
		if i == jobs-span+1 {
			j.ProcessState = makegood.JobCancelled
		}
		check(t, s.Create(t.Context(), j))
	}
	for name, test := range map[string]struct {
		filter store.Filter
		first  int
	}{
		"a workflow that is behind the page": {store.Filter{Tenant: "shop", Workflow: "refund"}, 0},
		"a state that is in the page":        {store.Filter{Tenant: "shop", State: makegood.JobCancelled}, 1},
	} {
		first, err := s.ListJobs(t.Context(), test.filter, "", 10)
		check(t, err)
		if len(first.Jobs) != test.first || first.Cursor == "" {
			t.Errorf("%s: the first page has %d jobs and the cursor %q, want %d and another page", name, len(first.Jobs), first.Cursor, test.first)
		}
		rest, err := s.ListJobs(t.Context(), test.filter, first.Cursor, 10)
		check(t, err)
		if len(first.Jobs)+len(rest.Jobs) != 1 || rest.Cursor != "" {
			t.Errorf("%s: two pages have %d jobs, and the cursor %q is left, want 1 and none", name, len(first.Jobs)+len(rest.Jobs), rest.Cursor)
		}
	}
}
