package page

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/graph"
)

func workflowsViews() []view {
	return []view{
		{pattern: "GET /workflows", nav: "Workflows", title: "Workflows", template: "workflows.html", load: (*Page).workflows, regions: []string{"workflows"}},
		{pattern: "GET /workflows/{name}", nav: "Workflows", title: "Workflow", template: "workflow.html", load: (*Page).workflow, regions: []string{"versions"}},
	}
}

// running says how many jobs of a definition, or a workflow, have not ended.
type running struct {
	Jobs   int
	States []stateCount
	// Errors is how many of the jobs wait for a person.
	Errors int
}

// workflowsData is the data of the list of workflows.
type workflowsData struct {
	Workflows []workflowRow
	// AsOf is when their jobs were counted; zero: just now.
	AsOf time.Time
}

// workflowRow is a workflow in the list.
type workflowRow struct {
	api.Workflow
	running
	Steps  int
	Agents []string
	Expect makegood.Duration
}

// workflows loads the list.
func (p *Page) workflows(r *http.Request) (any, error) {
	known, err := p.Jobs.Workflows(r.Context())
	if err != nil {
		return nil, err
	}
	under, asOf, err := p.underWay(r.Context(), api.Filter{}, api.ByWorkflow)
	if err != nil {
		return nil, err
	}
	d := workflowsData{AsOf: asOf}
	for _, w := range known {
		definition, err := p.definition(r.Context(), w.Definition)
		if err != nil {
			return nil, err
		}
		d.Workflows = append(d.Workflows, workflowRow{
			Workflow: w, running: under[w.Name], Steps: len(definition.Workflow.Steps), Agents: agentsOf(definition.Workflow), Expect: definition.Workflow.Expect,
		})
	}
	return d, nil
}

// agentsOf names the agents of a workflow, each once.
func agentsOf(w makegood.Workflow) []string {
	names := map[string]bool{}
	for _, s := range w.Steps {
		names[s.Agent] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// underWay counts the jobs that have not ended, by a facet, with an index, so that the time does not grow with ended
// jobs. asOf is when they were counted; zero: just now.
func (p *Page) underWay(ctx context.Context, filter api.Filter, by api.Facet) (all map[string]running, asOf time.Time, err error) {
	filter.DueWithin = allDue
	groups, asOf, err := p.alike(ctx, filter, by, api.ByState)
	if err != nil {
		return nil, asOf, err
	}
	all = map[string]running{}
	for _, g := range groups.Groups {
		what, state := g.Values[0], makegood.ProcessState(g.Values[1])
		if state.Finished() {
			continue // it has ended, only its notification is due
		}
		of := all[what]
		of.Jobs += g.Jobs
		of.States = append(of.States, stateCount{Mark: markOf(state, false, false), Jobs: g.Jobs})
		if state == makegood.JobError {
			of.Errors += g.Jobs
		}
		all[what] = of
	}
	return all, asOf, nil
}

// workflowData is the data of a workflow's view: one of its definitions, and the differences of two.
type workflowData struct {
	api.Definition
	// Current: new jobs get this definition. CurrentHash is the hash of the current one; empty: there is none.
	Current     bool
	CurrentHash string
	Versions    []version
	AsOf        time.Time
	Graph       template.HTML
	Differs     *difference
}

// Title names the window.
func (d workflowData) Title() string { return d.Name + ", workflow" }

// version is a definition that jobs run on, or that is current.
type version struct {
	running
	Hash           string
	Current, Shown bool
}

// workflow loads the view of a workflow: of its current definition, or of the one that the query names.
func (p *Page) workflow(r *http.Request) (any, error) {
	name := r.PathValue("name")
	known, err := p.Jobs.Workflows(r.Context())
	if err != nil {
		return nil, err
	}
	d := workflowData{}
	for _, w := range known {
		if w.Name == name {
			d.CurrentHash = w.Definition
		}
	}
	wanted := cmp.Or(r.FormValue("definition"), d.CurrentHash)
	if d.Definition, err = p.definitionOf(r.Context(), name, wanted); err != nil {
		return nil, err
	}
	d.Current = d.Definition.Definition == d.CurrentHash
	if d.Versions, d.AsOf, err = p.versions(r.Context(), d); err != nil {
		return nil, err
	}
	if d.Graph, err = drawnWorkflow(d.Workflow, "The steps of "+d.Workflow.Name, "#step-"); err != nil {
		return nil, err
	}
	if with := r.FormValue("with"); with != "" && with != wanted {
		other, err := p.definitionOf(r.Context(), name, with)
		if err != nil {
			return nil, err
		}
		d.Differs = differ(other, d.Definition)
	}
	return d, nil
}

// definitionOf reads a definition of a workflow.
func (p *Page) definitionOf(ctx context.Context, workflow, hash string) (api.Definition, error) {
	none := &problem{status: http.StatusNotFound, Head: "There is no such workflow", Text: fmt.Sprintf("No workflow here has the name %.80q.", workflow)}
	if hash == "" {
		return api.Definition{}, none
	}
	d, err := p.definition(ctx, hash)
	if err == nil && d.Name != workflow || errors.Is(err, api.ErrNoDefinition) {
		none.Text = fmt.Sprintf("The workflow %.80q has no definition %.40q.", workflow, hash)
		return d, none
	}
	return d, err
}

// versions lists the definitions in use, and the current one: the current one first, then those with the most jobs.
func (p *Page) versions(ctx context.Context, d workflowData) (all []version, asOf time.Time, err error) {
	under, asOf, err := p.underWay(ctx, api.Filter{Workflow: d.Name}, api.ByDefinition)
	if err != nil {
		return nil, asOf, err
	}
	for _, hash := range []string{d.CurrentHash, d.Definition.Definition} {
		if _, there := under[hash]; !there && hash != "" {
			under[hash] = running{}
		}
	}
	for hash, of := range under {
		all = append(all, version{running: of, Hash: hash, Current: hash == d.CurrentHash, Shown: hash == d.Definition.Definition})
	}
	slices.SortFunc(all, func(a, b version) int {
		return cmp.Or(boolRank(!a.Current)-boolRank(!b.Current), b.Jobs-a.Jobs, strings.Compare(a.Hash, b.Hash))
	})
	return all, asOf, nil
}

// drawnWorkflow draws the steps of a workflow. link begins the link of each step; empty: none has a link.
func drawnWorkflow(w makegood.Workflow, title, link string) (template.HTML, error) {
	nodes, edges := graph.OfWorkflow(w)
	for i := range nodes {
		if link != "" {
			nodes[i].Href = link + nodes[i].ID
		}
	}
	return drawn(nodes, edges, title)
}

// drawn draws steps.
func drawn(nodes []graph.Node, edges []graph.Edge, title string) (template.HTML, error) {
	drawing, err := graph.Layout(nodes, edges...)
	if err != nil {
		return "", err
	}
	var svg bytes.Buffer
	if err := graph.SVG(&svg, drawing, graph.SVGOptions{Title: title}); err != nil {
		return "", err
	}
	return template.HTML(svg.String()), nil // graph.SVG escapes its texts, and the links are made of names of steps.
}

// After names the steps that a step comes after.
func (d workflowData) After(s makegood.Step) string {
	names := strings.Join(domain.Before(d.Workflow, s), ", ")
	switch {
	case s.Only == makegood.OnlyOnError:
		return "an error or an answer of " + names
	case s.Any:
		return "any of " + names
	}
	return names
}

// difference lists the differences of two definitions.
type difference struct {
	// From and To are the hashes.
	From, To string
	// Fields are the fields of the workflow itself that differ.
	Fields                  []string
	Added, Removed, Changed []stepDifference
	Lines                   []diffLine
}

// stepDifference is a step that differs, and in what.
type stepDifference struct {
	Name   string
	Fields string
}

// differ compares two definitions: the changes that lead from one to the other.
func differ(from, to api.Definition) *difference {
	d := &difference{From: from.Definition, To: to.Definition, Lines: folded(diffLines(from.Source, to.Source))}
	before, after := from.Workflow, to.Workflow
	steps := map[string]makegood.Step{}
	for _, s := range before.Steps {
		steps[s.Name] = s
	}
	for _, s := range after.Steps {
		old, there := steps[s.Name]
		delete(steps, s.Name)
		if !there {
			d.Added = append(d.Added, stepDifference{Name: s.Name})
			continue
		}
		if fields := differing(old, s); len(fields) > 0 {
			d.Changed = append(d.Changed, stepDifference{s.Name, strings.Join(fields, ", ")})
		}
	}
	for _, s := range before.Steps {
		if _, gone := steps[s.Name]; gone {
			d.Removed = append(d.Removed, stepDifference{Name: s.Name})
		}
	}
	before.Steps, after.Steps = nil, nil
	d.Fields = differing(before, after)
	return d
}

// differing names the fields in which two values differ, as JSON has them.
func differing(a, b any) []string {
	before, after := members(a), members(b)
	names := map[string]bool{}
	for name, value := range before {
		names[name] = !bytes.Equal(value, after[name])
	}
	for name, value := range after {
		names[name] = !bytes.Equal(value, before[name])
	}
	maps.DeleteFunc(names, func(_ string, differs bool) bool { return !differs })
	return slices.Sorted(maps.Keys(names))
}

func members(value any) map[string]json.RawMessage {
	text, err := json.Marshal(value)
	if err != nil {
		panic("page: a definition is no JSON: " + err.Error())
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		panic("page: a definition is no object: " + err.Error())
	}
	return all
}

// JobsOf leads to the jobs of a workflow that are in a state; "": in any.
func (d workflowData) JobsOf(state string) string {
	q := url.Values{"workflow": {d.Name}}
	if state != "" {
		q.Set("state", state)
	}
	return q.Encode()
}
