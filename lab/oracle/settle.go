package oracle

import (
	"fmt"
	"slices"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
)

// What docs/repair.md says of a person who has dealt with a step, or with its undo.

// Settlement is what such a person says: that it is done, with an output; that nothing of it stands; or that it is left out.
type Settlement struct {
	Step string
	Undo bool
	// Round is the round they mean; 0: whichever it is.
	Round         int
	Done, NotDone bool
	Output        string
	// Request names the asking, By is who says it, and Reason why.
	Request, By, Reason string
}

// same: it says the same of the step, whoever says so and why.
func (s Settlement) same(other Settlement) bool {
	return s.Done == other.Done && (!s.Done || s.Output == other.Output)
}

// asking is what a named request is known by.
func (s Settlement) asking() string {
	return fmt.Sprint(s.Step, s.Undo, s.Round, s.Request)
}

// settled is a settlement as it stays with the step.
type settled struct {
	Settlement
	at time.Time
}

func (s *settled) String() string {
	if s == nil {
		return "not"
	}
	return settledBy(s.By, s.Reason, s.at)
}

func settledBy(by, reason string, at time.Time) string {
	return fmt.Sprintf("by %q at %v: %s", by, at.UTC(), reason)
}

// Settled: a person has dealt with a step. found is what closing the attempt that is out has shown, if it has ended.
func (j *Job) Settled(s Settlement, now time.Time, found ...Finding) Answer {
	side := &j.step(s.Step).Forward
	if s.Undo {
		side = &j.step(s.Step).Undo
	}
	answer := j.settles(side, s, found)
	if answer != Granted {
		return answer
	}
	if s.Request != "" {
		j.settlements = append(j.settlements, s.asking())
	}
	if s.NotDone {
		side.Unknown, side.Silent = false, 0
		return Granted
	}
	j.tell(func() {
		for _, f := range found {
			j.closedFor(side, f)
		}
		j.dealtWith(side, s, now)
		j.settle(now)
	})
	return Granted
}

// settles says what somebody is answered who settles a side.
func (j *Job) settles(side *Side, s Settlement, found []Finding) Answer {
	known := s.Request != "" && slices.Contains(j.settlements, s.asking())
	switch {
	case known:
		return So
	case s.NotDone:
		return j.takesBack(side, s)
	case side.settled != nil && side.settled.same(s):
		return So
	case s.Round != 0 && s.Round != j.Round, side.settled != nil, side.Phase == Done:
		return Refused
	case side.Phase == Irreversible:
		if s.Done {
			return Granted
		}
		return Refused
	case !j.wants(side), j.State.Finished(), side.Phase == Skipped, side.undo && !j.mayBeUndone(s.Step):
		return Refused
	case side.word != nil && side.word.untilEnded, side.Phase == Out && !side.endedIn(found):
		return Refused
	case s.Done && side.approves() && (!slices.Contains(choices, s.Output) || side.says(s.Output).Action != ""):
		return Refused
	}
	return Granted
}

// takesBack says what somebody is answered who says that nothing stands of what a step may have done.
func (j *Job) takesBack(side *Side, s Settlement) Answer {
	over := side.Phase == Out || side.Phase == Waits || side.Phase == Done
	switch {
	case s.Round != 0 && s.Round != j.Round, s.Undo, !j.forwards(), j.State.Finished(), over:
		return Refused
	case !side.Unknown:
		return So
	}
	return Granted
}

// mayBeUndone: the step is over, and was done, or may have been.
func (j *Job) mayBeUndone(step string) bool {
	forward := j.step(step).Forward
	return forward.Phase == Done || forward.Phase != Out && forward.Unknown
}

// endedIn: the attempt that is out is known to have ended. Of a shared one nobody can say.
func (s *Side) endedIn(found []Finding) bool {
	return !s.def.Shared && slices.ContainsFunc(found, func(f Finding) bool { return f.Step == s.def.Name && f.Attempt == s.Attempt })
}

func (s *Side) approves() bool {
	return (!s.undo || domain.CanUndo(s.def)) && s.agent() == makegood.AgentApproval
}

// closedFor ends the attempt that was out. Nobody had begun it, or who had fell silent, which is a failure.
func (j *Job) closedFor(side *Side, f Finding) {
	switch {
	case side.Phase != Out || f.Step != side.def.Name || f.Attempt != side.Attempt:
	case !f.Silent:
		side.Tries--
	default:
		if side.StartedAt.IsZero() {
			side.StartedAt = f.Began
		}
		j.count(side, true)
	}
}

// dealtWith: the side is over as they say. A job that waited for this one alone goes on.
func (j *Job) dealtWith(side *Side, s Settlement, now time.Time) {
	was := side.Phase
	side.settled = &settled{s, now}
	side.word, side.Silent, side.Claimed = nil, 0, false
	if s.Done {
		word := heard{Word: Word{Output: s.Output, By: s.By}, at: now}
		output := s.Output
		if side.approves() {
			output = word.outputOf(side)
		}
		j.finish(side, output, now)
	} else {
		// Whoever it was handed to may have done it.
		side.Unknown = side.Unknown || was == Waits && !side.byItself()
		side.Phase, side.FinishedAt = Skipped, now
	}
	switch {
	case j.State.Finished():
		j.announce(Notice{State: j.State, Listener: j.order.Listens}) // What was not undone is another now.
	case j.State == makegood.JobError && was == GivenUp && !j.waitsForAnother():
		j.resubmit(now)
	}
}

// waitsForAnother: something else was given up in the direction in which the job goes.
func (j *Job) waitsForAnother() bool {
	return slices.ContainsFunc(j.Steps, func(s *Step) bool {
		return s.Forward.Phase == GivenUp && j.forwards() || s.Undo.Phase == GivenUp && !j.forwards()
	})
}
