package oracle

import (
	"slices"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
)

// Answer is what somebody is told who asks for something.
type Answer string

// The answers.
const (
	Granted Answer = "granted"
	So      Answer = "is so already"
	Refused Answer = "refused"
)

// answers is the table of docs/states.md, read by hand.
var answers = map[makegood.Verb]map[makegood.ProcessState]Answer{
	makegood.VerbCancel: {
		makegood.JobPending: Granted, makegood.JobProcessing: Granted, makegood.JobProcessed: Refused, makegood.JobError: Granted,
		makegood.JobUndoing: Granted, makegood.JobUndone: Refused, makegood.JobCancelled: So,
	},
	makegood.VerbUndo: {
		makegood.JobPending: Granted, makegood.JobProcessing: Granted, makegood.JobProcessed: Granted, makegood.JobError: Granted,
		makegood.JobUndoing: Granted, makegood.JobUndone: So, makegood.JobCancelled: Refused,
	},
	makegood.VerbResubmit: {
		makegood.JobPending: Refused, makegood.JobProcessing: Refused, makegood.JobProcessed: Refused, makegood.JobError: Granted,
		makegood.JobUndoing: Refused, makegood.JobUndone: Granted, makegood.JobCancelled: Refused,
	},
	makegood.VerbPause: {
		makegood.JobPending: Granted, makegood.JobProcessing: Granted, makegood.JobProcessed: Refused, makegood.JobError: Refused,
		makegood.JobUndoing: Granted, makegood.JobUndone: Refused, makegood.JobCancelled: Refused,
	},
	makegood.VerbResume: {
		makegood.JobPending: Granted, makegood.JobProcessing: Granted, makegood.JobProcessed: Refused, makegood.JobError: Refused,
		makegood.JobUndoing: Granted, makegood.JobUndone: Refused, makegood.JobCancelled: Refused,
	},
	makegood.VerbRedo: {
		makegood.JobPending: Granted, makegood.JobProcessing: Granted, makegood.JobProcessed: Granted, makegood.JobError: Granted,
		makegood.JobUndoing: Granted, makegood.JobUndone: Granted, makegood.JobCancelled: Refused,
	},
	makegood.VerbForward: {
		makegood.JobPending: Refused, makegood.JobProcessing: Refused, makegood.JobProcessed: Refused, makegood.JobError: Granted,
		makegood.JobUndoing: Granted, makegood.JobUndone: Refused, makegood.JobCancelled: Refused,
	},
}

// Rescheduled: somebody asks for another start, for the first time.
func (j *Job) Rescheduled(to, now time.Time) Answer {
	to = later(to, now)
	switch {
	case j.State != makegood.JobPending && j.State != makegood.JobProcessing || j.begun() || to.Sub(now) > makegood.MaxStartDelay:
		return Refused
	case to.Equal(j.order.StartAt):
		return So
	}
	j.tell(func() {
		j.order.StartAt = to
		j.grantTime(now)
		j.settle(now)
	})
	return Granted
}

// Edited: somebody gives the job another timeout, below zero none.
func (j *Job) Edited(timeout makegood.Duration, now time.Time) Answer {
	none := timeout < 0
	switch {
	case !j.forwards() || j.State.Finished(), timeout == 0:
		return Refused
	case !none && (timeout < 10*makegood.Millisecond || timeout > 365*24*makegood.Hour):
		return Refused
	case none && j.timeout == 0:
		return So
	}
	j.tell(func() {
		j.timeout = max(0, timeout.Std())
		if j.State != makegood.JobError { // In Error it counts from the resubmit.
			j.grantTime(now)
		}
		j.settle(now)
	})
	return Granted
}

// begun reports whether anything was ever made of a step but that somebody has settled it.
func (j *Job) begun() bool {
	return slices.ContainsFunc(j.Steps, func(s *Step) bool {
		return s.Numbers > 0 || s.Forward.Phase != Idle && s.Forward.settled == nil
	})
}

// Asked: somebody asks for something but another start or timeout, for the first time.
func (j *Job) Asked(verb makegood.Verb, now time.Time) Answer {
	answer := j.answer(verb)
	if answer == Granted {
		j.tell(func() {
			j.grant(verb, now)
			j.settle(now)
		})
	}
	return answer
}

func (j *Job) answer(verb makegood.Verb) Answer {
	switch {
	case verb == makegood.VerbRedrive: // No job that is drawn here has a map.
		return Refused
	case verb == makegood.VerbPause && j.Paused:
		return So
	case verb == makegood.VerbResume && !j.Paused:
		return Refused
	case (verb == makegood.VerbUndo || verb == makegood.VerbRedo) && j.State == makegood.JobProcessed && !domain.HasUndo(j.workflow):
		return Refused
	case verb == makegood.VerbRedo && j.Wanted == makegood.JobCancelled, verb == makegood.VerbRedo && j.State == makegood.JobUndone && slices.ContainsFunc(j.Steps, stands):
		return Refused
	case verb == makegood.VerbRedo && j.State == makegood.JobUndoing && j.Another && j.AskedFor:
		return So
	case verb == makegood.VerbForward && (j.forwards() || slices.ContainsFunc(j.Steps, undoBegan)):
		return Refused
	case verb == makegood.VerbCancel && j.Wanted == makegood.JobCancelled && j.State == makegood.JobUndoing:
		return So
	case verb == makegood.VerbUndo && j.State == makegood.JobUndoing && !j.Another:
		return So
	}
	return answers[verb][j.State]
}

func (j *Job) grant(verb makegood.Verb, now time.Time) {
	switch verb {
	case makegood.VerbCancel:
		j.goBack(makegood.JobCancelled, now)
	case makegood.VerbUndo:
		j.goBack(makegood.JobUndone, now)
	case makegood.VerbResubmit:
		j.resubmit(now)
	case makegood.VerbRedo:
		if j.State == makegood.JobUndone {
			j.resubmit(now)
			return
		}
		j.goBack(makegood.JobUndone, now)
		j.Another, j.AskedFor = true, true
	case makegood.VerbForward:
		j.forwardAgain(now)
	case makegood.VerbPause:
		j.Paused, j.pausedAt = true, now
	case makegood.VerbResume:
		j.unpause(now)
		if from := later(j.pausedAt, j.order.StartAt); !j.Deadline.IsZero() && now.After(from) {
			j.Deadline = j.Deadline.Add(now.Sub(from))
		}
		for _, s := range j.Steps {
			if from := later(j.pausedAt, s.Forward.Since); !s.Forward.Since.IsZero() && now.After(from) {
				s.Forward.Since = s.Forward.Since.Add(now.Sub(from))
			}
		}
		j.overdueWaits(now)
		j.nextRound(now)
	}
}

// goBack undoes what was done. It ends a pause, and the wait for a person.
func (j *Job) goBack(wanted makegood.ProcessState, now time.Time) {
	stoodStill := j.Paused || j.State == makegood.JobError
	j.unpause(now)
	j.FinishedAt = time.Time{}
	if j.forwards() {
		j.turn(wanted)
		return
	}
	j.State, j.Wanted = makegood.JobUndoing, wanted
	j.noOther()
	j.grantAfresh()
	if stoodStill {
		j.allRested(now)
		j.overdueWaits(now)
	}
}

// resubmit goes on in the direction that stopped, from what failed; an undone job starts again in a new round.
func (j *Job) resubmit(now time.Time) {
	j.Paused, j.FinishedAt = false, time.Time{}
	if j.State == makegood.JobUndone {
		j.newRound()
	}
	j.State = makegood.JobUndoing
	if j.forwards() {
		j.State = makegood.JobProcessing
		j.grantTime(now)
	}
	j.grantAfresh()
	j.allRested(now)
	j.overdueWaits(now)
}

// undoBegan: the undo of a step may have had an effect, or it or the step is under way, or a person has dealt with it.
func undoBegan(s *Step) bool {
	u := s.Undo
	return s.Forward.Phase == Out || u.Phase == Out || u.Phase == Waits || u.Phase == Done || u.Unknown || u.word != nil || u.settled != nil
}

// forwardAgain: nothing was undone, and the job is what it was before it was turned round. What was given up, or taken back, begins again.
func (j *Job) forwardAgain(now time.Time) {
	j.noOther()
	j.Paused, j.Wanted = false, makegood.JobProcessed
	for _, s := range j.Steps {
		s.Undo = Side{Phase: Idle, def: s.def, undo: true, Failures: s.Undo.Failures}
		if s.Forward.Phase == TakenBack {
			s.Forward.Phase, s.Forward.FinishedAt = Idle, time.Time{}
			s.Forward.whole()
		}
	}
	j.resubmit(now)
}

// newRound forgets how each step ended; what it counted, and the numbers of its attempts, stay.
func (j *Job) newRound() {
	j.noOther()
	j.Round++
	j.Again = 0
	j.Wanted = makegood.JobProcessed
	for _, s := range j.Steps {
		s.Forward = Side{Phase: Idle, def: s.def, Failures: s.Forward.Failures}
		s.Undo = Side{Phase: Idle, def: s.def, undo: true, Failures: s.Undo.Failures}
	}
}

func (j *Job) allRested(now time.Time) {
	for _, s := range j.Steps {
		j.rested(s, &s.Forward, now)
		j.rested(s, &s.Undo, now)
	}
}

// grantAfresh: what was given up begins again, with all its attempts before it. What still has some goes on with them.
func (j *Job) grantAfresh() {
	for _, s := range j.Steps {
		side := &s.Forward
		if !j.forwards() {
			side = &s.Undo
		}
		if side.Phase == GivenUp {
			side.Phase, side.FinishedAt, side.Interrupted = Idle, time.Time{}, 0
			side.whole()
		}
	}
}
