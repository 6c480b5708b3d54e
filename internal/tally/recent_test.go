package tally_test

import (
	"testing"
	"time"

	"github.com/makegood-dev/makegood/internal/tally"
)

// What was added a second since some moment is what the totals are more by now, up to half a minute more of it, which is said.
func TestWhatWasAddedLatelyIsKnown(t *testing.T) {
	var all tally.Recent[int]
	begin := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for second := range 20 * 60 {
		all.Add(begin.Add(time.Duration(second)*time.Second), func(n *int) { *n++ })
	}
	now := begin.Add(20 * time.Minute)
	for _, ago := range []time.Duration{0, time.Second, 29 * time.Second, 31 * time.Second, time.Minute, 5 * time.Minute, tally.MaxAgo} {
		before, when := all.Since(now.Add(-ago))
		added := all.Snapshot() - before
		if early := now.Add(-ago).Sub(when); early < 0 || early >= 30*time.Second || added != int(now.Sub(when)/time.Second) {
			t.Errorf("%s ago: got %d added since %s, which is %s before; want one a second, since less than half a minute before", ago, added, when, early)
		}
	}
}

// Where nothing was added for a while, nothing is counted in it, though what was added before it is remembered.
func TestAQuietWhileIsEmpty(t *testing.T) {
	var all tally.Recent[int]
	begin := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	if before, when := all.Since(begin); before != 0 || !when.Equal(begin) {
		t.Errorf("got %d at %s of what has counted nothing, want 0 at %s", before, when, begin)
	}
	for i := range 3 {
		all.Add(begin.Add(time.Duration(i)*time.Second), func(n *int) { *n++ })
	}
	all.Add(begin.Add(10*time.Minute), func(n *int) { *n += 10 })
	for _, c := range []struct {
		moment time.Duration
		want   int
	}{{-time.Minute, 13}, {2 * time.Minute, 10}, {9 * time.Minute, 10}, {11 * time.Minute, 0}} {
		before, when := all.Since(begin.Add(c.moment))
		if got := all.Snapshot() - before; got != c.want || when.After(begin.Add(c.moment)) {
			t.Errorf("since %s: got %d since %s, want %d", c.moment, got, when, c.want)
		}
	}
}
