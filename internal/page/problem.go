package page

import (
	"errors"
	"net/http"

	"github.com/makegood-dev/makegood/api"
)

// problem is an error on its way to a browser. A load returns one if it can explain the error better than the API.
type problem struct {
	status int
	// Head is a short title of the error; Text is the full text.
	Head, Text string
}

// Error returns the full text.
func (p *problem) Error() string { return p.Text }

// Title names the window.
func (p *problem) Title() string { return p.Head }

// problemView is how an error is shown.
var problemView = view{template: "problem.html"}

// nothingHere is the problem of a path without a view.
func nothingHere(r *http.Request) *problem {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return &problem{status: http.StatusMethodNotAllowed, Head: "This cannot be done here", Text: "There is no form that sends to this address."}
	}
	return &problem{status: http.StatusNotFound, Head: "There is no such page", Text: "This address is none of the page's. A job is at jobs/ followed by its id."}
}

// problemOf translates the errors of package api, in this one place.
func (p *Page) problemOf(r *http.Request, err error) *problem {
	var own *problem
	var invalid *api.InvalidError
	var refused *api.RefusedError
	var mismatch *api.MismatchError
	var unreachable *api.UnreachableError
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &own):
		return own
	case errors.Is(err, api.ErrNotFound):
		return &problem{status: http.StatusNotFound, Head: "There is no such job", Text: "No job has this id. It may never have been, or was deleted after its time."}
	case errors.Is(err, api.ErrNoPayload):
		return &problem{status: http.StatusNotFound, Head: "There is no such payload", Text: "It was never written for this job, or has gone with it."}
	case errors.Is(err, api.ErrNoSchedule):
		return &problem{status: http.StatusNotFound, Head: "There is no such schedule", Text: "No schedule has this name."}
	case errors.As(err, &refused):
		return &problem{status: http.StatusConflict, Head: "Refused", Text: refused.Reason}
	case errors.As(err, &mismatch):
		return &problem{status: http.StatusConflict, Head: "Refused", Text: mismatch.Error()}
	case errors.As(err, &tooLarge):
		return &problem{status: http.StatusRequestEntityTooLarge, Head: "Too large", Text: "The request is larger than an input may be."}
	case errors.As(err, &invalid) && invalid.Status != http.StatusForbidden:
		return &problem{status: http.StatusBadRequest, Head: "That cannot be asked for", Text: invalid.Message}
	case errors.As(err, &invalid):
		return &problem{status: http.StatusForbidden, Head: "Not allowed", Text: invalid.Message}
	case errors.Is(err, api.ErrDamaged):
		p.Logger.WarnContext(r.Context(), "page: it cannot be read", "path", r.URL.Path, "error", err)
		return &problem{status: http.StatusInternalServerError, Head: "It cannot be read", Text: "It is stored, but cannot be read. The log says why."}
	case errors.Is(err, api.ErrNewer):
		return &problem{status: http.StatusServiceUnavailable, Head: "Not by this release", Text: "It was written by a newer release of Makegood. Ask again when the deployment is done."}
	case errors.As(err, &unreachable):
		p.Logger.WarnContext(r.Context(), "page: no answer", "path", r.URL.Path, "error", err)
		return &problem{status: http.StatusServiceUnavailable, Head: "No answer", Text: unreachable.Err.Error()}
	}
	p.Logger.WarnContext(r.Context(), "page could not be shown", "path", r.URL.Path, "error", err)
	return &problem{status: http.StatusServiceUnavailable, Head: "No answer", Text: "This took too long, or was cut off. Its outcome is unknown: ask again, the same twice is once."}
}

// refuse shows a problem.
func (p *Page) refuse(w http.ResponseWriter, r *http.Request, wrong *problem) {
	if wrong.status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	f := p.frame(r, problemView, wrong)
	f.Regions = false
	p.write(w, r, wrong.status, parse(problemView.template), f)
}

// refused shows why a request was not let in.
func (p *Page) refused(w http.ResponseWriter, r *http.Request, status int, text string) {
	secured(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.refuse(w, r, &problem{status: status, Head: "Not let in", Text: text})
	})).ServeHTTP(w, r)
}
