package sqlitestore_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/sqlitestore"
)

// A copy is made of a store that is in use, into a file that was not there, and is what the store was.
func TestACopyIsWhatTheStoreWas(t *testing.T) {
	s, path := full(t)
	to := filepath.Join(t.TempDir(), "copy.db")
	has, err := sqlitestore.Copy(t.Context(), path, to)
	check(t, err)
	if has.Jobs != 2 || has.Unfinished != 1 || has.Schema != sqlitestore.SchemaVersion {
		t.Errorf("got %+v, want two jobs, one of them unfinished", has)
	}
	create(t, s, 3)
	if info, err := os.Stat(to); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v, want a private file", info, err)
	}
	if _, err := sqlitestore.Copy(t.Context(), path, to); err == nil {
		t.Error("a copy was made over another")
	}
	if again, err := sqlitestore.Check(t.Context(), to); err != nil || again != has {
		t.Errorf("got %+v, %v, want the copy as it was: %+v", again, err, has)
	}
	if _, err := sqlitestore.Copy(t.Context(), filepath.Join(t.TempDir(), "none.db"), to+"-2"); err == nil {
		t.Error("a store that is not there was copied")
	}
	if _, err := sqlitestore.Copy(t.Context(), path, filepath.Join(t.TempDir(), "none", "copy.db")); err == nil {
		t.Error("a copy was made where there is no folder")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := sqlitestore.Copy(ctx, path, to+"-3"); err == nil {
		t.Error("a copy was made after its time")
	}
	if _, err := os.Stat(to + "-3"); err == nil {
		t.Error("a copy after its time has left a file")
	}
}

// An engine that begins on a copy is a million runs behind the last of it, whose end is not known.
func TestARestoredCopyBeginsFarBehind(t *testing.T) {
	s, path := full(t)
	now := time.Now()
	for range 3 {
		_, err := s.NextIncarnation(t.Context(), now)
		check(t, err)
	}
	check(t, s.Stopped(t.Context()))
	to := filepath.Join(t.TempDir(), "copy.db")
	_, err := sqlitestore.Copy(t.Context(), path, to)
	check(t, err)
	check(t, sqlitestore.Restored(to))
	again := open(t, sqlitestore.Options{Path: to})
	next, err := again.NextIncarnation(t.Context(), now)
	check(t, err)
	if next.Number != 1_000_004 || next.Stopped || next.Deaths != 0 {
		t.Errorf("got %+v, want run 1,000,004, which follows one that did not stop, and no deaths", next)
	}
	if err := sqlitestore.Restored(filepath.Join(t.TempDir(), "none", "copy.db")); err == nil {
		t.Error("a copy that is not there was restored")
	}
	execSQL(t, path, `DROP TABLE meta`)
	if err := sqlitestore.Restored(path); err == nil {
		t.Error("a copy without its numbers was restored")
	}
}

// A store that counts its jobs otherwise than its index is damaged, and one that is no store is none.
func TestACheckSaysWhatIsWrong(t *testing.T) {
	for says, breaks := range map[string]string{
		"no such index":                   `DROP INDEX jobs_workflow`,
		"this SQLite file is not a store": `DROP TABLE meta`,
	} {
		s, path := full(t)
		check(t, s.Shut())
		execSQL(t, path, breaks)
		if has, err := sqlitestore.Check(t.Context(), path); err == nil || !strings.Contains(err.Error(), says) || has != (sqlitestore.Snapshot{}) {
			t.Errorf("got %+v, %v, want that it says %q", has, err, says)
		}
	}
}

// The first run is the first, and follows none. Deaths within ten minutes of a start are a loop, and one after ten
// minutes is none.
func TestARunCountsTheDeathsBeforeIt(t *testing.T) {
	s, _ := openFile(t)
	now := time.Now().Truncate(time.Millisecond)
	for i, c := range []struct {
		after  time.Duration
		deaths int
	}{{0, 0}, {time.Minute, 1}, {10*time.Minute - time.Millisecond, 2}, {10 * time.Minute, 0}, {time.Second, 1}} {
		now = now.Add(c.after)
		next, err := s.NextIncarnation(t.Context(), now)
		check(t, err)
		if next.Number != i+1 || next.Stopped || next.Deaths != c.deaths {
			t.Errorf("run %d: got %+v, want %d deaths", i+1, next, c.deaths)
		}
	}
	check(t, s.Stopped(t.Context()))
	next, err := s.NextIncarnation(t.Context(), now)
	check(t, err)
	if !next.Stopped || next.Deaths != 0 {
		t.Errorf("after a stop: got %+v, want that it stopped", next)
	}
}

// Bounds of a list within a millisecond take in what was created in it as far as they say.
func TestTheBoundsOfAListAreExact(t *testing.T) {
	s, _ := openFile(t)
	at := time.Date(2026, 11, 25, 12, 0, 0, 5_000_000, time.UTC)
	j := benchJob(1)
	j.CreatedAt = at
	check(t, s.Create(t.Context(), j))
	for name, c := range map[string]struct {
		filter store.Filter
		want   int
	}{
		"since then":                       {store.Filter{Since: at}, 1},
		"since a millisecond later":        {store.Filter{Since: at.Add(time.Millisecond)}, 0},
		"since a microsecond later":        {store.Filter{Since: at.Add(time.Microsecond)}, 0},
		"until then":                       {store.Filter{Until: at}, 0},
		"until a microsecond later":        {store.Filter{Until: at.Add(time.Microsecond)}, 1},
		"until a millisecond later":        {store.Filter{Until: at.Add(time.Millisecond)}, 1},
		"since then until a bit later":     {store.Filter{Since: at, Until: at.Add(time.Microsecond)}, 1},
		"since before until a bit earlier": {store.Filter{Since: at.Add(-time.Hour), Until: at.Add(-time.Microsecond)}, 0},
	} {
		page, err := s.ListJobs(t.Context(), c.filter, "", 10)
		check(t, err)
		if len(page.Jobs) != c.want || c.want == 1 && !page.Jobs[0].CreatedAt.Equal(at) {
			t.Errorf("%s: got %d jobs, want %d", name, len(page.Jobs), c.want)
		}
	}
	if page, err := s.ListJobs(t.Context(), store.Filter{}, "", -1); err != nil || len(page.Jobs) != 1 {
		t.Errorf("a page of less than one: got %d jobs, %v, want one", len(page.Jobs), err)
	}
}

// A job that goes on is among those that are held no more, also where the store remembers how it was written last.
func TestAJobThatGoesOnIsNotHeldAnyMore(t *testing.T) {
	s, _ := openFile(t)
	j := create(t, s, 1)
	for i, held := range []string{"workflow order", "workflow order", "", "agent a", ""} {
		seen := j.CompleteBy
		if j.HeldBy = held; held == "" {
			j.PausedAt = time.Time{}
		} else {
			j.PausedAt = time.Now()
		}
		check(t, s.Save(t.Context(), store.Change{Job: j, Seen: seen}))
		j.Rev++
		for _, name := range []string{"workflow order", "agent a"} {
			n, err := s.CountHeld(t.Context(), name, 10)
			check(t, err)
			if want := map[bool]int{true: 1}[name == held]; n != want {
				t.Errorf("save %d, held by %q: got %d held by %s, want %d", i, held, n, name, want)
			}
		}
	}
}
