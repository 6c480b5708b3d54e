package tally

import (
	"sync"
	"time"
)

const (
	// recentStep is how exactly Recent knows a moment of the past.
	recentStep = 30 * time.Second
	// recentMarks is how many moments it remembers: it knows ten minutes at least.
	recentMarks = 21
)

// MaxAgo is how far back Recent.Since knows.
const MaxAgo = recentStep * (recentMarks - 1)

// Recent keeps totals as Of does, and remembers earlier totals for some minutes. It runs no timer: a moment without
// an addition needs none. The zero value has counted none.
type Recent[T any] struct {
	mu     sync.Mutex
	totals T
	// marks are the totals at moments recentStep apart at least, each taken just before an addition; the oldest first.
	marks []mark[T]
}

type mark[T any] struct {
	at     time.Time
	totals T
}

// Add lets raise add to the totals at a moment, which is not before that of an earlier Add; one caller at a time.
func (r *Recent[T]) Add(now time.Time, raise func(*T)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if last := len(r.marks) - 1; last < 0 || now.Sub(r.marks[last].at) >= recentStep {
		if len(r.marks) == recentMarks {
			r.marks = append(r.marks[:0], r.marks[1:]...)
		}
		r.marks = append(r.marks, mark[T]{now, r.totals})
	}
	raise(&r.totals)
}

// Snapshot returns the totals of this moment; they belong to the caller.
func (r *Recent[T]) Snapshot() T {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.totals
}

// Since returns the totals as they were at a moment, or a little before: when tells. It knows no longer than MaxAgo.
func (r *Recent[T]) Since(moment time.Time) (totals T, when time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	totals, when = r.totals, moment
	for i := len(r.marks) - 1; i >= 0; i-- {
		m := r.marks[i]
		if m.at.After(moment) {
			totals = m.totals // the only additions between the mark before and this one were within its step
			continue
		}
		if moment.Sub(m.at) < recentStep {
			return m.totals, m.at
		}
		break
	}
	return totals, when
}
