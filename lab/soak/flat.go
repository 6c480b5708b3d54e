package main

import (
	"errors"
	"fmt"
)

// size is one of the figures, with the growth over half a run that is none: a part of its mean, and a room that it has
// anyway.
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
		mean, rise := slope(half, s.of)
		if may := s.part*mean + s.room; rise > may {
			grown = append(grown, fmt.Errorf("%s rose by %.0f over the last %d periods, about %.0f; it may by %.0f", s.name, rise, len(half), mean, may))
		}
	}
	return errors.Join(grown...)
}

// slope returns the mean of figures, and the rise of the line through them from the first to the last.
func slope(all []figures, of func(figures) float64) (mean, rise float64) {
	n := float64(len(all))
	for _, f := range all {
		mean += of(f) / n
	}
	var above, below float64
	for i, f := range all {
		x := float64(i) - (n-1)/2
		above += x * (of(f) - mean)
		below += x * x
	}
	return mean, above / below * (n - 1)
}
