package sqlitestore_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/sqlitestore"
	"github.com/makegood-dev/makegood/internal/store/storetest"
	"github.com/makegood-dev/makegood/internal/testkit/leaks"
)

func TestTheContractHolds(t *testing.T) {
	for name, cacheSteps := range map[string]int{"with its cache": 0, "with a cache of two jobs": 8, "without a cache": -1} {
		if testing.Short() && name != "with a cache of two jobs" {
			// This one has all that runs side by side, which is what the race detector looks for.
			continue
		}
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, func(t *testing.T) storetest.Harness { return harness(t, cacheSteps) })
		})
	}
	if testing.Short() {
		return
	}
	t.Run("in a temporary file", func(t *testing.T) {
		storetest.Run(t, func(t *testing.T) storetest.Harness {
			s := open(t, sqlitestore.Options{})
			return storetest.Harness{
				Open:   func() store.Store { return s },
				Damage: func(id string) { check(t, s.Damage(id)) }, Overwrite: func(j job.Job) { check(t, s.Overwrite(j)) },
				Delete: func(string) { deleteEnded(t, s) },
			}
		})
	})
}

func TestTheContractOfAnEmbeddedStoreHolds(t *testing.T) {
	storetest.RunEmbedded(t, func(t *testing.T) storetest.EmbeddedHarness {
		options := sqlitestore.Options{Path: filepath.Join(t.TempDir(), "jobs.db")}
		s := open(t, options)
		return storetest.EmbeddedHarness{
			Open: func() store.Embedded { return s },
			Reopen: func() store.Embedded {
				check(t, s.Shut())
				s = open(t, options)
				return s
			},
		}
	})
}

func harness(t *testing.T, cacheSteps int) storetest.Harness {
	options := sqlitestore.Options{Path: filepath.Join(t.TempDir(), "jobs.db"), CacheSteps: cacheSteps}
	s := open(t, options)
	return storetest.Harness{
		Open: func() store.Store { return s },
		Reopen: func() store.Store {
			check(t, s.Shut())
			s = open(t, options)
			return s
		},
		Damage: func(id string) { check(t, s.Damage(id)) }, Overwrite: func(j job.Job) { check(t, s.Overwrite(j)) },
		Delete: func(string) { deleteEnded(t, s) },
	}
}

// deleteEnded deletes what is at its end.
func deleteEnded(t *testing.T, s *sqlitestore.Store) {
	t.Helper()
	_, _, err := s.Expire(t.Context(), time.Now())
	check(t, err)
}

// open opens a store that the test's end closes, unless the test did.
func open(t testing.TB, options sqlitestore.Options) *sqlitestore.Store {
	t.Helper()
	s, err := sqlitestore.Open(t.Context(), options)
	check(t, err)
	t.Cleanup(func() {
		if err := s.Shut(); err != nil && !errors.Is(err, store.ErrClosed) {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// openFile opens a store in a new file.
func openFile(t testing.TB) (*sqlitestore.Store, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "jobs.db")
	return open(t, sqlitestore.Options{Path: path}), path
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func same(t testing.TB, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%s:\n got %+v\nwant %+v", what, got, want)
	}
}

func create(t testing.TB, s *sqlitestore.Store, i int) job.Job {
	t.Helper()
	check(t, s.Create(t.Context(), benchJob(i)))
	return load(t, s, benchJob(i).ID)
}

func load(t testing.TB, s interface {
	Load(ctx context.Context, id string) (job.Job, error)
}, id string,
) job.Job {
	t.Helper()
	j, err := s.Load(t.Context(), id)
	check(t, err)
	return j
}

// look looks at attempt 1 of the job's charge12, as long as it may be claimed.
func look(t testing.TB, s interface {
	Look(ctx context.Context, slot store.Slot, attempt int, until, now time.Time) (job.Found, error)
}, id string,
) job.Found {
	t.Helper()
	found, err := s.Look(t.Context(), slotOf(id), 1, time.Time{}, time.Time{})
	check(t, err)
	return found
}

func TestAnAbandonedStoreIsOpenedAgainWithAllThatWasAnswered(t *testing.T) {
	abandoned, path := openFile(t)
	j := create(t, abandoned, 1)
	claim := job.Claim{Attempt: 1, LockedBy: "x", StartedAt: j.CreatedAt, CompleteBy: j.CompleteBy}
	check(t, abandoned.Claim(t.Context(), slotOf(j.ID), claim, j.CompleteBy))
	want, held := load(t, abandoned, j.ID), look(t, abandoned, j.ID)

	s := open(t, sqlitestore.Options{Path: path})
	same(t, "job", load(t, s, j.ID), want)
	same(t, "claim", look(t, s, j.ID), held)
	check(t, s.Save(t.Context(), store.Change{Job: want, Seen: want.CompleteBy}))
	check(t, s.Shut())
	s = open(t, sqlitestore.Options{Path: path})
	want.Rev++
	same(t, "job after another save and another opening", load(t, s, j.ID), want)
	same(t, "claim after another opening", look(t, s, j.ID), held)
}

func TestATemporaryStoreLeavesNothingBehind(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	s := open(t, sqlitestore.Options{})
	create(t, s, 1)
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) != 1 {
		t.Fatalf("while it is open: got %v, %v; want one folder", left, err)
	}
	if got := s.Stats().Syncs; got != 0 {
		t.Fatalf("got %d flushes, want none", got)
	}
	check(t, s.Shut())
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) != 0 {
		t.Fatalf("after Close: got %v, %v; want nothing", left, err)
	}
}

func TestAClosedStoreRefusesEverything(t *testing.T) {
	defer leaks.None(t, goleak.IgnoreCurrent())
	s, _ := openFile(t)
	j := create(t, s, 1)
	check(t, s.Shut())
	_, loadErr := s.Load(t.Context(), j.ID)
	_, dueErr := s.Due(t.Context(), 0, time.Now(), store.Entry{}, 1)
	_, closeErr := s.Close(t.Context(), slotOf(j.ID), store.Closing{Attempt: 1})
	_, lookErr := s.Look(t.Context(), slotOf(j.ID), 1, j.CompleteBy, j.CreatedAt)
	for what, err := range map[string]error{
		"shut": s.Shut(), "load": loadErr, "due": dueErr,
		"create":  s.Create(t.Context(), benchJob(2)),
		"save":    s.Save(t.Context(), store.Change{Job: j, Seen: j.CompleteBy}),
		"claim":   s.Claim(t.Context(), slotOf(j.ID), job.Claim{Attempt: 1, LockedBy: "x"}, j.CompleteBy),
		"attempt": closeErr, "look": lookErr,
	} {
		if !errors.Is(err, store.ErrClosed) {
			t.Errorf("%s: got %v, want %v", what, err, store.ErrClosed)
		}
	}
}

func TestAFileThatIsNotAStoreOfThisVersionIsRefused(t *testing.T) {
	newer, older := filepath.Join(t.TempDir(), "newer.db"), filepath.Join(t.TempDir(), "older.db")
	foreign, text := filepath.Join(t.TempDir(), "foreign.db"), filepath.Join(t.TempDir(), "text.db")
	for path, version := range map[string]int{newer: ours + 1, older: 1} {
		s := open(t, sqlitestore.Options{Path: path})
		create(t, s, 1)
		check(t, s.Shut())
		execSQL(t, path, fmt.Sprint(`UPDATE meta SET value = `, version, ` WHERE key IN ('schema', 'readable_from')`))
	}
	execSQL(t, foreign, `CREATE TABLE songs(title)`)
	check(t, os.WriteFile(text, []byte(strings.Repeat("this is no database\n", 100)), 0o600))
	for path, want := range map[string]string{
		newer: fmt.Sprint("schema version ", ours+1), older: "finish its jobs, then begin with a new folder",
		foreign: "not a store of Makegood", text: "not a database",
	} {
		_, err := sqlitestore.Open(t.Context(), sqlitestore.Options{Path: path})
		_, readErr := sqlitestore.OpenReader(t.Context(), path)
		for how, err := range map[string]error{"open": err, "open to read": readErr} {
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
				t.Errorf("%s: got %v, want an error that names %s and says %q", how, err, path, want)
			}
		}
	}
}

func TestTheIncarnationIsCountedAcrossOpenings(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	for want := 1; want <= 4; want++ {
		s := open(t, sqlitestore.Options{Path: path})
		got, err := s.NextIncarnation(t.Context(), time.Now())
		if err != nil || got.Number != want {
			t.Fatalf("got incarnation %d, %v; want %d", got.Number, err, want)
		}
		if want%2 == 0 { // every other one is abandoned
			check(t, s.Shut())
		}
	}
}

// A run that is told to stop has not died. Those that die within minutes, before anything was done in them, are a loop: it is
// counted from its first, and ends with the first that does something, stops, or lives on.
func TestAStoreTellsALoopOfDeathsFromRunsThatEnd(t *testing.T) {
	path, now := filepath.Join(t.TempDir(), "jobs.db"), time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	began := now
	for i, c := range []struct {
		ends  string // how the run ends, and how long it has lived then
		lives time.Duration
		want  store.Incarnation // how it was begun
	}{
		{"dies", time.Second, store.Incarnation{}},
		{"dies", time.Minute, store.Incarnation{Deaths: 1, Since: began}},
		{"stops", time.Second, store.Incarnation{Deaths: 2, Since: began}},
		{"dies", time.Second, store.Incarnation{Stopped: true}},
		{"does something", time.Second, store.Incarnation{Deaths: 1, Since: began.Add(62 * time.Second)}},
		{"dies", 10*time.Minute - time.Millisecond, store.Incarnation{}},
		{"dies", 10 * time.Minute, store.Incarnation{Deaths: 1, Since: began.Add(64 * time.Second)}},
		{"dies", time.Second, store.Incarnation{}},
		{"stops", time.Second, store.Incarnation{Deaths: 1, Since: began.Add(21*time.Minute + 4*time.Second - time.Millisecond)}},
	} {
		s := open(t, sqlitestore.Options{Path: path})
		got, err := s.NextIncarnation(t.Context(), now)
		check(t, err)
		c.want.Number = i + 1
		same(t, fmt.Sprintf("run %d", i+1), got, c.want)
		switch c.ends {
		case "stops":
			check(t, s.Stopped(t.Context()))
		case "does something":
			check(t, s.Progressed(t.Context()))
		}
		now = now.Add(c.lives)
		check(t, s.Shut())
	}
}

func execSQL(t *testing.T, path, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	check(t, err)
	defer db.Close()
	_, err = db.Exec(statement)
	check(t, err)
}

// readAndStay reads the file as another program would, and does not end before it is told to.
func readAndStay(t *testing.T, path string) (leave func()) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	check(t, err)
	tx, err := db.BeginTx(t.Context(), nil)
	check(t, err)
	var jobs int
	check(t, tx.QueryRow(`SELECT count(*) FROM jobs`).Scan(&jobs))
	return func() {
		check(t, tx.Rollback())
		check(t, db.Close())
	}
}

func TestTheStatementsOfTheHotPathReadNoMoreThanTheyNeed(t *testing.T) {
	s, _ := openFile(t)
	plans, err := s.Plans()
	check(t, err)
	for name, want := range map[string]string{
		"due": "SEARCH jobs USING COVERING INDEX jobs_due", "next due": "SEARCH jobs USING COVERING INDEX jobs_due",
		"next due schedule": "SEARCH schedules USING COVERING INDEX schedules_due",
		"expired":           "SEARCH jobs USING INDEX jobs_finished",
		"load":              "SEARCH jobs USING INDEX sqlite_autoindex_jobs_1 (id=?)", "head": "SEARCH jobs USING INDEX sqlite_autoindex_jobs_1 (id=?)",
		"each":         "SEARCH jobs USING INTEGER PRIMARY KEY (rowid>?)",
		"slot":         "SEARCH claims USING PRIMARY KEY (job=? AND birth=? AND step=? AND agent=?)",
		"sweep":        "SEARCH claims USING PRIMARY KEY ((job,birth,step,agent)>(?,?,?,?))",
		"sweep within": "SEARCH claims USING PRIMARY KEY ((job,birth,step,agent)>(?,?,?,?) AND (job,birth,step,agent)<(?,?,?,?))",
		"sweep rest":   "SEARCH claims USING PRIMARY KEY ((job,birth,step,agent)>(?,?,?,?))",
	} {
		if plan := plans[name]; !strings.HasPrefix(plan, want) || strings.Contains(plan, "TEMP") {
			t.Errorf("%s: got the plan %q, want one that begins with %q and sorts nothing", name, plan, want)
		}
	}
}

func TestTheCacheKeepsToItsLimitAndNoFinishedJobs(t *testing.T) {
	const jobs, weight = 20, 6 // a job of five steps weighs six
	s := open(t, sqlitestore.Options{Path: filepath.Join(t.TempDir(), "jobs.db"), CacheSteps: 5*weight + 1})
	for i := range jobs {
		create(t, s, i)
	}
	if n, steps := s.Cached(); n != 5 || steps != 5*weight {
		t.Fatalf("got %d jobs that weigh %d, want 5 that weigh %d", n, steps, 5*weight)
	}
	for i := range jobs {
		j := load(t, s, benchJob(i).ID)
		seen := j.CompleteBy
		j.CompleteBy = time.Time{}
		check(t, s.Save(t.Context(), store.Change{Job: j, Seen: seen}))
	}
	if n, steps := s.Cached(); n != 0 || steps != 0 {
		t.Fatalf("when all jobs are finished: got %d jobs that weigh %d, want none", n, steps)
	}
}

// A caller that is careless about what only a file makes plain gets the same from memory.
func TestWhatIsKeptInMemoryIsWhatIsInTheFile(t *testing.T) {
	s, path := openFile(t)
	r, err := sqlitestore.OpenReader(t.Context(), path)
	check(t, err)
	defer r.Close()
	j := benchJob(1)
	j.CompleteBy = j.CompleteBy.Add(12345 * time.Nanosecond).Local()
	check(t, s.Create(t.Context(), j))
	same(t, "created", load(t, s, j.ID), load(t, r, j.ID))
	claim := job.Claim{Attempt: 1, LockedBy: "x", StartedAt: time.Now(), CompleteBy: time.Now().Add(time.Hour)}
	check(t, s.Claim(t.Context(), slotOf(j.ID), claim, time.Now().Add(time.Hour)))
	same(t, "claimed", look(t, s, j.ID), look(t, r, j.ID))
	claim.CompleteBy = time.Now().Add(2 * time.Hour)
	completeBy, err := s.Heartbeat(t.Context(), slotOf(j.ID), claim, time.Now().Add(time.Hour))
	check(t, err)
	same(t, "extended", look(t, r, j.ID).Claim.CompleteBy, completeBy)
	saved := load(t, s, j.ID)
	seen := saved.CompleteBy
	saved.CompleteBy = time.Now()
	check(t, s.Save(t.Context(), store.Change{Job: saved, Seen: seen}))
	same(t, "saved", load(t, s, j.ID), load(t, r, j.ID))
}

func TestAWriteWhoseContextEndsBeforeItsGroupBeginsIsNotMade(t *testing.T) {
	s, _ := openFile(t)
	leave := s.HoldWrites()
	ctx, cancel := context.WithCancel(t.Context())
	answered := make(chan error)
	go func() { answered <- s.Create(ctx, benchJob(1)) }()
	waitFor(t, "the write to wait", func() bool { return s.Waiting() == 1 })
	cancel()
	if err := <-answered; !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want %v", err, context.Canceled)
	}
	leave()
	create(t, s, 2)
	if _, err := s.Load(t.Context(), benchJob(1).ID); !errors.Is(err, store.ErrNotFound) {
		t.Fatalf("load of the job whose create was given up: got %v, want %v", err, store.ErrNotFound)
	}
}

// patience is how long a test waits until it has failed.
const patience = 2 * time.Minute

// waitFor waits until f holds.
func waitFor(t *testing.T, what string, f func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !f() {
		if time.Now().After(deadline) {
			t.Fatalf("waited %s for %s", patience, what)
		}
		runtime.Gosched()
	}
}
