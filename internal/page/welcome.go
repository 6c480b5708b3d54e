package page

import (
	"html/template"
	"net/http"
	"strings"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
)

// Tour is the first offer to a visitor without jobs.
type Tour struct {
	// Workflow is the name of the one that is drawn, and About a sentence about it.
	Workflow, About string
	// First is the submission of the button for one job, and Many that of the other.
	First makegood.Submission
	Many  []makegood.Submission
	// Commands are the commands to type next.
	Commands []Command
}

// Command is one to type, and why.
type Command struct{ Why, Line string }

func welcomeViews() []view {
	return []view{
		{pattern: "GET /welcome", nav: "Jobs", title: "Welcome", template: "welcome.html", load: (*Page).welcome},
		{pattern: "POST /welcome", load: (*Page).begin},
	}
}

// welcomeData is the data of the first page.
type welcomeData struct {
	Workflows []api.Workflow
	// Drawn is the workflow that is drawn, Graph its picture; empty: there is none.
	Drawn    api.Workflow
	Graph    template.HTML
	Tour     *Tour
	Commands []Command
	States   []explained
}

// explained is a state, and its meaning in a few words.
type explained struct {
	Mark  mark
	Means string
}

// welcome loads the view for a visitor without jobs.
func (p *Page) welcome(r *http.Request) (any, error) {
	ctx := r.Context()
	workflows, err := p.Jobs.Workflows(ctx)
	if err != nil {
		return nil, err
	}
	d := welcomeData{Workflows: workflows, Tour: p.Tour, Commands: commandsFor(workflows), States: statesExplained()}
	for i, c := range d.Commands[:len(d.Commands)-1] {
		d.Commands[i].Line = strings.TrimSpace(c.Line + " " + p.Flags)
	}
	if p.Tour != nil {
		d.Commands = p.Tour.Commands
	}
	for _, w := range workflows {
		if p.Tour == nil || w.Name == p.Tour.Workflow {
			d.Drawn = w
			definition, err := p.definition(ctx, w.Definition)
			if err == nil {
				d.Graph, err = drawnWorkflow(definition.Workflow, "The workflow "+w.Name, "")
			}
			return d, err
		}
	}
	return d, nil
}

// commandsFor are the commands to type without a tour.
func commandsFor(workflows []api.Workflow) []Command {
	name := "WORKFLOW"
	if len(workflows) > 0 {
		name = workflows[0].Name
	}
	return []Command{
		{"Submit a job, and wait for its end. Its input is what its workflow reads.", "makegood submit " + name + " --id first --input '{}' --wait"},
		{"See the result, and why.", "makegood get first"},
		{"Write a project of your own: a workflow, agents, their undo, and tests.", "makegood new trips"},
	}
}

func statesExplained() []explained {
	return []explained{
		{mark{Name: "Processing", Shape: "processing"}, "steps are being done"},
		{mark{Name: "Waiting", Shape: "waiting"}, "for a person, or a time"},
		{mark{Name: "Processed", Shape: "processed"}, "finished"},
		{mark{Name: "Undoing", Shape: "undoing"}, "on the way back"},
		{mark{Name: "Undone", Shape: "undone"}, "as if it had not been"},
		{mark{Name: "Error", Shape: "error"}, "needs you; says why, and what you can do"},
	}
}

// begin submits the jobs of the tour: the first one, or many. Submitted again, they are the same jobs.
func (p *Page) begin(r *http.Request) (any, error) {
	if p.Tour == nil {
		return nil, nothingHere(r)
	}
	wanted := []makegood.Submission{p.Tour.First}
	if r.FormValue("run") == "many" {
		wanted = p.Tour.Many
	}
	for _, s := range wanted {
		if _, err := p.Jobs.Submit(r.Context(), s); err != nil {
			return nil, err
		}
	}
	if len(wanted) == 1 && hasView("jobs/{id}") {
		return goTo("jobs/" + wanted[0].ID), nil
	}
	return goTo(""), nil
}
