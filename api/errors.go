package api

import (
	"errors"
	"fmt"

	"github.com/makegood-dev/makegood"
)

// ErrNotFound: there is no such job.
var ErrNotFound = errors.New("there is no such job")

// ErrDamaged: it is stored, but cannot be read. The log of the store says why. Nothing was changed.
var ErrDamaged = errors.New("it is stored, but cannot be read")

// ErrNewer: a newer release wrote it, and this one must not decide about it. Nothing was changed; the request may be made again when the
// deployment is done.
var ErrNewer = errors.New("it was written by a newer release of Makegood; ask again when the deployment is done")

// ErrNoDefinition: there is no definition of such a hash.
var ErrNoDefinition = errors.New("there is no such definition")

// ErrNoPayload: there is no such large payload, for this job and by this writer.
var ErrNoPayload = errors.New("there is no such payload of this job")

// ErrCompletionToken: no step of a job that is there has this completion token, or ever had. Of a token that is made up
// nothing else is said.
var ErrCompletionToken = errors.New("no step has this completion token")

// MismatchError: there is a job of this id with other content. Nothing was changed.
type MismatchError struct {
	Job string
	// Have and Got are the hashes of the content stored and of that submitted.
	Have, Got string
}

// RefusedError: what was asked for cannot be granted in the state in which the job, or the schedule, is. Nothing was
// changed.
type RefusedError struct{ Job, Schedule, Reason string }

// InvalidError: the request can never be granted as it is. Nothing was changed.
type InvalidError struct {
	// Message says what is wrong.
	Message string
	// Status is that of HTTP; 0 if it was not even sent.
	Status int
	// Misfits are the places of a submission's input that do not fit what its workflow says of it, at most
	// 20; none: something else is wrong. Message names them, too.
	Misfits []makegood.Misfit
}

// UnreachableError: the API did not answer, or not as it should, for as long as there was patience. It
// is unknown what became of the request; it may be made again without harm.
type UnreachableError struct {
	URL string
	// Status is the status of HTTP with which something answered; 0: nothing did, or not to its end.
	Status int
	Err    error
}

// Error names both hashes.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("job %s exists with other content: hash %s is stored, %s was submitted", e.Job, e.Have, e.Got)
}

// Error is the reason.
func (e *RefusedError) Error() string { return "refused: " + e.Reason }

// Error is what is wrong.
func (e *InvalidError) Error() string { return e.Message }

// Error names the URL.
func (e *UnreachableError) Error() string {
	if e.Status != 0 {
		return fmt.Sprintf("%s answered %d: %v", e.URL, e.Status, e.Err)
	}
	return fmt.Sprintf("cannot reach %s: %v", e.URL, e.Err)
}

// Unwrap is what went wrong last.
func (e *UnreachableError) Unwrap() error { return e.Err }
