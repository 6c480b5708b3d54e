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

// Audit looks at all jobs, and returns what it found page by page, as far as its caller reads on. It reads all that is
// stored. An error ends it.
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

// Wake puts a job back that an audit found, and returns it as it is stored then, without payloads; one that is as it should
// be is left alone. Errors: ErrNotFound, *InvalidError, *UnreachableError, after which it is asked again without harm.
func (c *Client) Wake(ctx context.Context, id string) (job makegood.Job, err error) {
	if _, err := c.remote.call(ctx, http.MethodPost, pathOf(id)+"/wake", nil, struct{}{}, &job); err != nil {
		return job, fmt.Errorf("wake job %s: %w", id, err)
	}
	return job, nil
}
