package client

import (
	"context"
	"net/url"
	"strings"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/protocol"
)

// Totals returns the number of jobs in each state, without reading the jobs. A deployed stack does not know it: an
// *InvalidError of status 404.
func (c *Client) Totals(ctx context.Context) (map[makegood.ProcessState]int, error) {
	all, err := read[struct {
		Totals map[makegood.ProcessState]int
	}](ctx, c.remote, "totals of jobs", "/api/totals", nil)
	return all.Totals, err
}

// Count counts the jobs of a list by facets, as many as one request reaches; Groups.Cursor is the cursor of the next.
// Cursors and filters have the rules of Page.
func (c *remote) Count(ctx context.Context, filter api.Filter, by []api.Facet, cursor string) (api.Groups, error) {
	query := protocol.FilterValues(filter)
	query.Set("by", joined(by))
	return c.count(ctx, "/api/counts", query, cursor)
}

// Errors counts the jobs in Error by their workflow, the step at which they stopped, and the kind of its error, in
// this order, as many as one request reaches.
func (c *Client) Errors(ctx context.Context, cursor string) (api.Groups, error) {
	return c.remote.count(ctx, "/api/errors", url.Values{}, cursor)
}

func (c *remote) count(ctx context.Context, path string, query url.Values, cursor string) (api.Groups, error) {
	return read[api.Groups](ctx, c, "count jobs", path, with(query, "cursor", cursor))
}

func joined(by []api.Facet) string {
	text := make([]string, len(by))
	for i, facet := range by {
		text[i] = string(facet)
	}
	return strings.Join(text, ",")
}
