package sqlitestore_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood"
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
	for name, lister := range map[string]store.Lister{"the store": s, "a reader beside it": r} {
		first, err := lister.ListJobs(t.Context(), store.Filter{}, "", 3)
		check(t, err)
		rest, err := lister.ListJobs(t.Context(), store.Filter{Workflow: "order"}, first.Cursor, 3)
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
	for _, cursor := range []string{"x", "-1", "0", "1.5", "99999999999999999999"} {
		if _, err := s.ListJobs(t.Context(), store.Filter{}, cursor, 10); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("cursor %q: got %v, want %v", cursor, err, store.ErrNotFound)
		}
	}
}

// One page looks through a bounded number of jobs, and says where the next one goes on.
func TestAPageOfACommonStateIsBounded(t *testing.T) {
	s, _ := openFile(t)
	const jobs = 50
	for i := range jobs {
		create(t, s, i)
	}
	check(t, s.Spread(1000))
	pages, cursor := 0, ""
	var found []string
	for {
		page, err := s.ListJobs(t.Context(), store.Filter{State: makegood.Processing}, cursor, 1000)
		check(t, err)
		pages++
		if !page.Scanned {
			t.Error("the page does not say that it passed jobs over")
		}
		for _, j := range page.Jobs {
			found = append(found, j.ID)
		}
		if cursor = page.Cursor; cursor == "" {
			break
		}
	}
	if len(found) != jobs || pages < 3 || found[0] != fmt.Sprintf("order-%06d", jobs-1) {
		t.Errorf("got %d jobs, the first %v, in %d pages, want %d in at least 3", len(found), found[0], pages, jobs)
	}
}

func TestListsThatHaveAnIndexUseIt(t *testing.T) {
	s, _ := openFile(t)
	plans, err := s.ListPlans()
	check(t, err)
	for name, want := range map[string]string{
		"all":        "SEARCH jobs USING INTEGER PRIMARY KEY (rowid<?); ",
		"workflow":   "SEARCH jobs USING INDEX jobs_workflow (workflow=? AND rowid<?); ",
		"unfinished": "SEARCH jobs USING INDEX jobs_due (complete_by>? AND (complete_by,id)<(?,?)); ",
		"spanned":    "SEARCH jobs USING INTEGER PRIMARY KEY (rowid>? AND rowid<?); ",
	} {
		if plans[name] != want {
			t.Errorf("%s: got %s, want %s", name, plans[name], want)
		}
	}
}
