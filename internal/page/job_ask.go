package page

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/domain"
)

// askSettle is the request to settle a step that a person has dealt with; as is the outcome requested with it.
const askSettle = "settle"

// asking is the page between choosing a verb and doing it: its effect, and the values that it needs.
type asking struct {
	Job   makegood.Job
	Ask   string
	Head  string
	Step  string
	Undo  bool
	Round int
	// Attempt is the latest of the step.
	Attempt  int
	Question string
	Choices  []string
	// Refused is why it would be refused; empty: it would not.
	Refused string
	// Effect describes the effect; Undoes and Keeps are the steps that it would undo, and those that cannot be undone.
	Effect        string
	Undoes, Keeps []string
	// Done, Skipped and NotDone: the step can be settled with this outcome.
	Done, Skipped, NotDone bool
	// Plan is the plan of a resubmit with Definition and Input; nil: none was requested yet.
	Plan              *makegood.Plan
	Definition, Input string
	// Of and Indexes are the step and the items that a redrive is for; empty: all that have failed.
	Of, Indexes string
	// Request names the asking, so that a form that is sent twice asks once.
	Request string
}

// Title names the window.
func (a asking) Title() string { return a.Head }

// Back is where the job is shown.
func (a asking) Back() string { return "jobs/" + a.Job.ID }

// Planned describes in words what a plan does to a step.
func (asking) Planned(s makegood.PlannedStep) string {
	says := map[makegood.StepFate]string{
		makegood.FateStays: "stays as it is", makegood.FateAgain: "is tried again", makegood.FateAhead: "begins when it is its turn",
		makegood.FateNew: "is new", makegood.FateGone: "is not there any more",
	}[s.Fate]
	for _, note := range domain.Notes(s) {
		says += "; " + note
	}
	return says
}

// ask loads the page of a verb.
func (p *Page) ask(r *http.Request) (any, error) {
	s, unknown, err := p.see(r)
	if err != nil {
		return nil, err
	}
	a, err := askingOf(s, r.PathValue("ask"), r.FormValue("step"), r.FormValue("undo") == "true")
	if err != nil {
		return nil, err
	}
	a.Refused = cmp.Or(a.Refused, unknown)
	a.Definition, a.Input = r.FormValue("definition"), strings.TrimSpace(r.FormValue("input"))
	a.Of, a.Indexes = r.FormValue("of"), r.FormValue("indexes")
	if r.FormValue("edit") == "true" && a.Input == "" && a.Refused == "" {
		if a.Input, err = p.inputToEdit(r.Context(), s.job); err != nil {
			return nil, err
		}
	}
	if a.Ask != string(makegood.VerbResubmit) || a.Refused != "" {
		return a, nil
	}
	request, err := requestOf(r, a.Ask)
	if err != nil {
		return nil, err
	}
	plan, err := p.Jobs.Plan(r.Context(), s.job.ID, request)
	if err != nil {
		return nil, err
	}
	a.Plan = &plan
	return a, nil
}

// inputToEdit is the input of a job for a form: indented, and whole.
func (p *Page) inputToEdit(ctx context.Context, j makegood.Job) (string, error) {
	if given(j.Input) || j.InputBytes == 0 {
		return pretty(j.Input), nil
	}
	whole, err := p.Jobs.Get(ctx, j.ID)
	return pretty(whole.Input), err
}

// askingOf is the page of a verb.
func askingOf(s seen, ask, step string, undo bool) (asking, error) {
	a := asking{Job: s.job, Ask: ask, Step: step, Undo: undo, Round: s.job.Round, Request: rand.Text()}
	for _, is := range s.job.Steps {
		if is.Name == step {
			a.Attempt = is.Attempt
		}
	}
	if step != "" {
		return a, stepAsking(&a, s)
	}
	o, known := domain.OfferOf(s.offers, ask)
	if !known {
		return a, &problem{status: http.StatusNotFound, Head: "There is no such verb", Text: fmt.Sprintf("A job has no action %.40q.", ask)}
	}
	a.Head = domain.VerbOf(ask).Label + " " + s.job.ID
	a.Effect = o.Effect
	if !o.Granted() {
		a.Refused = o.Reason
	}
	if domain.VerbOf(ask).Turns {
		a.Undoes, a.Keeps = undoes(s)
	}
	return a, nil
}

// undoes names the steps that are to be undone of a job that is turned round now, and those that cannot be.
func undoes(s seen) (undone, kept []string) {
	for _, is := range standsOf(seen{job: turned(s.job), workflow: s.workflow}) {
		if !is.Stands {
			continue
		}
		if def := stepOf(s, is.Step); def != nil && !domain.CanUndo(*def) {
			kept = append(kept, is.Step)
			continue
		}
		undone = append(undone, is.Step)
	}
	return undone, kept
}

// turned is a job that is wanted undone.
func turned(j makegood.Job) makegood.Job {
	j.Desired = makegood.JobUndone
	return j
}

// stepAsking fills in the description of a request for a step.
func stepAsking(a *asking, s seen) error {
	o, known := domain.OffersOfStep(s.offers, a.Step, a.Undo)
	if !known {
		a.Refused = fmt.Sprintf("%s has no action now", a.Step)
	}
	what := a.Step
	if a.Undo {
		what = "the undo of " + a.Step
	}
	a.Question, a.Choices = o.Question, o.Choices
	heads := map[string]string{
		askSettle: "Settle " + what, domain.AskComplete: "Complete " + what, domain.AskFail: "Fail " + what, domain.AskHeartbeat: "Let " + what + " wait longer",
		domain.AskEdit: "Edit the map of " + a.Step,
	}
	head, known := heads[a.Ask]
	if !known {
		return &problem{status: http.StatusNotFound, Head: "There is no such verb", Text: fmt.Sprintf("A step has no action %.40q.", a.Ask)}
	}
	a.Head = head + " of " + s.job.ID
	if a.Ask == askSettle {
		done, _ := domain.StepOffer(o, domain.AskSettleDone)
		skipped, _ := domain.StepOffer(o, domain.AskSettleSkipped)
		notDone, _ := domain.StepOffer(o, domain.AskSettleNotDone)
		a.Done, a.Skipped, a.NotDone = done.Granted(), skipped.Granted(), notDone.Granted()
		if !a.Done && !a.Skipped && !a.NotDone {
			a.Refused = cmp.Or(a.Refused, done.Reason)
		}
		return nil
	}
	offer, _ := domain.StepOffer(o, a.Ask)
	a.Effect = offer.Effect
	if !offer.Granted() {
		a.Refused = cmp.Or(a.Refused, offer.Reason)
	}
	return nil
}

// askFor carries out a request, or shows a plan if one is requested.
func (p *Page) askFor(r *http.Request) (any, error) {
	if r.FormValue("then") == "plan" {
		return p.ask(r)
	}
	ask, id := r.PathValue("ask"), r.PathValue("id")
	var err error
	switch {
	case r.FormValue("step") != "":
		err = p.askForStep(r, id, ask)
	case ask == domain.AskWake:
		_, err = p.Jobs.Wake(r.Context(), id)
	case slices.Contains(domain.Verbs(), makegood.Verb(ask)):
		var request api.Request
		if request, err = requestOf(r, ask); err == nil {
			_, err = p.Jobs.Request(r.Context(), id, request)
		}
	default:
		err = &problem{status: http.StatusNotFound, Head: "There is no such verb", Text: fmt.Sprintf("A job has no action %.40q.", ask)}
	}
	if err != nil {
		return nil, err
	}
	return goTo("jobs/" + id), nil
}

// requestOf reads the request in a form.
func requestOf(r *http.Request, ask string) (api.Request, error) {
	q := api.Request{Verb: makegood.Verb(ask), Reason: r.FormValue("reason"), Name: r.FormValue("request")}
	var err error
	switch q.Verb {
	case makegood.VerbResubmit:
		q.Definition = strings.TrimSpace(r.FormValue("definition"))
		q.Input, err = jsonOf(r, "input")
	case makegood.VerbRedrive:
		q.Step, q.Indexes = strings.TrimSpace(r.FormValue("of")), strings.TrimSpace(r.FormValue("indexes"))
	case makegood.VerbEdit:
		if q.Timeout, err = domain.ParseTimeout(strings.TrimSpace(r.FormValue("timeout"))); err != nil {
			err = &problem{status: http.StatusBadRequest, Head: "That is no timeout", Text: fmt.Sprintf("timeout: %v; or none.", err)}
		}
	case makegood.VerbReschedule:
		q.StartAt, err = momentOf(r.FormValue("startAt"))
	}
	return q, err
}

// momentOf reads a time as a browser's field gives it; it is UTC.
func momentOf(text string) (time.Time, error) {
	for _, layout := range []string{"2006-01-02T15:04", "2006-01-02T15:04:05", time.RFC3339} {
		if at, err := time.Parse(layout, text); err == nil {
			return at.UTC(), nil
		}
	}
	return time.Time{}, &problem{status: http.StatusBadRequest, Head: "That is no time", Text: fmt.Sprintf("startAt is %.40q: want a date and a time of day, such as 2026-01-31T09:00, in UTC.", text)}
}

// jsonOf reads a field that is JSON; nil: it is empty.
func jsonOf(r *http.Request, field string) (json.RawMessage, error) {
	text := strings.TrimSpace(r.FormValue(field))
	if text == "" {
		return nil, nil
	}
	var value json.RawMessage
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		return nil, &problem{status: http.StatusBadRequest, Head: "That is not JSON", Text: fmt.Sprintf("%s: %v. A text is JSON in quotes.", field, err)}
	}
	return value, nil
}

// askForStep carries out a request for a step.
func (p *Page) askForStep(r *http.Request, id, ask string) error {
	round, err := strconv.Atoi(cmp.Or(r.FormValue("round"), "0"))
	if err != nil {
		return &problem{status: http.StatusBadRequest, Head: "That is no round", Text: fmt.Sprintf("round is %.40q: want a number.", r.FormValue("round"))}
	}
	at := api.StepRef{Step: r.FormValue("step"), Undo: r.FormValue("undo") == "true", Round: round, Why: strings.TrimSpace(r.FormValue("why"))}
	output, err := jsonOf(r, "output")
	if err != nil {
		return err
	}
	switch ask {
	case domain.AskComplete:
		if choice := r.FormValue("choice"); choice != "" {
			output = answerText(choice)
		}
		_, err = p.Jobs.Complete(r.Context(), id, at, output)
	case domain.AskFail:
		_, err = p.Jobs.Fail(r.Context(), id, at, failureOf(r))
	case domain.AskHeartbeat:
		_, err = p.Jobs.Heartbeat(r.Context(), id, at, time.Time{})
	case domain.AskEdit:
		var request api.Request
		if request, err = editOf(r); err == nil {
			_, err = p.Jobs.Request(r.Context(), id, request)
		}
	case askSettle:
		return p.settle(r.Context(), r, id, at, output)
	default:
		return &problem{status: http.StatusNotFound, Head: "There is no such verb", Text: fmt.Sprintf("A step has no action %.40q.", ask)}
	}
	return err
}

// editOf reads the new figures of a map.
func editOf(r *http.Request) (api.Request, error) {
	q := api.Request{Verb: makegood.VerbEdit, Step: r.FormValue("step"), Reason: r.FormValue("reason"), Name: r.FormValue("request")}
	concurrency, tolerate := strings.TrimSpace(r.FormValue("concurrency")), strings.TrimSpace(r.FormValue("tolerate"))
	var err error
	if concurrency != "" {
		if q.Concurrency, err = strconv.Atoi(concurrency); err != nil {
			return q, &problem{status: http.StatusBadRequest, Head: "That is no number", Text: fmt.Sprintf("concurrency is %.40q: want a number.", concurrency)}
		}
	}
	if tolerate != "" {
		t, err := domain.ParseTolerance(tolerate)
		if err != nil {
			return q, &problem{status: http.StatusBadRequest, Head: "That is no tolerance", Text: fmt.Sprintf("tolerate is %v.", err)}
		}
		q.Tolerate = &t
	}
	return q, nil
}

// failureOf reads the reason for a failure that a person gave.
func failureOf(r *http.Request) makegood.StepError {
	failure := makegood.StepError{Message: r.FormValue("reason"), Retryable: r.FormValue("retryable") == "true", Applied: makegood.AppliedUnknown}
	if r.FormValue("applied") == string(makegood.AppliedNo) {
		failure.Applied = makegood.AppliedNo
	}
	return failure
}

// settle says that a person has dealt with a step.
func (p *Page) settle(ctx context.Context, r *http.Request, id string, at api.StepRef, output json.RawMessage) (err error) {
	as := makegood.StepState(r.FormValue("as"))
	s := api.SettleOptions{Skipped: as == makegood.StepSkipped, NotDone: as == makegood.StepNotDone, Reason: r.FormValue("reason"), Name: r.FormValue("request")}
	switch {
	case s.NotDone:
		// The answer applies only to the attempt that the person saw.
		if s.Attempt, err = strconv.Atoi(r.FormValue("attempt")); err != nil {
			return &api.InvalidError{Message: "attempt: want which attempt of the step you looked at"}
		}
	case !s.Skipped:
		s.Output = output
	}
	_, err = p.Jobs.Settle(ctx, id, at, s)
	return err
}
