package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/makegood-dev/makegood/api"
)

// Quarantine reads a page of what an engine in one process has in quarantine. A cursor of "" is the first page. A deployed stack has its own
// in a queue, and refuses this and the others of quarantine with an *InvalidError that says where to look.
func (c *Client) Quarantine(ctx context.Context, cursor string) (page api.QuarantinePage, err error) {
	query := url.Values{}
	if cursor != "" {
		query.Set("cursor", cursor)
	}
	if _, err := c.remote.call(ctx, http.MethodGet, "/api/quarantine", query, nil, &page); err != nil {
		return page, fmt.Errorf("quarantine: %w", err)
	}
	return page, nil
}

// QuarantinedMessage reads a message in quarantine, and what a replay would make of it. ErrNoMessage.
func (c *Client) QuarantinedMessage(ctx context.Context, id string) (q api.Quarantined, err error) {
	if _, err := c.remote.call(ctx, http.MethodGet, quarantinedAt(id, ""), nil, nil, &q); err != nil {
		return q, fmt.Errorf("message %s: %w", id, err)
	}
	return q, nil
}

// ReplayQuarantined lets a message in quarantine do what it was sent for. It is deleted after what it led to is stored, so after
// an *UnreachableError it may be asked for again; ErrNoMessage may then mean that it was done.
func (c *Client) ReplayQuarantined(ctx context.Context, id string) (r api.Replayed, err error) {
	if _, err := c.remote.call(ctx, http.MethodPost, quarantinedAt(id, "/replay"), nil, struct{}{}, &r); err != nil {
		return r, fmt.Errorf("replay message %s: %w", id, err)
	}
	return r, nil
}

// DropQuarantined deletes a message in quarantine. ErrNoMessage, which may mean that an earlier try did.
func (c *Client) DropQuarantined(ctx context.Context, id string) error {
	if _, err := c.remote.call(ctx, http.MethodPost, quarantinedAt(id, "/drop"), nil, struct{}{}, &struct{}{}); err != nil {
		return fmt.Errorf("drop message %s: %w", id, err)
	}
	return nil
}

// quarantinedAt is where a message in quarantine is, or what can be asked of it.
func quarantinedAt(id, what string) string { return "/api/quarantine/" + url.PathEscape(id) + what }
