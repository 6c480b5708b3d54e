package sqlitestore_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/sqlitestore"
)

// A check counts the jobs of a store, and those of them that are not finished, and finds an index that does not agree with its table.
func TestACheckReadsTheWholeStore(t *testing.T) {
	s, path := openFile(t)
	for i := range 3 {
		create(t, s, i)
	}
	j := load(t, s, benchJob(0).ID)
	seen := j.CompleteBy
	j.ProcessState, j.FinishedAt, j.CompleteBy = makegood.JobProcessed, time.Now(), time.Time{}
	check(t, s.Save(t.Context(), store.Change{Job: j, Seen: seen}))
	check(t, s.Shut())
	has, err := sqlitestore.Check(t.Context(), path)
	check(t, err)
	if has.Jobs != 3 || has.Unfinished != 2 || has.Schema < 1 {
		t.Errorf("got %+v, want 3 jobs, 2 unfinished, and the schema", has)
	}
	execSQL(t, path, `PRAGMA writable_schema = ON; DELETE FROM sqlite_schema WHERE name = 'jobs_workflow'`)
	if _, err := sqlitestore.Check(t.Context(), path); err == nil {
		t.Error("without an index: got no error, want one")
	}
}

// A file that is no database is not to be healed; one that another program has locked is.
func TestAFileThatIsNoDatabaseIsTheEndOfAStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "no.db")
	check(t, os.WriteFile(path, []byte(strings.Repeat("no database", 100)), 0o600))
	db, err := sql.Open("sqlite", path)
	check(t, err)
	defer db.Close()
	if _, err := db.Exec(`SELECT * FROM sqlite_schema`); err == nil || !sqlitestore.IsFinal(err) {
		t.Errorf("%v is not final, want so", err)
	}
	s, path := openFile(t)
	create(t, s, 0)
	check(t, s.Shut())
	one, err := sql.Open("sqlite", path)
	check(t, err)
	defer one.Close()
	one.SetMaxOpenConns(1)
	_, err = one.Exec(`BEGIN IMMEDIATE`)
	check(t, err)
	other, err := sql.Open("sqlite", path)
	check(t, err)
	defer other.Close()
	if _, err := other.Exec(`DELETE FROM jobs`); err == nil || sqlitestore.IsFinal(err) {
		t.Errorf("%v is final, want that it passes", err)
	}
}
