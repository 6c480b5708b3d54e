package oracle

import (
	"maps"
	"slices"
	"time"

	"github.com/makegood-dev/makegood"
)

// What docs/expressions.md says of onError, any and repeat.

// routesOf reads the routes of a side for errors of a kind: the retry that is for it, and what follows when it is given up.
func routesOf(side *Side, kind string) (retry makegood.Retry, again bool, then makegood.ErrorDo) {
	for _, r := range side.def.OnError {
		if side.undo || r.Kind != "*" && (r.Kind != kind || kind == "") {
			continue
		}
		if r.Do.Action != makegood.RouteRetry {
			return retry, again, r.Do
		}
		if !again {
			retry, again = r.Retry, true
		}
	}
	return retry, again, then
}

// triedAgain is how a failure of a kind is tried again, if it is.
func triedAgain(side *Side, kind string, retryable bool) (makegood.Retry, bool) {
	retry, again, then := routesOf(side, kind)
	switch {
	case again:
		return retry, true
	case then.Action == makegood.RouteFail:
		return side.retry(), false
	}
	return side.retry(), retryable
}

// stopsFor: the step is given up, and that puts the job before a person, whatever onFailure says. So do what no route
// is for: a mistake in an expression, and one in the program of an agent.
func stopsFor(side *Side, kind string) bool {
	_, _, then := routesOf(side, kind)
	if then.Action == "" {
		return kind == "expression" || kind == "panic"
	}
	return then.Action == makegood.RouteStop
}

// passedBy: the step is given up, and its job goes on without it, or elsewhere.
func (j *Job) passedBy(side *Side, kind string, now time.Time) bool {
	_, _, then := routesOf(side, kind)
	if then.Action != makegood.RouteSkip && then.Action != makegood.RouteGoto {
		return false
	}
	side.Phase, side.FinishedAt, side.Silent = Skipped, now, 0
	if then.Action == makegood.RouteGoto {
		side.WentTo = then.Step
		j.leaveOut(side.def.Name, then.Step, now)
	}
	return true
}

// leaveOut: what follows the one and not the other is not done, if it begins by all that it needs.
func (j *Job) leaveOut(from, to string, now time.Time) {
	for _, s := range j.Steps {
		if s.Forward.Phase == Idle && !s.def.Any && s.def.Only == "" && j.leftOut(s, from, to) {
			s.Forward.Phase, s.Forward.FinishedAt = Skipped, now
		}
	}
}

// leftOut: a way leads here from the one by steps that begin by all that they need, and none from the other. What
// somebody has settled is dealt with, so it and what has begun behind it are on no such way.
func (j *Job) leftOut(s *Step, from, to string) bool {
	return !j.follows(s, to) && slices.ContainsFunc(j.before(s), func(name string) bool {
		before := j.step(name)
		dealtWith := before.Forward.settled != nil || before.Forward.Phase != Idle && before.Forward.Phase != Skipped
		return name == from || !before.def.Any && before.def.Only == "" && !dealtWith && j.leftOut(before, from, to)
	})
}

// follows: some way leads here from a step, or it is that step.
func (j *Job) follows(s *Step, from string) bool {
	return s.def.Name == from || slices.ContainsFunc(j.before(s), func(name string) bool { return j.follows(j.step(name), from) })
}

// before are the steps that come right before one.
func (j *Job) before(s *Step) []string {
	if s.def.Only == "" {
		return s.def.Needs
	}
	var names []string
	for _, other := range j.Steps {
		byAnswer := slices.ContainsFunc(slices.Collect(maps.Values(other.def.OnAnswer)), func(do makegood.AnswerDo) bool { return do.Step == s.def.Name })
		if byAnswer || slices.ContainsFunc(other.def.OnError, func(r makegood.ErrorRoute) bool { return r.Do.Step == s.def.Name }) {
			names = append(names, other.def.Name)
		}
	}
	return names
}

// mayBegin: it is the step's turn, or never will be.
func (j *Job) mayBegin(s *Step) (now, never bool) {
	ended, done, came := true, false, false
	for _, name := range j.before(s) {
		side := &j.step(name).Forward
		ended = ended && (side.Phase == Done || side.Phase == Skipped)
		done = done || side.Phase == Done
		came = came || side.WentTo == s.def.Name
	}
	switch {
	case s.def.Only != "":
		return ended && came, ended && !came
	case s.def.Any:
		return done, ended && !done
	}
	return ended, false
}

// repeated: a success of which until gives false is followed by another attempt, as long as there is time.
func (j *Job) repeated(side *Side, now time.Time) bool {
	r := side.def.Repeat
	if side.undo || r == nil || !j.wants(side) || side.Repeats+1 >= j.order.ReadyAfter[side.def.Name] {
		return false
	}
	side.Repeats++
	side.Repetitions++
	side.Unknown, side.Claimed, side.Silent = true, false, 0 // The same success again is not another.
	if next := now.Add(r.Every.Std()); side.Repetitions < r.Attempts && !next.After(side.Since.Add(r.For.Std())) {
		side.Phase, side.Tries, side.Failing, side.Alone = Resting, 0, time.Time{}, false
		side.Earliest, side.Latest, side.At = next, next, time.Time{}
		return true
	}
	j.giveUp(side, makegood.KindNotReady, now)
	return true
}

// whole: all that a step may take is before it.
func (s *Side) whole() { s.Tries, s.Repetitions, s.Since, s.Failing = 0, 0, time.Time{}, time.Time{} }
