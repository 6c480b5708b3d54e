package page

import (
	"cmp"
	"context"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
)

const (
	// maxGroups is how many groups are shown; the first maxLooked get a closer look.
	maxGroups = 100
	maxLooked = 30
	// lookedAtOnce is how many jobs are looked at at once.
	lookedAtOnce = 8
	// repairShown is how long a repair that has ended is shown in the inbox.
	repairShown = time.Hour
)

func inboxViews() []view {
	return []view{
		{pattern: "GET /errors", nav: "Errors", title: "Waits for a person", template: "errors.html", load: (*Page).inbox, regions: []string{"inbox-lead", "questions", "groups", "repairs"}},
		{pattern: "GET /repair", nav: "Errors", title: "Dry run", template: "repair.html", load: (*Page).dryRun},
		{pattern: "POST /repairs", load: (*Page).beginRepair},
		{pattern: "GET /repairs/{name}", nav: "Errors", title: "Repair", template: "progress.html", load: (*Page).repairing, regions: []string{"progress"}},
		{pattern: "POST /repairs/{name}/stop", load: (*Page).stopRepair},
	}
}

// inboxData is the list of everything that waits for a person.
type inboxData struct {
	Groups []inboxGroup
	// Asked are the questions that wait for an answer, by workflow and step.
	Asked []askedGroup
	// Jobs is how many wait, Shown how many of their groups are shown.
	Jobs, Found int
	Oldest      *time.Time
	// AsOf is when they were counted; zero: just now.
	AsOf time.Time
	// Words is the search, and By the order.
	Words, By string
	Orders    []order
	Repairs   []repairView
	Aside     aside
}

// order is an order of the groups.
type order struct{ Value, Says string }

var inboxOrders = []order{{"newest", "Newest trouble first"}, {"most", "Most jobs first"}, {"oldest", "Oldest first"}}

// aside has the messages in quarantine.
type aside struct {
	// Messages are the first messages. More: there are more. Elsewhere: they are not here, and how to see them.
	Messages  []api.PutAway
	More      bool
	Elsewhere string
}

// inboxGroup is jobs that wait for the same reason.
type inboxGroup struct {
	api.Group
	Workflow, Step, Kind string
	// Undo: it is the undo of the step that failed. Final: its agent said that trying again gives the same.
	Undo, Final bool
	// Definition is the newest's, where it is not the current one any more; Same is the current one.
	Definition string
	// Hold is the pause of its agent or its workflow; nil: none.
	Hold *makegood.Hold
	// Repair is the repair under way; nil: none.
	Repair *repairView
}

// ID is the id of its element.
func (g inboxGroup) ID() string { return "g-" + strings.Join(g.Values, "--") }

// What describes in a few words where it stopped.
func (g inboxGroup) What() string {
	step := g.Step
	switch {
	case step == "":
		step = "no step"
	case g.Undo:
		step = "undo of " + step
	}
	if g.Kind == "" {
		return g.Workflow + " · " + step
	}
	return g.Workflow + " · " + step + " · " + g.Kind
}

// Advice explains the group and the possible next steps, in a sentence.
func (g inboxGroup) Advice() string {
	switch {
	case g.Step == "":
		return "It stopped for another reason than a step: look at one, and say how it goes on."
	case g.Undo && g.Final:
		return "Refused for good: trying again gives the same answer. When a person has dealt with it, settle the undo."
	case g.Undo:
		return "It cannot be undone by itself. Resubmitted when the cause is mended, it goes on undoing; or settle the undo when a person has dealt with it."
	case g.Final:
		return "Refused for good: trying again gives the same answer. Mend the cause first, or settle the step."
	}
	return "Its attempts are used up. Resubmitted, it goes on from what failed, forwards, under the same idempotency key."
}

// Settles reports whether settling is proposed.
func (g inboxGroup) Settles() bool { return g.Step != "" && g.Final }

// See is the query of the list of its jobs.
func (g inboxGroup) See() template.URL { return encoded(g.choice("").filter()) }

// Try is the query of the dry run of a verb on its jobs.
func (g inboxGroup) Try(ask string) template.URL { return encoded(g.choice(ask).query()) }

func (g inboxGroup) choice(ask string) choice {
	return choice{
		Ask: ask, Filter: api.Filter{State: makegood.JobError, Workflow: g.Workflow, Step: g.Step, ReasonKind: g.Kind},
		NoStep: g.Step == "", NoKind: g.Kind == "", Step: g.Step, Undo: g.Undo,
	}
}

// TryCurrent is the query of a resubmit by the current definition.
func (g inboxGroup) TryCurrent() template.URL {
	c := g.choice(string(makegood.VerbResubmit))
	c.Current = true
	return encoded(c.query())
}

// encoded is a query for an address; a template does not escape it.
func encoded(query url.Values) template.URL { return template.URL(query.Encode()) }

// Bars are the bars of the last hours: their heights, in pixels of 20.
func (g inboxGroup) Bars() []bar {
	return barsOf(g.Hours)
}

// bar is one of a small chart.
type bar struct {
	X, Y, Height int
	Any          bool
}

func barsOf(counts []int) []bar {
	const width, height, least = 6, 20, 3
	most := 1
	for _, n := range counts {
		most = max(most, n)
	}
	bars := make([]bar, len(counts))
	for i, n := range counts {
		h := max(least, n*height/most)
		bars[i] = bar{X: i * width, Y: height - h, Height: h, Any: n > 0}
	}
	return bars
}

// inbox loads everything that waits for a person.
func (p *Page) inbox(r *http.Request) (any, error) {
	d := inboxData{Words: strings.TrimSpace(r.FormValue("q")), By: r.FormValue("by"), Orders: inboxOrders}
	all, asOf, err := p.alike(r.Context(), api.Filter{State: makegood.JobError}, api.ByWorkflow, api.ByStep, api.ByReason)
	if err != nil {
		return nil, err
	}
	d.AsOf = asOf
	d.Jobs = all.Jobs
	for _, g := range all.Groups {
		if d.Oldest == nil || g.Since.Before(*d.Oldest) {
			d.Oldest = &g.Since
		}
		group := inboxGroup{Group: g, Workflow: g.Values[0], Step: g.Values[1], Kind: g.Values[2]}
		if group.has(d.Words) {
			d.Groups = append(d.Groups, group)
		}
	}
	if d.Asked, err = p.asked(r.Context(), d.Words); err != nil {
		return nil, err
	}
	d.Found = len(d.Groups)
	sortGroups(d.Groups, d.By)
	d.Groups = d.Groups[:min(len(d.Groups), maxGroups)]
	if err := p.lookInto(r.Context(), d.Groups[:min(len(d.Groups), maxLooked)]); err != nil {
		return nil, err
	}
	if err := p.heldGroups(r.Context(), d.Groups); err != nil {
		return nil, err
	}
	p.repairsOf(&d)
	d.Aside, err = p.aside(r.Context())
	return d, err
}

// has reports whether a group matches a search: each word is in its text, or names its workflow, step or kind.
func (g inboxGroup) has(words string) bool {
	text, fields := strings.ToLower(g.What()+" "+g.Reason), map[string]string{"workflow": g.Workflow, "step": g.Step, "kind": g.Kind}
	for word := range strings.FieldsSeq(words) {
		name, value, named := strings.Cut(word, ":")
		field, is := fields[name]
		if named && is && field != value || !(named && is) && !strings.Contains(text, strings.ToLower(word)) {
			return false
		}
	}
	return true
}

func sortGroups(groups []inboxGroup, by string) {
	slices.SortStableFunc(groups, func(a, b inboxGroup) int {
		switch by {
		case "most":
			return cmp.Compare(b.Jobs, a.Jobs)
		case "oldest":
			return a.Since.Compare(b.Since)
		}
		return b.Latest.Compare(a.Latest)
	})
}

// lookInto looks at the newest job of each group: on which side it failed, and whether for good.
func (p *Page) lookInto(ctx context.Context, groups []inboxGroup) error {
	current, err := p.Jobs.Workflows(ctx)
	if err != nil {
		return err
	}
	someAtOnce(len(groups), func(i int) {
		if job, err := p.Jobs.Look(ctx, groups[i].LatestExample); err == nil {
			groups[i].learn(job, current)
		} // One that is gone, or cannot be read, is shown all the same.
	})
	return context.Cause(ctx)
}

// someAtOnce calls do for each number below n, for lookedAtOnce of them at once, and returns when all calls have.
func someAtOnce(n int, do func(i int)) {
	var all sync.WaitGroup
	turn := make(chan struct{}, lookedAtOnce)
	for i := range n {
		all.Go(func() {
			turn <- struct{}{}
			defer func() { <-turn }()
			do(i)
		})
	}
	all.Wait()
}

// learn takes from a job of the group the values that the group lacks.
func (g *inboxGroup) learn(job makegood.Job, current []api.Workflow) {
	for _, s := range job.Steps {
		if s.Name != g.Step {
			continue
		}
		failed := &s.Activity
		if s.Undo != nil && s.Undo.State == makegood.StepFailed {
			g.Undo, failed = true, s.Undo
		}
		g.Final = failed.Error != nil && !failed.Error.Retryable
	}
	for _, w := range current {
		if w.Name == job.Workflow && w.Definition != job.Definition {
			g.Definition = job.Definition
		}
	}
}

// heldGroups attaches to each group the pause that would affect its jobs.
func (p *Page) heldGroups(ctx context.Context, groups []inboxGroup) error {
	holds, err := p.Jobs.ListHolds(ctx)
	if err != nil {
		return err
	}
	for _, h := range holds {
		if h.ReleasedAt != nil {
			continue
		}
		with := map[string]bool{}
		if h.Kind == makegood.HoldAgent {
			counted, _, err := p.alike(ctx, api.Filter{State: makegood.JobError, Agent: h.Name}, api.ByWorkflow, api.ByStep, api.ByReason)
			if err != nil {
				return err
			}
			for _, g := range counted.Groups {
				with[strings.Join(g.Values, "/")] = true
			}
		}
		for i, g := range groups {
			if with[strings.Join(g.Values, "/")] || h.Kind == makegood.HoldWorkflow && h.Name == g.Workflow {
				groups[i].Hold = &h
			}
		}
	}
	return nil
}

// repairsOf puts each group's repair beside the group, and all repairs below.
func (p *Page) repairsOf(d *inboxData) {
	for _, done := range p.repairs.List() {
		if !done.Goes() && p.Now().Sub(done.EndedAt) > repairShown {
			continue
		}
		shown := repairView{done, p.Now().UTC()}
		d.Repairs = append(d.Repairs, shown)
		for i, g := range d.Groups {
			if done.Goes() && g.Repair == nil && done.Says == g.What() {
				d.Groups[i].Repair = &shown
			}
		}
	}
}

// aside reads the messages in quarantine.
func (p *Page) aside(ctx context.Context) (aside, error) {
	page, err := p.Jobs.Quarantine(ctx, "")
	if invalid, is := errors.AsType[*api.InvalidError](err); is && invalid.Status == http.StatusNotFound {
		return aside{Elsewhere: invalid.Message}, nil
	}
	if err != nil {
		return aside{}, err
	}
	const shown = 5
	return aside{Messages: page.Messages[:min(len(page.Messages), shown)], More: len(page.Messages) > shown || page.Cursor != ""}, nil
}
