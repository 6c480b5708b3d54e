package control

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/holds"
	"github.com/makegood-dev/makegood/internal/payload"
	"github.com/makegood-dev/makegood/internal/protocol"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/timetable"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// words maps the errors of the parts that only their kind identifies to those of package api. The text stays that of
// the part.
var words = []struct{ part, api error }{
	{store.ErrDamaged, api.ErrDamaged},
	{store.ErrNewer, api.ErrNewer},
	{workflowfile.ErrNewer, api.ErrNewer},
	{payload.ErrNotFound, api.ErrNoPayload},
}

// inWords returns an error of a part in the words of package api. Any other error stays as it is: the outcome of the
// request is unknown then, and it may be made again.
func inWords(err error) error {
	var mismatch *scheduler.MismatchError
	var misfit *scheduler.MisfitError
	var newer *scheduler.NewerError
	switch {
	case err == nil, known(err):
		return err
	case errors.As(err, &mismatch):
		return &api.MismatchError{Job: mismatch.Job, Have: mismatch.Have, Got: mismatch.Got}
	case errors.As(err, &misfit):
		return &api.InvalidError{Message: misfit.Error(), Misfits: misfit.Misfits}
	case errors.As(err, &newer):
		return &protocol.CodedError{Kind: api.ErrNewer, Err: newer}
	case errors.Is(err, scheduler.ErrInvalid):
		return &api.InvalidError{Message: strings.TrimPrefix(err.Error(), scheduler.ErrInvalid.Error()+": ")}
	case errors.Is(err, store.ErrNotFound):
		return api.ErrNotFound
	case errors.Is(err, holds.ErrInvalid):
		return &api.InvalidError{Message: strings.TrimPrefix(err.Error(), holds.ErrInvalid.Error()+": ")}
	case errors.Is(err, holds.ErrNotHeld), errors.Is(err, holds.ErrNoLimit):
		return &api.RefusedError{Reason: err.Error()}
	case errors.Is(err, payload.ErrTooLarge):
		return &api.InvalidError{Message: payload.ErrTooLarge.Error(), Status: http.StatusRequestEntityTooLarge}
	}
	for _, w := range words {
		if errors.Is(err, w.part) {
			return &protocol.CodedError{Kind: w.api, Err: err}
		}
	}
	return err
}

// aboutSchedule returns an error about a schedule in the words of package api.
func aboutSchedule(name string, err error) error {
	switch {
	case errors.Is(err, store.ErrNotFound):
		return api.ErrNoSchedule
	case errors.Is(err, store.ErrConflict):
		return &api.RefusedError{Schedule: name, Reason: "it was changed meanwhile: look at it again"}
	case errors.Is(err, timetable.ErrExists):
		return &api.RefusedError{Schedule: name, Reason: err.Error()}
	}
	return inWords(err)
}

// known reports whether an error is one of package api already.
func known(err error) bool {
	if errors.As(err, new(*api.InvalidError)) || errors.As(err, new(*api.RefusedError)) || errors.As(err, new(*api.MismatchError)) {
		return true
	}
	for _, e := range []error{api.ErrNotFound, api.ErrNoDefinition, api.ErrNoPayload, api.ErrNoSchedule, api.ErrNoMessage, api.ErrCompletionToken} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// notHere is the error for a part that is not available.
func notHere(message string) error {
	return &api.InvalidError{Message: message, Status: http.StatusNotFound}
}

func invalid(format string, args ...any) error {
	return &api.InvalidError{Message: fmt.Sprintf(format, args...)}
}
