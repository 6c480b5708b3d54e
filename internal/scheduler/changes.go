package scheduler

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/makegood-dev/makegood/internal/changes"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

const (
	// maxCarried is how many changes a job may carry that this process does not know to be published. If there are more, it
	// publishes before the save, which then need not keep them.
	maxCarried = 16
	// publishFirst is how long a save waits for that, at most, and not again for publishPause when it was in vain.
	publishFirst = 500 * time.Millisecond
	publishPause = time.Minute
	// maxLedger is of how many jobs it is known up to where their changes were published: so many, or twice.
	maxLedger = 5000
)

// ledger knows up to which number this process has published the changes of jobs, for the last jobs it worked on.
// Changes that it has forgotten are published once more.
type ledger struct {
	mu          sync.Mutex
	recent, old map[ledgerKey]int
	// doubted is the time until which no publishing precedes a save.
	doubted time.Time
}

// ledgerKey names a job for ever: its id may be given again.
type ledgerKey struct {
	id        string
	createdAt int64
}

func keyOf(id string, createdAt time.Time) ledgerKey { return ledgerKey{id, createdAt.UnixMilli()} }

func (l *ledger) upTo(j job.Job) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := keyOf(j.ID, j.CreatedAt)
	return max(l.recent[key], l.old[key])
}

func (l *ledger) note(key ledgerKey, seq int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.recent) >= maxLedger {
		l.recent, l.old = nil, l.recent
	}
	if l.recent == nil {
		l.recent = make(map[ledgerKey]int)
	}
	l.recent[key] = max(l.recent[key], l.old[key], seq)
}

// doubts reports whether publishing before a save is left alone now, because it was in vain a while ago.
func (l *ledger) doubts(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return now.Before(l.doubted)
}

func (l *ledger) doubt(until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.doubted = until
}

// publishing is the publishing of some jobs' changes, while their people are told. Zero: there are none.
type publishing struct {
	done   chan struct{}
	became map[*work]job.Event
}

// of waits, and returns the event that tells a job the outcome; nil: none.
func (p publishing) of(w *work) job.Event {
	if p.done == nil {
		return nil
	}
	<-p.done
	return p.became[w]
}

// publishAll begins to publish the pending changes of the jobs of a list, all together. All their tasks are out.
func (s *Scheduler) publishAll(ctx context.Context, list []*work) publishing {
	if s.config.Changes == nil {
		return publishing{}
	}
	due := those(list, func(w *work) bool { return w.publish != nil })
	if len(due) == 0 {
		return publishing{}
	}
	p := publishing{done: make(chan struct{}), became: make(map[*work]job.Event)}
	go func() {
		defer close(p.done)
		within, cancel := context.WithTimeout(ctx, tellWithin)
		defer cancel()
		runs := make([]changes.Run, len(due))
		for i, w := range due {
			runs[i] = changes.Run{Changes: w.moved.job.After(s.ledger.upTo(w.moved.job)), Confirm: w.publish.Confirm}
		}
		for i, err := range s.publish(within, runs) {
			e := s.saidOf(ctx, *due[i].publish, due[i].job, err)
			if _, failed := e.(job.NotPublished); e != nil && !(failed && s.soon(due[i].moved.job)) {
				p.became[due[i]] = e
			}
			due[i].publish = nil
		}
	}()
	return p
}

// soon reports whether an event will move the job before its changes would be tried again.
func (s *Scheduler) soon(j job.Job) bool {
	return !j.CompleteBy.IsZero() && !j.CompleteBy.After(s.now().Add(limits.MaxTellAgain))
}

// saidOf is the event that tells a job how its publishing went; nil: its next save knows, or the next caller finds it.
func (s *Scheduler) saidOf(ctx context.Context, c job.Publish, id string, err error) job.Event {
	switch {
	case errors.Is(err, changes.ErrLater):
		return nil
	case err != nil:
		s.stats.Add(func(t *Stats) { t.Unpublished++ })
		s.config.Logger.WarnContext(ctx, "changes are published again later", "job", id, "seq", c.Seq, "error", err)
		return job.NotPublished{Seq: c.Seq}
	case c.Confirm:
		return job.Published{Seq: c.Seq}
	default:
		return nil
	}
}

// publishLast publishes the changes from the saving of the told receivers: the job may have been held then.
func (s *Scheduler) publishLast(ctx context.Context, j job.Job) {
	within, cancel := context.WithTimeout(ctx, tellWithin)
	defer cancel()
	if err := s.publish(within, []changes.Run{{Changes: j.After(s.ledger.upTo(j))}})[0]; err != nil && !errors.Is(err, changes.ErrLater) {
		s.config.Logger.WarnContext(ctx, "changes are published at the next event of the job", "job", j.ID, "error", err)
	}
}

// publish publishes runs, without those that this process knows to be published, and notes the outcome.
func (s *Scheduler) publish(ctx context.Context, all []changes.Run) []error {
	errs := make([]error, len(all))
	var runs []changes.Run
	var at []int
	for i, run := range all {
		if len(run.Changes.Changes) > 0 {
			runs, at = append(runs, run), append(at, i)
		}
	}
	if len(runs) == 0 {
		return errs
	}
	var answers []error
	err := s.receivers.Call(ctx, toChanges, grace, func() error {
		got := s.config.Changes.Publish(ctx, runs)
		if len(got) != len(runs) {
			return errUnanswered
		}
		answers = got
		return nil
	})
	for k, i := range at {
		if errs[i] = err; err == nil {
			errs[i] = answers[k]
		}
		if errs[i] == nil {
			s.ledger.note(keyOf(all[i].Job, all[i].CreatedAt), all[i].UpTo())
		}
	}
	return errs
}

// publishFirst publishes the changes that a job carries before it is saved again, if there are many. A save does not
// wait long for it, and not again soon if it was in vain: the job goes on all the same.
func (s *Scheduler) publishFirst(ctx context.Context, loaded job.Job) {
	if s.config.Changes == nil || len(loaded.Changes.Pending) < maxCarried || s.ledger.doubts(s.now()) {
		return
	}
	run := changes.Run{Changes: loaded.After(s.ledger.upTo(loaded))}
	if len(run.Changes.Changes) < maxCarried {
		return
	}
	within, cancel := context.WithTimeout(ctx, publishFirst)
	defer cancel()
	if err := s.publish(within, []changes.Run{run})[0]; err != nil {
		s.ledger.doubt(s.now().Add(publishPause))
	}
}

// Handed says what became of a run that was taken in to be published later (changes.ErrLater).
func (s *Scheduler) Handed(ctx context.Context, run changes.Run, failed error) {
	if failed == nil {
		s.ledger.note(keyOf(run.Job, run.CreatedAt), run.UpTo())
	}
	e := s.saidOf(ctx, job.Publish{Seq: run.UpTo(), Confirm: run.Confirm}, run.Job, failed)
	if e == nil {
		return
	}
	if _, err := s.moveOrPark(ctx, run.Job, []job.Event{e}, new(knowledge)); err != nil {
		s.config.Logger.WarnContext(ctx, "whether changes were published is not noted: they are published again", "job", run.Job, "error", err)
	}
}
