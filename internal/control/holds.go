package control

import (
	"context"
	"fmt"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/view"
)

// errNoPauses refuses pauses of whole agents and workflows where there are none.
var errNoPauses = notHere("agents and workflows cannot be paused as a whole here")

// PauseAll implements api.Holds.
func (s *Service) PauseAll(ctx context.Context, kind makegood.HoldKind, name, reason string) (makegood.Hold, error) {
	return s.hold(ctx, "pause", func() (job.Hold, error) { return s.parts.Holds.Pause(ctx, kind, name, reason, s.by(ctx)) })
}

// ResumeAll implements api.Holds.
func (s *Service) ResumeAll(ctx context.Context, kind makegood.HoldKind, name string) (makegood.Hold, error) {
	return s.hold(ctx, "resume", func() (job.Hold, error) { return s.parts.Holds.Resume(ctx, kind, name, s.by(ctx)) })
}

// ProbeAgent implements api.Holds.
func (s *Service) ProbeAgent(ctx context.Context, agent string) (makegood.Hold, error) {
	return s.hold(ctx, "probe", func() (job.Hold, error) { return s.parts.Holds.Probe(ctx, agent) })
}

// LimitAgent implements api.Holds.
func (s *Service) LimitAgent(ctx context.Context, agent string, limit makegood.Limit, reason string) (makegood.Hold, error) {
	return s.hold(ctx, "limit", func() (job.Hold, error) { return s.parts.Holds.Limit(ctx, agent, limit, reason, s.by(ctx)) })
}

// hold does one of these, and returns the hold as it is then, or was when it was taken away.
func (s *Service) hold(ctx context.Context, what string, do func() (job.Hold, error)) (makegood.Hold, error) {
	if s.parts.Holds == nil {
		return makegood.Hold{}, fmt.Errorf("%s: %w", what, errNoPauses)
	}
	h, err := do()
	if err != nil {
		return makegood.Hold{}, fmt.Errorf("%s: %w", what, inWords(err))
	}
	s.parts.Logger.InfoContext(ctx, "hold", "request", what, "hold", h.String(), "by", s.by(ctx))
	counted, err := s.parts.Holds.Count(ctx, h)
	if err != nil {
		return makegood.Hold{}, fmt.Errorf("%s: %w", what, inWords(err))
	}
	return view.Hold(counted), nil
}

// ListHolds implements api.Holds.
func (s *Service) ListHolds(ctx context.Context) ([]makegood.Hold, error) {
	if s.parts.Holds == nil {
		return nil, fmt.Errorf("list holds: %w", errNoPauses)
	}
	all, err := s.parts.Holds.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("list holds: %w", inWords(err))
	}
	return view.Holds(all), nil
}

// ListAgents implements api.Agents.
func (s *Service) ListAgents(ctx context.Context) ([]api.Agent, error) {
	if s.parts.Agents == nil || s.parts.Holds == nil {
		return nil, fmt.Errorf("list agents: %w", notHere("how agents stand is not known here"))
	}
	all, err := s.parts.Agents.Agents(ctx)
	if err != nil {
		return nil, fmt.Errorf("list agents: %w", inWords(err))
	}
	held, err := s.parts.Holds.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("list agents: %w", inWords(err))
	}
	return view.Agents(all, held), nil
}
