package machine

import (
	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
)

// again returns whether a failure may be tried again, and how, before the step is given up.
func (t *turn) again(at side, failure job.StepError) (retry makegood.Retry, retryable bool) {
	retry = t.plan(at).retry
	if at.undo {
		return retry, failure.Retryable
	}
	again, then := domain.Routes(t.w.Steps[at.step], failure.Kind)
	switch {
	case again != nil:
		return again.Retry, true
	case then != nil && then.Do.Action == makegood.RouteFail:
		return retry, false
	default:
		return retry, failure.Retryable
	}
}

// passBy passes a step by that is given up, where its onError says so, and reports whether it did. What the step did is
// as unknown as it was: going back, it is undone.
func (t *turn) passBy(at side) bool {
	a := t.activity(at)
	if at.undo || a.Error == nil {
		return false
	}
	_, route := domain.Routes(t.w.Steps[at.step], a.Error.Kind)
	if route == nil || route.Do.Action != makegood.RouteSkip && route.Do.Action != makegood.RouteGoto {
		return false
	}
	t.rest(a, job.Skipped)
	a.Silent, a.Cause = job.Claim{}, ""
	if output := route.Output; len(output) > 0 && string(output) != "null" {
		a.Output = job.Payload{Inline: output, Bytes: len(output)}
	}
	if route.Do.Action == makegood.RouteGoto {
		a.WentTo = route.Do.Step
		t.leaveOut(at.step)
	}
	return true
}

// stopsFor reports whether the job stops when a step is given up, whatever its onFailure says: its onError says so,
// or the error is an own mistake (domain.Routes) and no route of the step names its kind.
func (t *turn) stopsFor(at side) bool {
	a := t.activity(at)
	if a.Error == nil {
		return false
	}
	_, route := domain.Routes(t.w.Steps[at.step], a.Error.Kind)
	return route != nil && route.Do.Action == makegood.RouteStop
}

// leaveOut skips the followers of a step that went elsewhere, except its target and the target's followers. Steps
// that begin by any of several, or when another goes to them, may still begin by another.
func (t *turn) leaveOut(from int) {
	to, _ := t.indexOf(t.job.Steps[from].Forward.WentTo)
	behind := t.graph.behind(to)
	left := map[int]bool{from: true}
	for _, i := range t.graph.order {
		s := t.w.Steps[i]
		state := t.job.Steps[i].Forward.State
		if behind[i] || s.Any || s.Only != "" || state != job.NotStarted && state != job.Skipped {
			continue
		}
		if t.job.Settled(t.job.Steps[i].Forward) != nil {
			// A person who skipped it wants its followers.
			continue
		}
		for _, n := range t.graph.needs[i] {
			if !left[n] {
				continue
			}
			// A skipped step that needs a left-out one was left out itself.
			if left[i] = true; state == job.NotStarted {
				t.skip(i)
			}
			break
		}
	}
}

// behind are a step and all that follow it.
func (g graph) behind(i int) map[int]bool {
	all := map[int]bool{i: true}
	for _, n := range g.order {
		for _, need := range g.needs[n] {
			if all[need] {
				all[n] = true
			}
		}
	}
	return all
}
