package page

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/client"
)

const (
	// firstErrors, firstOpen and firstEnded are how many jobs the first view shows of each.
	firstErrors, firstOpen, firstEnded = 5, 30, 20
	// allDue is as far ahead as any key can be: what is due within it is all that has not ended, in the order of its keys.
	allDue = 10 * 366 * 24 * time.Hour
	// soon is what is told of before it is late.
	soon = time.Hour
)

func jobsViews() []view {
	return []view{
		{pattern: "GET /{$}", nav: "Jobs", title: "Jobs", template: "jobs.html", load: (*Page).jobs, regions: []string{"lead", "states", "jobs"}},
	}
}

// jobsData is what the list of jobs shows.
type jobsData struct {
	Search    search
	States    []stateCount
	All       int
	More      bool
	Workflows []client.Workflow
	// Errors, Late and Soon are how many need somebody, or will.
	Errors, Late, Soon int
	OldestError        *time.Time
	Sections           []section
	Missing            string
}

// stateCount is how many jobs are in a state.
type stateCount struct {
	mark
	Jobs    int
	Current bool
}

// section is a part of the list.
type section struct {
	Title, Says string
	Rows        []row
	// All leads to all of them; empty: they are here. Older leads to the next page.
	All, Older string
	Scanned    bool
}

// row is a job in the list.
type row struct {
	client.Listed
	mark
	Now time.Time
}

// Late reports whether something of it is overdue.
func (r row) Late() bool {
	return r.CompleteBy != nil && !r.ProcessState.Finished() && r.CompleteBy.Before(r.Now)
}

// Ended reports whether nothing moves it any more.
func (r row) Ended() bool { return r.ProcessState.Finished() }

// Due is how long until something of it is due, or since when it is late.
func (r row) Due() time.Duration { return r.CompleteBy.Sub(r.Now).Abs() }

func rowOf(l client.Listed, now time.Time) row {
	return row{Listed: l, mark: markOf(l.ProcessState, l.Paused, false), Now: now}
}

// jobs loads the list of jobs: of all, what needs somebody first; of a search, what was found.
func (p *Page) jobs(r *http.Request) (any, error) {
	now := p.Now().UTC()
	wanted, err := readSearch(r, now)
	if err != nil {
		return nil, err
	}
	d := jobsData{Search: wanted}
	if wanted.ID != "" {
		_, err := p.client.Look(r.Context(), wanted.ID)
		if err == nil {
			return goTo("jobs/" + wanted.ID), nil
		}
		if !errors.Is(err, client.ErrNotFound) {
			return nil, err
		}
		d.Missing = wanted.ID
	}
	if d.Workflows, err = p.client.Workflows(r.Context()); err != nil {
		return nil, err
	}
	if err := p.countStates(r.Context(), &d); err != nil {
		return nil, err
	}
	if wanted.Any() || wanted.Cursor != "" {
		d.Sections, err = p.found(r.Context(), wanted, now)
	} else {
		d.Sections, err = p.overview(r.Context(), d, now)
	}
	return d, err
}

// countStates counts the jobs by state, and those that need somebody.
func (p *Page) countStates(ctx context.Context, d *jobsData) error {
	groups, err := p.client.Count(ctx, client.Filter{}, []client.Facet{client.ByState}, "")
	if err != nil {
		return err
	}
	counts := map[string]client.Group{}
	for _, g := range groups.Groups {
		counts[g.Values[0]] = g
	}
	d.All, d.More = groups.Jobs, groups.Cursor != ""
	for _, state := range makegood.ProcessStates() {
		d.States = append(d.States, stateCount{mark: markOf(state, false, false), Jobs: counts[string(state)].Jobs, Current: d.Search.Filter.State == state})
	}
	if wrong := counts[string(makegood.Error)]; wrong.Jobs > 0 {
		d.Errors, d.OldestError = wrong.Jobs, &wrong.Since
	}
	return nil
}

// found returns a page of what was found.
func (p *Page) found(ctx context.Context, s search, now time.Time) ([]section, error) {
	page, err := p.client.Page(ctx, s.Filter, s.Cursor)
	if err != nil {
		return nil, err
	}
	found := section{Title: "Found", Rows: rowsOf(page.Jobs, now), Scanned: page.Scanned}
	if page.Cursor != "" {
		found.Older = s.With(page.Cursor)
	}
	return []section{found}, nil
}

// overview returns what the first view shows: what waits for a person, what is under way, what has ended.
func (p *Page) overview(ctx context.Context, d jobsData, now time.Time) ([]section, error) {
	page, err := p.client.Page(ctx, client.Filter{DueWithin: allDue}, "")
	if err != nil {
		return nil, err
	}
	open := section{Title: "Not ended", Says: "what is late first, then what is due", Rows: rowsOf(page.Jobs, now)}
	ended := section{Title: "Ended", Says: "newest first"}
	for _, state := range makegood.ProcessStates() {
		if !state.Finished() {
			continue
		}
		page, err := p.client.Page(ctx, client.Filter{State: state}, "")
		if err != nil {
			return nil, err
		}
		ended.Rows = append(ended.Rows, rowsOf(page.Jobs, now)...)
	}
	return []section{open, ended}, nil
}

func rowsOf(jobs []client.Listed, now time.Time) []row {
	rows := make([]row, len(jobs))
	for i, l := range jobs {
		rows[i] = rowOf(l, now)
	}
	return rows
}
