package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/holds"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/view"
)

var _ api.Holds = (*Engine)(nil)

// PauseAll pauses an agent or a workflow as a whole; see api.Holds. In this process it is known at once.
func (e *Engine) PauseAll(ctx context.Context, kind makegood.HoldKind, name, reason string) (makegood.Hold, error) {
	h, err := e.inner.Holds().Pause(ctx, kind, name, reason, caller)
	return e.held(ctx, "pause", h, err)
}

// ResumeAll resumes an agent or a workflow; see api.Holds. The jobs that stood still go on while Run works.
func (e *Engine) ResumeAll(ctx context.Context, kind makegood.HoldKind, name string) (makegood.Hold, error) {
	h, err := e.inner.Holds().Resume(ctx, kind, name, caller)
	return e.held(ctx, "resume", h, err)
}

// ListHolds returns what is paused as a whole; see api.Holds.
func (e *Engine) ListHolds(ctx context.Context) ([]makegood.Hold, error) {
	all, err := e.inner.Holds().List(ctx)
	if err != nil {
		return nil, fmt.Errorf("list holds: %w", err)
	}
	return view.Holds(all), nil
}

// held returns a hold as it is stored, and errors in the words of package client.
func (e *Engine) held(ctx context.Context, what string, h job.Hold, err error) (makegood.Hold, error) {
	var counted holds.Counted
	if err == nil {
		counted, err = e.inner.Holds().Count(ctx, h)
	}
	switch {
	case errors.Is(err, holds.ErrNotHeld):
		err = &api.RefusedError{Reason: err.Error()}
	case errors.Is(err, holds.ErrInvalid), errors.Is(err, scheduler.ErrInvalid):
		err = &api.InvalidError{Message: err.Error()}
	}
	if err != nil {
		return makegood.Hold{}, fmt.Errorf("%s: %w", what, err)
	}
	return view.Hold(counted), nil
}
