package domain

import (
	"encoding/json"
	"slices"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/limits"
)

// The defaults of a workflow's fields. The doc comments of the fields of makegood.Step name them.
const (
	DefaultStartBy = 10 * makegood.Minute
	DefaultTimeout = 30 * makegood.Second
	DefaultBackoff = 1 * makegood.Second
	DefaultMax     = 1 * makegood.Minute
	DefaultEvery   = 10 * makegood.Second
	DefaultFor     = 1 * makegood.Hour

	// DefaultRetryFor is how long a step is tried again that sets neither a duration nor a number of attempts, and
	// DefaultUndoRetryFor its undo: longer than an ordinary outage of the service that it asks.
	DefaultRetryFor     = 15 * makegood.Minute
	DefaultUndoRetryFor = 1 * makegood.Hour
	// DefaultApproval is how long an approval waits for its answer.
	DefaultApproval = 7 * 24 * makegood.Hour
	// DefaultRestartWait is how long a job that was undone waits before its next round (onFailure: restart).
	DefaultRestartWait = 10 * makegood.Second
)

// repeatDefaults returns r with its empty fields filled in.
func repeatDefaults(r makegood.Repeat) *makegood.Repeat {
	r.Every = or(r.Every, DefaultEvery)
	r.For = or(r.For, DefaultFor)
	r.Attempts = or(r.Attempts, limits.MaxRepeats)
	return &r
}

// ScheduleDefaults returns s with its empty fields filled in.
func ScheduleDefaults(s makegood.Schedule) makegood.Schedule {
	if s.Input == nil {
		s.Input = json.RawMessage(`{"time":"${ .time }"}`)
	}
	s.Missed = or(s.Missed, makegood.MissedOne)
	if s.Missed == makegood.MissedAll {
		s.AtMost = or(s.AtMost, limits.MaxMissed)
	}
	s.Overlap = or(s.Overlap, makegood.OverlapAllow)
	return s
}

// WithDefaults returns w with its empty fields filled in. It does not change w itself.
func WithDefaults(w makegood.Workflow) makegood.Workflow {
	w.Steps = slices.Clone(w.Steps)
	for i := range w.Steps {
		if s := &w.Steps[i]; s.Map != nil {
			*s = overItems(*s)
		} else if s.Agent == makegood.AgentWorkflow && s.Undo == nil {
			s.Undo = &makegood.Undo{Action: or(s.Action, s.Name)}
		}
	}
	if w.OnFailure.Action == "" {
		w.OnFailure.Action = makegood.FailureStop
		if HasUndo(w) {
			w.OnFailure.Action = makegood.FailureUndo
		}
	}
	if w.OnFailure.Action == makegood.FailureRestart {
		w.OnFailure.Wait = or(w.OnFailure.Wait, DefaultRestartWait)
	}
	for i, s := range w.Steps {
		if s.Needs == nil {
			s.Needs = []string{}
			if i > 0 && s.Only == "" {
				s.Needs = []string{w.Steps[i-1].Name}
			}
		}
		w.Steps[i] = stepDefaults(s)
	}
	return w
}

// stepDefaults returns s with its empty fields filled in, except its needs.
func stepDefaults(s makegood.Step) makegood.Step {
	s.Action = or(s.Action, s.Name)
	s.StartBy = or(s.StartBy, DefaultStartBy)
	s.Timeout = or(s.Timeout, defaultTimeout(s.Heartbeat))
	standard, undoing := makegood.Retry{For: DefaultRetryFor}, makegood.Retry{For: DefaultUndoRetryFor}
	if !GetsTasks(s.Agent) {
		// A question without an answer is not asked again, unless the workflow says so. A job of its own has retries itself.
		standard = makegood.Retry{Attempts: 1}
	}
	if bounded(s.Retry) {
		undoing = s.Retry
	}
	s.Retry = retryOr(s.Retry, standard)
	s.OnError = append([]makegood.ErrorRoute(nil), s.OnError...)
	for i := range s.OnError {
		if r := &s.OnError[i]; r.Do.Action == makegood.RouteRetry {
			r.Retry = retryOr(r.Retry, s.Retry)
		}
	}
	if s.Repeat != nil {
		s.Repeat = repeatDefaults(*s.Repeat)
	}
	if !CanUndo(s) {
		return s
	}
	u := *s.Undo
	u.Agent = or(u.Agent, s.Agent)
	if u.With == nil && u.Agent != makegood.AgentWorkflow {
		u.With = s.With
	}
	u.StartBy = or(u.StartBy, s.StartBy)
	inherits := s.Heartbeat == 0 || u.Agent != makegood.HTTPAgent && GetsTasks(u.Agent) // these do not heartbeat
	if u.Timeout == 0 && u.Heartbeat == 0 && inherits {
		u.Timeout, u.Heartbeat = s.Timeout, s.Heartbeat
	}
	u.Timeout = or(u.Timeout, defaultTimeout(u.Heartbeat))
	undoing.Backoff, undoing.Max = s.Retry.Backoff, max(s.Retry.Max, undoing.For/limits.RetryPaces)
	u.Retry = retryOr(u.Retry, undoing)
	s.Undo = &u
	return s
}

// defaultTimeout is the timeout of an attempt of a step that sets none.
func defaultTimeout(heartbeat makegood.Duration) makegood.Duration {
	if heartbeat > 0 {
		return makegood.Duration(limits.MaxClaim)
	}
	return DefaultTimeout
}

// bounded reports whether r sets its end.
func bounded(r makegood.Retry) bool { return r.Attempts != 0 || r.For != 0 }

// retryOr returns r with its empty fields taken from rest. Attempts and For are one setting, taken from either r or
// rest.
func retryOr(r, rest makegood.Retry) makegood.Retry {
	var pace makegood.Duration
	if bounded(r) {
		pace = r.For / limits.RetryPaces
	} else {
		r.Attempts, r.For = rest.Attempts, rest.For
		if r.Max > 0 {
			r.For = min(r.For, r.Max*limits.RetryPaces)
		}
	}
	r.Attempts = or(r.Attempts, limits.MaxAttempts)
	r.Backoff = or(or(r.Backoff, rest.Backoff), DefaultBackoff)
	if r.Max == 0 {
		// A backoff above the default maximum raises it: "backoff: 5m" alone is not a mistake. Neither is "for: 1d".
		r.Max = max(or(rest.Max, DefaultMax), r.Backoff, pace)
	}
	return r
}

func or[T comparable](value, otherwise T) T {
	var zero T
	if value == zero {
		return otherwise
	}
	return value
}
