package machine

import (
	"fmt"
	"time"

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

// nextTry returns when the next attempt is due: after exponential backoff with full jitter, or after the delay that
// the remote asked for if that is longer. If time bounds the attempts, the last one comes at its end: it outlives an
// outage.
func (t *turn) nextTry(at side, retry makegood.Retry, after makegood.Duration) time.Time {
	a := t.activity(at)
	ms := uint64(doubled(retry.Backoff, a.Tries-1, retry.Max) / makegood.Millisecond)
	jittered := makegood.Duration(mix(t.facts.Random, uint64(at.step)<<32|uint64(a.Attempt))%(ms+1)) * makegood.Millisecond
	next := t.now.Add(jittered.Std())
	if retry.For > 0 && !a.FailingSince.IsZero() {
		next = earlier(next, a.FailingSince.Add(retry.For.Std()))
	}
	return later(next, t.now.Add(min(after, retry.Max).Std()))
}

// mix draws the n-th number from a random one (the finaliser of splitmix64), so that the steps of one
// decision do not all wait equally long.
func mix(random, n uint64) uint64 {
	z := random + (n+1)*0x9E3779B97F4A7C15
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// tried says how far an activity got that is given up.
func (t *turn) tried(a *job.Activity, retry makegood.Retry) string {
	if a.Tries >= retry.Attempts {
		return fmt.Sprintf("attempt %d of %d", a.Tries, retry.Attempts)
	}
	return fmt.Sprintf("attempt %d, tried again for %s", a.Tries, retry.For)
}

// waitedFrom is since when the next attempt of an activity is due.
func (t *turn) waitedFrom(at side) time.Time {
	if a := t.activity(at); a.State == job.Backoff {
		return earlier(a.At, t.now)
	}
	return t.now
}

// maxTransitions returns how many attempts a job may make before it is stopped: ten times the number it needs if
// every attempt of every step and undo fails. It ends a loop between engine and agent; Lambda's own guard is switched
// off.
func maxTransitions(w makegood.Workflow) int {
	n := 50
	for _, s := range w.Steps {
		attempts := s.Retry.Attempts
		for _, r := range s.OnError {
			attempts = max(attempts, r.Retry.Attempts)
		}
		n += 10 * attempts
		if domain.CanUndo(s) {
			n += 10 * s.Undo.Retry.Attempts
		}
	}
	return n
}
