// Package problem is the body of each answer of the HTTP API that is no success, and the one table between such bodies and the errors
// of package api: an error crosses the wire as it is.
package problem

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
	// Error says what is wrong, for a person; Code says it for a program.
	Error string `json:"error"`
	Code  Code   `json:"code,omitempty"`
	// Job is the job that it is about.
	Job string `json:"job,omitempty"`
	// Schedule is the schedule that it is about.
	Schedule string `json:"schedule,omitempty"`
	// Message is the message in quarantine that it is about.
	Message string `json:"message,omitempty"`
	// Definition is the hash of the definition that it is about.
	Definition string `json:"definition,omitempty"`
	// Payload is the hash of the large payload that it is about.
	Payload string `json:"payload,omitempty"`
	// Final: another attempt of the step would be refused as well. Agents outside are told so of payloads.
	Final bool `json:"final,omitempty"`
	// Reason is that of the table of verbs.
	Reason string `json:"reason,omitempty"`
	// Have and Got are the hashes of the content that is stored and of that submitted.
	Have string `json:"have,omitempty"`
	Got  string `json:"got,omitempty"`
	// Misfits are the places of an input that do not fit what its workflow says of it.
	Misfits []makegood.Misfit `json:"misfits,omitempty"`
}

// Code is a word for a kind of error.
type Code string

// The codes.
const (
	NoJob        Code = "no_job"
	NoSchedule   Code = "no_schedule"
	NoDefinition Code = "no_definition"
	NoMessage    Code = "no_message"
	NoPayload    Code = "no_payload"
	NoToken      Code = "no_token"
	Mismatch     Code = "mismatch"
	Refused      Code = "refused"
	Invalid      Code = "invalid"
	Damaged      Code = "damaged"
	Newer        Code = "newer"
)

// kinds are the errors of which the kind is all, with the status of their answers.
var kinds = []struct {
	code   Code
	kind   error
	status int
}{
	{NoJob, api.ErrNotFound, http.StatusNotFound},
	{NoSchedule, api.ErrNoSchedule, http.StatusNotFound},
	{NoDefinition, api.ErrNoDefinition, http.StatusNotFound},
	{NoMessage, api.ErrNoMessage, http.StatusNotFound},
	{NoPayload, api.ErrNoPayload, http.StatusNotFound},
	{NoToken, api.ErrCompletionToken, http.StatusNotFound},
	{Damaged, api.ErrDamaged, http.StatusInternalServerError},
	{Newer, api.ErrNewer, http.StatusServiceUnavailable},
}

// Error is an error of a kind of package api (errors.Is) with words of its own.
type Error struct {
	Kind error
	Err  error
}

// Error is what it says itself.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns both.
func (e *Error) Unwrap() []error { return []error{e.Kind, e.Err} }

// Of returns the body and the status of the answer that an error of package api is; ok is false where it is none. Error is in the
// words of the error itself, without those that were put before it.
func Of(err error) (p Problem, status int, ok bool) {
	var mismatch *api.MismatchError
	var refused *api.RefusedError
	var invalid *api.InvalidError
	switch {
	case errors.As(err, &mismatch):
		return Problem{Error: mismatch.Error(), Code: Mismatch, Job: mismatch.Job, Have: mismatch.Have, Got: mismatch.Got}, http.StatusConflict, true
	case errors.As(err, &refused):
		return Problem{Error: refused.Error(), Code: Refused, Job: refused.Job, Schedule: refused.Schedule, Reason: refused.Reason}, http.StatusConflict, true
	case errors.As(err, &invalid):
		return Problem{Error: invalid.Message, Code: Invalid, Misfits: invalid.Misfits}, cmp.Or(invalid.Status, http.StatusBadRequest), true
	}
	for _, k := range kinds {
		if errors.Is(err, k.kind) {
			return Problem{Error: said(err, k.kind), Code: k.code}, k.status, true
		}
	}
	return Problem{}, 0, false
}

// said is what an error of a kind says itself.
func said(err, kind error) string {
	var own *Error
	if errors.As(err, &own) && own.Kind == kind {
		return own.Error()
	}
	return kind.Error()
}

// Err returns the error of package api that an answer of this status stands for; nil where it stands for none, as an answer does that
// says no code.
func (p Problem) Err(status int) error {
	switch p.Code {
	case Mismatch:
		return &api.MismatchError{Job: p.Job, Have: p.Have, Got: p.Got}
	case Refused:
		return &api.RefusedError{Job: p.Job, Schedule: p.Schedule, Reason: p.Reason}
	case Invalid:
		return &api.InvalidError{Message: p.Error, Status: status, Misfits: p.Misfits}
	}
	for _, k := range kinds {
		switch {
		case p.Code != k.code:
		case k.status == http.StatusNotFound:
			return k.kind
		default:
			return &Error{Kind: k.kind, Err: fmt.Errorf("%s", p.Error)}
		}
	}
	return nil
}
