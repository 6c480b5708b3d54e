package httpapi

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store"
)

const (
	// retryAfter is how many seconds a caller is asked to wait when the store fails.
	retryAfter = 1
	// retryAfterDeployment is how many where a newer release must decide: more than our client waits because it is asked to. It tries again
	// at its own pace, and its caller hears why when its patience ends.
	retryAfterDeployment = 60
)

// answer is what a route answers when all went well.
type answer struct {
	status   int
	body     any
	location string
}

func ok(body any) (answer, error) { return answer{status: http.StatusOK, body: body}, nil }

// Problem is the body of every answer that is not a success.
type Problem struct {
	// Error says what is wrong, for a person.
	Error string `json:"error"`
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
	// Token: it is a completion token that is of no step which is there.
	Token bool `json:"token,omitempty"`
	// Have and Got are the hashes of the content that is stored and of that submitted.
	Have string `json:"have,omitempty"`
	Got  string `json:"got,omitempty"`
	// Misfits are the places of an input that do not fit what its workflow says of it.
	Misfits []makegood.Misfit `json:"misfits,omitempty"`
}

// problem is a Problem on its way out.
type problem struct {
	status int
	body   Problem
	// retryAfter is how many seconds the caller is asked to wait; zero: retryAfter, if it may ask again.
	retryAfter int
}

func newProblem(status int, format string, args ...any) *problem {
	return &problem{status: status, body: Problem{Error: fmt.Sprintf(format, args...)}}
}

// Error is what is wrong.
func (p *problem) Error() string { return p.body.Error }

func bad(format string, args ...any) error { return newProblem(http.StatusBadRequest, format, args...) }

func notFound(id string) *problem {
	p := newProblem(http.StatusNotFound, "there is no job %s", id)
	p.body.Job = id
	return p
}

// problemOf translates the errors of all handlers, in this one place. What is not known to be the
// caller's is logged, and they are told no more than what to do.
func (a *handlers) problemOf(r *http.Request, err error) *problem {
	var p *problem
	var mismatch *scheduler.MismatchError
	var misfit *scheduler.MisfitError
	var newer *scheduler.NewerError
	var refused *api.RefusedError
	var invalid *api.InvalidError
	var tooLarge *http.MaxBytesError
	id := r.PathValue("id")
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &mismatch):
		p = newProblem(http.StatusConflict, "%v", mismatch)
		p.body.Job, p.body.Have, p.body.Got = mismatch.Job, mismatch.Have, mismatch.Got
		return p
	case errors.As(err, &misfit):
		p = newProblem(http.StatusBadRequest, "%v", misfit)
		p.body.Job, p.body.Misfits = misfit.Job, misfit.Misfits
		return p
	case errors.As(err, &newer):
		p = newProblem(http.StatusServiceUnavailable, "%v", newer)
		p.body.Job, p.retryAfter = id, retryAfterDeployment
		return p
	case errors.As(err, &refused):
		return refusalOf(r, refused)
	case errors.As(err, &invalid):
		p = newProblem(cmp.Or(invalid.Status, http.StatusBadRequest), "%s", invalid.Message)
		p.body.Misfits = invalid.Misfits
		return p
	case errors.Is(err, api.ErrCompletionToken):
		p = newProblem(http.StatusNotFound, "%v", api.ErrCompletionToken)
		p.body.Token = true
		return p
	case errors.As(err, &tooLarge):
		return newProblem(http.StatusRequestEntityTooLarge, "the body has more than %d bytes", tooLarge.Limit)
	case errors.Is(err, scheduler.ErrInvalid):
		return newProblem(http.StatusBadRequest, "%s", strings.TrimPrefix(err.Error(), scheduler.ErrInvalid.Error()+": "))
	case errors.Is(err, store.ErrNotFound) && id != "":
		return notFound(id)
	}
	a.Logger.WarnContext(r.Context(), "request could not be answered", "method", r.Method, "route", r.Pattern, "job", id, "error", err)
	if errors.Is(err, store.ErrDamaged) {
		p = newProblem(http.StatusInternalServerError, "job %s is stored, but cannot be read; the log says why", id)
		p.body.Job = id
		return p
	}
	return newProblem(http.StatusServiceUnavailable, "the store does not answer as it should; it is not known what became of this request: send it again")
}

// refusalOf says what of a step was refused, and why.
func refusalOf(r *http.Request, refused *api.RefusedError) *problem {
	p := newProblem(http.StatusConflict, "refused: %s", refused.Reason)
	if refused.Job != "" {
		p = newProblem(http.StatusConflict, "step %s of job %s: refused: %s", r.PathValue("step"), refused.Job, refused.Reason)
	}
	p.body.Job, p.body.Reason = refused.Job, refused.Reason
	return p
}

func (a *handlers) refuse(w http.ResponseWriter, p *problem) {
	if p.status == http.StatusServiceUnavailable || p.status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", strconv.Itoa(cmp.Or(p.retryAfter, retryAfter)))
	}
	write(w, p.status, p.body)
}

// write answers in JSON. []byte is JSON already.
func write(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// A caller who has gone asks again; there is nobody to tell.
	if text, done := body.([]byte); done {
		_, _ = w.Write(text)
		return
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	_ = e.Encode(body)
}
