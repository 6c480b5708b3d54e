package oracle

import (
	"slices"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

// Facts about attempts: what agents did, and what was found out about them. Each says so of one that is out, or of
// the last silent one; whatever else is said changes nothing.

// Claimed: an agent has begun the attempt that is out, with so many others beside it.
func (j *Job) Claimed(step string, attempt, beside int, now time.Time) {
	if side := j.step(step).side(attempt); side != nil && side.Phase == Out {
		side.Claimed, side.InCompany, side.BeganAt = true, beside > 0, now
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
	if side == nil || j.early(side) {
		return
	}
	j.tell(func() {
		j.answered(side, began)
		side.Unknown = side.Unknown || side.word != nil && side.word.untilEnded && side.word.Failure != nil
		if (late || !j.conclude(side, now)) && !j.repeated(side, now) {
			j.finish(side, "", now)
		}
		j.settle(now)
	})
}

// lateSide is the side whose last silent attempt this is, if its success is still of use.
func (j *Job) lateSide(s *Step, attempt int) *Side {
	side := &s.Forward
	if !j.forwards() {
		side = &s.Undo
	}
	waits := side.Phase == Resting || side.Phase == Idle || side.Phase == Waits || side.Phase == Out && !side.Claimed && !side.def.Shared
	if attempt == 0 || side.Silent != attempt || !waits || j.State == makegood.JobError || j.State.Finished() {
		return nil
	}
	return side
}

// answered: it is known since when a side is under way.
func (j *Job) answered(side *Side, began time.Time) {
	if side.StartedAt.IsZero() {
		side.StartedAt = began
	}
	side.stood(side.SentAt, began)
	j.heeded()
}

// heeded: a job of which something was heard, or that the Supervisor has looked at, is not Pending any more.
func (j *Job) heeded() {
	if j.State == makegood.JobPending {
		j.State = makegood.JobProcessing
	}
}

// Failed: an agent's reply.
func (j *Job) Failed(step string, attempt int, failure job.StepError, began, now time.Time) {
	side := j.step(step).side(attempt)
	if side == nil || side.Phase != Out || j.early(side) {
		return
	}
	j.tell(func() {
		j.answered(side, began)
		// A shared attempt may have run twice: one run speaks for itself alone.
		unknown := failure.Applied != makegood.AppliedNo || side.def.Shared
		side.Unknown, side.Alone = side.Unknown || unknown, false
		if !j.conclude(side, now) {
			j.count(side, unknown)
			j.after(side, failure.Kind, failure.Retryable, failure.RetryAfter.Std(), now)
		}
		j.settle(now)
	})
}

// count: a started attempt has failed.
func (j *Job) count(side *Side, unknown bool) {
	j.Failures++
	side.Failures++
	side.Claimed, side.rejected = false, false
	side.Unknown = side.Unknown || unknown
}

// after a failure: another attempt, while one is left.
func (j *Job) after(side *Side, kind string, again bool, asked time.Duration, now time.Time) {
	retry, again := triedAgain(side, kind, again)
	switch {
	case !side.undo && !j.forwards():
		side.Phase, side.FinishedAt = TakenBack, now
	case again && side.Tries < retry.Attempts && side.inTime(retry, now):
		side.rest(retry, asked, now)
	default:
		j.giveUp(side, kind, now)
	}
}

// Silent: the attempt had begun, and said nothing in time.
func (j *Job) Silent(f Finding, now time.Time) {
	side := j.step(f.Step).side(f.Attempt)
	if side == nil || side.Phase != Out {
		return
	}
	j.tell(func() {
		j.silence(side, f, now)
		j.settle(now)
	})
}

func (j *Job) silence(side *Side, f Finding, now time.Time) {
	j.answered(side, f.Began)
	if !f.Until.IsZero() {
		// Nobody looked until now: that is no time in which it was tried.
		side.stood(later(later(f.Until, f.Began), side.SentAt), now)
	}
	side.Unknown, side.Silent = true, side.Attempt
	if f.InCompany && !side.Alone && !j.embedded {
		// Others ran beside it, and one of them may be to blame: it is granted another, which nobody else is to pay for.
		side.Alone = true
		side.Tries--
	}
	if j.conclude(side, now) {
		return
	}
	j.count(side, true)
	j.after(side, makegood.KindTimeout, true, 0, now)
}

// Unclaimed: the attempt is over, and nobody had begun it. So it does not count, and is made again where it is wanted.
func (j *Job) Unclaimed(step string, attempt int, now time.Time) {
	side := j.step(step).side(attempt)
	if side == nil || side.Phase != Out {
		return
	}
	j.tell(func() {
		j.unclaimed(side, now)
		j.settle(now)
	})
}

func (j *Job) unclaimed(side *Side, now time.Time) {
	side.Tries--
	if j.conclude(side, now) {
		return
	}
	side.Phase = Idle
	if !j.wants(side) {
		side.Phase = TakenBack
	}
}

// Refused: its task can never be sent. That is a final failure of an attempt that did not start.
func (j *Job) Refused(step string, attempt int, now time.Time) {
	side := j.step(step).side(attempt)
	if side == nil || side.Phase != Out || j.early(side) {
		return
	}
	j.tell(func() {
		j.heeded()
		// Nobody tried, so there is nothing to try again.
		switch {
		case j.conclude(side, now):
		case !side.undo && !j.forwards():
			side.Phase, side.FinishedAt = TakenBack, now
		default:
			j.giveUp(side, makegood.KindDispatch, now)
		}
		j.settle(now)
	})
}

// Restarted: the embedded engine was started again. What was out is over, may have begun if it was claimed, does not
// count, and is made again at once. A step that was cut off too often stops the job.
func (j *Job) Restarted(now time.Time) {
	j.embedded = true
	if j.State.Finished() {
		return
	}
	j.tell(func() {
		j.heeded()
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
	claimed := side.Claimed
	if claimed && side.StartedAt.IsZero() {
		side.StartedAt = side.BeganAt
	}
	side.Unknown, side.Claimed = true, false
	side.Tries--
	if j.conclude(side, now) {
		return
	}
	if claimed {
		side.cutOff()
	}
	side.Phase = Idle
	switch {
	case !j.wants(side):
		side.Phase = TakenBack
	case side.Interrupted > limits.MaxInterruptions && j.State != makegood.JobError:
		side.Phase = GivenUp
		j.stop(now)
	}
}

// cutOff counts a death of the engine. After three of them a step runs alone, and then counts only those over which it did.
func (s *Side) cutOff() {
	if s.Interrupted < suspectAfter || !s.InCompany {
		s.Interrupted++
	}
	s.Alone = s.Alone || s.Interrupted >= suspectAfter
}

// Finding is what became of an attempt that was closed: nobody had begun it, or who had fell silent.
type Finding struct {
	Step    string
	Attempt int
	Silent  bool
	Began   time.Time
	// Until is until when it might have spoken.
	Until time.Time
	// InCompany: its process had other tasks under way.
	InCompany bool
}

// Clock: somebody looks at the job at this time, finds out about attempts, and does what is due.
func (j *Job) Clock(now time.Time, found ...Finding) {
	j.tell(func() {
		j.heeded()
		j.remind(now)
		if j.live() && j.forwards() && !j.Deadline.IsZero() && !now.Before(j.Deadline) {
			j.timeOut(now)
		}
		for _, s := range j.Steps {
			for _, side := range []*Side{&s.Forward, &s.Undo} {
				j.waitDue(side, now)
				j.due(s, side, now)
				j.found(s, side, now, found)
			}
		}
		j.nextRound(now)
		j.settle(now)
	})
}

// remind: a person who was told of an Error hears of it once a day again, one who was not has yet to.
func (j *Job) remind(now time.Time) {
	if j.State != makegood.JobError || now.Before(j.RemindAt) {
		return
	}
	if !slices.ContainsFunc(j.Untold, func(n Notice) bool { return n.Operator }) {
		j.announce(Notice{State: makegood.JobError, Operator: true})
	}
	j.RemindAt = now.Add(remindEvery)
}

func (j *Job) due(s *Step, side *Side, now time.Time) {
	switch {
	case side.Phase == Resting:
		j.rested(s, side, now)
	case side.Phase == Out && side.Inline:
		j.inlineDue(side, now)
	case side.Phase != Out || side.Claimed:
	case side.def.Shared && !now.Before(side.SentAt.Add(side.startBy()+side.timeout())):
		j.silence(side, Finding{Until: side.SentAt.Add(side.startBy() + side.timeout())}, now)
	case !side.def.Shared && j.wants(side) && j.live() && !now.Before(ResendAt(side)):
		side.stood(side.SentAt, now)
		side.SentAt = now
		side.Resent++
		j.send(s, side)
	}
}

func (j *Job) found(s *Step, side *Side, now time.Time, all []Finding) {
	for _, f := range all {
		switch {
		case f.Step != s.def.Name || side.Phase != Out || f.Attempt != side.Attempt:
		case f.Silent:
			j.silence(side, f, now)
		default:
			j.replace(s, side, now)
		}
	}
}

// replace: nobody has begun the attempt for a week. Its successor waits as long as it did, and an operator hears of its
// agent from the first time on.
func (j *Job) replace(s *Step, side *Side, now time.Time) {
	resent := max(side.Resent, alertFrom)
	j.unclaimed(side, now)
	if side.Phase == Idle && j.live() {
		j.open(s, side, now)
		side.Resent = resent
	}
}

// alertFrom is the resend from which on an operator hears that nobody takes the tasks of an agent.
const alertFrom = 3

// ResendAt is when the task of an attempt that nobody has begun is sent again.
func ResendAt(side *Side) time.Time {
	wait := side.startBy()
	for range side.Resent {
		wait = min(2*wait, limits.MaxStartBy)
	}
	return side.SentAt.Add(wait)
}
