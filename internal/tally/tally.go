// Package tally keeps running totals that many goroutines raise, and shows them as a value. It does not know the
// things counted.
package tally

import "sync"

// Of keeps totals in a struct of numbers. The zero value has counted none.
type Of[T any] struct {
	mu     sync.Mutex
	totals T
}

// Add lets raise add to the totals, one caller at a time.
func (o *Of[T]) Add(raise func(*T)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	raise(&o.totals)
}

// Snapshot returns the totals of this moment; they belong to the caller.
func (o *Of[T]) Snapshot() T {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.totals
}
