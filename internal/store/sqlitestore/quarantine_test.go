package sqlitestore_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/sqlitestore"
	"github.com/makegood-dev/makegood/internal/testkit/seed"
)

// inQuarantine reads all that is there, page by page.
func inQuarantine(t *testing.T, s *sqlitestore.Store) (all []store.Quarantined, dropped int64, pages int) {
	t.Helper()
	for after := int64(0); ; pages++ {
		page, err := s.Quarantined(t.Context(), after, 1000)
		check(t, err)
		if dropped = page.Dropped; len(page.Messages) == 0 {
			return all, dropped, pages
		}
		all = append(all, page.Messages...)
		after = all[len(all)-1].ID
	}
}

// What is in quarantine is there after a restart, in its order; what is dropped or has expired is not, and no id comes twice.
func TestQuarantineIsKeptUntilItIsDroppedOrExpires(t *testing.T) {
	options := sqlitestore.Options{Path: filepath.Join(t.TempDir(), "jobs.db")}
	s := open(t, options)
	start := time.Now().Truncate(time.Millisecond)
	for i, body := range []string{"a", "b", "c"} {
		check(t, s.Quarantine(t.Context(), body, start.Add(time.Duration(i)*time.Hour)))
	}
	check(t, s.Shut())
	s = open(t, options)
	all, _, _ := inQuarantine(t, s)
	if len(all) != 3 || all[0].Body != "a" || all[2].Body != "c" || !all[1].At.Equal(start.Add(time.Hour)) {
		t.Fatalf("after a restart there are %v, want a, b and c", all)
	}
	check(t, s.DropQuarantined(t.Context(), all[2].ID))
	if err := s.DropQuarantined(t.Context(), all[2].ID); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("dropped twice: got %v, want that it is not there", err)
	}
	if _, err := s.QuarantinedMessage(t.Context(), all[2].ID); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("read after it was dropped: got %v, want that it is not there", err)
	}
	more, err := s.ExpireQuarantined(t.Context(), start)
	check(t, err)
	check(t, s.Quarantine(t.Context(), "d", start))
	left, dropped, _ := inQuarantine(t, s)
	if more || dropped != 0 || len(left) != 2 || left[0].Body != "b" || left[1].Body != "d" || left[1].ID <= all[2].ID {
		t.Errorf("got %v, more %v, %d dropped, want b, and d with an id of its own", left, more, dropped)
	}
	check(t, s.Shut())
}

// What is in quarantine is counted for the first message only, however full it is: with its index gone a count would
// fail, and so it does after a restart.
func TestQuarantineIsCountedOnce(t *testing.T) {
	options := sqlitestore.Options{Path: filepath.Join(t.TempDir(), "jobs.db")}
	s := open(t, options)
	check(t, s.Quarantine(t.Context(), "a", time.Now()))
	execSQL(t, options.Path, `DROP INDEX quarantined_bytes`)
	for range 3 {
		check(t, s.Quarantine(t.Context(), "b", time.Now()))
	}
	check(t, s.Shut())
	s = open(t, options)
	if err := s.Quarantine(t.Context(), "c", time.Now()); err == nil || !strings.Contains(err.Error(), "quarantined_bytes") {
		t.Errorf("got %v, want that a new store counts", err)
	}
	check(t, s.Shut())
}

// The count is what is there, after whatever was put in, taken out or expired, groups that failed, and restarts.
func TestTheCountOfQuarantineIsRight(t *testing.T) {
	random := rand.New(rand.NewPCG(seed.Of(t), 0))
	options := sqlitestore.Options{Path: filepath.Join(t.TempDir(), "jobs.db")}
	s := open(t, options)
	start, kept := time.Now().Truncate(time.Millisecond), 0
	for i := range 300 {
		at := start.Add(time.Duration(i) * time.Minute)
		switch random.IntN(12) {
		case 0:
			check(t, s.Shut())
			s = open(t, options)
		case 1:
			execSQL(t, options.Path, `CREATE TRIGGER refuses AFTER INSERT ON quarantined BEGIN SELECT RAISE(ABORT, 'refused'); END`)
			if s.Quarantine(t.Context(), "refused", at) == nil {
				t.Fatal("the message was taken, want an error")
			}
			execSQL(t, options.Path, `DROP TRIGGER refuses`)
		case 2:
			_, err := s.ExpireQuarantined(t.Context(), at.Add(-time.Duration(random.IntN(60))*time.Minute))
			check(t, err)
		case 3, 4:
			if err := s.DropQuarantined(t.Context(), random.Int64N(int64(i+1))); err != nil && !errors.Is(err, store.ErrNotFound) {
				t.Fatal(err)
			}
		default:
			check(t, s.Quarantine(t.Context(), strings.Repeat("x", random.IntN(100)), at))
		}
		messages, bytes, counted := s.Shelf()
		if !counted {
			continue
		}
		kept++
		all, _, _ := inQuarantine(t, s)
		want := 0
		for _, q := range all {
			want += len(q.Body)
		}
		if messages != int64(len(all)) || bytes != int64(want) {
			t.Fatalf("after step %d %d messages of %d bytes are counted, and there are %d of %d", i, messages, bytes, len(all), want)
		}
	}
	check(t, s.Shut())
	if kept < 100 {
		t.Errorf("the count was kept in %d of 300 steps, want most", kept)
	}
}

// BenchmarkQuarantineFull is what a message costs that finds the quarantine empty, and full.
func BenchmarkQuarantineFull(b *testing.B) {
	for _, full := range []int{0, store.MaxQuarantined} {
		b.Run(fmt.Sprint(full), func(b *testing.B) {
			s := open(b, sqlitestore.Options{})
			for range full {
				check(b, s.Quarantine(b.Context(), "x", time.Now()))
			}
			for b.Loop() {
				check(b, s.Quarantine(b.Context(), "x", time.Now()))
			}
			check(b, s.Shut())
		})
	}
}
