package engine

import (
	"context"
	"fmt"

	"github.com/makegood-dev/makegood/client"
	"github.com/makegood-dev/makegood/internal/view"
)

var _ client.Agents = (*Engine)(nil)

// ListAgents returns how the agents stand; see client.Agents.
func (e *Engine) ListAgents(ctx context.Context) ([]client.Agent, error) {
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
