package page

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/protocol"
)

func submitViews() []view {
	return []view{
		{pattern: "GET /submit", nav: "Submit", title: "Submit a job", template: "choose.html", load: (*Page).chooseWorkflow},
		{pattern: "GET /workflows/{name}/submit", nav: "Submit", title: "Submit a job", template: "submit.html", load: (*Page).submitForm},
		{pattern: "POST /workflows/{name}/submit", nav: "Submit", title: "Submit a job", template: "submit.html", load: (*Page).submit},
	}
}

// submitData is a form for a job: empty, or as sent, with the reason for its refusal.
type submitData struct {
	Workflow api.Workflow
	// Reads names the members of the input that the expressions of the workflow read.
	Reads []string
	// ID is made when the form is: so the same form sent twice is one job.
	ID, Input, Tenant, Labels, StartAt, Priority string
	// Fields are the fields of the input, if its workflow has a schema; ByFields: the form shows them instead of JSON.
	Fields   []*field
	ByFields bool
	// Wrong says why the form was refused; empty: it was not sent. Misfits are the errors in the input that are not shown
	// at a field. Note says why the input is still shown as JSON.
	Wrong   string
	Misfits []makegood.Misfit
	Note    string
	// Limits, as the form says them.
	MaxPayload, MaxLabels int
}

// Title names the window.
func (d submitData) Title() string { return "Submit a job, " + d.Workflow.Name }

// submitForm loads an empty form.
func (p *Page) submitForm(r *http.Request) (any, error) {
	d, err := p.blankSubmission(r)
	if err != nil {
		return nil, err
	}
	d.ID, d.Input = protocol.NewJobID(p.Now()), d.example()
	if like := r.FormValue("like"); like != "" {
		err = p.fillLike(r.Context(), &d, like)
		return d, err
	}
	d.ByFields = len(d.Fields) > 0
	if d.ByFields {
		d.Input = d.fromFields()
	}
	return d, nil
}

// fillLike fills a form in with the submission of a job, but for its id and its start.
func (p *Page) fillLike(ctx context.Context, d *submitData, like string) error {
	j, err := p.Jobs.Get(ctx, like)
	if err != nil {
		return err
	}
	d.Input, d.Tenant, d.Priority = pretty(j.Input), j.Tenant, string(j.Priority)
	for _, name := range slices.Sorted(maps.Keys(j.Labels)) {
		d.Labels = strings.TrimSpace(d.Labels + " " + name + "=" + j.Labels[name])
	}
	d.Note = "The form holds what " + j.ID + " was submitted with. Sent, it makes a new job."
	if len(d.Fields) > 0 {
		d.ByFields = spread(d.Fields, d.Input)
	}
	return nil
}

// chooseWorkflow lists the workflows that accept jobs.
func (p *Page) chooseWorkflow(r *http.Request) (any, error) {
	known, err := p.Jobs.Workflows(r.Context())
	if err != nil {
		return nil, err
	}
	return chooseData{Workflows: known}, nil
}

// chooseData is the choice of a workflow.
type chooseData struct{ Workflows []api.Workflow }

// fromFields is the input in the fields, as it is shown.
func (d submitData) fromFields() string {
	object, _ := inputOf(d.Fields)
	text, err := json.MarshalIndent(object, "", "  ")
	if err != nil {
		return "{}"
	}
	return string(text)
}

// blankSubmission reads the workflow that a form is for.
func (p *Page) blankSubmission(r *http.Request) (submitData, error) {
	d := submitData{MaxPayload: makegood.MaxPayloadBytes, MaxLabels: limits.MaxLabels}
	known, err := p.Jobs.Workflows(r.Context())
	if err != nil {
		return d, err
	}
	at := slices.IndexFunc(known, func(w api.Workflow) bool { return w.Name == r.PathValue("name") })
	if at < 0 {
		return d, &problem{status: http.StatusNotFound, Head: "There is no such workflow", Text: fmt.Sprintf("No workflow here has the name %.80q.", r.PathValue("name"))}
	}
	d.Workflow = known[at]
	definition, err := p.Jobs.Definition(r.Context(), d.Workflow.Definition)
	if err != nil {
		return d, err
	}
	d.Reads, d.Fields = inputsRead(definition.Source), fieldsOf(definition.Workflow.Input)
	return d, nil
}

// readsInput finds the paths of the input that an expression names literally.
var readsInput = regexp.MustCompile(`\.input\.([A-Za-z_][A-Za-z0-9_]*)`)

// inputsRead names the members of the input that a workflow reads, as far as its expressions name them.
func inputsRead(source string) []string {
	names := map[string]bool{}
	for _, found := range readsInput.FindAllStringSubmatch(source, -1) {
		names[found[1]] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// example is an input with the members that the workflow reads, to be filled in.
func (d submitData) example() string {
	if len(d.Reads) == 0 {
		return "{}"
	}
	lines := make([]string, len(d.Reads))
	for i, name := range d.Reads {
		lines[i] = fmt.Sprintf("  %q: null", name)
	}
	return "{\n" + strings.Join(lines, ",\n") + "\n}"
}

// submit submits a job, and leads to it; errors are shown above the form, which keeps its values.
func (p *Page) submit(r *http.Request) (any, error) {
	d, err := p.blankSubmission(r)
	if err != nil {
		return nil, err
	}
	d.ID, d.Input, d.Tenant = strings.TrimSpace(r.FormValue("id")), r.FormValue("input"), strings.TrimSpace(r.FormValue("tenant"))
	d.Labels, d.StartAt, d.Priority = strings.TrimSpace(r.FormValue("labels")), r.FormValue("start"), r.FormValue("priority")
	if readable := d.read(r); !readable {
		return d, nil
	}
	s, err := d.submission()
	if err != nil {
		d.Wrong = err.Error()
		return d, nil
	}
	job, err := p.Jobs.Submit(r.Context(), s)
	var invalid *api.InvalidError
	var mismatch *api.MismatchError
	switch {
	case errors.As(err, &invalid):
		d.misfit(invalid)
		return d, nil
	case errors.As(err, &mismatch):
		d.Wrong = fmt.Sprintf("there is a job %s with another input: give this one another id", mismatch.Job)
		return d, nil
	case err != nil:
		return nil, err
	}
	return goTo("jobs/" + job.ID), nil
}

// read takes over the input as it was sent: by fields, or as JSON. It reports whether to submit it: not if the person
// switched the form, or if it cannot be read.
func (d *submitData) read(r *http.Request) (submits bool) {
	d.ByFields = len(d.Fields) > 0 && r.FormValue("by") == "fields"
	readable := true
	if d.ByFields {
		fill(d.Fields, r.Form)
		_, readable = inputOf(d.Fields)
		d.Input = d.fromFields()
	}
	switch r.FormValue("show") {
	case "json":
		d.ByFields = false
		return false
	case "fields":
		if d.ByFields = spread(d.Fields, d.Input); !d.ByFields {
			d.Note = "The fields cannot hold all of this: it stays as JSON."
		}
		return false
	}
	if !readable {
		d.Wrong = "see the fields"
	}
	return readable
}

// misfit shows the errors of a submission: at the fields of the input, or above the form.
func (d *submitData) misfit(invalid *api.InvalidError) {
	d.Wrong, d.Misfits = invalid.Message, invalid.Misfits
	if len(invalid.Misfits) == 0 {
		return
	}
	d.Wrong = "the input does not fit the schema of " + d.Workflow.Name
	if d.ByFields {
		d.Misfits = point(d.Fields, invalid.Misfits)
	}
}

// submission is the submission in a form.
func (d submitData) submission() (makegood.Submission, error) {
	s := makegood.Submission{Workflow: d.Workflow.Name, ID: d.ID, Tenant: d.Tenant, Priority: makegood.Priority(d.Priority)}
	input := strings.TrimSpace(d.Input)
	if !json.Valid([]byte(input)) {
		return s, fmt.Errorf("the input is not JSON: %s", whyNot(input))
	}
	s.Input = json.RawMessage(input)
	for _, label := range strings.Fields(d.Labels) {
		name, value, is := strings.Cut(label, "=")
		if !is {
			return s, fmt.Errorf("the label %.80q has no value: want NAME=VALUE", label)
		}
		if s.Labels == nil {
			s.Labels = map[string]string{}
		}
		s.Labels[name] = value
	}
	if d.StartAt == "" {
		return s, nil
	}
	// A browser leaves out seconds of zero.
	for _, layout := range []string{"2006-01-02T15:04", "2006-01-02T15:04:05"} {
		if at, err := time.Parse(layout, d.StartAt); err == nil {
			s.StartAt = at
			return s, nil
		}
	}
	return s, fmt.Errorf("the start %.40q is no time: want such as 2026-12-24T18:00, in UTC", d.StartAt)
}

// whyNot says where a text stops being JSON.
func whyNot(text string) string {
	var value any
	err := json.Unmarshal([]byte(text), &value)
	if syntax, is := errors.AsType[*json.SyntaxError](err); is {
		line := 1 + strings.Count(text[:min(int(syntax.Offset), len(text))], "\n")
		return fmt.Sprintf("line %d: %v", line, syntax)
	}
	return cmp.Or(err, errors.New("it is empty")).Error()
}
