package embedded

import (
	"container/heap"
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
	times timeHeap
	set   map[int64]bool
	// sooner says that the earliest time has changed.
	sooner chan struct{}
}

func newAlarm(ahead time.Duration) *alarm {
	return &alarm{ahead: ahead, set: make(map[int64]bool), sooner: make(chan struct{}, 1)}
}

// at sets the alarm to a time; zero sets no alarm.
func (a *alarm) at(t time.Time) {
	if t.IsZero() {
		return
	}
	slot := (t.UnixNano() + int64(grain) - 1) / int64(grain)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.set[slot] {
		return
	}
	a.set[slot] = true
	heap.Push(&a.times, slot)
	if a.times[0] == slot {
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
		delete(a.set, a.times[0])
		heap.Pop(&a.times)
	}
	return time.Time{}, false, rang
}

type timeHeap []int64

func (h timeHeap) Len() int           { return len(h) }
func (h timeHeap) Less(i, j int) bool { return h[i] < h[j] }
func (h timeHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *timeHeap) Push(x any)        { *h = append(*h, x.(int64)) }
func (h *timeHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}
