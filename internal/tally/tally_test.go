package tally_test

import (
	"sync"
	"testing"

	"github.com/makegood-dev/makegood/internal/tally"
)

// What many raise at once is all counted, and a snapshot stays as it was taken.
func TestNothingThatIsAddedIsLost(t *testing.T) {
	type totals struct{ Ones, Tens int64 }
	var all tally.Of[totals]
	before := all.Snapshot()
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() { all.Add(func(t *totals) { t.Ones++; t.Tens += 10 }) })
	}
	wg.Wait()
	if got, want := all.Snapshot(), (totals{100, 1000}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if before != (totals{}) {
		t.Errorf("the snapshot of before became %+v, want it as it was", before)
	}
}
