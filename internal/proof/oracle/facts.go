package oracle

import (
	"time"

	"github.com/makegood-dev/makegood"
)

// Facts about attempts: what agents did, and what was found out about them. Each says so of one that is out, or of
// the last silent one; whatever else is said changes nothing.

// Claimed: an agent has begun the attempt that is out.
func (j *Job) Claimed(step string, attempt int) {
	if side := j.step(step).side(attempt); side != nil && side.Phase == Out {
		side.Claimed = true
	}
}

// Succeeded: an agent's reply. Of a silent attempt that still counts, until its successor has begun.
func (j *Job) Succeeded(step string, attempt int, began, now time.Time) {
	s := j.step(step)
	side := s.side(attempt)
	late := side == nil || side.Phase != Out
	if late {
		side = j.lateSide(s, attempt)
	}
	if side == nil {
		return
	}
	j.tell(now, func() {
		j.answered(side, began)
		side.Phase, side.FinishedAt, side.Claimed = Done, now, false
		j.settle(now)
	})
}

// lateSide is the side whose last silent attempt this is, if its success is still of use.
func (j *Job) lateSide(s *Step, attempt int) *Side {
	side := &s.Forward
	if !j.forwards() {
		side = &s.Undo
	}
	waits := side.Phase == Resting || side.Phase == Idle || side.Phase == GivenUp || side.Phase == Out && !side.Claimed
	if attempt == 0 || side.Silent != attempt || !waits || j.State.Finished() {
		return nil
	}
	return side
}

// answered: a job that has a reply is not Pending any more.
func (j *Job) answered(side *Side, began time.Time) {
	if side.StartedAt.IsZero() {
		side.StartedAt = began
	}
	if j.State == makegood.Pending {
		j.State = makegood.Processing
	}
}

// Failed: an agent's reply.
func (j *Job) Failed(step string, attempt int, failure makegood.StepError, began, now time.Time) {
	side := j.step(step).side(attempt)
	if side == nil || side.Phase != Out {
		return
	}
	j.tell(now, func() {
		j.answered(side, began)
		// A shared attempt may have run twice: one run speaks for itself alone.
		j.count(side, failure.Applied != makegood.AppliedNo || side.def.Shared)
		j.after(side, failure.Retryable, failure.RetryAfter.Std(), now)
		j.settle(now)
	})
}

// count: a started attempt has failed.
func (j *Job) count(side *Side, unknown bool) {
	j.Failures++
	side.Failures++
	side.Claimed = false
	side.Unknown = side.Unknown || unknown
}

// after a failure: another attempt, while one is left.
func (j *Job) after(side *Side, again bool, asked time.Duration, now time.Time) {
	switch {
	case !side.undo && !j.forwards():
		side.Phase, side.FinishedAt = TakenBack, now
	case again && side.Tries < side.retry().Attempts:
		side.rest(asked, now)
	default:
		j.giveUp(side, now)
	}
}

// Silent: the attempt had begun, and said nothing in time.
func (j *Job) Silent(step string, attempt int, began, now time.Time) {
	side := j.step(step).side(attempt)
	if side == nil || side.Phase != Out {
		return
	}
	j.tell(now, func() {
		j.answered(side, began)
		j.count(side, true)
		side.Silent = attempt
		j.after(side, true, 0, now)
		j.settle(now)
	})
}

// Unclaimed: the attempt is over, and nobody had begun it. So it does not count, and is made again where it is wanted.
func (j *Job) Unclaimed(step string, attempt int, now time.Time) {
	side := j.step(step).side(attempt)
	if side == nil || side.Phase != Out {
		return
	}
	j.tell(now, func() {
		side.Tries--
		side.Phase = Idle
		if !side.undo && !j.forwards() {
			side.Phase, side.FinishedAt = TakenBack, now
		}
		j.settle(now)
	})
}

// Refused: its task can never be sent. That is a final failure of an attempt that did not start.
func (j *Job) Refused(step string, attempt int, now time.Time) {
	side := j.step(step).side(attempt)
	if side == nil || side.Phase != Out {
		return
	}
	j.tell(now, func() {
		j.after(side, false, 0, now)
		j.settle(now)
	})
}

// Restarted: the embedded engine was started again. What was out is over, may have begun if it was claimed, does not
// count, and is made again at once. A step that was cut off too often stops the job.
func (j *Job) Restarted(now time.Time) {
	if j.State.Finished() {
		return
	}
	j.tell(now, func() {
		for _, s := range j.Steps {
			for _, side := range []*Side{&s.Forward, &s.Undo} {
				if side.Phase == Out {
					j.interrupt(side, now)
				}
			}
		}
		j.settle(now)
	})
}

func (j *Job) interrupt(side *Side, now time.Time) {
	began := side.Claimed || side.def.Shared
	side.Unknown = side.Unknown || began
	side.Claimed = false
	side.Tries--
	if began {
		side.Interrupted++
	}
	switch {
	case !side.undo && !j.forwards():
		side.Phase, side.FinishedAt = TakenBack, now
	case side.Interrupted > makegood.MaxInterruptions:
		side.Phase, side.FinishedAt = GivenUp, now
		j.stop()
	default:
		side.Phase = Idle
	}
}

// Clock: somebody looks at the job at this time, and what is due is done.
func (j *Job) Clock(now time.Time) {
	j.tell(now, func() {
		if j.live() && j.forwards() && !j.Deadline.IsZero() && !now.Before(j.Deadline) {
			j.timeOut()
		}
		for _, s := range j.Steps {
			for _, side := range []*Side{&s.Forward, &s.Undo} {
				j.due(s, side, now)
			}
		}
		j.settle(now)
	})
	if j.State == makegood.Error && !now.Before(j.RemindAt) {
		j.announce(Notice{State: makegood.Error, Operator: true})
		j.RemindAt = now.Add(remindEvery)
	}
}

func (j *Job) due(s *Step, side *Side, now time.Time) {
	wanted := side.undo != j.forwards()
	switch {
	case side.Phase == Resting && wanted && j.live() && !now.Before(side.At):
		j.open(s, side, now)
	case side.Phase != Out || side.Claimed:
	case side.def.Shared && !now.Before(side.SentAt.Add(side.startBy()+side.timeout())):
		j.answered(side, side.SentAt)
		j.count(side, true)
		side.Silent = side.Attempt
		j.after(side, true, 0, now)
	case !side.def.Shared && wanted && j.live() && !now.Before(j.ResendAt(side)):
		side.SentAt = now
		side.Resent++
	}
}

// ResendAt is when the task of an attempt that nobody has begun is sent again.
func (j *Job) ResendAt(side *Side) time.Time {
	wait := side.startBy()
	for range side.Resent {
		wait = min(2*wait, makegood.MaxStartBy)
	}
	return side.SentAt.Add(wait)
}
