package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/makegood-dev/makegood"
)

// Holds is how a program pauses agents and workflows as a whole, wherever they are, as Jobs is for jobs. After *RefusedError
// and *InvalidError nothing has changed. After *UnreachableError, or another, it is unknown what became of the request: every
// one may be made again without harm.
type Holds interface {
	// PauseAll pauses an agent or a workflow: nothing new is sent to the agent, or for a job of the workflow, and the jobs that
	// would have to do with it stand still. It is known everywhere five seconds after the answer. One that is paused
	// already stays so, for the reason that it is.
	PauseAll(ctx context.Context, kind makegood.HoldKind, name, reason string) (makegood.Hold, error)
	// ResumeAll resumes it: new work flows at once, and the jobs that stood still go on little by little. One that is not
	// paused is a *RefusedError.
	ResumeAll(ctx context.Context, kind makegood.HoldKind, name string) (makegood.Hold, error)
	// ListHolds returns what is paused, and what is resumed and whose jobs have not all gone on.
	ListHolds(ctx context.Context) ([]makegood.Hold, error)
}

var _ Holds = (*Client)(nil)

// PauseAll is what Holds says.
func (c *Client) PauseAll(ctx context.Context, kind makegood.HoldKind, name, reason string) (makegood.Hold, error) {
	return c.hold(ctx, "pause", kind, name, map[string]string{"reason": reason})
}

// ResumeAll is what Holds says.
func (c *Client) ResumeAll(ctx context.Context, kind makegood.HoldKind, name string) (makegood.Hold, error) {
	return c.hold(ctx, "resume", kind, name, map[string]string{})
}

func (c *Client) hold(ctx context.Context, what string, kind makegood.HoldKind, name string, body any) (h makegood.Hold, err error) {
	if err := kind.Check(name); err != nil {
		return h, fmt.Errorf("%s: %w", what, &InvalidError{Message: err.Error()})
	}
	_, err = c.call(ctx, http.MethodPost, "/api/holds/"+string(kind)+"/"+url.PathEscape(name)+"/"+what, nil, body, &h)
	if err != nil {
		return h, fmt.Errorf("%s %s %s: %w", what, kind, name, err)
	}
	return h, nil
}

// ListHolds is what Holds says.
func (c *Client) ListHolds(ctx context.Context) ([]makegood.Hold, error) {
	var list struct{ Holds []makegood.Hold }
	if _, err := c.call(ctx, http.MethodGet, "/api/holds", nil, nil, &list); err != nil {
		return nil, fmt.Errorf("list holds: %w", err)
	}
	return list.Holds, nil
}
