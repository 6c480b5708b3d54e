package job

import (
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
)

// A ticket rises a class every ten minutes, up to urgent, and falls below its own by no clock.
func TestTheClassOfATicketIsFromItsOwnToUrgent(t *testing.T) {
	since := time.UnixMilli(0).Add(time.Hour)
	for after, want := range map[time.Duration][3]int{
		-time.Hour: {0, 1, 2}, 0: {0, 1, 2}, 10*time.Minute - 1: {0, 1, 2}, 10 * time.Minute: {0, 0, 1}, 20 * time.Minute: {0, 0, 0}, time.Hour: {0, 0, 0},
	} {
		for i, p := range []makegood.Priority{makegood.PriorityUrgent, "", makegood.PriorityIdle} {
			if got := (Ticket{Priority: p, Since: since}).ClassAt(since.Add(after)); got != want[i] {
				t.Errorf("%q after %s: got class %d, want %d", p, after, got, want[i])
			}
		}
	}
}
