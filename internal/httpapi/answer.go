package httpapi

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/protocol"
	"github.com/makegood-dev/makegood/internal/scheduler"
)

const (
	// retryAfter is how many seconds a caller is asked to wait when the store fails.
	retryAfter = 1
	// retryAfterDeployment is how many where a newer release must decide: longer than our client waits on request. The
	// client retries at its own pace and reports the reason when its patience ends.
	retryAfterDeployment = 60
)

// answer is the answer of a route on success.
type answer struct {
	status   int
	body     any
	location string
}

func ok(body any) (answer, error) { return answer{status: http.StatusOK, body: body}, nil }

// Problem is the body of every answer that is not a success.
type Problem = protocol.Problem

// problem is a Problem on its way out.
type problem struct {
	status int
	body   Problem
	// retryAfter is how many seconds the caller is asked to wait; zero: retryAfter, if it may ask again.
	retryAfter int
}

func newProblem(status int, format string, args ...any) *problem {
	p := &problem{status: status, body: Problem{Error: fmt.Sprintf(format, args...)}}
	if status < http.StatusInternalServerError && status != http.StatusTooManyRequests {
		p.body.Code = protocol.CodeInvalid
	}
	return p
}

// Error is the message of the problem.
func (p *problem) Error() string { return p.body.Error }

func bad(format string, args ...any) error { return newProblem(http.StatusBadRequest, format, args...) }

// namePattern matches the names of requests, and idPattern the ids: that of a child has a ~.
var (
	namePattern = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,128}$`)
	idPattern   = regexp.MustCompile(`^[A-Za-z0-9._:~-]{1,128}$`)
)

// jobID returns the id in the path. An id that no job can have is answered as unknown, without a read of the store.
func jobID(r *http.Request) (string, error) {
	id := r.PathValue("id")
	if !idPattern.MatchString(id) {
		return "", api.ErrNotFound
	}
	return id, nil
}

// problemOf translates the errors of all handlers, in this one place. An error that is not known to be the caller's is
// logged, and the answer says only what to do.
func (a *handlers) problemOf(r *http.Request, err error) *problem {
	var p *problem
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &tooLarge):
		return newProblem(http.StatusRequestEntityTooLarge, "the body has more than %d bytes", tooLarge.Limit)
	}
	body, status, known := protocol.ProblemOf(err)
	if !known || status == http.StatusInternalServerError {
		a.Logger.WarnContext(r.Context(), "request could not be answered", "method", r.Method, "route", r.Pattern, "job", r.PathValue("id"), "error", err)
	}
	if !known {
		return newProblem(http.StatusServiceUnavailable, "the store does not answer as it should; it is not known what became of this request: send it again")
	}
	p = &problem{status: status, body: body}
	about(r).word(p, err)
	return p
}

// subject is the subject of a request.
type subject struct {
	// what is the kind, name the name in the path, and place where a problem's body names it; nil: nowhere.
	what, name string
	place      func(*Problem) *string
	asked      string
}

// about returns the subject of a request, by its path.
func about(r *http.Request) subject {
	asked := path.Base(r.URL.Path)
	switch section, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/api/"), "/"); section {
	case "schedules":
		return subject{"schedule", r.PathValue("id"), func(p *Problem) *string { return &p.Schedule }, asked}
	case "quarantine":
		return subject{"message", r.PathValue("id"), func(p *Problem) *string { return &p.Message }, asked}
	case "definitions":
		return subject{"definition", r.PathValue("hash"), func(p *Problem) *string { return &p.Definition }, asked}
	case "holds":
		return subject{"pause", "", nil, asked}
	}
	if sha := r.PathValue("sha256"); sha != "" {
		return subject{"payload", sha, func(p *Problem) *string { return &p.Payload }, asked}
	}
	if step := r.PathValue("step"); step != "" {
		asked = "step " + step
	}
	if asked == "plan" {
		asked = string(makegood.VerbResubmit)
	}
	return subject{"job", r.PathValue("id"), func(p *Problem) *string { return &p.Job }, asked}
}

// word puts a problem in the words of its subject.
func (s subject) word(p *problem, err error) {
	if s.name != "" && s.place != nil && p.body.Code != protocol.CodeInvalid {
		*s.place(&p.body) = s.name
	}
	switch p.body.Code {
	case protocol.CodeRefused:
		p.body.Error = s.refused(p.body)
	case protocol.CodeNoJob, protocol.CodeNoSchedule, protocol.CodeNoDefinition:
		p.body.Error = fmt.Sprintf("there is no %s %s", s.what, shown(s.name))
	case protocol.CodeNoMessage:
		p.body.Error = fmt.Sprintf("there is no message %.80q in quarantine", s.name)
	case protocol.CodeNoPayload:
		p.body.Error = "the payload is not there, for this job and by this writer"
	case protocol.CodeDamaged:
		p.body.Error = s.full() + " is stored, but cannot be read; the log says why"
	case protocol.CodeNewer:
		p.retryAfter = retryAfterDeployment
		if newer := new(scheduler.NewerError); !errors.As(err, &newer) {
			p.body.Error = s.full() + " was written by a newer release of Makegood; ask again when the deployment is done"
		}
	}
}

// full names the subject.
func (s subject) full() string {
	if s.what == "message" {
		return "the job of message " + s.name
	}
	return strings.TrimSpace(s.what + " " + s.name)
}

// shown returns a name for a message: as it is, if it can be a name.
func shown(name string) string {
	if idPattern.MatchString(name) {
		return name
	}
	return fmt.Sprintf("%.140q", name)
}

// refused returns the message that the problem refused this subject.
func (s subject) refused(p Problem) string {
	switch {
	case p.Schedule != "":
		return fmt.Sprintf("schedule %s: %s", p.Schedule, p.Reason)
	case s.what == "pause":
		return fmt.Sprintf("%s is refused: %s", s.asked, p.Reason)
	case p.Job == "":
		return "refused: " + p.Reason
	case strings.HasPrefix(s.asked, "step "):
		return fmt.Sprintf("%s of job %s: refused: %s", s.asked, p.Job, p.Reason)
	default:
		return fmt.Sprintf("%s of job %s is refused: %s", s.asked, p.Job, p.Reason)
	}
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
	// A failed write needs no handling: a caller that has gone asks again.
	if text, done := body.([]byte); done {
		_, _ = w.Write(text)
		return
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	_ = e.Encode(body)
}
