package api

import (
	"errors"
	"fmt"

	"github.com/makegood-dev/makegood"
)

// ErrNotFound: there is no such job.
var ErrNotFound = errors.New("there is no such job")

// ErrDamaged: the job is stored, but cannot be read. The log of the store says why. The request changed no state.
var ErrDamaged = errors.New("it is stored, but cannot be read")

// ErrNewer: a newer release wrote the job, and this release must not decide about it. The request changed no state; it
// may be made again when the deployment is done.
var ErrNewer = errors.New("it was written by a newer release of Makegood; ask again when the deployment is done")

// ErrNoDefinition: there is no definition of such a hash.
var ErrNoDefinition = errors.New("there is no such definition")

// ErrNoPayload: there is no such large payload, for this job and by this writer.
var ErrNoPayload = errors.New("there is no such payload of this job")

// ErrCompletionToken: no step of a job that is stored has this completion token, or ever had. A made-up token gets no
// other answer.
var ErrCompletionToken = errors.New("no step has this completion token")

// MismatchError: a job of this id exists with other content. The request changed no state.
type MismatchError struct {
	Job string
	// Have is the hash of the stored content, Got that of the submitted content.
	Have, Got string
}

// RefusedError: the request cannot be granted in the present state of the job, or of the schedule. It changed no
// state.
type RefusedError struct{ Job, Schedule, Reason string }

// InvalidError: the request can never be granted as it is. It changed no state.
type InvalidError struct {
	// Message describes the error.
	Message string
	// Status is the status of HTTP; 0: the request was not sent.
	Status int
	// Misfits are the places where a submission's input does not fit the schema of its workflow, at most 20; none: the
	// error is another. Message names them, too.
	Misfits []makegood.Misfit
}

// UnreachableError: the API did not answer, or answered wrongly, until the client gave up. The fate of the request is
// unknown; it may be made again without harm.
type UnreachableError struct {
	URL string
	// Status is the HTTP status of the answer; 0: no answer came, or not to its end.
	Status int
	Err    error
}

// Error names both hashes.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("job %s exists with other content: hash %s is stored, %s was submitted", e.Job, e.Have, e.Got)
}

// Error returns the reason.
func (e *RefusedError) Error() string { return "refused: " + e.Reason }

// Error returns the message.
func (e *InvalidError) Error() string { return e.Message }

// Error names the URL.
func (e *UnreachableError) Error() string {
	if e.Status != 0 {
		return fmt.Sprintf("%s answered %d: %v", e.URL, e.Status, e.Err)
	}
	return fmt.Sprintf("cannot reach %s: %v", e.URL, e.Err)
}

// Unwrap returns the last error.
func (e *UnreachableError) Unwrap() error { return e.Err }
