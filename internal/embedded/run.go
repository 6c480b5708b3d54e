package embedded

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/pause"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/queue/localqueue"
	"github.com/makegood-dev/makegood/internal/quiet"
	"github.com/makegood-dev/makegood/internal/sqsbatch"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/supervisor"
	"github.com/makegood-dev/makegood/internal/wire"
)

const (
	// recoverPage is how many unfinished jobs are read at a time at start.
	recoverPage = 1000
	// recoverAhead is how many events wait before recovery sends no more: what all workers take, and as many again.
	recoverAhead = 2 * defaultEventWorkers * limits.MaxBatch
)

// Run lets the engine work until ctx ends or Close is called, and returns when everything has stopped. Attempts that
// run then are over; the next incarnation makes their successors. It returns an error if a part cannot work: a store
// that has failed for good, for example. A disk that is full for a while is no error: the engine stands still, and
// goes on when the disk has room. While another Run works it fails at once with ErrRunning, and after Close with
// ErrClosed, without having done any work.
func (e *Engine) Run(ctx context.Context) error {
	ctx, end, err := e.life.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	return e.work(ctx)
}

// work does what Run does, once it may.
func (e *Engine) work(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	e.lane.open(ctx)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var problems []error
	start := func(what string, run func(context.Context) error) {
		wg.Go(func() {
			err := run(ctx)
			if err == nil || ctx.Err() != nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			problems = append(problems, fmt.Errorf("%s: %w", what, err))
			cancel()
		})
	}
	start("events", e.poller(localqueue.Poller{Queue: eventsQueue, Concurrency: e.config.EventWorkers, Handler: e.events.Handle}))
	for name, workers := range e.workers {
		for _, w := range workers {
			start("agent "+name, e.poller(localqueue.Poller{Queue: w.queue, Concurrency: w.most, Batch: 1, Handler: w.HandleSQS}))
		}
	}
	start("inline", e.lane.run)
	start("recovery", e.recover)
	start("supervisor", e.supervise)
	start("store", e.watchStore)
	start("payloads", e.collect)
	if e.relay != nil {
		start("changes", func(ctx context.Context) error {
			e.relay.Run(ctx, e.scheduler.Handed)
			return nil
		})
	}
	if e.config.Retention > 0 {
		start("retention", e.expire)
	}
	wg.Wait()
	e.sayHeldBack(context.WithoutCancel(ctx), (*quiet.Handler).SayAll)
	return errors.Join(problems...)
}

// poller has the records that a handler failed visible again soon, and later each time.
func (e *Engine) poller(p localqueue.Poller) func(context.Context) error {
	p.Handler = sqsbatch.Backoff(p.Handler, e.queues, p.Queue, sqsbatch.BackoffOptions{Logger: e.config.Logger})
	p.Receiver, p.Logger = e.queues, e.config.Logger
	return p.Run
}

// recover touches every unfinished job, once, so that the attempts that an earlier incarnation dispatched are followed
// by new ones at once, and not when their deadlines pass. The first are those with the earliest keys: attempts that
// were under way are due within the hour, and answers of people in days. The others wait here while recoverAhead wait
// in the queue, so that replies of the first need not. It holds all ids, since keys move while it goes on.
func (e *Engine) recover(ctx context.Context) error {
	var left []string
	var last store.Entry
	overdue := 0 // of left
	for more := true; more || len(left) > 0; {
		if more {
			page, err := e.unfinished(ctx, last)
			if err != nil {
				return fmt.Errorf("list unfinished jobs: %w", err)
			}
			for _, last = range page {
				left = append(left, last.Job)
				if !last.CompleteBy.After(e.opened) {
					overdue++
				}
			}
			more = len(page) == recoverPage
		}
		n := min(len(left), e.recoverable(ctx))
		if err := e.touch(ctx, left[:n]); err != nil {
			return err
		}
		left, overdue = left[n:], overdue-n
		if overdue <= 0 && (!more || last.CompleteBy.After(e.opened)) {
			e.recovered.Store(true)
		}
		if n == 0 && !more && pause.For(ctx, brakedFor) != nil {
			return nil
		}
	}
	e.allTouched()
	return nil
}

// Recovered returns a channel that is closed when a Run has told all jobs of earlier runs to go on.
func (e *Engine) Recovered() <-chan struct{} { return e.touched }

// recoverable is how many jobs recovery may touch now.
func (e *Engine) recoverable(ctx context.Context) int {
	depth, err := e.queues.Depth(ctx, eventsQueue)
	if err != nil {
		return recoverAhead
	}
	return max(0, recoverAhead-depth.Waiting)
}

// touch sends each job a deadline without a key. That moves no state by itself: the first event for a job finds it
// interrupted.
func (e *Engine) touch(ctx context.Context, ids []string) error {
	messages := make([]queue.Message, len(ids))
	for i, id := range ids {
		body, err := wire.EncodeEvent(id, job.DeadlinePassed{})
		if err != nil {
			return err
		}
		messages[i] = queue.Message{Body: body, Group: id}
	}
	for _, err := range e.queues.Send(ctx, eventsQueue, messages...) {
		if err != nil {
			// The job is in the index: the Supervisor comes to it.
			e.config.Logger.WarnContext(ctx, "recovery of a job waits for the Supervisor", "error", err)
		}
	}
	return nil
}

// unfinished reads a page of unfinished jobs. While the disk is full it waits for room, like all other parts; the
// loss of the store ends the engine elsewhere.
func (e *Engine) unfinished(ctx context.Context, after store.Entry) ([]store.Entry, error) {
	for {
		page, err := e.file.Unfinished(ctx, after, recoverPage)
		if !errors.Is(err, store.ErrFailed) {
			return page, err
		}
		if pause.For(ctx, tick) != nil {
			return nil, nil
		}
	}
}

// supervise sweeps: newly overdue keys when the alarm rings, older ones once a tick, and all keys once a minute.
func (e *Engine) supervise(ctx context.Context) error {
	ticker := time.NewTicker(e.config.Tick)
	defer ticker.Stop()
	timer := time.NewTimer(tick)
	defer timer.Stop()
	// swept is the time up to which every key was told of.
	swept := time.Now()
	var audited, whole time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-e.alarm.sooner:
		case <-timer.C:
		case <-ticker.C:
			whole = e.sweep(ctx, whole)
			e.setAlarm(ctx, swept)
			e.sayHeldBack(ctx, (*quiet.Handler).Say)
			// The sweep left keys younger than a tick: the alarm has sent those, or it rings below.
			if told := time.Now().Add(-tick); told.After(swept) {
				swept = told
			}
			if time.Since(audited) >= auditEvery {
				audited = time.Now()
				e.audit(ctx)
			}
		}
		now := time.Now()
		at, set, rang := e.alarm.next(now)
		if rang {
			r, err := e.supervisor.SweepAfter(ctx, domain.Instant(swept.Add(-time.Millisecond)))
			e.noteSweep(ctx, now, r, err)
			if r.Braked {
				// There is more than the queue is to hold: it goes on where it held back.
				e.alarm.at(now.Add(brakedFor))
				at, set = now.Add(brakedFor), true
			} else {
				swept = now
				e.setAlarm(ctx, swept)
			}
		}
		if set {
			timer.Reset(time.Until(at))
		}
	}
}

// setAlarm sets the alarm to the first key after those that were told of, if it is near. It was not when it was stored,
// or an earlier engine stored it.
func (e *Engine) setAlarm(ctx context.Context, swept time.Time) {
	if next, err := e.file.NextDue(ctx, swept); err == nil {
		e.alarm.soon(next)
	}
}

// sweep looks at overdue keys, at all if the last whole sweep was long ago, and returns the time of the last whole
// sweep.
func (e *Engine) sweep(ctx context.Context, whole time.Time) time.Time {
	if !e.recovered.Load() {
		return whole // Recovery tells of the same jobs.
	}
	if depth, err := e.queues.Depth(ctx, eventsQueue); err == nil && depth.Waiting > retoldBelow {
		// The earlier events are still in the queue, which is in this process: repeating them would only make it longer.
		return whole
	}
	now := time.Now()
	if now.Sub(whole) < wholeEvery {
		r, err := e.supervisor.SweepRecent(ctx, domain.Instant(now.Add(-wholeEvery)))
		e.noteSweep(ctx, now, r, err)
		return whole
	}
	r, err := e.supervisor.Sweep(ctx)
	e.noteSweep(ctx, now, r, err)
	return now
}

// sayHeldBack logs how often warnings were held back that may not occur again. A log that cannot be written has no
// place to report its failure.
func (e *Engine) sayHeldBack(ctx context.Context, say func(*quiet.Handler, context.Context) error) {
	if h, is := e.config.Logger.Handler().(*quiet.Handler); is {
		_ = say(h, ctx)
	}
}

// audit looks at a page more of all jobs.
func (e *Engine) audit(ctx context.Context) {
	if _, err := e.supervisor.Audit(ctx); err != nil && ctx.Err() == nil {
		e.config.Logger.WarnContext(ctx, "audit failed, the next one goes on", "error", err)
	}
}

// noteSweep notes a sweep that began at this time.
func (e *Engine) noteSweep(ctx context.Context, began time.Time, r supervisor.Result, err error) {
	e.watch.Swept(ctx, time.Since(began), r.Overdue)
	if err != nil && ctx.Err() == nil {
		e.config.Logger.WarnContext(ctx, "sweep failed, the next one makes up for it", "error", err)
	}
}
