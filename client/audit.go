package client

import (
	"context"
	"iter"
	"net/url"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
)

// Audit checks all jobs, and returns its findings page by page, as its caller reads them. It reads all that is stored.
// An error ends it.
func (c *Client) Audit(ctx context.Context) iter.Seq2[api.AuditPage, error] {
	return func(yield func(api.AuditPage, error) bool) {
		for query := (url.Values{}); ; {
			page, err := read[api.AuditPage](ctx, c.remote, "audit", "/api/audit", query)
			if !yield(page, err) || page.Cursor == "" {
				return
			}
			query.Set("cursor", page.Cursor)
		}
	}
}

// Wake has the Scheduler look at a job that an audit found: it does the work that is due and repairs the index entry.
// Wake returns the job as stored then, without payloads; a job in order stays as it is. Errors: ErrNotFound,
// *InvalidError, *UnreachableError; after the last the call may be repeated without harm.
func (c *Client) Wake(ctx context.Context, id string) (makegood.Job, error) {
	return post[makegood.Job](ctx, c.remote, "wake job "+id, pathOf(id)+"/wake", struct{}{})
}
