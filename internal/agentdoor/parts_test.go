package agentdoor

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood/internal/limits"
)

// An instance is absent after half a minute, and not at it: until then the one that was seen first makes room for
// another.
func TestWhoIsAbsentMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := seen{by: map[string]time.Time{}}
		before := time.Now().Add(-time.Second)
		for i := range maxSeen {
			s.asks(fmt.Sprint("crane-", i))
			if i == 0 {
				time.Sleep(time.Millisecond)
			}
		}
		time.Sleep(limits.AbsentAfter - time.Millisecond)
		s.asks("another") // The first is of exactly half a minute ago.
		_, first := s.by["crane-0"]
		if n, last := s.lately(before); n != maxSeen || first || !last.Equal(time.Now()) {
			t.Errorf("at half a minute %d are remembered, the first among them: %v, the last at %v; want %d, without it", n, first, last, maxSeen)
		}
		time.Sleep(2 * time.Millisecond)
		s.asks("a third")
		if n, _ := s.lately(before); n != 2 {
			t.Errorf("after half a minute %d are remembered, want the two that asked since", n)
		}
	})
}

// A task may still run until its time is over, and not at its end.
func TestATaskMayRunUntilItsTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		tasks := []Task{{expires: now.Add(time.Nanosecond)}, {expires: now}, {expires: now.Add(time.Hour)}}
		all := func(Task) bool { return true }
		if got := still(all, tasks); len(got) != 2 || !got[0].expires.After(now) || !got[1].expires.After(now) {
			t.Errorf("got %d, want the two whose time is not over", len(got))
		}
		if got := still(func(Task) bool { return false }, tasks); len(got) != 0 {
			t.Errorf("answered: got %d, want none", len(got))
		}
	})
}
