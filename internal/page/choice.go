package page

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/bulk"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/filter"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/protocol"
)

// choice is a set of jobs and a request to make of each: the parameters of a dry run.
type choice struct {
	// Ask is a verb, or domain.AskSettleDone or AskSettleSkipped of Step or its Undo.
	Ask    string
	Filter api.Filter
	// IDs are the jobs that were selected one by one, at most maxSelected; nil: those that the filter finds.
	IDs []string
	// NoStep and NoKind leave out the jobs that stand at a step, or that have an error kind.
	NoStep, NoKind bool
	Step           string
	Undo           bool
	// Answer is the answer to Step, with askAnswer.
	Answer string
	// Current: by the definition that is current.
	Current bool
}

// bulkAsks are the requests that may be made of many jobs here, with their labels.
var bulkAsks = slices.Concat(bulkVerbs(), bulkSettles, []order{{askAnswer, "Answer"}})

// bulkSettles are the requests for steps.
var bulkSettles = []order{{domain.AskSettleDone, domain.VerbOf(domain.AskSettleDone).Label}, {domain.AskSettleSkipped, domain.VerbOf(domain.AskSettleSkipped).Label}}

// bulkVerbs are the verbs of jobs: the most likely first, those of one click last.
func bulkVerbs() (asks []order) {
	for _, verb := range domain.Verbs() {
		if v := domain.VerbOf(string(verb)); v.Flag == "" {
			asks = append(asks, order{string(verb), v.Label})
		}
	}
	place := func(o order) int {
		return boolRank(o.Value != string(makegood.VerbResubmit)) + boolRank(domain.VerbOf(o.Value).AtOnce)
	}
	slices.SortStableFunc(asks, func(a, b order) int { return place(a) - place(b) })
	return asks
}

// askAnswer gives an approval an answer.
const askAnswer = "answer"

// maxSelected is how many jobs may be selected one by one: as many as one view shows and an address can name.
const maxSelected = 200

// Verb is the label of the request.
func (c choice) Verb() string {
	if c.Ask == askAnswer {
		return "Answer " + strconv.Quote(c.Answer) + " to"
	}
	return cmp.Or(domain.VerbOf(c.Ask).Label, c.Ask)
}

// Settles reports whether a step is settled.
func (c choice) Settles() bool {
	return c.Ask == domain.AskSettleDone || c.Ask == domain.AskSettleSkipped
}

// filter is the query of the list of these jobs.
func (c choice) filter() url.Values { return protocol.FilterValues(c.Filter) }

// query is the query of the dry run.
func (c choice) query() url.Values {
	q := c.filter()
	q.Set("ask", c.Ask)
	for name, on := range map[string]bool{"no-step": c.NoStep, "no-kind": c.NoKind, "undo": c.Undo, "current": c.Current} {
		if on {
			q.Set(name, "true")
		}
	}
	if c.Settles() || c.Ask == askAnswer {
		q.Set("at", c.Step)
	}
	if c.Ask == askAnswer {
		q.Set("answer", c.Answer)
	}
	for _, id := range c.IDs {
		q.Add("job", id)
	}
	return q
}

// Says describes the jobs in a few words, as inboxGroup.What does.
func (c choice) Says() string {
	if len(c.IDs) > 0 {
		return "Selected: " + cut(strings.Join(c.IDs, ", "), 200)
	}
	return inboxGroup{Workflow: cmp.Or(c.Filter.Workflow, "all workflows"), Step: c.Filter.Step, Kind: c.Filter.ReasonKind, Undo: c.Undo}.What()
}

// Fields are the hidden fields of the form that does it.
func (c choice) Fields() []order {
	var fields []order
	for name, values := range c.query() {
		if name == "ask" || name == "current" {
			continue
		}
		for _, v := range values {
			fields = append(fields, order{name, v})
		}
	}
	slices.SortFunc(fields, func(a, b order) int { return strings.Compare(a.Value, b.Value) })
	return fields
}

// readChoice reads which jobs are meant, of a query or a form.
func readChoice(values url.Values) (c choice, err error) {
	c = choice{
		Ask: values.Get("ask"), NoStep: values.Has("no-step"), NoKind: values.Has("no-kind"), Step: values.Get("at"), Undo: values.Has("undo"),
		Current: values.Has("current"), Answer: values.Get("answer"),
	}
	if !slices.ContainsFunc(bulkAsks, func(a order) bool { return a.Value == c.Ask }) {
		return c, &api.InvalidError{Message: fmt.Sprintf("%.40q cannot be asked of many jobs here", c.Ask)}
	}
	if c.Ask == askAnswer && (c.Answer == "" || len(c.Answer) > limits.MaxChoiceBytes) {
		return c, &api.InvalidError{Message: "answer: want one of the choices of the step"}
	}
	if (c.Settles() || c.Ask == askAnswer) && limits.StepName.Check(c.Step) != nil {
		return c, &api.InvalidError{Message: fmt.Sprintf("at: %.80q is no step that could be settled", c.Step)}
	}
	if c.Current && c.Ask != string(makegood.VerbResubmit) {
		return c, &api.InvalidError{Message: "only a resubmit moves a job to the current definition"}
	}
	found := url.Values{}
	for name, v := range values {
		if _, err := filter.Named(name); err == nil && name != "reason" && name != "id" && v[0] != "" {
			found[name] = v
		}
	}
	if c.IDs, err = selected(values["job"]); err != nil || len(c.IDs) > 0 {
		return c, err
	}
	if len(found) == 0 {
		return c, &api.InvalidError{Message: "no filter says which jobs are meant"}
	}
	c.Filter, err = protocol.ReadFilter(found)
	return c, err
}

// selected are the jobs that were selected one by one, each once.
func selected(ids []string) ([]string, error) {
	for _, id := range ids {
		if err := domain.CheckJobID(id); err != nil {
			return nil, &api.InvalidError{Message: fmt.Sprintf("job %v", err)}
		}
	}
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	if len(ids) > maxSelected {
		return nil, &api.InvalidError{Message: fmt.Sprintf("%d jobs are selected, the limit is %d: say which by a filter", len(ids), maxSelected)}
	}
	return ids, nil
}

// jobs returns the chosen jobs that had stopped by a moment: the person has not seen later ones. More: the set exceeds
// one repair.
func (c choice) jobs(ctx context.Context, jobs api.Reader, seen time.Time) (found []api.Listed, more bool, err error) {
	for _, id := range c.IDs {
		found = append(found, api.Listed{ID: id})
	}
	if len(c.IDs) > 0 {
		return found, false, nil
	}
	for l, err := range jobs.List(ctx, c.Filter) {
		if err != nil {
			return nil, false, err
		}
		if c.Ask == askAnswer && l.CreatedAt.After(seen) {
			continue
		}
		if c.NoStep && len(l.Steps) > 0 || c.NoKind && l.Kind != "" || l.StoppedAt != nil && l.StoppedAt.After(seen) {
			continue
		}
		if len(found) == bulk.MaxJobs {
			return found, true, nil
		}
		found = append(found, l)
	}
	return found, false, nil
}
