package httpapi

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"html/template"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/control"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

const (
	// linkPattern is where the link of a completion token leads. GET shows it, only POST answers: mail scanners open links.
	linkPattern = "/complete/{token}"
	// maxForm is how large the form of a link may be, in bytes: each byte of an output may become three.
	maxForm = 3*makegood.MaxPayloadBytes + maxOverhead
)

// LinkPath is the path of the link of a completion token, below where the API is.
func LinkPath(token string) string { return strings.Replace(linkPattern, "{token}", token, 1) }

// WithoutToken returns a path for a log, without the token of a link.
func WithoutToken(path string) string {
	if before := strings.TrimSuffix(linkPattern, "{token}"); strings.HasPrefix(path, before) {
		return linkPattern
	}
	return path
}

//go:embed link.html
var linkSource string

//go:embed link.css
var linkStyle string

// linkPage is the data of a link's page.
type linkPage struct {
	control.StepLook
	// Found: a step has this token. Open: it takes an answer.
	Found, Open bool
	// Said is the result of an answer; Wrong: it was not taken.
	Said  string
	Wrong bool
	// Output and Reason are the values that the person filled in before.
	Output, Reason, Name, Why string
	// Request names the answer: a button that is pressed twice is one.
	Request string
	Style   template.CSS
}

// parseLink reads the page's template. It panics where the template is none: a test would have seen it.
func parseLink() *template.Template {
	return template.Must(template.New("link").Funcs(template.FuncMap{
		"moment": func(t *time.Time) string { return t.UTC().Format("Monday, 2 January 2006, 15:04 UTC") },
	}).Parse(linkSource))
}

// linkPolicy lets the page load only its own style, send its form only home, and stand in no other page.
func linkPolicy() string {
	sum := sha256.Sum256([]byte(linkStyle))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
}

// patiently bounds how long the store may take.
func patiently(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), handleTimeout)
		defer cancel()
		h(w, r.WithContext(ctx))
	}
}

// showLink shows the step of a link.
func (a *handlers) showLink(w http.ResponseWriter, r *http.Request) {
	a.showStep(w, r, http.StatusOK, linkPage{})
}

// showStep shows the state of a link's step, with the result of an answer.
func (a *handlers) showStep(w http.ResponseWriter, r *http.Request, status int, p linkPage) {
	look, err := a.Jobs.LookByToken(r.Context(), r.PathValue("token"))
	if err != nil {
		problem := a.linkProblem(r, err)
		status, p.Said, p.Wrong = problem.status, problem.body.Error, true
		a.writeLink(w, status, p)
		return
	}
	p.StepLook, p.Found, p.Open = look, true, look.Closed == ""
	p.Request = rand.Text()
	a.writeLink(w, status, p)
}

// answerLink takes the answer that a person gives on the page of a link.
func (a *handlers) answerLink(w http.ResponseWriter, r *http.Request) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/x-www-form-urlencoded" {
		a.showStep(w, r, http.StatusUnsupportedMediaType, linkPage{Said: "this is not the form of this page", Wrong: true})
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		problem := a.linkProblem(r, formError(err))
		a.showStep(w, r, problem.status, linkPage{Said: problem.body.Error, Wrong: true})
		return
	}
	said, err := readForm(r)
	if err == nil {
		_, err = a.Jobs.AnswerByToken(r.Context(), r.PathValue("token"), said)
	}
	if err != nil {
		problem := a.linkProblem(r, err)
		a.showStep(w, r, problem.status, linkPage{Said: problem.body.Error, Wrong: true, Output: r.PostForm.Get("output"), Reason: r.PostForm.Get("reason"), Name: r.PostForm.Get("name"), Why: r.PostForm.Get("why")})
		return
	}
	a.showStep(w, r, http.StatusOK, linkPage{Said: "Your answer is stored. Thank you."})
}

// formError returns the error for a form that could not be read.
func formError(err error) error {
	if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
		return err
	}
	return bad("the form cannot be read")
}

// readForm reads the answer in a form: a button, an output, or a reason for a failure. Each answer on a page has its
// own name: a button pressed twice counts once, and another button is another answer.
func readForm(r *http.Request) (said control.Answer, err error) {
	form := r.PostForm
	name := form.Get("request")
	said.By, said.Why = strings.TrimSpace(form.Get("name")), strings.TrimSpace(form.Get("why"))
	switch does := form.Get("do"); {
	case form.Has("answer") && said.By == "":
		return said, bad("your name is missing: it is kept with your answer")
	case form.Has("answer"):
		if said.Output, err = json.Marshal(form.Get("answer")); err != nil {
			return said, bad("answer: %v", err)
		}
	case does == "complete":
		said.Output = json.RawMessage(strings.TrimSpace(form.Get("output")))
	case does == "fail":
		said.Error = &makegood.StepError{Message: strings.TrimSpace(form.Get("reason")), Retryable: true}
		if said.Error.Message == "" {
			return said, bad("say why it failed")
		}
	default:
		return said, bad("press one of the buttons")
	}
	if name != "" {
		// The name is cut to leave room for the hash of the content.
		content := slices.Concat(said.Output, []byte(form.Get("reason")))
		said.Request = name[:min(len(name), limits.MaxRequestBytes/2)] + "." + job.ShortHash(form.Get("do")+"\n"+string(content))
	}
	return said, nil
}

// linkProblem is the problem shown to a person that opened a link.
func (a *handlers) linkProblem(r *http.Request, err error) *problem {
	refused, invalid := new(api.RefusedError), new(api.InvalidError)
	switch p := a.problemOf(r, err); {
	case errors.As(err, &refused):
		return newProblem(http.StatusConflict, "Your answer was not taken: %s.", refused.Reason)
	case errors.Is(err, api.ErrCompletionToken), errors.As(err, &invalid) && strings.HasPrefix(invalid.Message, "completion: "):
		return newProblem(http.StatusNotFound, "This link leads to no step: it is not whole, or the job is gone.")
	case p.status == http.StatusServiceUnavailable:
		p.body.Error = "This cannot be answered just now. Please try again in a minute; the same answer twice is one answer."
		return p
	default:
		return p
	}
}

// writeLink writes the page.
func (a *handlers) writeLink(w http.ResponseWriter, status int, p linkPage) {
	p.Style = template.CSS(linkStyle) //nolint:gosec // it is ours
	var page bytes.Buffer
	if err := a.link.Execute(&page, p); err != nil {
		panic("httpapi: the page of a link cannot be written: " + err.Error())
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(page.Len()))
	// The address authorizes an answer: keep it from other pages and from indexes.
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Robots-Tag", "noindex, nofollow, noarchive")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Content-Security-Policy", a.linkPolicy)
	if status == http.StatusServiceUnavailable {
		h.Set("Retry-After", strconv.Itoa(retryAfterDeployment))
	}
	w.WriteHeader(status)
	_, _ = w.Write(page.Bytes()) // A person that has left opens the link again.
}
