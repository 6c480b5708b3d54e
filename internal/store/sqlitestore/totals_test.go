package sqlitestore_test

import (
	"errors"
	"maps"
	"path/filepath"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/sqlitestore"
)

func TestTotalsAreTheJobsByState(t *testing.T) {
	s := open(t, sqlitestore.Options{Path: filepath.Join(t.TempDir(), "jobs.db")})
	want := map[makegood.ProcessState]int{}
	for i, state := range domain.ProcessStates() {
		for n := range i + 1 {
			j := benchJob(100*i + n)
			j.ProcessState = state
			check(t, s.Create(t.Context(), j))
			want[state]++
		}
	}
	got, err := s.Totals(t.Context())
	check(t, err)
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// A store that cannot be read has no totals, rather than none of each state.
func TestTotalsOfAStoreThatIsClosedAreAnError(t *testing.T) {
	s := open(t, sqlitestore.Options{})
	check(t, s.Shut())
	if totals, err := s.Totals(t.Context()); !errors.Is(err, store.ErrClosed) || totals != nil {
		t.Errorf("got %v, %v, want %v", totals, err, store.ErrClosed)
	}
}

// BenchmarkTotals counts a file of a million jobs.
func BenchmarkTotals(b *testing.B) {
	path := filepath.Join(b.TempDir(), "jobs.db")
	fillLists(b, path)
	s := open(b, sqlitestore.Options{Path: path})
	for b.Loop() {
		if _, err := s.Totals(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
