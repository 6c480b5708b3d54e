package client

import (
	"context"
	"fmt"
	"net/http"

	"github.com/makegood-dev/makegood/api"
)

var _ api.Agents = (*remote)(nil)

// ListAgents implements api.Agents.
func (c *remote) ListAgents(ctx context.Context) ([]api.Agent, error) {
	var list struct{ Agents []api.Agent }
	if _, err := c.call(ctx, http.MethodGet, "/api/agents", nil, nil, &list); err != nil {
		return nil, fmt.Errorf("list agents: %w", err)
	}
	return list.Agents, nil
}
