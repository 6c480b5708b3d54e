package engine

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/payload"
)

var _ api.Payloads = (*Engine)(nil)

// WritePayload stores what is too large for an input, for a job that will be submitted, or is there. What api.Payloads says
// of it holds.
func (e *Engine) WritePayload(ctx context.Context, id, mediaType string, from io.Reader) (makegood.Payload, error) {
	if err := errors.Join(payload.Place{Job: id}.Check(), limits.CheckPayloadType(mediaType)); err != nil {
		return makegood.Payload{}, fmt.Errorf("write a payload of job %s: %w", id, &api.InvalidError{Message: err.Error()})
	}
	p, err := e.inner.WritePayload(ctx, id, mediaType, from)
	if errors.Is(err, payload.ErrTooLarge) {
		err = fmt.Errorf("write a payload of job %s: %w", id, &api.InvalidError{Message: payload.ErrTooLarge.Error()})
	}
	return p, err
}

// OpenPayload reads what a payload of a job refers to. What api.Payloads says of it holds.
func (e *Engine) OpenPayload(ctx context.Context, id string, p makegood.Payload) (io.ReadCloser, error) {
	return e.OpenPayloadRange(ctx, id, p, 0, -1)
}

// OpenPayloadRange reads a part of what a payload of a job refers to. What api.Payloads says of it holds.
func (e *Engine) OpenPayloadRange(ctx context.Context, id string, p makegood.Payload, offset, n int64) (io.ReadCloser, error) {
	r, err := e.inner.OpenPayload(ctx, id, p, offset, n)
	if errors.Is(err, payload.ErrNotFound) {
		err = fmt.Errorf("open a payload of job %s: %w", id, api.ErrNoPayload)
	}
	return r, err
}
