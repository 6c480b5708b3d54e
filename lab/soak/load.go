package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/makegood-dev/makegood/engine"
)

const (
	// submitters submit at once while the capacity is measured: each waits for its job.
	submitters = 256
	// mostUnderWay bounds the jobs under way: submissions wait then, as those of any caller would.
	mostUnderWay = 20_000
	// mayWait is the share of the time for which submissions may wait: a disk that stands still for some seconds is made
	// up for, a load above the capacity fails.
	mayWait = 0.05
	header  = "minute  jobs/s  under way  heap MB  goroutines  file MB  bytes/job  log MB  waited s"
)

// load submits jobs and waits for their ends.
type load struct {
	jobs    *engine.Engine
	born    atomic.Int64
	ended   atomic.Int64
	waits   chan struct{}
	waiting sync.WaitGroup
	// waited is for how long submissions have waited.
	waited time.Duration
	failed atomic.Pointer[error]
}

// through submits a job, and waits for its end.
func (l *load) through(ctx context.Context) {
	n := int(l.born.Add(1))
	err := submit(ctx, l.jobs, "steady", n)
	if err == nil {
		_, err = l.jobs.Wait(ctx, fmt.Sprintf("steady-%08d", n))
	}
	l.ended.Add(1)
	if err != nil && ctx.Err() == nil {
		l.failed.Store(&err)
	}
}

// capacity returns how many jobs a second come to their ends with submitters that wait for each.
func (l *load) capacity(ctx context.Context, probe time.Duration) (float64, error) {
	began := time.Now()
	var busy sync.WaitGroup
	for range submitters {
		busy.Go(func() {
			for time.Since(began) < probe && ctx.Err() == nil {
				l.through(ctx)
			}
		})
	}
	busy.Wait()
	return float64(l.ended.Load()) / time.Since(began).Seconds(), l.err(ctx)
}

func (l *load) err(ctx context.Context) error {
	if err := l.failed.Load(); err != nil {
		return *err
	}
	return ctx.Err()
}

// soak submits so many jobs a second, and returns the sizes at the end of each period.
func (l *load) soak(ctx context.Context, out io.Writer, o options, perSecond float64) ([]figures, error) {
	const tick = 10 * time.Millisecond
	began, owed := time.Now(), 0.0
	defer l.waiting.Wait()
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	var all []figures
	for last, next := began, began.Add(o.period); len(all) < o.minutes; {
		var passed time.Duration
		select {
		case <-ctx.Done():
			return all, ctx.Err()
		case now := <-ticker.C:
			passed, last = now.Sub(last), now
		}
		owed = l.begin(ctx, owed+perSecond*passed.Seconds())
		if owed >= 1 {
			l.waited += passed
		}
		if err := errors.Join(l.err(ctx), l.inTime(o)); err != nil {
			return all, err
		}
		if time.Now().Before(next) {
			continue
		}
		next = next.Add(o.period)
		f, err := l.period(began, o.dir)
		if err != nil {
			return all, err
		}
		all = append(all, f)
		fmt.Fprintln(out, f.line(all, o.period))
	}
	return all, nil
}

// begin submits so many jobs, and returns how many are owed because too many are under way.
func (l *load) begin(ctx context.Context, owed float64) float64 {
	for ; owed >= 1; owed-- {
		select {
		case l.waits <- struct{}{}:
		default:
			return owed
		}
		l.waiting.Go(func() {
			defer func() { <-l.waits }()
			l.through(ctx)
		})
	}
	return owed
}

// inTime fails if submissions have waited for too large a share of the run.
func (l *load) inTime(o options) error {
	if may := time.Duration(mayWait * float64(o.minutes) * float64(o.period)); l.waited > may {
		return fmt.Errorf("%d jobs were under way for %v: the load is above the capacity", mostUnderWay, l.waited)
	}
	return nil
}

// period takes the sizes at its end.
func (l *load) period(began time.Time, dir string) (figures, error) {
	f, err := measure(began, dir)
	f.ended = int(l.ended.Load())
	f.queued, f.waited = int(l.born.Load())-f.ended, l.waited
	return f, err
}

// bytesAJob is the part of the file that a job takes.
func (f figures) bytesAJob() float64 { return float64(f.data) / float64(max(1, f.ended)) }

// line shows the last figures of all.
func (f figures) line(all []figures, period time.Duration) string {
	done := f.ended
	if len(all) > 1 {
		done -= all[len(all)-2].ended
	}
	const mb = 1 << 20
	return fmt.Sprintf("%6d  %6.0f  %9d  %7.1f  %10d  %7.1f  %9.0f  %6.1f  %8.1f", len(all), float64(done)/period.Seconds(), f.queued,
		float64(f.heap)/mb, f.goroutines, float64(f.data)/mb, f.bytesAJob(), float64(f.log)/mb, f.waited.Seconds())
}
