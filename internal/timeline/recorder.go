package timeline

import (
	"time"

	"github.com/makegood-dev/makegood"
)

// recorder makes the bars of one step.
type recorder struct {
	job     makegood.Job
	now     time.Time
	step    string
	waits   bool
	entries []makegood.Entry
	bars    []Bar
	undo    bool
	// free is when the last attempt ended; zero: there was none. attempt is its number.
	free    time.Time
	attempt int
}

// side returns the bars of a step going forward, or of its undo: first those in the history, then the latest attempt.
// opened is the earliest time at which its first attempt could be in the queue.
func (r recorder) side(a makegood.Activity, undo bool, opened time.Time) []Bar {
	r.undo, r.bars = undo, nil
	r.free = opened
	for _, e := range r.entries {
		if e.Step == r.step && e.Undo == undo {
			r.entry(e)
		}
	}
	r.latest(a)
	return r.bars
}

func (r *recorder) add(kind Kind, from, to time.Time, attempt int, why string) {
	if from.IsZero() || to.Before(from) {
		return
	}
	r.bars = append(r.bars, Bar{Kind: kind, From: from, To: to, Attempt: attempt, Undo: r.undo, Why: why})
}

// open adds a bar that goes on.
func (r *recorder) open(kind Kind, from time.Time, attempt int) {
	r.add(kind, from, later(from, r.now), attempt, "")
	if n := len(r.bars); n > 0 {
		r.bars[n-1].Open = true
	}
}

// between adds what lies between the end of the attempt before, or the opening, and the start of the next.
func (r *recorder) between(start time.Time, attempt int) {
	if r.free.IsZero() || !start.After(r.free) {
		return
	}
	if r.attempt == 0 {
		r.add(Queue, r.free, start, attempt, "")
		return
	}
	r.add(Backoff, r.free, start, 0, "")
}

// entry adds an attempt that ended, and did not simply go well.
func (r *recorder) entry(e makegood.Entry) {
	kind, why := Failed, ""
	if e.Error != nil {
		why = e.Error.Message
	}
	switch e.Kind {
	case makegood.EntryFailed, makegood.EntryRefused:
		if e.Error != nil && !e.Error.Retryable {
			kind = Final
		}
	case makegood.EntrySilent:
		why = orElse(why, "silent")
	case makegood.EntryInterrupted:
		why = orElse(why, "cut off by the end of the engine")
	case makegood.EntryWithdrawn:
		why = "given up before it had ended"
	case makegood.EntrySettled:
		r.add(Passed, e.At, e.At, 0, "settled as "+string(e.As)+" by "+orElse(e.By, "hand"))
		return
	default:
		return
	}
	if e.StartedAt == nil {
		r.add(kind, e.At, e.At, e.Attempt, why)
	} else {
		r.between(*e.StartedAt, e.Attempt)
		r.add(kind, *e.StartedAt, e.At, e.Attempt, why)
	}
	r.free, r.attempt = e.At, max(e.Attempt, r.attempt, 1)
}

func orElse(text, instead string) string {
	if text == "" {
		return instead
	}
	return text
}

// latest adds the latest attempt, if it is not in the history, and the bars after it.
func (r *recorder) latest(a makegood.Activity) {
	told := a.Attempt > 0 && a.Attempt <= r.attempt
	switch a.State {
	case makegood.StepQueued:
		if !r.free.IsZero() {
			r.open(Queue, r.free, a.Attempt)
		}
	case makegood.StepDispatched:
		r.queued(a)
		r.open(Queue, orNow(a.SentAt, r.now), a.Attempt)
	case makegood.StepClaimed:
		r.queued(a)
		start := orNow(a.LastStartedAt, r.now)
		r.add(Queue, orNow(a.SentAt, start), start, a.Attempt, "")
		r.open(Going, start, a.Attempt)
	case makegood.StepWaiting:
		r.waited(a)
		r.open(Wait, orNow(a.SentAt, r.now), a.Attempt)
	case makegood.StepBackoff:
		if !r.free.IsZero() {
			r.open(Backoff, r.free, 0)
		}
	case makegood.StepDone:
		r.done(a)
	case makegood.StepFailed:
		if !told && a.LastStartedAt != nil && a.FinishedAt != nil {
			r.between(*a.LastStartedAt, a.Attempt)
			r.add(Failed, *a.LastStartedAt, *a.FinishedAt, a.Attempt, message(a))
		}
		if a.FinishedAt != nil && r.job.ProcessState == makegood.JobError && r.undo == (r.job.Desired != makegood.JobProcessed) {
			r.open(Person, *a.FinishedAt, 0)
		}
	case makegood.StepSkipped:
		if a.FinishedAt != nil && a.Settled == nil {
			r.add(Passed, *a.FinishedAt, *a.FinishedAt, 0, "skipped")
		}
	}
}

// queued adds the bars before the sending of an attempt that follows another.
func (r *recorder) queued(a makegood.Activity) {
	if r.attempt > 0 && a.SentAt != nil {
		r.between(*a.SentAt, a.Attempt)
	}
}

// done adds the attempt that succeeded.
func (r *recorder) done(a makegood.Activity) {
	if a.FinishedAt == nil || a.Settled != nil {
		return
	}
	end := *a.FinishedAt
	if a.SentAt != nil && (r.waits || a.CompletedBy != nil) && !a.SentAt.Before(orNow(a.LastStartedAt, *a.SentAt)) {
		r.waited(a)
		r.add(Wait, *a.SentAt, end, a.Attempt, who(a))
		return
	}
	start := a.LastStartedAt
	if start == nil || start.Before(r.free) && r.attempt > 0 || start.After(end) {
		// A late success, or one that was answered from outside: since when it was worked on is told already.
		r.between(end, a.Attempt)
		r.add(Work, end, end, a.Attempt, who(a))
		return
	}
	if a.SentAt != nil && !a.SentAt.After(*start) {
		r.queued(a)
		r.add(Queue, *a.SentAt, *start, a.Attempt, "")
	} else {
		r.between(*start, a.Attempt)
	}
	r.add(Work, *start, end, a.Attempt, who(a))
}

// waited adds the attempt that ended by waiting.
func (r *recorder) waited(a makegood.Activity) {
	if a.LastStartedAt != nil && a.SentAt != nil && a.LastStartedAt.Before(*a.SentAt) && !a.LastStartedAt.Before(r.free) {
		r.between(*a.LastStartedAt, a.Attempt)
		r.add(Work, *a.LastStartedAt, *a.SentAt, a.Attempt, "")
	}
}

func message(a makegood.Activity) string {
	if a.Error == nil {
		return ""
	}
	return a.Error.Message
}

// who names the person or program that completed it.
func who(a makegood.Activity) string {
	if a.CompletedBy == nil {
		return ""
	}
	return "by " + *a.CompletedBy
}

func orNow(at *time.Time, now time.Time) time.Time {
	if at == nil {
		return now
	}
	return *at
}
