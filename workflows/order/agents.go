// Package order is the sample workflow: order.yaml, and the Go agents for inventory, payments and shipping.
// order.yaml charges by the built-in http agent instead, to show both; payments is for who wants it in Go.
package order

import (
	"bytes"
	"context"
	_ "embed" // for order.yaml
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
)

// YAML is the workflow file.
//
//go:embed order.yaml
var YAML []byte

// DefaultShop is where the services of examples/shop are, unless configured otherwise.
const DefaultShop = "http://127.0.0.1:4790"

// Line is what the agents are told of an order, or of one of its lines.
type Line struct {
	Order  string  `json:"order"`
	Amount float64 `json:"amount"`
	// Line is its number in the order, from 0, where each line is reserved by itself.
	Line   int    `json:"line,omitempty"`
	Sku    string `json:"sku,omitempty"`
	Pieces int    `json:"pieces,omitempty"`
}

// Done is what they answer.
type Done struct {
	Order  string `json:"order"`
	Action string `json:"action"`
}

// Agents returns the agents, for a shop at a base URL.
func Agents(shop string, client *http.Client) []agent.Handler {
	s := service{base: shop, client: client}
	return []agent.Handler{
		agent.New("inventory", agent.Do("reserve", s.do("/inventory/reserve")).Undo("release", s.undo("/inventory/release"))),
		agent.New("payments", agent.Do("charge", s.do("/payments/charge")).Undo("refund", s.undo("/payments/refund"))),
		agent.New("shipping", agent.Do("ship", s.do("/shipping/ship")).Undo("cancel", s.undo("/shipping/cancel"))),
	}
}

type service struct {
	base   string
	client *http.Client
}

func (s service) do(path string) func(context.Context, Line) (Done, error) {
	return func(ctx context.Context, in Line) (Done, error) { return s.call(ctx, path, in) }
}

// undo asks for the compensation. It does not matter here whether the step was done or its outcome is
// unknown: the service knows by the forward key, and undoing what was never done is a success.
func (s service) undo(path string) func(context.Context, Line, *Done) error {
	return func(ctx context.Context, in Line, _ *Done) error {
		_, err := s.call(ctx, path, in)
		return err
	}
}

// call makes exactly one request: trying again is Makegood's.
func (s service) call(ctx context.Context, path string, in Line) (Done, error) {
	body, err := json.Marshal(in)
	if err != nil {
		return Done{}, agent.Final(agent.NotApplied(err))
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.base+path, bytes.NewReader(body))
	if err != nil {
		return Done{}, agent.Final(agent.NotApplied(err))
	}
	// Without this, Go's transport sends a request that has an Idempotency-Key once more by itself
	// when a kept-alive connection breaks, and one attempt would be two requests.
	req.GetBody = nil
	task := agent.TaskOf(ctx)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", task.Key)
	req.Header.Set("Makegood-Attempt", strconv.Itoa(task.Attempt))
	if task.Undo != nil {
		req.Header.Set("Makegood-Forward-Key", task.Undo.ForwardKey)
		req.Header.Set("Makegood-Outcome", string(task.Undo.Outcome))
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return Done{}, err // retryable, and nobody knows whether it had its effect
	}
	defer resp.Body.Close()
	return answer(resp)
}

// answer says what a response means: what is retryable is said so by its status.
func answer(resp *http.Response) (Done, error) {
	body, err := io.ReadAll(io.LimitReader(resp.Body, makegood.MaxPayloadBytes))
	if err != nil {
		return Done{}, err
	}
	if resp.StatusCode == http.StatusOK {
		var done Done
		return done, json.Unmarshal(body, &done)
	}
	err = fmt.Errorf("%s: %s", resp.Status, bytes.TrimSpace(body))
	retryable := resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests
	if !retryable {
		return Done{}, agent.Final(agent.NotApplied(err))
	}
	return Done{}, err
}
