package embedded

import (
	"slices"
	"sync"
	"time"
)

// grain is how exact an alarm is: keys that are closer than that wake the Supervisor once.
const grain = 10 * time.Millisecond

// alarm rings at the times that were set, so that the Supervisor need not look before a key is due. It may ring for
// keys that have moved since; the look is then in vain.
type alarm struct {
	// ahead is how far ahead keys of jobs are set when they are stored, so that those of jobs that ended long before are
	// not kept. Later keys are set when the time has come nearer.
	ahead time.Duration
	mu    sync.Mutex
	// times are set, the earliest first, each once, in grains.
	times []int64
	// sooner says that the earliest time has changed.
	sooner chan struct{}
}

func newAlarm(ahead time.Duration) *alarm {
	return &alarm{ahead: ahead, sooner: make(chan struct{}, 1)}
}

// at sets the alarm to a time; zero sets no alarm.
func (a *alarm) at(t time.Time) {
	if t.IsZero() {
		return
	}
	slot := (t.UnixNano() + int64(grain) - 1) / int64(grain)
	a.mu.Lock()
	defer a.mu.Unlock()
	place, set := slices.BinarySearch(a.times, slot)
	if set {
		return
	}
	a.times = slices.Insert(a.times, place, slot)
	if place == 0 {
		select {
		case a.sooner <- struct{}{}:
		default:
		}
	}
}

// soon sets the alarm to a time that is near.
func (a *alarm) soon(t time.Time) {
	if time.Until(t) <= a.ahead {
		a.at(t)
	}
}

// next takes off the times that are not after now, and reports whether there were any: the alarm rang.
// at is the earliest that is left, if any is set.
func (a *alarm) next(now time.Time) (at time.Time, set, rang bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.times) > 0 {
		at := time.Unix(0, a.times[0]*int64(grain))
		if at.After(now) {
			return at, true, rang
		}
		rang = true
		a.times = slices.Delete(a.times, 0, 1)
	}
	return time.Time{}, false, rang
}
