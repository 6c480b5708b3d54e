package client

import (
	"context"
	"fmt"
	"net/url"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/domain"
)

var _ api.Holds = (*remote)(nil)

// PauseAll implements api.Holds.
func (c *remote) PauseAll(ctx context.Context, kind makegood.HoldKind, name, reason string) (makegood.Hold, error) {
	return c.hold(ctx, "pause", kind, name, map[string]string{"reason": reason})
}

// ResumeAll implements api.Holds.
func (c *remote) ResumeAll(ctx context.Context, kind makegood.HoldKind, name string) (makegood.Hold, error) {
	return c.hold(ctx, "resume", kind, name, map[string]string{})
}

// ProbeAgent implements api.Holds.
func (c *remote) ProbeAgent(ctx context.Context, agent string) (makegood.Hold, error) {
	return c.hold(ctx, "probe", makegood.HoldAgent, agent, map[string]string{})
}

// LimitAgent implements api.Holds.
func (c *remote) LimitAgent(ctx context.Context, agent string, limit makegood.Limit, reason string) (makegood.Hold, error) {
	body := struct {
		makegood.Limit
		// Concurrency is there even if it is 0.
		Concurrency int    `json:"concurrency"`
		Reason      string `json:"reason"`
	}{limit, limit.Concurrency, reason}
	return c.hold(ctx, "limit", makegood.HoldAgent, agent, body)
}

func (c *remote) hold(ctx context.Context, what string, kind makegood.HoldKind, name string, body any) (makegood.Hold, error) {
	err := domain.CheckHold(kind, name)
	if what == "limit" {
		err = domain.CheckLimit(name)
	}
	if err != nil {
		return makegood.Hold{}, fmt.Errorf("%s: %w", what, &api.InvalidError{Message: err.Error()})
	}
	path := "/api/holds/" + string(kind) + "/" + url.PathEscape(name) + "/" + what
	return post[makegood.Hold](ctx, c, fmt.Sprintf("%s %s %s", what, kind, name), path, body)
}

// ListHolds implements api.Holds.
func (c *remote) ListHolds(ctx context.Context) ([]makegood.Hold, error) {
	list, err := read[struct{ Holds []makegood.Hold }](ctx, c, "list holds", "/api/holds", nil)
	return list.Holds, err
}
