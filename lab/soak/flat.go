package main

import (
	"errors"
	"fmt"
	"slices"
)

// size is one of the figures, with the growth over half a run that counts as none: a part of its median, and a room
// that it has anyway.
type size struct {
	name string
	of   func(figures) float64
	part float64
	room float64
}

// sizes are those that must be flat. The file keeps every job that has ended (its retention is a day at the least), so
// its bytes a job are.
func sizes() []size {
	return []size{
		{"heap", func(f figures) float64 { return float64(f.heap) }, 0.25, 8 << 20},
		{"goroutines", func(f figures) float64 { return float64(f.goroutines) }, 0.25, 100},
		{"jobs under way", func(f figures) float64 { return float64(f.queued) }, 0.25, 500},
		{"bytes of the file a job", figures.bytesAJob, 0.1, 100},
		{"log", func(f figures) float64 { return float64(f.log) }, 0.25, 8 << 20},
	}
}

// flat fails if a size rises over the last half of the figures: if the line through them rises by more than it may.
func flat(all []figures) error {
	half := all[len(all)/2:]
	if len(half) < 2 {
		half = all
	}
	var grown []error
	for _, s := range sizes() {
		median, rise := slope(half, s.of)
		if may := s.part*median + s.room; rise > may {
			grown = append(grown, fmt.Errorf("%s rose by %.0f over the last %d periods, about %.0f; it may by %.0f", s.name, rise, len(half), median, may))
		}
	}
	return errors.Join(grown...)
}

// slope returns the median of figures, and the rise from the first to the last of the line through them: its slope is
// the median of those between any two figures, so that one minute in which the disk stood still is no growth.
func slope(all []figures, of func(figures) float64) (median, rise float64) {
	var values, slopes []float64
	for i, f := range all {
		values = append(values, of(f))
		for n, before := range values[:i] {
			slopes = append(slopes, (values[i]-before)/float64(i-n))
		}
	}
	return middle(values), middle(slopes) * float64(len(all)-1)
}

// middle is the median.
func middle(values []float64) float64 {
	slices.Sort(values)
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}
