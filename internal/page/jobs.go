package page

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/protocol"
)

const (
	// firstErrors, firstOpen and firstEnded are how many jobs of each kind the first view shows, and foundRows is the size
	// of a page of a search.
	firstErrors, firstOpen, firstEnded = 5, 25, 15
	foundRows                          = 40
	// foundPages is how many pages of the API one view of a search reads until its rows are full.
	foundPages = 10
	// allDue reaches further ahead than any key: a list of everything due within it has all open jobs, in the order of
	// their keys.
	allDue = 10 * 366 * 24 * time.Hour
)

func jobsViews() []view {
	return []view{
		{pattern: "GET /{$}", nav: "Jobs", title: "Jobs", template: "jobs.html", load: (*Page).jobs, regions: []string{"lead", "states", "jobs"}},
	}
}

// jobsData is the data of the list of jobs.
type jobsData struct {
	Search    search
	Counts    counts
	Workflows []api.Workflow
	Holds     []makegood.Hold
	Sections  []section
	// EndedAside: ended jobs are shown on request only, since listing them reads everything.
	EndedAside bool
}

// Empty reports whether there are no jobs to show.
func (d jobsData) Empty() bool {
	return !slices.ContainsFunc(d.Sections, func(s section) bool { return len(s.Rows) > 0 })
}

// Asks are the verbs that the bar below the list has for the selected jobs.
func (jobsData) Asks() []order { return bulkVerbs() }

// ByID reports whether the rows were found by the beginning of their ids.
func (d jobsData) ByID() bool {
	return len(d.Sections) > 0 && d.Sections[0].ID == "found" && d.Sections[0].byID
}

// Older is the query for the next results; empty: there are none.
func (d jobsData) Older() template.URL {
	if len(d.Sections) == 0 {
		return ""
	}
	return d.Sections[0].Older
}

// section is a part of the list.
type section struct {
	ID, Title, Says string
	Rows            []row
	// All is the query for all jobs of the section, Older for the next page; empty: there is none.
	All, Older template.URL
	Scanned    bool
	// byID: its jobs were found by the beginning of their ids.
	byID bool
}

// jobs loads the list of jobs: without a search, those that need a person first; with one, its results.
func (p *Page) jobs(r *http.Request) (any, error) {
	now, ctx := p.Now().UTC(), r.Context()
	if id := strings.TrimSpace(r.URL.Query().Get("q")); domain.CheckJobID(id) == nil {
		_, err := p.Jobs.Look(ctx, id)
		if err == nil {
			return goTo("jobs/" + id), nil
		}
		if !errors.Is(err, api.ErrNotFound) {
			return nil, err
		}
	}
	wanted, err := readSearch(r, now)
	if err != nil {
		return nil, err
	}
	d := jobsData{Search: wanted, EndedAside: p.Scans}
	if d.Workflows, err = p.Jobs.Workflows(ctx); err != nil {
		return nil, err
	}
	if d.Holds, err = p.holds(ctx); err != nil {
		return nil, err
	}
	d.Counts = p.counts(ctx, wanted.Filter)
	switch {
	case len(wanted.Free) > 0 && !p.Scans:
		d.Sections, err = p.foundByWords(ctx, wanted, now)
	case len(wanted.Free) > 0:
		// No index serves these: the view offers the read with its cost, and does not start it.
	case wanted.Any() || wanted.Cursor != "":
		d.Sections, err = p.found(ctx, wanted, now)
	default:
		d.Sections, err = p.overview(ctx, now)
	}
	if err == nil {
		d.Sections, err = p.keep(ctx, d.Sections, r.URL.Query()["row"], now)
	}
	return d, err
}

// holds returns the pauses of whole agents and workflows that are not resumed, and no limits; none if they cannot be
// read.
func (p *Page) holds(ctx context.Context) ([]makegood.Hold, error) {
	holds, err := p.Jobs.ListHolds(ctx)
	if invalid, is := errors.AsType[*api.InvalidError](err); is && invalid.Status == http.StatusNotFound {
		return nil, nil
	}
	return slices.DeleteFunc(holds, func(h makegood.Hold) bool { return h.ReleasedAt != nil || h.Kind == makegood.HoldLimit }), err
}

// foundByWords returns the results for free words: for one word the jobs with that id prefix; for several, or if no id
// matches, the jobs with all words in their reason.
func (p *Page) foundByWords(ctx context.Context, s search, now time.Time) ([]section, error) {
	if domain.CheckJobID(s.Free[0]) == nil && len(s.Free) == 1 && s.Filter.IDPrefix == "" {
		sections, err := p.found(ctx, s.by("id-prefix"), now)
		if err != nil || len(sections[0].Rows) > 0 {
			return sections, err
		}
	}
	return p.found(ctx, s.by("words"), now)
}

// found returns a page of results. Where no index serves the search, it reads on until the rows are full, or it has
// read foundPages pages.
func (p *Page) found(ctx context.Context, s search, now time.Time) (_ []section, err error) {
	if s.Filter, err = protocol.ReadFilter(s.values); err != nil {
		return nil, err
	}
	found, cursor := section{ID: "found", Title: "Found", Says: s.says(), byID: s.Filter.IDPrefix != ""}, s.Cursor
	for range foundPages {
		page, err := p.Jobs.Details(ctx, s.Filter, cursor, foundRows-len(found.Rows))
		if err != nil {
			return nil, err
		}
		found.Rows = append(found.Rows, rowsOf(page.Jobs, now)...)
		found.Scanned, cursor = page.Scanned, page.Cursor
		if cursor == "" || len(found.Rows) >= foundRows || p.Scans {
			break
		}
	}
	if cursor != "" {
		found.Older = s.With(cursor)
	}
	return []section{found}, nil
}

// says is the field that a word searched: ids, or reasons.
func (s search) says() string {
	switch {
	case s.Filter.Words != "":
		return fmt.Sprintf("in reasons: %s", s.Filter.Words)
	case s.Filter.IDPrefix != "":
		return fmt.Sprintf("ids that begin with %s", s.Filter.IDPrefix)
	}
	return ""
}

// overview returns the first view: jobs that wait for a person, open jobs, ended jobs.
func (p *Page) overview(ctx context.Context, now time.Time) ([]section, error) {
	errored, err := p.Jobs.Details(ctx, api.Filter{State: makegood.JobError}, "", firstErrors)
	if err != nil {
		return nil, err
	}
	due, err := p.Jobs.Details(ctx, api.Filter{DueWithin: allDue, Roots: true}, "", firstOpen+firstErrors)
	if err != nil {
		return nil, err
	}
	sections := []section{
		{ID: "errored", Title: "Waits for a person", Says: "the newest", Rows: rowsOf(errored.Jobs, now), All: more(errored, "state=Error")},
		{ID: "open", Title: "Not ended", Says: "the late ones first, then those due next", Rows: rowsOf(due.Jobs, now), All: more(due, template.URL("due-within="+allDue.String()+"&roots=true"))},
	}
	// Those in Error have a key, too, but stand above.
	open := slices.DeleteFunc(sections[1].Rows, func(r row) bool { return r.Mark.Shape == "error" })
	slices.SortStableFunc(open, func(a, b row) int { return boolRank(!a.Late) - boolRank(!b.Late) })
	sections[1].Rows = open[:min(len(open), firstOpen)]
	if !p.Scans {
		ended, err := p.endedLast(ctx, now)
		if err != nil {
			return nil, err
		}
		sections = append(sections, ended)
	}
	return slices.DeleteFunc(sections, func(s section) bool { return len(s.Rows) == 0 }), nil
}

// more is the query that leads on, where a page is not all.
func more(page api.Page, query template.URL) template.URL {
	if page.Cursor == "" {
		return ""
	}
	return query
}

// endedLast returns the youngest of the ended jobs. Each ended state has an index of its own; there is none for all.
func (p *Page) endedLast(ctx context.Context, now time.Time) (section, error) {
	ended := section{ID: "ended", Title: "Ended", Says: "newest first"}
	for _, state := range []makegood.ProcessState{makegood.JobProcessed, makegood.JobUndone, makegood.JobCancelled} {
		page, err := p.Jobs.Details(ctx, api.Filter{State: state, Roots: true}, "", firstEnded)
		if err != nil {
			return ended, err
		}
		ended.Rows = append(ended.Rows, rowsOf(page.Jobs, now)...)
	}
	slices.SortStableFunc(ended.Rows, func(a, b row) int { return b.Started.Compare(a.Started) })
	ended.Rows = ended.Rows[:min(len(ended.Rows), firstEnded)]
	return ended, nil
}

// keep adds those jobs that a browser shows and the list shows no more, so that their rows change where they are.
func (p *Page) keep(ctx context.Context, sections []section, ids []string, now time.Time) ([]section, error) {
	shown := map[string]bool{}
	for _, s := range sections {
		for _, r := range s.Rows {
			shown[r.ID] = true
		}
	}
	kept := section{ID: "kept"}
	for _, id := range ids {
		if shown[id] {
			continue
		}
		shown[id] = true
		j, err := p.Jobs.Look(ctx, id)
		if errors.Is(err, api.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		r := rowOf(api.Listed{Job: &j, Steps: failedSteps(j)}, now)
		r.Kept = true
		kept.Rows = append(kept.Rows, r)
	}
	if len(kept.Rows) > 0 {
		sections = append(sections, kept)
	}
	return sections, nil
}

// failedSteps names the steps that have failed in the direction in which a job goes.
func failedSteps(j makegood.Job) []string {
	var failed []string
	for _, a := range activitiesOf(j) {
		if a.State == makegood.StepFailed && a.Undo == (j.Desired != makegood.JobProcessed) {
			failed = append(failed, a.Name)
		}
	}
	return failed
}

func rowsOf(jobs []api.Listed, now time.Time) []row {
	rows := make([]row, len(jobs))
	for i, l := range jobs {
		rows[i] = rowOf(l, now)
	}
	return rows
}
