package view

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/protocol"
	"github.com/makegood-dev/makegood/internal/store"
)

const (
	// groupPage is how many jobs are read at a time to be counted.
	groupPage = 1000
	// groupTime is when a count that goes on is answered with a cursor: well within what a request may take.
	groupTime = 3 * time.Second
	// maxGroups is how many groups an answer may have before it is given with a cursor.
	maxGroups = 5000
)

// ErrorFacets are what the jobs that wait for a person are counted by.
func ErrorFacets() []api.Facet {
	return []api.Facet{api.ByWorkflow, api.ByStep, api.ByReason}
}

// Groups counts the jobs of a list by facets, until its end or for some seconds. A filter that can match no job,
// unknown facets, and a cursor that no page of such a list gave, are a *api.InvalidError.
func Groups(ctx context.Context, jobs store.Lister, filter api.Filter, by []api.Facet, cursor string) (api.Groups, error) {
	if err := errors.Join(protocol.CheckFilter(filter), protocol.CheckFacets(by)); err != nil {
		return api.Groups{}, fmt.Errorf("count jobs: %w", err)
	}
	groups := api.Groups{Groups: []api.Group{}}
	begun := time.Now()
	for {
		page, err := jobs.ListJobs(ctx, Filter(filter, begun), cursor, groupPage)
		if errors.Is(err, store.ErrNotFound) {
			return groups, fmt.Errorf("count jobs: %w", &api.InvalidError{Message: fmt.Sprintf("the cursor %.40q is of no page of this list", cursor)})
		}
		if err != nil {
			return groups, err
		}
		for _, l := range page.Jobs {
			count(&groups, l, by, begun)
		}
		groups.Jobs += len(page.Jobs)
		groups.Scanned = groups.Scanned || page.Scanned
		if cursor = page.Cursor; cursor == "" || len(groups.Groups) > maxGroups || time.Since(begun) > groupTime {
			groups.Cursor = cursor
			return groups, nil
		}
	}
}

// count counts a job with each of the values that it has.
func count(groups *api.Groups, l store.Listed, by []api.Facet, now time.Time) {
	since := l.StoppedAt
	if since.IsZero() {
		since = l.CreatedAt
	}
	combined := [][]string{nil}
	for _, facet := range by {
		var longer [][]string
		for _, values := range combined {
			for _, value := range valuesOf(l, facet) {
				longer = append(longer, append(values[:len(values):len(values)], value))
			}
		}
		combined = longer
	}
	var spent makegood.Spent
	counted := 0
	if s := Spent(l.Job.Spent); s != nil {
		counted, spent = 1, *s
	}
	for _, values := range combined {
		groups.Put(api.Group{
			Counted: counted, Spent: spent,
			Values: values, Jobs: 1, Since: since.UTC(), Example: l.ID, Latest: since.UTC(), LatestExample: l.ID, Reason: l.Reason, Hours: hoursOf(l.StoppedAt, now),
		})
	}
}

// hoursOf counts a job in the hour in which it stopped, if that is one of the last.
func hoursOf(stopped, now time.Time) []int {
	hours := make([]int, protocol.GroupHours)
	if ago := now.Sub(stopped); !stopped.IsZero() && ago >= 0 && ago < protocol.GroupHours*time.Hour {
		hours[protocol.GroupHours-1-int(ago/time.Hour)] = 1
	}
	return hours
}

// valuesOf returns what a job is in a facet: one value at least, which may be empty.
func valuesOf(l store.Listed, facet api.Facet) []string {
	var many []string
	switch facet {
	case api.ByState:
		return []string{string(l.ProcessState)}
	case api.ByWorkflow:
		return []string{l.Workflow}
	case api.ByDefinition:
		return []string{l.Definition}
	case api.ByTenant:
		return []string{l.Tenant}
	case api.ByReason:
		return []string{l.Kind}
	case api.ByAgent:
		many = l.Agents
	case api.ByStep:
		many = l.Steps()
	}
	if len(many) == 0 {
		return []string{""}
	}
	return many
}
