package sqlitestore_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/sqlitestore"
)

// Somebody removes the log under a running engine, or puts another in its place. What was answered is in the log that is open: it is
// copied into the file, the store takes nothing more, and whoever opens it next finds all of it.
func TestALogThatIsRemovedOrReplacedEndsTheStoreAndLosesNothing(t *testing.T) {
	for how, take := range map[string]func(log string) error{
		"removed": os.Remove,
		"with its index": func(log string) error {
			return errors.Join(os.Remove(log), os.Remove(strings.TrimSuffix(log, "-wal")+"-shm"))
		},
		"replaced": func(log string) error { return errors.Join(os.Remove(log), os.WriteFile(log, nil, 0o600)) },
	} {
		for when, find := range map[string]func(t *testing.T, s *sqlitestore.Store) error{
			"a write":             func(t *testing.T, s *sqlitestore.Store) error { return s.Create(t.Context(), benchJob(1000)) },
			"a look at the files": func(t *testing.T, s *sqlitestore.Store) error { return s.CheckFiles(t.Context()) },
			"the end":             func(_ *testing.T, s *sqlitestore.Store) error { return s.Shut() },
			"a store that mends itself": func(t *testing.T, s *sqlitestore.Store) error {
				return errors.Join(s.BreakCommit(t), s.CheckFiles(t.Context()))
			},
		} {
			t.Run(how+", found by "+when, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s, path := openFile(t)
					for i := range 20 {
						create(t, s, i)
					}
					check(t, take(path+"-wal"))
					err := find(t, s)
					if when != "a store that mends itself" && (!errors.Is(err, store.ErrFailed) || !strings.Contains(err.Error(), "was copied into "+path)) {
						t.Errorf("got %v, want %v that says what became of the log", err, store.ErrFailed)
					}
					select {
					case <-s.Lost():
					case <-time.After(10 * time.Second):
						t.Fatal("the store means to go on")
					}
					if err := s.Create(t.Context(), benchJob(1001)); !errors.Is(err, store.ErrFailed) && !errors.Is(err, store.ErrClosed) {
						t.Errorf("a write after that: got %v, want %v", err, store.ErrFailed)
					}
					if err := s.Shut(); err != nil && !errors.Is(err, store.ErrClosed) {
						t.Error(err)
					}
					s = open(t, sqlitestore.Options{Path: path})
					for i := range 20 {
						if got := load(t, s, benchJob(i).ID); got.Rev != 1 {
							t.Errorf("job %d: got revision %d, want 1", i, got.Rev)
						}
					}
				})
			})
		}
	}
}

// A file of jobs that is moved away is not the one that will be read next, so nothing more is answered.
func TestAFileThatIsMovedAwayEndsTheStore(t *testing.T) {
	s, path := openFile(t)
	create(t, s, 1)
	check(t, os.Rename(path, filepath.Join(t.TempDir(), "away.db")))
	err := s.Create(t.Context(), benchJob(2))
	if want := fmt.Sprint(path, ": it was removed or replaced while it was in use"); !errors.Is(err, store.ErrFailed) || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %v that says %q", err, store.ErrFailed, want)
	}
}
