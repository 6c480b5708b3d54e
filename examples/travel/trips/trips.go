// Package trips is the work of a travel agency: workflows, and agents that book trips with remote services over HTTP.
package trips

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/makegood-dev/makegood/agent"
)

// Files hold the workflows.
//
//go:embed workflows/*.yaml
var Files embed.FS

// Outside are the agents of the nightly run, which are processes of their own: night/reconcile.py and night/tell.ts.
var Outside = []string{"books", "mail"}

// maxAnswer is how many bytes of an answer are read.
const maxAnswer = 64 << 10

// Order is a request to book, or to charge.
type Order struct {
	Trip  string `json:"trip"`
	What  string `json:"what"`
	Cents int    `json:"cents,omitempty"`
}

// Booking is the answer of a service.
type Booking struct {
	Ref string `json:"ref"`
}

// Urls say where the services are.
type Urls struct{ Flights, Hotels, Cars, Payments string }

// Agents do the steps of a trip: one for each service.
func Agents(at Urls, c *http.Client) []agent.Handler {
	serve := func(name, url, book, cancel string) agent.Handler {
		s := service{url, c}
		do := func(ctx context.Context, o Order) (Booking, error) { return s.book(ctx, book, o) }
		undo := func(ctx context.Context, o Order, _ *Booking) error { return s.cancel(ctx, cancel, o) }
		return agent.New(name, agent.Do(book, do).Undo(cancel, undo))
	}
	return []agent.Handler{
		serve("flights", at.Flights, "book", "cancel"),
		serve("hotels", at.Hotels, "book", "cancel"),
		serve("cars", at.Cars, "book", "cancel"),
		serve("payments", at.Payments, "charge", "refund"),
	}
}

// service is a remote service. Each call makes one request: trying again is Makegood's.
type service struct {
	url  string
	http *http.Client
}

func (s service) book(ctx context.Context, action string, o Order) (b Booking, err error) {
	return b, s.ask(ctx, action, o, http.Header{"Idempotency-Key": {agent.TaskOf(ctx).Key}}, &b)
}

// cancel takes back the booking under the key of the step, if there is one: this may be unknown.
func (s service) cancel(ctx context.Context, action string, o Order) error {
	task := agent.TaskOf(ctx)
	header := http.Header{"Idempotency-Key": {task.Key}, "Makegood-Forward-Key": {task.Undo.ForwardKey}}
	return s.ask(ctx, action, o, header, &struct{}{})
}

func (s service) ask(ctx context.Context, action string, o Order, header http.Header, into any) error {
	body, err := json.Marshal(o)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/"+action, bytes.NewReader(body))
	if err != nil {
		return agent.Final(agent.NotApplied(err))
	}
	request.Header = header
	request.Header.Set("Content-Type", "application/json")
	answer, err := s.http.Do(request)
	if err != nil {
		return err // Whether it had an effect is unknown.
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	switch {
	case err != nil:
		return err
	case answer.StatusCode >= 500 || answer.StatusCode == http.StatusTooManyRequests:
		return fmt.Errorf("%s: %s", answer.Status, bytes.TrimSpace(text))
	case answer.StatusCode >= 400:
		return agent.Final(agent.NotApplied(fmt.Errorf("%s: %s", answer.Status, bytes.TrimSpace(text))))
	}
	return json.Unmarshal(text, into)
}

// Trip is the input of a job that books one.
type Trip struct {
	Customer string `json:"customer"`
	Flight   string `json:"flight"`
	Hotel    string `json:"hotel"`
	Car      string `json:"car"`
	Cents    int    `json:"cents"`
}
