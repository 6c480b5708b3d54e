package engine

import (
	"context"
	"fmt"

	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/view"
)

var _ api.Agents = (*Engine)(nil)

// ListAgents returns how the agents stand; see api.Agents.
func (e *Engine) ListAgents(ctx context.Context) ([]api.Agent, error) {
	all, err := e.inner.Agents(ctx)
	if err != nil {
		return nil, fmt.Errorf("list agents: %w", err)
	}
	held, err := e.inner.Holds().List(ctx)
	if err != nil {
		return nil, fmt.Errorf("list agents: %w", err)
	}
	return view.Agents(all, held), nil
}
