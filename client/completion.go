package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
)

// Place is a step of a job, as whoever completes it names it.
type Place struct {
	Step string
	// Undo: its undo is meant.
	Undo bool
	// Round, if it is not 0, must be that of the job: whoever looked at a job completes no step of a later round.
	Round int
	// Early: an answer that comes before the step waits is kept for when it does. Else it is refused.
	Early bool
	// Why is the reason that a person gives for an answer: at most makegood.MaxReasonBytes. A workflow may require it.
	Why string
}

// Settling is what a person says of a step, or of its undo, that they have dealt with outside the job.
type Settling struct {
	// Skipped: it counts as skipped. With neither this nor NotDone it counts as done, with Output; nil is null.
	Skipped bool
	Output  json.RawMessage
	// NotDone: nothing stands of what the attempts of a step may have done. So it is not undone, and may be tried again, also as
	// another step by another definition. An undo cannot be settled so.
	NotDone bool
	// Attempt, if it is not 0, must be the latest of the step, or of its undo: whoever looked at one settles no later one.
	Attempt int
	// Reason is why, at most makegood.MaxReasonBytes. Of what does not count as done it must be given.
	Reason string
	// Name is that of the asking, at most makegood.MaxRequestBytes of [A-Za-z0-9._:-]: the same name again is the same.
	// Empty: one is made.
	Name string
}

// Completion is what whoever holds the completion token of a step may do, and all that they may: complete it, say that
// it has failed, have it wait longer. What Jobs says of these verbs holds, and beside its errors there is
// ErrCompletionToken. A token is an agent's Task.Completion, or that of a question that somebody was asked.
type Completion interface {
	Complete(ctx context.Context, output json.RawMessage) (Standing, error)
	Fail(ctx context.Context, why makegood.StepError) (Standing, error)
	Heartbeat(ctx context.Context, until time.Time) (Standing, error)
}

// Standing is how a step stands after whoever holds its completion token has said something of it.
type Standing struct {
	State makegood.StepState `json:"state"`
	// CompleteBy is until when it waits; nil: it does not wait.
	CompleteBy *time.Time `json:"completeBy"`
	// Existed: the same was said before, and nothing has changed.
	Existed bool `json:"existed"`
}

// failure is a StepError in the body of a request.
type failure struct {
	Message   string           `json:"message"`
	Kind      string           `json:"kind,omitempty"`
	Retryable bool             `json:"retryable,omitempty"`
	Applied   makegood.Applied `json:"applied,omitempty"`
}

func failureOf(e makegood.StepError) *failure {
	return &failure{e.Message, e.Kind, e.Retryable, e.Applied}
}

// saying is the body of what is said of a step. What is empty is left out.
type saying struct {
	Completion string          `json:"completion,omitempty"`
	Output     json.RawMessage `json:"output,omitempty"`
	Error      *failure        `json:"error,omitempty"`
	Deadline   time.Time       `json:"deadline,omitzero"`
	Undo       bool            `json:"undo,omitempty"`
	Round      int             `json:"round,omitempty"`
	Early      string          `json:"early,omitempty"`
	Why        string          `json:"why,omitempty"`
	As         string          `json:"as,omitempty"`
	Attempt    int             `json:"attempt,omitempty"`
	Reason     string          `json:"reason,omitempty"`
	Request    string          `json:"request,omitempty"`
}

func (s saying) at(p Place) saying {
	s.Undo, s.Round, s.Why = p.Undo, p.Round, p.Why
	if p.Early {
		s.Early = "keep"
	}
	return s
}

// newRequest names a request, so that all its tries are one.
func newRequest() string { return strings.ToLower(rand.Text()) }

// Complete is what Jobs says.
func (c *Client) Complete(ctx context.Context, id string, at Place, output json.RawMessage) (makegood.Job, error) {
	return c.say(ctx, "complete", id, at, saying{Output: output, Request: newRequest()}.at(at))
}

// Fail is what Jobs says.
func (c *Client) Fail(ctx context.Context, id string, at Place, why makegood.StepError) (makegood.Job, error) {
	return c.say(ctx, "fail", id, at, saying{Error: failureOf(why), Request: newRequest()}.at(at))
}

// Heartbeat is what Jobs says.
func (c *Client) Heartbeat(ctx context.Context, id string, at Place, until time.Time) (makegood.Job, error) {
	at.Early, at.Why = false, "" // There is nothing to keep.
	return c.say(ctx, "heartbeat", id, at, saying{Deadline: until}.at(at))
}

// Settle is what Jobs says.
func (c *Client) Settle(ctx context.Context, id string, at Place, s Settling) (makegood.Job, error) {
	at.Early, at.Why = false, "" // There is nothing to keep.
	as := makegood.StepDone
	switch {
	case s.Skipped && s.NotDone:
		return makegood.Job{}, fmt.Errorf("settle step %s of job %s: %w", at.Step, id, &InvalidError{Message: "as skipped and as not done: want one"})
	case s.Skipped:
		as = makegood.StepSkipped
	case s.NotDone:
		as = makegood.StepNotDone
	}
	return c.say(ctx, "settle", id, at, saying{As: string(as), Attempt: s.Attempt, Output: s.Output, Reason: s.Reason, Request: cmp.Or(s.Name, newRequest())}.at(at))
}

func (c *Client) say(ctx context.Context, verb, id string, at Place, body saying) (makegood.Job, error) {
	path := pathOf(id) + "/steps/" + url.PathEscape(at.Step) + "/" + verb
	var answer requested
	if _, err := c.call(ctx, http.MethodPost, path, nil, body, &answer); err != nil {
		return makegood.Job{}, fmt.Errorf("%s step %s of job %s: %w", verb, at.Step, id, err)
	}
	return answer.job(), nil
}

// Completion returns what whoever holds a completion token may do at this API.
func (c *Client) Completion(token string) Completion { return holder{c, token} }

// holder holds a completion token.
type holder struct {
	client *Client
	token  string
}

// Complete is what Completion says.
func (h holder) Complete(ctx context.Context, output json.RawMessage) (Standing, error) {
	return h.say(ctx, "complete", saying{Output: output, Request: newRequest()})
}

// Fail is what Completion says.
func (h holder) Fail(ctx context.Context, why makegood.StepError) (Standing, error) {
	return h.say(ctx, "fail", saying{Error: failureOf(why), Request: newRequest()})
}

// Heartbeat is what Completion says.
func (h holder) Heartbeat(ctx context.Context, until time.Time) (Standing, error) {
	return h.say(ctx, "heartbeat", saying{Deadline: until})
}

// say sends the token in the body: addresses are logged.
func (h holder) say(ctx context.Context, verb string, body saying) (s Standing, err error) {
	body.Completion = h.token
	if _, err := h.client.call(ctx, http.MethodPost, "/api/completions/"+verb, nil, body, &s); err != nil {
		return Standing{}, fmt.Errorf("%s: %w", verb, err)
	}
	return s, nil
}
