package client

import (
	"context"
	"fmt"
	"net/http"
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

func (c *remote) hold(ctx context.Context, what string, kind makegood.HoldKind, name string, body any) (h makegood.Hold, err error) {
	if err := domain.CheckHold(kind, name); err != nil {
		return h, fmt.Errorf("%s: %w", what, &api.InvalidError{Message: err.Error()})
	}
	_, err = c.call(ctx, http.MethodPost, "/api/holds/"+string(kind)+"/"+url.PathEscape(name)+"/"+what, nil, body, &h)
	if err != nil {
		return h, fmt.Errorf("%s %s %s: %w", what, kind, name, err)
	}
	return h, nil
}

// ListHolds implements api.Holds.
func (c *remote) ListHolds(ctx context.Context) ([]makegood.Hold, error) {
	var list struct{ Holds []makegood.Hold }
	if _, err := c.call(ctx, http.MethodGet, "/api/holds", nil, nil, &list); err != nil {
		return nil, fmt.Errorf("list holds: %w", err)
	}
	return list.Holds, nil
}
