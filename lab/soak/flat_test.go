package main

import (
	"strings"
	"testing"
	"time"
)

// hour is an hour of steady figures, changed minute by minute.
func hour(change func(minute int, f *figures)) []figures {
	all := make([]figures, 60)
	for n := range all {
		all[n] = figures{heap: 30 << 20, goroutines: 150, queued: 40, ended: 60_000 * (n + 1), data: int64(60_000 * (n + 1) * 900), log: 4 << 20}
		// It is never quite the same.
		all[n].heap += int64(n%7) << 18
		all[n].queued += n % 5
		change(n, &all[n])
	}
	return all
}

func TestASizeThatRisesIsFound(t *testing.T) {
	for want, change := range map[string]func(int, *figures){
		"":               func(int, *figures) {},
		"heap":           func(n int, f *figures) { f.heap += int64(n) << 20 },
		"goroutines":     func(n int, f *figures) { f.goroutines += 10 * n },
		"jobs under way": func(n int, f *figures) { f.queued += 40 * n },
		"bytes of the":   func(n int, f *figures) { f.data += int64(n) * int64(f.ended) * 10 },
		"log":            func(n int, f *figures) { f.log += int64(n) << 20 },
	} {
		err := flat(hour(change))
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%q: got %v", want, err)
		}
	}
	// In one minute the disk stood still.
	if err := flat(hour(func(n int, f *figures) {
		if n == 53 {
			f.queued, f.goroutines, f.heap = 4483, 5144, 43<<20
		}
	})); err != nil {
		t.Error(err)
	}
	// What rises in the first half alone has found its size.
	if err := flat(hour(func(n int, f *figures) { f.heap += int64(min(n, 29)) << 20 })); err != nil {
		t.Error(err)
	}
}

// A soak of three periods of a second works, and says its figures.
func TestASoakSaysItsFigures(t *testing.T) {
	var out strings.Builder
	err := run(t.Context(), &out, options{minutes: 3, load: 20, period: time.Second, probe: time.Second, dir: t.TempDir()})
	// Whether a busy machine is flat within seconds is not asked here.
	if err != nil && !strings.Contains(err.Error(), " rose by ") || strings.Count(out.String(), "\n") < 5 {
		t.Errorf("got %v:\n%s", err, out.String())
	}
	for _, wrong := range []options{{minutes: 1, load: 70}, {minutes: 60, load: 0}, {minutes: 60, load: 101}} {
		if err := run(t.Context(), &out, wrong); err == nil || !strings.Contains(err.Error(), "want at least 2 minutes") {
			t.Errorf("%+v: got %v", wrong, err)
		}
	}
}
