package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/makegood-dev/makegood/api"
)

// Quarantine reads a page of the quarantine of an engine in one process. A cursor of "" is the first page. A deployed
// stack has its quarantine in a queue, and refuses this and the other methods for quarantine with an *InvalidError
// that says where to look.
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

// QuarantinedMessage reads a message in quarantine, with the expected result of a replay. ErrNoMessage.
func (c *Client) QuarantinedMessage(ctx context.Context, id string) (q api.Quarantined, err error) {
	if _, err := c.remote.call(ctx, http.MethodGet, quarantinedAt(id, ""), nil, nil, &q); err != nil {
		return q, fmt.Errorf("message %s: %w", id, err)
	}
	return q, nil
}

// ReplayQuarantined processes a message in quarantine again. The message is deleted after its effects are stored, so
// after an *UnreachableError the call may be repeated; ErrNoMessage may then mean that it was done.
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

// quarantinedAt returns the path of a message in quarantine, or of a request for it.
func quarantinedAt(id, what string) string { return "/api/quarantine/" + url.PathEscape(id) + what }
