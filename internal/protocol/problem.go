package protocol

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
)

// Problem is the body of every answer that is not a success.
type Problem struct {
	// Error describes the problem, for a person; Code says it for a program.
	Error string `json:"error"`
	Code  Code   `json:"code,omitempty"`
	// Job is the job of the problem.
	Job string `json:"job,omitempty"`
	// Schedule is the schedule of the problem.
	Schedule string `json:"schedule,omitempty"`
	// Message is the message in quarantine of the problem.
	Message string `json:"message,omitempty"`
	// Definition is the hash of the definition of the problem.
	Definition string `json:"definition,omitempty"`
	// Payload is the hash of the large payload of the problem.
	Payload string `json:"payload,omitempty"`
	// Final: another attempt of the step would be refused as well. Agents outside are told so about payloads.
	Final bool `json:"final,omitempty"`
	// Reason is the reason of the table of verbs.
	Reason string `json:"reason,omitempty"`
	// Have and Got are the hashes of the stored content and of the submitted content.
	Have string `json:"have,omitempty"`
	Got  string `json:"got,omitempty"`
	// Misfits are the places where an input does not fit the schema of its workflow.
	Misfits []makegood.Misfit `json:"misfits,omitempty"`
}

// Code is a word for a kind of error.
type Code string

// The codes.
const (
	CodeNoJob        Code = "no_job"
	CodeNoSchedule   Code = "no_schedule"
	CodeNoDefinition Code = "no_definition"
	CodeNoMessage    Code = "no_message"
	CodeNoPayload    Code = "no_payload"
	CodeNoToken      Code = "no_token"
	CodeMismatch     Code = "mismatch"
	CodeRefused      Code = "refused"
	CodeInvalid      Code = "invalid"
	CodeDamaged      Code = "damaged"
	CodeNewer        Code = "newer"
)

// kinds are the errors that are fully described by their kind, with the status of their answers.
var kinds = []struct {
	code   Code
	kind   error
	status int
}{
	{CodeNoJob, api.ErrNotFound, http.StatusNotFound},
	{CodeNoSchedule, api.ErrNoSchedule, http.StatusNotFound},
	{CodeNoDefinition, api.ErrNoDefinition, http.StatusNotFound},
	{CodeNoMessage, api.ErrNoMessage, http.StatusNotFound},
	{CodeNoPayload, api.ErrNoPayload, http.StatusNotFound},
	{CodeNoToken, api.ErrCompletionToken, http.StatusNotFound},
	{CodeDamaged, api.ErrDamaged, http.StatusInternalServerError},
	{CodeNewer, api.ErrNewer, http.StatusServiceUnavailable},
}

// CodedError is an error of a kind of package api (errors.Is) with words of its own.
type CodedError struct {
	Kind error
	Err  error
}

// Error returns the text of the error itself.
func (e *CodedError) Error() string { return e.Err.Error() }

// Unwrap returns the kind and the error.
func (e *CodedError) Unwrap() []error { return []error{e.Kind, e.Err} }

// ProblemOf returns the body and the status of the answer for an error of package api; ok is false for any other
// error. Error is in the words of the error itself, without the prefixes of its wrappers.
func ProblemOf(err error) (p Problem, status int, ok bool) {
	var mismatch *api.MismatchError
	var refused *api.RefusedError
	var invalid *api.InvalidError
	switch {
	case errors.As(err, &mismatch):
		return Problem{Error: mismatch.Error(), Code: CodeMismatch, Job: mismatch.Job, Have: mismatch.Have, Got: mismatch.Got}, http.StatusConflict, true
	case errors.As(err, &refused):
		return Problem{Error: refused.Error(), Code: CodeRefused, Job: refused.Job, Schedule: refused.Schedule, Reason: refused.Reason}, http.StatusConflict, true
	case errors.As(err, &invalid):
		return Problem{Error: invalid.Message, Code: CodeInvalid, Misfits: invalid.Misfits}, cmp.Or(invalid.Status, http.StatusBadRequest), true
	}
	for _, k := range kinds {
		if errors.Is(err, k.kind) {
			return Problem{Error: said(err, k.kind), Code: k.code}, k.status, true
		}
	}
	return Problem{}, 0, false
}

// said returns the text of the error of a kind in err, without the text of its wrappers.
func said(err, kind error) string {
	if own, is := errors.AsType[*CodedError](err); is && own.Kind == kind {
		return own.Error()
	}
	return kind.Error()
}

// Err returns the error of package api for an answer of this status; nil where there is none, as for an answer without
// a code.
func (p Problem) Err(status int) error {
	switch p.Code {
	case CodeMismatch:
		return &api.MismatchError{Job: p.Job, Have: p.Have, Got: p.Got}
	case CodeRefused:
		return &api.RefusedError{Job: p.Job, Schedule: p.Schedule, Reason: p.Reason}
	case CodeInvalid:
		return &api.InvalidError{Message: p.Error, Status: status, Misfits: p.Misfits}
	}
	for _, k := range kinds {
		switch {
		case p.Code != k.code:
		case k.status == http.StatusNotFound:
			return k.kind
		default:
			return &CodedError{Kind: k.kind, Err: fmt.Errorf("%s", p.Error)}
		}
	}
	return nil
}
