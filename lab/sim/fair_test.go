package sim

import (
	"fmt"
	"testing"
	"time"
)

// crowds are the messages of one tenant with many of them, and then of fifty others with one each. So many of the first
// are in flight.
func crowds(flying int, now time.Time) (all []*message) {
	for n := range 1000 {
		m := &message{id: fmt.Sprint("loud-", n), group: "loud", visibleAt: now}
		if n < flying {
			m.receives, m.visibleAt = 1, now.Add(time.Minute)
		}
		all = append(all, m)
	}
	for n := range 50 {
		all = append(all, &message{id: fmt.Sprint("soft-", n), group: fmt.Sprint("soft-", n), visibleAt: now})
	}
	return all
}

// first returns the group of the first message that is delivered.
func (f *fairness) first(all []*message, now time.Time) string {
	for _, m := range f.order(all, now) {
		if !m.visibleAt.After(now) {
			return m.group
		}
	}
	return ""
}

// A tenant with many messages in flight, or much of the time of late, does not keep fifty others waiting, by the
// thresholds that SQS publishes; below them it does, and when none of its messages waits, and after five minutes.
func TestTheMessagesOfQuietTenantsAreDeliveredFirst(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		name   string
		flying int
		took   time.Duration // of ten minutes that messages took in all
		ago    time.Duration
		want   string
	}{
		{"too few are in flight", noisyInFlight - 1, 0, 0, "loud"},
		{"enough are in flight", noisyInFlight, 0, 0, "soft-0"},
		{"it took a tenth of the time", 0, time.Minute, 0, "loud"},
		{"it took more of the time", 0, time.Minute + time.Second, 0, "soft-0"},
		{"it took more long ago", 0, time.Minute + time.Second, quietAfter + time.Second, "loud"},
	} {
		f := &fairness{noisy: map[string]time.Time{}}
		f.worked("loud", now.Add(-c.took), now)
		f.worked("done", now.Add(c.took-10*time.Minute), now)
		all := crowds(c.flying, now)
		if got := f.first(all, now); c.ago == 0 && got != c.want {
			t.Errorf("%s: %s is first, want %s", c.name, got, c.want)
		}
		if got := f.first(all, now.Add(c.ago)); got != c.want {
			t.Errorf("%s, %v later: %s is first, want %s", c.name, c.ago, got, c.want)
		}
	}
	f := &fairness{noisy: map[string]time.Time{"loud": now}}
	if f.order(crowds(1000, now), now); len(f.noisy) != 0 {
		t.Errorf("noisy: %v, want none: no message of it waits", f.noisy)
	}
}
