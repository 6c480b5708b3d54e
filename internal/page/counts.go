package page

import (
	"context"
	"slices"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/client"
)

// counts are how many jobs there are.
type counts struct {
	States []stateCount
	// All is how many there are; More: at least, they were not all counted.
	All  int
	More bool
	// Errors wait for a person, the oldest since Oldest; Late are late, and Soon will be within the hour.
	Errors, Late, Soon int
	Oldest             *time.Time
}

// stateCount is how many jobs are in a state.
type stateCount struct {
	Mark  mark
	Jobs  int
	Known bool
	// Current: the list shows these alone.
	Current bool
}

// counts counts the jobs by state, and those that need somebody or will.
func (p *Page) counts(ctx context.Context, shown client.Filter) (c counts, err error) {
	groups, err := p.client.Count(ctx, client.Filter{}, []client.Facet{client.ByState}, "")
	if err != nil {
		return c, err
	}
	c.All, c.More = groups.Jobs, groups.Cursor != ""
	for _, state := range makegood.ProcessStates() {
		i := slices.IndexFunc(groups.Groups, func(g client.Group) bool { return g.Values[0] == string(state) })
		counted := stateCount{Mark: markOf(state, false, false), Known: true, Current: shown.State == state}
		if i >= 0 {
			counted.Jobs = groups.Groups[i].Jobs
		}
		if state == makegood.Error && i >= 0 {
			c.Errors, c.Oldest = counted.Jobs, &groups.Groups[i].Since
		}
		c.States = append(c.States, counted)
	}
	return c, nil
}
