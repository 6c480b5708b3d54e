package oracle

import (
	"fmt"
	"slices"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
)

// Differences says in which way a job is not what the docs let one expect at this time. How long a step rests is a
// throw of dice: where it lies within what is allowed it is taken over, and expected from then on.
func (j *Job) Differences(got job.Job, now time.Time) (all []string) {
	differs := func(what string, got, want any) {
		if got != want {
			all = append(all, fmt.Sprintf("%s: got %v, want %v", what, got, want))
		}
	}
	for i, s := range j.Steps {
		for _, side := range []*Side{&s.Forward, &s.Undo} {
			j.throw(s, side, activity(got.Steps[i], side.undo), now)
		}
	}
	differs("state", got.ProcessState, j.State)
	differs("wanted", got.Desired, j.Wanted)
	differs("paused", got.Paused(), j.Paused)
	differs("round", got.Round, j.Round)
	differs("another round", got.AnotherRound, j.Another)
	differs("a round that was asked for", got.RoundAsked, j.AskedFor)
	differs("nextRoundAt", got.NextRoundAt, j.NextRoundAt)
	differs("failures", got.FailureCount, j.Failures)
	differs("needs", got.Needs, j.level())
	differs("finishedAt", got.FinishedAt, j.FinishedAt)
	if j.forwards() && !j.State.Finished() {
		differs("deadline", got.Deadline, j.Deadline)
	}
	if j.State == makegood.JobError {
		differs("remindAt", got.RemindAt, j.RemindAt)
	}
	if told := notices(got); !slices.Equal(told, j.Untold) {
		differs("untold", fmt.Sprintf("%+v", told), fmt.Sprintf("%+v", j.Untold))
	}
	for i, s := range j.Steps {
		differs(s.def.Name+": attempts", got.Steps[i].Attempt, s.Numbers)
		for _, side := range []*Side{&s.Forward, &s.Undo} {
			is := activity(got.Steps[i], side.undo)
			differs(side.name()+": settled", settlementOf(got, is), side.settled.String())
			all = append(all, side.differences(is)...)
		}
	}
	return append(all, j.key(got)...)
}

// settlementOf is how a side was settled by hand, if it was.
func settlementOf(got job.Job, a job.Activity) string {
	if s := got.Settled(a); s != nil {
		return settledBy(s.By, s.Reason, s.At)
	}
	return (*settled)(nil).String()
}

func activity(s job.StepState, undo bool) job.Activity {
	if undo {
		return s.Undo
	}
	return s.Forward
}

// throw takes over when the next attempt is made, if it may be made then. It may be made at once.
func (j *Job) throw(s *Step, side *Side, got job.Activity, now time.Time) {
	if side.Phase != Resting || !side.At.IsZero() {
		return
	}
	switch {
	case got.State != job.Backoff && got.Attempt == s.Numbers+1 && !now.Before(side.Earliest) && j.live() && j.wants(side):
		side.At = now
		j.open(s, side, now)
	case got.State == job.Backoff && !got.At.Before(side.Earliest) && !got.At.After(side.Latest):
		side.At = got.At
	}
}

func notices(got job.Job) (all []Notice) {
	for _, a := range got.Untold {
		all = append(all, Notice{Seq: a.Seq, State: a.ProcessState, Operator: a.Operator, Listener: a.Listener})
	}
	return all
}

// words are what a job calls the phases that end a side, or show that it is under way.
var words = map[Phase][]job.ActivityState{
	Idle:         {job.NotStarted},
	Out:          {job.Dispatched},
	Resting:      {job.Backoff},
	Waits:        {job.Waiting},
	Done:         {job.Done},
	Skipped:      {job.Skipped},
	GivenUp:      {job.Failed},
	TakenBack:    {job.Failed, job.Withdrawn},
	Irreversible: {job.Irreversible},
}

func (s *Side) name() string {
	if s.undo {
		return "undo of " + s.def.Name
	}
	return s.def.Name
}

func (s *Side) differences(got job.Activity) (all []string) {
	name := s.name()
	differs := func(what string, got, want any) {
		if got != want {
			all = append(all, fmt.Sprintf("%s: %s: got %v, want %v", name, what, got, want))
		}
	}
	// When it is noted that there is nothing to undo is no promise.
	nothing := s.undo && s.settled == nil && (s.Phase == Idle || s.Phase == Skipped) && (got.State == job.NotStarted || got.State == job.Skipped)
	if !nothing && !slices.Contains(words[s.Phase], got.State) {
		differs("state", got.State, s.Phase)
	}
	differs("failures", got.FailureCount, s.Failures)
	differs("startedAt", got.StartedAt, s.StartedAt)
	switch s.Phase {
	case Out:
		differs("attempt", got.Attempt, s.Attempt)
		differs("tries", got.Tries, s.Tries)
		differs("alone", got.Alone, s.Alone)
		differs("sent", got.At, s.SentAt)
	case Waits:
		differs("attempt", got.Attempt, s.Attempt)
		differs("tries", got.Tries, s.Tries)
		differs("since", got.At, s.WaitsSince)
		if got.Wait == nil {
			return append(all, name+": it does not say until when it waits")
		}
		differs("until", got.Wait.Deadline, s.Until)
		differs("asked", got.Wait.Asked, s.Questions)
		differs("heard", got.Wait.Heard, s.Heard)
	case Done:
		differs("output", string(got.Output.Inline), s.Output)
	case Resting:
		if !got.At.Equal(s.At) {
			differs("next attempt", got.At, fmt.Sprintf("%v to %v", s.Earliest, s.Latest))
		}
		differs("tries", got.Tries, s.Tries)
	}
	if s.Phase != TakenBack && s.Phase != Irreversible && !nothing {
		differs("finishedAt", got.FinishedAt, s.FinishedAt)
	}
	if !s.undo {
		differs("unknown", got.Unknown, s.Unknown)
	}
	return all
}

// key: every job that is not at its end, and told, is looked at by when something is due.
func (j *Job) key(got job.Job) []string {
	over := j.State.Finished() && len(j.Untold) == 0
	if over != got.CompleteBy.IsZero() {
		return []string{fmt.Sprintf("completeBy: got %v, and over is %v", got.CompleteBy, over)}
	}
	for _, due := range j.dues() {
		if due.Before(got.CompleteBy) {
			return []string{fmt.Sprintf("completeBy: got %v, want %v at the latest", got.CompleteBy, due)}
		}
	}
	return nil
}

func (j *Job) dues() (all []time.Time) {
	if j.State == makegood.JobError {
		all = append(all, j.RemindAt)
	}
	if !j.live() {
		return all
	}
	if j.forwards() && !j.Deadline.IsZero() {
		all = append(all, j.Deadline)
	}
	for _, s := range j.Steps {
		for _, side := range []*Side{&s.Forward, &s.Undo} {
			switch {
			case !j.wants(side):
			case side.Phase == Waits:
				all = append(all, side.Until)
				if n := side.Questions; n < len(side.asks()) {
					all = append(all, side.WaitsSince.Add(side.asks()[n]))
				}
			case side.Phase == Resting && !side.At.IsZero():
				all = append(all, side.At)
			case side.Phase == Out && side.Inline:
				all = append(all, side.SentAt.Add(side.begins+side.timeout()))
			case side.Phase == Out && !side.Claimed && !side.def.Shared:
				all = append(all, ResendAt(side))
			}
		}
	}
	return all
}
