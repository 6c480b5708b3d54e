package makegood

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// OnlyOnError is a step's Only: the step begins when the onError or the onAnswer of another step goes to it, and is
// skipped when all steps that may go to it have ended and none did.
const OnlyOnError = "onError"

// AnyKind is the Kind of a route for every error.
const AnyKind = "*"

// ErrorRoute is the reaction to errors of a kind. The first route of a step that matches the error counts; a retry
// that has used up its attempts passes on to the routes behind it.
type ErrorRoute struct {
	// Kind is a kind of error, [a-z][a-z0-9_]{0,62}, or AnyKind.
	Kind string `json:"kind"`
	// Do is the reaction.
	Do ErrorDo `json:"do"`
	// Retry says how RouteRetry tries again; it counts all attempts of the step. Fields left out are the step's.
	Retry Retry `json:"retry,omitzero"`
	// Output is the output of a step that RouteSkip passes by: JSON of at most 256 bytes. Empty: null.
	Output json.RawMessage `json:"output,omitempty"`
}

// ErrorDo is the reaction to an error.
type ErrorDo struct {
	Action RouteAction
	// Step is the step that RouteGoto goes to.
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

// AnswerDo is the reaction to an answer to an approval.
type AnswerDo struct {
	Action AnswerAction
	// Step is the step that AnswerGoto goes to.
	Step string
}

// AnswerAction is one of undo, stop, fail and goto.
type AnswerAction string

// The ways to go on from an answer. An answer without an entry in the workflow is the step's output, and the job goes
// on.
const (
	AnswerUndo AnswerAction = "undo" // undo the work done, whatever the workflow's OnFailure says
	AnswerStop AnswerAction = "stop" // Error, and an operator is told; resubmitted, it is asked again
	AnswerFail AnswerAction = "fail" // as if the step had failed for good, with an error of KindAnswer
	AnswerGoto AnswerAction = "goto" // pass the step by, and go to another
)

// String writes d as a workflow file does: undo, stop, fail, goto STEP.
func (d AnswerDo) String() string { return doText(d.Action, AnswerGoto, d.Step) }

// MarshalText writes d as a workflow file does.
func (d AnswerDo) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads undo, stop, fail, and goto with a step.
func (d *AnswerDo) UnmarshalText(text []byte) (err error) {
	d.Action, d.Step, err = readDo(text, AnswerGoto, AnswerUndo, AnswerStop, AnswerFail)
	return err
}

// String writes d as a workflow file does: fail, stop, skip, retry, goto STEP.
func (d ErrorDo) String() string { return doText(d.Action, RouteGoto, d.Step) }

// MarshalText writes d as a workflow file does.
func (d ErrorDo) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads fail, stop, skip, retry, and goto with a step.
func (d *ErrorDo) UnmarshalText(text []byte) (err error) {
	d.Action, d.Step, err = readDo(text, RouteGoto, RouteFail, RouteStop, RouteSkip, RouteRetry)
	return err
}

// doText writes an action, with the step if it is the one that goes to a step.
func doText[A ~string](action, goesTo A, step string) string {
	if action == goesTo {
		return string(action) + " " + step
	}
	return string(action)
}

// readDo reads one of the actions, or the one that goes to a step, with the step.
func readDo[A ~string](text []byte, goesTo A, others ...A) (action A, step string, err error) {
	word, rest, _ := strings.Cut(string(text), " ")
	action, step = A(word), strings.TrimSpace(rest)
	if action == goesTo && step != "" || slices.Contains(others, action) && step == "" {
		return action, step, nil
	}
	var names []string
	for _, other := range others {
		names = append(names, string(other))
	}
	return "", "", fmt.Errorf("%q is not one of %s and %s STEP", text, strings.Join(names, ", "), goesTo)
}

// Repeat does a step again until it is ready: after a success for which Until is false, another attempt follows after
// Every. That is no failure, and the attempt has another idempotency key.
type Repeat struct {
	// Until is an expression "${ ... }" with the value true or false; .output is the output of the latest attempt.
	Until string `json:"until"`
	// Every is the time between a success and the next attempt. Default: 10s.
	Every Duration `json:"every"`
	// For is how long after the first attempt another may begin. Default: 1h.
	For Duration `json:"for"`
	// Attempts limits the successes; 1 to 10,000. Default: 10,000.
	Attempts int `json:"attempts"`
}
