package agentrun

import (
	"context"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
)

// TryEnter takes a place for an inline attempt, and does not wait for one. leave gives it back. ok is false if all
// places are taken, or one attempt runs alone.
func (r *Runner) TryEnter() (leave func(), ok bool) {
	if !r.config.Room.tryEnter() {
		return nil, false
	}
	if !take(r.config.Slots) {
		r.config.Room.leave()
		return nil, false
	}
	return func() {
		give(r.config.Slots)
		r.config.Room.leave()
	}, true
}

// Inline does the task of an inline attempt, in a place that was taken for it (TryEnter), and returns the reply: nil if
// that may not be said any more. lockedBy is the LockedBy of the save that opened the attempt. The task is for an agent
// that runs here. Heartbeats and progress are accepted and have no effect: the attempt ends at the task's CompleteBy,
// and a timeout after since, which is a time before the save on the monotonic clock. So a process that stood still
// after the save, and has a wrong clock, does not begin an attempt that is over.
func (r *Runner) Inline(ctx context.Context, task makegood.Task, lockedBy string, since time.Time) job.Event {
	handler, err := r.handlerOf(task)
	var told heard
	a := &attempt{
		Runner: r, batch: ctx, task: task, handler: handler, to: &told, large: r.config.Large, inline: true,
	}
	a.lease.begin(ctx, nil, r.config.Now, &a.task, lockedBy)
	defer a.lease.close()
	a.lease.move = a.lease.stay
	a.lease.endBy(since.Add(domain.Silence(task).Std()))
	if err != nil {
		return a.failed(err)
	}
	r.tell(func(t *Stats) { t.Claimed++ })
	if a.do() != nil {
		return nil
	}
	return told.reply
}

// heard keeps the reply of an attempt for its caller.
type heard struct{ reply job.Event }

func (h *heard) say(_ context.Context, _ *attempt, reply job.Event, _ time.Time) error {
	h.reply = reply
	return nil
}

// endBy ends the attempt at that time, on the monotonic clock, if it would end later.
func (l *lease) endBy(end time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if end.Before(l.expires) {
		l.expires = end
		l.timer.Reset(time.Until(l.deadline()))
	}
}

// stay keeps CompleteBy where it is.
func (l *lease) stay(context.Context, time.Time) (completeBy, expires time.Time, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.completeBy, l.expires, nil
}
