package api

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
)

// Facet is a property by which jobs are counted.
type Facet string

// The facets. A job that stands at several steps (Filter.Step) counts with each step, and with the agent of each.
const (
	ByState      Facet = "state"
	ByWorkflow   Facet = "workflow"
	ByDefinition Facet = "definition"
	ByAgent      Facet = "agent"
	ByTenant     Facet = "tenant"
	ByStep       Facet = "step"
	// ByReason is the kind of the error that stopped a job in Error.
	ByReason Facet = "reason"
)

// Group is a group of jobs that are alike in the facets of the count.
type Group struct {
	// Values are the group's values of the facets, in the order in which the facets were asked for; empty: none.
	Values []string `json:"values"`
	Jobs   int      `json:"jobs"`
	// Since is when the first job of the group stopped: its step failed, or it was paused; where that time is not known,
	// the job's creation counts. Example is the id of that job.
	Since   time.Time `json:"since"`
	Example string    `json:"example"`
	// Latest is when the last job of the group stopped, LatestExample its id, and Reason its reason, which may be empty.
	Latest        time.Time `json:"latest"`
	LatestExample string    `json:"latestExample"`
	Reason        string    `json:"reason"`
	// Counted is the number of jobs with a known cost on AWS, and Spent the sum of these costs.
	Counted int            `json:"counted"`
	Spent   makegood.Spent `json:"spent"`
	// Hours counts the jobs that stopped in each of the last 12 hours, the oldest first.
	Hours []int `json:"hours"`
}

// Groups is the result of a count.
type Groups struct {
	Groups []Group `json:"groups"`
	// Jobs is the number of jobs counted.
	Jobs int `json:"jobs"`
	// Cursor is where the count continues; empty: all jobs are counted.
	Cursor string `json:"cursor"`
	// Scanned is as in Page.
	Scanned bool `json:"scanned"`
}

// CountAll counts all jobs of a list, however many requests that takes. The count is not of one moment: a job that
// changes meanwhile is counted in its old or its new state.
func CountAll(ctx context.Context, jobs Reader, filter Filter, by ...Facet) (Groups, error) {
	all := Groups{Groups: []Group{}}
	for {
		more, err := jobs.Count(ctx, filter, by, all.Cursor)
		if err != nil {
			return Groups{}, err
		}
		if all.merge(more); all.Cursor == "" {
			return all, nil
		}
	}
}

// Put adds a group of jobs to the group that has the same values.
func (g *Groups) Put(more Group) {
	i, found := slices.BinarySearchFunc(g.Groups, more.Values, func(have Group, values []string) int { return slices.Compare(have.Values, values) })
	if !found {
		g.Groups = slices.Insert(g.Groups, i, more)
		return
	}
	have := &g.Groups[i]
	have.Jobs, have.Counted, have.Spent = have.Jobs+more.Jobs, have.Counted+more.Counted, have.Spent.Plus(more.Spent)
	if cmp.Or(more.Since.Compare(have.Since), strings.Compare(more.Example, have.Example)) < 0 {
		have.Since, have.Example = more.Since, more.Example
	}
	if cmp.Or(more.Latest.Compare(have.Latest), strings.Compare(more.LatestExample, have.LatestExample)) > 0 {
		have.Latest, have.LatestExample, have.Reason = more.Latest, more.LatestExample, more.Reason
	}
	for i := range min(len(have.Hours), len(more.Hours)) {
		have.Hours[i] += more.Hours[i]
	}
}

// merge adds the groups that were counted after these.
func (g *Groups) merge(more Groups) {
	for _, group := range more.Groups {
		g.Put(group)
	}
	g.Jobs, g.Cursor, g.Scanned = g.Jobs+more.Jobs, more.Cursor, g.Scanned || more.Scanned
}
