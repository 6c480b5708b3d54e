package makegood

import (
	"encoding/json"
	"fmt"
	"strings"
)

// OnlyOnError is a step's Only: it begins when the onError or the onAnswer of another step goes to it, and is skipped when
// all that may go to it have ended and none did.
const OnlyOnError = "onError"

// AnyKind is the Kind of a route for every error.
const AnyKind = "*"

// ErrorRoute says what follows from errors of a kind. Of the routes of a step the first that is for an error counts; a
// retry whose attempts are used up passes on to those behind it.
type ErrorRoute struct {
	// Kind is a kind of error, [a-z][a-z0-9_]{0,62}, or AnyKind.
	Kind string `json:"kind"`
	// Do is what follows.
	Do ErrorDo `json:"do"`
	// Retry says how RouteRetry tries again; it counts all attempts of the step. What it leaves out is the step's.
	Retry Retry `json:"retry,omitzero"`
	// Output is that of a step that RouteSkip passes by: JSON of at most 256 bytes. Empty: null.
	Output json.RawMessage `json:"output,omitempty"`
}

// ErrorDo is what follows from an error.
type ErrorDo struct {
	Action RouteAction
	// Step is where RouteGoto goes.
	Step string
}

// RouteAction is one of fail, stop, skip, retry and goto.
type RouteAction string

// The ways to go on from an error.
const (
	RouteFail  RouteAction = "fail"  // give the step up at once, and go on as onFailure says
	RouteStop  RouteAction = "stop"  // when the step is given up, put the job in Error, before a person, whatever onFailure says
	RouteSkip  RouteAction = "skip"  // when the step is given up, pass it by, with an output
	RouteRetry RouteAction = "retry" // try again, also after an error that is final
	RouteGoto  RouteAction = "goto"  // when the step is given up, pass it by, and go to another
)

// AnswerDo is what follows from an answer to an approval.
type AnswerDo struct {
	Action AnswerAction
	// Step is where AnswerGoto goes.
	Step string
}

// AnswerAction is one of undo, stop, fail and goto.
type AnswerAction string

// The ways to go on from an answer. An answer of which a workflow says nothing is the step's output, and the job goes on.
const (
	AnswerUndo AnswerAction = "undo" // undo what was done, whatever the workflow's OnFailure says
	AnswerStop AnswerAction = "stop" // Error, and an operator is told; resubmitted, it is asked again
	AnswerFail AnswerAction = "fail" // as if the step had failed for good, with an error of KindAnswer
	AnswerGoto AnswerAction = "goto" // pass the step by, and go to another
)

// String writes d as a workflow file does: undo, stop, fail, goto STEP.
func (d AnswerDo) String() string {
	if d.Action == AnswerGoto {
		return string(d.Action) + " " + d.Step
	}
	return string(d.Action)
}

// MarshalText writes d as a workflow file does.
func (d AnswerDo) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads undo, stop, fail, and goto with a step.
func (d *AnswerDo) UnmarshalText(text []byte) error {
	word, rest, _ := strings.Cut(string(text), " ")
	rest = strings.TrimSpace(rest)
	switch action := AnswerAction(word); {
	case (action == AnswerUndo || action == AnswerStop || action == AnswerFail) && rest == "":
		*d = AnswerDo{Action: action}
		return nil
	case action == AnswerGoto && rest != "":
		*d = AnswerDo{Action: action, Step: rest}
		return nil
	default:
		return fmt.Errorf("%q is not one of undo, stop, fail and goto STEP", text)
	}
}

// String writes d as a workflow file does: fail, stop, skip, retry, goto STEP.
func (d ErrorDo) String() string {
	if d.Action == RouteGoto {
		return string(d.Action) + " " + d.Step
	}
	return string(d.Action)
}

// MarshalText writes d as a workflow file does.
func (d ErrorDo) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads fail, stop, skip, retry, and goto with a step.
func (d *ErrorDo) UnmarshalText(text []byte) error {
	word, rest, _ := strings.Cut(string(text), " ")
	rest = strings.TrimSpace(rest)
	switch action := RouteAction(word); {
	case (action == RouteFail || action == RouteStop || action == RouteSkip || action == RouteRetry) && rest == "":
		*d = ErrorDo{Action: action}
		return nil
	case action == RouteGoto && rest != "":
		*d = ErrorDo{Action: action, Step: rest}
		return nil
	default:
		return fmt.Errorf("%q is not one of fail, stop, skip, retry and goto STEP", text)
	}
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
	// Attempts is how many successes there may be; 1 to 10,000. Default: 10,000.
	Attempts int `json:"attempts"`
}
