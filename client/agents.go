package client

import (
	"context"

	"github.com/makegood-dev/makegood/api"
)

var _ api.Agents = (*remote)(nil)

// ListAgents implements api.Agents.
func (c *remote) ListAgents(ctx context.Context) ([]api.Agent, error) {
	list, err := read[struct{ Agents []api.Agent }](ctx, c, "list agents", "/api/agents", nil)
	return list.Agents, err
}
