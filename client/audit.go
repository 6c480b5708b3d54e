package client

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/url"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
)

// Audit checks all jobs, and returns its findings page by page, as its caller reads them. It reads all that is stored.
// An error ends it.
func (c *Client) Audit(ctx context.Context) iter.Seq2[api.AuditPage, error] {
	return func(yield func(api.AuditPage, error) bool) {
		for query := (url.Values{}); ; {
			var page api.AuditPage
			if _, err := c.remote.call(ctx, http.MethodGet, "/api/audit", query, nil, &page); err != nil {
				yield(api.AuditPage{}, fmt.Errorf("audit: %w", err))
				return
			}
			if !yield(page, nil) || page.Cursor == "" {
				return
			}
			query.Set("cursor", page.Cursor)
		}
	}
}

// Wake has the Scheduler look at a job that an audit found: it does the work that is due and repairs the index entry.
// Wake returns the job as stored then, without payloads; a job in order stays as it is. Errors: ErrNotFound,
// *InvalidError, *UnreachableError; after the last the call may be repeated without harm.
func (c *Client) Wake(ctx context.Context, id string) (job makegood.Job, err error) {
	if _, err := c.remote.call(ctx, http.MethodPost, pathOf(id)+"/wake", nil, struct{}{}, &job); err != nil {
		return job, fmt.Errorf("wake job %s: %w", id, err)
	}
	return job, nil
}
