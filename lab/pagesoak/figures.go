package pagesoak

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// Times are how long something took, each time.
type Times []time.Duration

// Quantile is the time within which so many of a hundred were. Zero: there were none.
func (t Times) Quantile(percent int) time.Duration {
	if len(t) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(t))
	return sorted[min(len(sorted)-1, len(sorted)*percent/100)]
}

// String is the median and the 99th of a hundred, in milliseconds.
func (t Times) String() string {
	if len(t) == 0 {
		return "-"
	}
	return fmt.Sprintf("%d/%d", t.Quantile(50).Milliseconds(), t.Quantile(99).Milliseconds())
}

// timer takes times.
type timer struct {
	mu    sync.Mutex
	times Times
}

func (t *timer) add(took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.times = append(t.times, max(0, took))
}

func (t *timer) take() Times {
	t.mu.Lock()
	defer t.mu.Unlock()
	taken := t.times
	t.times = nil
	return taken
}

// meter takes the times of a period.
type meter struct{ list, job, lag, screen timer }

func newMeter() *meter { return &meter{} }

func (m *meter) take() Figures {
	return Figures{List: m.list.take(), Job: m.job.take(), Lag: m.lag.take(), ScreenLag: m.screen.take()}
}

// header says what the columns of a report are.
const header = "period  ended  heap MB  goroutines  streams  KB list  KB all  GET / p50/p99 ms  GET job  lag  browser: lag  heap MB  nodes"

// line is the figures as a line of a report.
func (f Figures) line(n int) string {
	return fmt.Sprintf("%6d  %5d  %7.1f  %10d  %7d  %7d  %6d  %16s  %7s  %s  %12s  %7.1f  %5d",
		n, f.Ended, megabytes(f.Heap), f.Goroutines, f.Streams, f.Bytes>>10, f.All>>10, f.List, f.Job, f.Lag, f.ScreenLag, megabytes(f.ScreenHeap), f.ScreenNodes)
}

func megabytes(n int) float64 { return float64(n) / (1 << 20) }
