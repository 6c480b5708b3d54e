package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
)

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

// saying is the body of a completion, failure, heartbeat or settlement. Empty fields are left out.
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

func (s saying) at(p api.StepRef) saying {
	s.Undo, s.Round, s.Why = p.Undo, p.Round, p.Why
	if p.Early {
		s.Early = "keep"
	}
	return s
}

// newRequest names a request, so that all its tries are one.
func newRequest() string { return strings.ToLower(rand.Text()) }

// Complete implements api.Jobs.
func (c *remote) Complete(ctx context.Context, id string, at api.StepRef, output json.RawMessage) (makegood.Job, error) {
	return c.say(ctx, "complete", id, at, saying{Output: output, Request: newRequest()}.at(at))
}

// Fail implements api.Jobs.
func (c *remote) Fail(ctx context.Context, id string, at api.StepRef, why makegood.StepError) (makegood.Job, error) {
	return c.say(ctx, "fail", id, at, saying{Error: failureOf(why), Request: newRequest()}.at(at))
}

// Heartbeat implements api.Jobs.
func (c *remote) Heartbeat(ctx context.Context, id string, at api.StepRef, until time.Time) (makegood.Job, error) {
	at.Early, at.Why = false, "" // Early and Why are for answers alone.
	return c.say(ctx, "heartbeat", id, at, saying{Deadline: until}.at(at))
}

// Settle implements api.Jobs.
func (c *remote) Settle(ctx context.Context, id string, at api.StepRef, s api.SettleOptions) (makegood.Job, error) {
	at.Early, at.Why = false, "" // Early and Why are for answers alone.
	as := makegood.StepDone
	switch {
	case s.Skipped && s.NotDone:
		return makegood.Job{}, fmt.Errorf("settle step %s of job %s: %w", at.Step, id, &api.InvalidError{Message: "as skipped and as not done: want one"})
	case s.Skipped:
		as = makegood.StepSkipped
	case s.NotDone:
		as = makegood.StepNotDone
	}
	return c.say(ctx, "settle", id, at, saying{As: string(as), Attempt: s.Attempt, Output: s.Output, Reason: s.Reason, Request: cmp.Or(s.Name, newRequest())}.at(at))
}

func (c *remote) say(ctx context.Context, verb, id string, at api.StepRef, body saying) (makegood.Job, error) {
	path := pathOf(id) + "/steps/" + url.PathEscape(at.Step) + "/" + verb
	answer, err := post[requested](ctx, c, fmt.Sprintf("%s step %s of job %s", verb, at.Step, id), path, body)
	return answer.job(), err
}

// Completion returns the methods for the holder of a completion token at this API.
func (c *remote) Completion(token string) api.Completion { return holder{c, token} }

// holder holds a completion token.
type holder struct {
	client *remote
	token  string
}

// Complete implements api.Completion.
func (h holder) Complete(ctx context.Context, output json.RawMessage) (api.Standing, error) {
	return h.say(ctx, "complete", saying{Output: output, Request: newRequest()})
}

// Fail implements api.Completion.
func (h holder) Fail(ctx context.Context, why makegood.StepError) (api.Standing, error) {
	return h.say(ctx, "fail", saying{Error: failureOf(why), Request: newRequest()})
}

// Heartbeat implements api.Completion.
func (h holder) Heartbeat(ctx context.Context, until time.Time) (api.Standing, error) {
	return h.say(ctx, "heartbeat", saying{Deadline: until})
}

// say sends the token in the body: addresses are logged.
func (h holder) say(ctx context.Context, verb string, body saying) (api.Standing, error) {
	body.Completion = h.token
	return post[api.Standing](ctx, h.client, verb, "/api/completions/"+verb, body)
}
