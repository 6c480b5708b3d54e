package client

import (
	"context"
	"net/url"

	"github.com/makegood-dev/makegood/api"
)

// Quarantine reads a page of the quarantine of an engine in one process. A cursor of "" is the first page. A deployed
// stack has its quarantine in a queue, and refuses this and the other methods for quarantine with an *InvalidError
// that says where to look.
func (c *Client) Quarantine(ctx context.Context, cursor string) (api.QuarantinePage, error) {
	return read[api.QuarantinePage](ctx, c.remote, "quarantine", "/api/quarantine", with(url.Values{}, "cursor", cursor))
}

// QuarantinedMessage reads a message in quarantine, with the expected result of a replay. ErrNoMessage.
func (c *Client) QuarantinedMessage(ctx context.Context, id string) (api.Quarantined, error) {
	return read[api.Quarantined](ctx, c.remote, "message "+id, quarantinedAt(id, ""), nil)
}

// ReplayQuarantined processes a message in quarantine again. The message is deleted after its effects are stored, so
// after an *UnreachableError the call may be repeated; ErrNoMessage may then mean that it was done.
func (c *Client) ReplayQuarantined(ctx context.Context, id string) (api.Replayed, error) {
	return post[api.Replayed](ctx, c.remote, "replay message "+id, quarantinedAt(id, "/replay"), struct{}{})
}

// DropQuarantined deletes a message in quarantine. ErrNoMessage, which may mean that an earlier try did.
func (c *Client) DropQuarantined(ctx context.Context, id string) error {
	_, err := post[struct{}](ctx, c.remote, "drop message "+id, quarantinedAt(id, "/drop"), struct{}{})
	return err
}

// quarantinedAt returns the path of a message in quarantine, or of a request for it.
func quarantinedAt(id, what string) string { return "/api/quarantine/" + url.PathEscape(id) + what }
