package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/completion"
)

// byEngine is who asks where the program that runs the engine does.
const byEngine = "engine"

// Complete ends a step that waits, with its output. What api.Jobs says of it holds.
func (e *Engine) Complete(ctx context.Context, id string, at api.StepRef, output json.RawMessage) (makegood.Job, error) {
	j, err := e.desk().Complete(ctx, addressOf(ctx, id, at), completion.Answer{Output: output})
	return j, said("complete", id, at, err)
}

// Fail says that a step that waits has failed. What api.Jobs says of it holds.
func (e *Engine) Fail(ctx context.Context, id string, at api.StepRef, why makegood.StepError) (makegood.Job, error) {
	j, err := e.desk().Complete(ctx, addressOf(ctx, id, at), completion.Answer{Error: &why})
	return j, said("fail", id, at, err)
}

// Heartbeat has a step wait longer. What api.Jobs says of it holds.
func (e *Engine) Heartbeat(ctx context.Context, id string, at api.StepRef, until time.Time) (makegood.Job, error) {
	j, err := e.desk().Extend(ctx, addressOf(ctx, id, at), until)
	return j, said("heartbeat", id, at, err)
}

// Settle says that a person has dealt with a step, or its undo. What api.Jobs says of it holds.
func (e *Engine) Settle(ctx context.Context, id string, at api.StepRef, s api.SettleOptions) (makegood.Job, error) {
	j, err := e.desk().Settle(ctx, addressOf(ctx, id, at), s)
	return j, said("settle", id, at, err)
}

func (e *Engine) desk() completion.Desk { return completion.Desk{Backend: e.inner} }

func addressOf(ctx context.Context, id string, at api.StepRef) completion.Address {
	return completion.Address{Job: id, StepRef: at, By: byWhom(ctx)}
}

func said(verb, id string, at api.StepRef, err error) error {
	if err != nil {
		return fmt.Errorf("%s step %s of job %s: %w", verb, at.Step, id, plain(id, err))
	}
	return nil
}

// Completion returns what whoever holds a completion token may do. The token of an agent's task is its Completion.
func (e *Engine) Completion(token string) api.Completion { return holder{e, token} }

// holder holds a completion token.
type holder struct {
	engine *Engine
	token  string
}

// Complete is what api.Completion says.
func (h holder) Complete(ctx context.Context, output json.RawMessage) (api.Standing, error) {
	s, err := h.engine.desk().CompleteByToken(ctx, h.token, completion.Answer{Output: output})
	return h.standing("complete", s, err)
}

// Fail is what api.Completion says.
func (h holder) Fail(ctx context.Context, why makegood.StepError) (api.Standing, error) {
	s, err := h.engine.desk().CompleteByToken(ctx, h.token, completion.Answer{Error: &why})
	return h.standing("fail", s, err)
}

// Heartbeat is what api.Completion says.
func (h holder) Heartbeat(ctx context.Context, until time.Time) (api.Standing, error) {
	s, err := h.engine.desk().ExtendByToken(ctx, h.token, until)
	return h.standing("heartbeat", s, err)
}

func (h holder) standing(verb string, s api.Standing, err error) (api.Standing, error) {
	if err != nil {
		return api.Standing{}, fmt.Errorf("%s: %w", verb, err)
	}
	return s, nil
}
