package scheduler

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/spend"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// maxParts is how many definitions of parts of maps are kept in memory: one for each number of items of a step.
const maxParts = 200

// forgetParts keeps the definitions of parts few: beyond maxParts all are made anew.
func (s *Scheduler) forgetParts() {
	if s.parts.Add(1) <= maxParts {
		return
	}
	s.parts.Store(1)
	s.definitions.Range(func(hash, c any) bool {
		if c := c.(*workflowfile.Compiled); c.Workflow.Part != nil {
			s.definitions.Delete(hash)
			s.graphs.Delete(c)
		}
		return true
	})
}

func (m *moved) step(name string) makegood.Step {
	i := slices.IndexFunc(m.compiled.Workflow.Steps, func(s makegood.Step) bool { return s.Name == name })
	if i < 0 {
		return makegood.Step{}
	}
	return m.compiled.Workflow.Steps[i]
}

// childWorkflow names the workflow of the child of a step.
func childWorkflow(m *moved, step string) string {
	if s := m.step(step); s.Map == nil {
		return s.Action
	}
	ref := mapRef(m, step, 0)
	return domain.MapName(domain.WorkflowOf(m.compiled.Workflow.Name), ref.Step)
}

// mapRef is the definition of a job that does n items of the map of a step.
func mapRef(m *moved, step string, n int) domain.MapRef {
	if ref, part := domain.MapRefOf(m.job.Definition); part {
		ref.Items = n
		return ref
	}
	return domain.MapRef{Definition: m.job.Definition, Step: step, Items: n}
}

// itemsOf is the input of a job that does items of a map: they, or the place where they lie, a part at a time.
type itemsOf struct {
	Items []json.RawMessage `json:"items,omitempty"`
	// Job has them under Key and the number of the part, from 0; From is the first one.
	Job  string `json:"job,omitempty"`
	Key  string `json:"key,omitempty"`
	From int    `json:"from,omitempty"`
}

func (l itemsOf) key(from int) string { return fmt.Sprintf("%s%d", l.Key, from/limits.PartItems) }

// birthOfItems makes the birth of the job that does the items of a step, or of a part of them.
func birthOfItems(ctx context.Context, m *moved, d job.Dispatch, s makegood.Step) (b birth, err error) {
	if spend.On(ctx) != nil {
		b.account = spend.NewAccount(nil, job.Spent{})
		ctx = spend.With(ctx, b.account)
	}
	var input itemsOf
	n := s.Map.Count
	if n > 0 {
		input, err = partOf(ctx, m, s)
	} else {
		input, n, err = allItems(ctx, m, d)
	}
	if err != nil {
		return b, fmt.Errorf("items of step %s of job %s: %w", d.Step, m.job.ID, err)
	}
	b.Dispatch, b.definition = d, mapRef(m, d.Step, n).String()
	b.input, err = json.Marshal(input)
	return b, err
}

// allItems evaluates the inputs of all items. Those of several parts are written first, a value a part, each under a
// name that follows from its attempt: the same ones, if they were written before.
func allItems(ctx context.Context, m *moved, d job.Dispatch) (input itemsOf, n int, err error) {
	list, err := m.values.input(ctx, m.job, machine.Want{Step: d.Step})
	if err != nil {
		return input, 0, err
	}
	var items []json.RawMessage
	if err := json.Unmarshal(list.Value, &items); err != nil {
		return input, 0, err
	}
	if len(items) <= limits.PartItems {
		return itemsOf{Items: items}, len(items), nil
	}
	input = itemsOf{Job: m.job.ID, Key: fmt.Sprintf("map#%s#%d#%s#", d.Step, d.Attempt, m.job.Birth)}
	written, err := input.written(ctx, m.values.store, len(items))
	if err != nil {
		return input, 0, err
	}
	for from := written; from < len(items); from += limits.PartItems {
		value, err := json.Marshal(itemsOf{Items: items[from:min(from+limits.PartItems, len(items))]})
		if err == nil {
			err = m.values.store.PutPayload(ctx, input.Job, input.key(from), value)
		}
		if err != nil {
			return input, 0, err
		}
	}
	return input, len(items), nil
}

// written is how many of n items were written before, by a birth that did not come to its end: that of a thousand parts
// may take longer than an invocation lasts. Parts are written in their order: those that are there are the first ones.
func (l itemsOf) written(ctx context.Context, from store.Payloads, n int) (items int, err error) {
	missing := func(part int) bool {
		_, absent := from.Payload(ctx, l.Job, l.key(part*limits.PartItems))
		if absent != nil && !errors.Is(absent, store.ErrNotFound) {
			err = absent
		}
		return absent != nil
	}
	if missing(0) { // as nearly always
		return 0, err
	}
	parts := sort.Search((n-1)/limits.PartItems, func(i int) bool { return missing(i + 1) })
	return min((parts+1)*limits.PartItems, n), err
}

// partOf is the input of a part: its place among the items of its parent, or, of one without parts, its items.
func partOf(ctx context.Context, m *moved, s makegood.Step) (input itemsOf, err error) {
	all, err := m.values.get(ctx, m.job.ID, m.job.Input)
	if err == nil {
		err = json.Unmarshal(all, &input)
	}
	if err != nil {
		return input, err
	}
	i := slices.IndexFunc(m.compiled.Workflow.Steps, func(other makegood.Step) bool { return other.Name == s.Name })
	input.From += i * domain.PartSize(m.compiled.Workflow.Part.Items)
	if s.Map.Count > limits.PartItems {
		return input, nil
	}
	value, err := m.values.store.Payload(ctx, input.Job, input.key(input.From))
	if errors.Is(err, store.ErrNotFound) {
		return input, &workflowfile.EvalError{Step: s.Name, Reason: fmt.Sprintf("the items of job %s from %d on are gone from the store", input.Job, input.From)}
	}
	if err != nil {
		return input, err
	}
	input = itemsOf{}
	return input, json.Unmarshal(value, &input)
}

// redrives is how often the failed items of a step were to be done again.
func redrives(j job.Job, step string) int {
	s, _ := j.Step(step)
	return s.Forward.Repeats
}

// redriveChild has the child of a step do its failed items again.
func (s *Scheduler) redriveChild(ctx context.Context, m *moved, step string) (never string, err error) {
	j := m.job
	asked := askOfChild(m, j, step, makegood.VerbRedrive)
	asked.Reason = limits.Clip(fmt.Sprintf("job %s is redriven", j.ID))
	of, _ := j.Step(step)
	asked.Redrives, asked.Indexes, asked.Definition = of.Forward.Repeats, of.Forward.Redriven, domain.DefinitionOf(j.Definition)
	never, err = s.request(ctx, j, step, asked)
	if errors.Is(err, store.ErrNotFound) {
		return fmt.Sprintf("its job %s is not stored any more", childOf(j, step)), nil
	}
	return never, err
}

// neverRedrive has a child refuse a redrive that may be on its way to it, and returns the child as it is then.
func (s *Scheduler) neverRedrive(ctx context.Context, m *moved, j job.Job, ask machine.Ask) (job.Job, error) {
	id := childOf(j, ask.Step)
	asked := askOfChild(m, j, ask.Step, makegood.VerbRedrive)
	asked.Redrives, asked.Never = ask.Redrives, true
	child, _, err := s.Request(spend.Without(ctx), id, asked)
	switch {
	case err != nil:
		return job.Job{}, fmt.Errorf("take the redrive of job %s back: %w", id, err)
	case !child.ProcessState.Finished():
		return job.Job{}, store.ErrConflict // It was redriven meanwhile.
	default:
		return child, nil
	}
}

// askItems says which of the named items of the map of a step cannot be redriven, and why.
func (s *Scheduler) askItems(ctx context.Context, j job.Job, ask machine.Ask) (job.Found, error) {
	id := childOf(j, ask.Step)
	child, err := s.config.Jobs.Load(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return job.Found{Refused: fmt.Sprintf("its job %s is not stored any more", id)}, nil
	}
	if err != nil {
		return job.Found{}, fmt.Errorf("load job %s: %w", id, err)
	}
	ref, _ := domain.MapRefOf(child.Definition)
	if named := ask.Indexes.List(); named[len(named)-1] >= ref.Items {
		return job.Found{Refused: fmt.Sprintf("step %s has no item %d: it has %d, from 0", ask.Step, named[len(named)-1], ref.Items)}, nil
	}
	item, err := s.notFailed(ctx, child, ask.Indexes)
	if item < 0 || err != nil {
		return job.Found{}, err
	}
	return job.Found{Refused: fmt.Sprintf("item %d of step %s has not failed", item, ask.Step)}, nil
}

// notFailed returns one of the named items of a job that has not failed; -1: all have. Parts are read side by side.
func (s *Scheduler) notFailed(ctx context.Context, child job.Job, named job.Indexes) (item int, err error) {
	compiled, err := s.definition(ctx, child.Definition)
	if err != nil {
		return 0, fmt.Errorf("definition %s: %w", child.Definition, err)
	}
	w := compiled.Workflow
	found, errs := make([]int, len(child.Steps)), unanswered(len(child.Steps))
	each := max(domain.PartSize(w.Part.Items), domain.BatchSize(w, 0))
	s.crew.Each(len(child.Steps), maxClosings, func(i int) {
		found[i], errs[i] = s.notFailedIn(ctx, w, child, i, named.Within(i*each, each))
		if found[i] >= 0 {
			found[i] += i * each
		}
	})
	i := slices.IndexFunc(found, func(item int) bool { return item >= 0 })
	if err := errors.Join(errs...); err != nil || i < 0 {
		return -1, err
	}
	return found[i], nil
}

// notFailedIn returns one of the named items of a step of a job that has not failed; -1: all have.
func (s *Scheduler) notFailedIn(ctx context.Context, w makegood.Workflow, child job.Job, i int, named job.Indexes) (item int, err error) {
	list, step := named.List(), &child.Steps[i]
	switch {
	case len(list) == 0:
		return -1, nil
	case machine.FailedIn(w, child, i) == 0:
		return list[0], nil
	case w.Steps[i].Map != nil:
		id := childOf(child, step.Name)
		part, err := s.config.Jobs.Load(ctx, id)
		if errors.Is(err, store.ErrNotFound) {
			return -1, nil // It has expired: the history of the redrive says so.
		}
		if err != nil {
			return 0, fmt.Errorf("load job %s: %w", id, err)
		}
		return s.notFailed(ctx, part, named)
	case domain.BatchSize(w, i) == 0:
		return -1, nil
	}
	output, err := s.outputOfChild(ctx, child.ID, step.Forward.Output)
	if err != nil {
		return 0, err
	}
	done := doneIn(readAnswers(output))
	for _, item := range list {
		if _, is := done[item]; is {
			return item, nil
		}
	}
	return -1, nil
}

// manifest is the output of a step with a map, where that is no list.
type manifest struct {
	Items  int            `json:"items"`
	Failed int            `json:"failed"`
	Parts  []manifestPart `json:"parts"`
}

// manifestPart is a job with the outputs of items.
type manifestPart struct {
	Job    string `json:"job"`
	From   int    `json:"from"`
	Items  int    `json:"items"`
	Failed int    `json:"failed"`
}

// endOfItems counts the failed items of the job of a step, and returns the output of the step.
func (s *Scheduler) endOfItems(ctx context.Context, step makegood.Step, child job.Job, end *job.ChildEnd) (json.RawMessage, error) {
	compiled, err := s.definition(ctx, child.Definition)
	if err != nil {
		return nil, fmt.Errorf("definition %s: %w", child.Definition, err)
	}
	end.Failed = machine.FailedItems(compiled.Workflow, child)
	if step.Map.Outputs == makegood.OutputsList {
		if list, fits, err := s.outputsOf(ctx, compiled.Workflow, child); err != nil || fits {
			return list, err
		}
	}
	return json.Marshal(manifestOf(compiled.Workflow, child, end.Failed))
}

// outputsOf lists the outputs of the items of a job. fits is false where they are too large for one value.
func (s *Scheduler) outputsOf(ctx context.Context, w makegood.Workflow, child job.Job) (list []byte, fits bool, err error) {
	list = []byte{'['}
	for i := range min(w.Part.Items, len(child.Steps)) {
		output, err := s.outputOfChild(ctx, child.ID, child.Steps[i].Forward.Output)
		if err != nil {
			return nil, false, err
		}
		// Only the job of the item can read a large payload.
		if refs, err := domain.FindPayloads(output); err != nil || len(refs) > 0 {
			return nil, false, nil
		}
		of := strings.TrimSpace(string(output))
		if w.Steps[i].Map != nil { // The list of a part is a part of the list.
			if !strings.HasPrefix(of, "[") {
				return nil, false, nil
			}
			of = of[1 : len(of)-1]
		}
		if n := domain.BatchSize(w, i); n > 0 {
			of = outputsIn(output, n)
		}
		of = cmp.Or(of, "null")
		if len(list) > 1 {
			list = append(list, ',')
		}
		if list = append(list, of...); len(list) >= makegood.MaxPayloadBytes {
			return nil, false, nil
		}
	}
	return append(list, ']'), true, nil
}

// outputsIn lists the outputs of the items of a batch, without brackets.
func outputsIn(output json.RawMessage, n int) string {
	done := doneIn(readAnswers(output))
	outputs := make([]string, n)
	for item := range outputs {
		outputs[item] = cmp.Or(string(done[item].Output), "null")
	}
	return strings.Join(outputs, ",")
}

func manifestOf(w makegood.Workflow, child job.Job, failed int) manifest {
	m := manifest{Items: w.Part.Items, Failed: failed}
	size := domain.PartSize(m.Items)
	if size == 1 {
		m.Parts = []manifestPart{{Job: child.ID, Items: m.Items, Failed: failed}}
		return m
	}
	for i, s := range w.Steps {
		m.Parts = append(m.Parts, manifestPart{
			Job: childOf(child, s.Name), From: i * size, Items: s.Map.Count, Failed: child.Steps[i].Forward.FailureCount,
		})
	}
	return m
}
