package client

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"time"

	"github.com/makegood-dev/makegood"
)

// AuditPage is what an audit found on a page of all jobs.
type AuditPage struct {
	// Audited is how many jobs were looked at.
	Audited int     `json:"audited"`
	Strays  []Stray `json:"strays"`
	// Cursor is that of the next page; empty at the end.
	Cursor string `json:"cursor"`
}

// Stray is a job of which the index does not say what it should. Empty ProcessState: its item is damaged, or no job.
type Stray struct {
	Job          string                `json:"job"`
	ProcessState makegood.ProcessState `json:"processState,omitempty"`
	CompleteBy   *time.Time            `json:"completeBy"`
	// Why says what is wrong.
	Why string `json:"why"`
}

// Audit looks at all jobs, and returns what it found page by page, as far as its caller reads on. It reads all that is
// stored. An error ends it.
func (c *Client) Audit(ctx context.Context) iter.Seq2[AuditPage, error] {
	return func(yield func(AuditPage, error) bool) {
		for query := (url.Values{}); ; {
			var page AuditPage
			if _, err := c.call(ctx, http.MethodGet, "/api/audit", query, nil, &page); err != nil {
				yield(AuditPage{}, fmt.Errorf("audit: %w", err))
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
	if _, err := c.call(ctx, http.MethodPost, pathOf(id)+"/wake", nil, struct{}{}, &job); err != nil {
		return job, fmt.Errorf("wake job %s: %w", id, err)
	}
	return job, nil
}
