package makegood

import (
	"encoding/json"
	"fmt"
	"strings"
)

// OnlyOnError is a step's Only: it begins when the onError of another step goes to it, and is skipped when all that
// may go to it have ended and none did.
const OnlyOnError = "onError"

// AnyKind is the Kind of a route for every error.
const AnyKind = "*"

// ErrorRoute says what follows from errors of a kind. Of the routes of a step the first that is for an error counts; a
// retry whose attempts are used up passes on to those behind it.
type ErrorRoute struct {
	// Kind is an ErrorKind, or AnyKind.
	Kind string `json:"kind"`
	// Do is what follows.
	Do ErrorDo `json:"do"`
	// Retry says how RouteRetry tries again; it counts all attempts of the step. What it leaves out is the step's.
	Retry Retry `json:"retry,omitzero"`
	// Output is that of a step that RouteSkip passes by: JSON of at most MaxInlineBytes. Empty: null.
	Output json.RawMessage `json:"output,omitempty"`
}

// ErrorDo is what follows from an error.
type ErrorDo struct {
	Action RouteAction
	// Step is where RouteGoto goes.
	Step string
}

// RouteAction is one of fail, skip, retry and goto.
type RouteAction string

// The ways to go on from an error.
const (
	RouteFail  RouteAction = "fail"  // give the step up at once, as if there were no route
	RouteSkip  RouteAction = "skip"  // when the step is given up, pass it by, with an output
	RouteRetry RouteAction = "retry" // try again, also after an error that is final
	RouteGoto  RouteAction = "goto"  // when the step is given up, pass it by, and go to another
)

// String writes d as a workflow file does: fail, skip, retry, goto STEP.
func (d ErrorDo) String() string {
	if d.Action == RouteGoto {
		return string(d.Action) + " " + d.Step
	}
	return string(d.Action)
}

// MarshalText writes d as a workflow file does.
func (d ErrorDo) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads fail, skip, retry, and goto with a step.
func (d *ErrorDo) UnmarshalText(text []byte) error {
	word, rest, _ := strings.Cut(string(text), " ")
	rest = strings.TrimSpace(rest)
	switch action := RouteAction(word); {
	case (action == RouteFail || action == RouteSkip || action == RouteRetry) && rest == "":
		*d = ErrorDo{Action: action}
		return nil
	case action == RouteGoto && rest != "":
		*d = ErrorDo{Action: action, Step: rest}
		return nil
	default:
		return fmt.Errorf("%q is not one of fail, skip, retry and goto STEP", text)
	}
}

// isFor reports whether a route is for errors of a kind.
func (r ErrorRoute) isFor(kind string) bool { return r.Kind == AnyKind || r.Kind == kind && kind != "" }

// Routes returns what follows from an error of a kind: the route that says how the step is tried again, and the one that
// says what follows when it is given up. Nil: none does.
func (s Step) Routes(kind string) (again, then *ErrorRoute) {
	for i := range s.OnError {
		r := &s.OnError[i]
		switch {
		case !r.isFor(kind):
		case r.Do.Action != RouteRetry:
			return again, r
		case again == nil:
			again = r
		}
	}
	return again, nil
}

// Before names the steps that come right before one: those that it needs, or those that may go to it.
func (w Workflow) Before(s Step) []string {
	if s.Only != OnlyOnError {
		return s.Needs
	}
	var names []string
	for _, other := range w.Steps {
		if other.goesTo(s.Name) {
			names = append(names, other.Name)
		}
	}
	return names
}

func (s Step) goesTo(name string) bool {
	for _, r := range s.OnError {
		if r.Do.Action == RouteGoto && r.Do.Step == name {
			return true
		}
	}
	return false
}

// Repeat does a step again until it is ready: a success of which Until gives false is followed by another attempt after
// Every. It is no failure, and its idempotency key is another one.
type Repeat struct {
	// Until is an expression "${ ... }" that gives true or false; .output is the output of the latest attempt.
	Until string `json:"until"`
	// Every is how long after a success the next attempt begins. Default: 10s.
	Every Duration `json:"every"`
	// For is how long after the first attempt another may begin. Default: 1h.
	For Duration `json:"for"`
	// Attempts is how many successes there may be; 1 to MaxRepeats. Default: MaxRepeats.
	Attempts int `json:"attempts"`
}

func (r Repeat) withDefaults() *Repeat {
	r.Every = or(r.Every, DefaultEvery)
	r.For = or(r.For, DefaultFor)
	r.Attempts = or(r.Attempts, MaxRepeats)
	return &r
}
