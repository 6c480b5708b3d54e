package sqlitestore_test

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/sqlitestore"
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
