package workflowfile

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/workflowfile/jq"
)

func mapKind(m *makegood.Map) kind {
	return object("a map", "map",
		row("over", expressionOf(&m.Over).refuse(m.Over == "" && m.Count == 0, `over is missing: want an expression that gives a list, such as "${ .input.lines }"`),
			fmt.Sprintf(`An expression "${ ... }" that gives the list, of at most %d items.`, makegood.MaxItems)).must(),
		row("concurrency", count(&m.Concurrency, limits.MaxConcurrency),
			"How many items are under way at once at most; above 100 it is rounded down to hundreds.").or(limits.PartItems),
		row("tolerate", toleranceKind(&m.Tolerate), "How many items may fail before the step has failed. Default: none."),
		row("outputs", word(&m.Outputs, makegood.OutputsList, makegood.OutputsManifest),
			"The output of the step: the outputs of its items in their order, where that has at most 256 KB; else, and with manifest, the jobs that have them.").or(makegood.OutputsList),
	)
}

func toleranceKind(t *makegood.Tolerance) kind {
	return object("tolerate", "",
		row("items", count(&t.Items, makegood.MaxItems).unless(t.Items == 0), "How many may fail."),
		row("share", into(&t.Share, reader.share).as(typed("number")).
			refuse(t.Share < 0 || t.Share >= 1, "share %v is out of range: above 0 and below 1", t.Share).
			refuse(t.Share > 0 && t.After == 0, "a share counts from how many items on? Say after: 100"),
			"Which part of those that have ended may have failed; above 0 and below 1."),
		row("after", count(&t.After, makegood.MaxItems).unless(t.After == 0).
			refuse(t.After > 0 && t.Share == 0, "after is of a share, and there is none"),
			"How many must have ended before the share counts."),
	)
}

// overList checks a step with a map: the fields that are its items' in the place of the step.
func (r rules) overList(path string, s makegood.Step, i int) {
	if s.Map == nil || s.Map.Item == nil || r.workflow.Part != nil {
		return // A part was checked with the step that has the map.
	}
	r.level = max(r.level, levelMaps)
	item := *s.Map.Item
	stepKind(i, &item).check(r, path)
	if item.Agent == makegood.HTTPAgent {
		r.add(path+".agent", "the agent http makes no items of a map: let a workflow with that step do them (agent: workflow)")
	}
	if u := item.Undo; u != nil && domain.GetsTasks(u.Agent) && !u.None && string(u.With) != string(item.With) {
		r.add(path+".undo.with", "the undo of an item gets the input of the item: leave with out")
	}
}

// mapped compiles a step with a map: the list, and the input of an item.
func (c compiler) mapped(path string, s makegood.Step) *request {
	if s.Map.Over == "" { // A part has the items of its job.
		return &request{}
	}
	r := &request{over: c.condition(path+".map.over", s.Map.Over, `"${ .input.lines }"`)}
	c.view.mapped = true
	item := c.request(path+".with", s.Map.Item.Agent, s.Map.Item.With)
	if item.with != nil && item.with.secrets() > 0 {
		c.add(path+".with", "a secret is put into tasks alone, and the inputs of items are kept: let a workflow do the items, with the secret in its step")
	}
	r.with, r.reads = item.with, item.reads
	if r.over != nil {
		r.reads.add(r.over.reads)
	}
	return r
}

// items are the inputs of the items of a step with a map, as a JSON list.
func (p *plan) items(ctx context.Context, r *request, data Data) (TaskInput, error) {
	root, err := data.root(r.reads, p.names(r.reads, false))
	if err != nil {
		return TaskInput{}, p.fault(ctx, false, "with", err)
	}
	value, err := r.over.value(ctx, root)
	if err != nil {
		return TaskInput{}, p.fault(ctx, false, "map.over", err)
	}
	list, ok := value.([]any)
	switch {
	case !ok:
		return TaskInput{}, p.fault(ctx, false, "map.over", r.over.fault(fmt.Errorf("gives %s, want a list", preview(value))))
	case len(list) > makegood.MaxItems:
		return TaskInput{}, p.fault(ctx, false, "map.over", r.over.fault(fmt.Errorf("gives %d items, the limit is %d", len(list), makegood.MaxItems)))
	}
	f := &filling{value: func(e *expression) (any, error) { return e.value(ctx, root) }}
	out, from := []byte{'['}, 0
	for i, item := range list {
		if i%limits.PartItems == 0 {
			from = len(out)
		}
		if i > 0 {
			out = append(out, ',')
		}
		root["item"], root["index"] = item, i
		var input []byte
		if r.with == nil {
			input, err = jq.Append(nil, item, makegood.MaxPayloadBytes)
		} else {
			input, err = r.with.append(nil, f)
		}
		out = append(out, input...)
		const around = len(`{"items":[]}`)
		if n := len(out) - from + around; err == nil && n > makegood.MaxPayloadBytes {
			err = fmt.Errorf("the inputs of its part have more than %d bytes together: pass less, or an id by which the item is found", makegood.MaxPayloadBytes)
		}
		if err != nil {
			return TaskInput{}, p.fault(ctx, false, "with", at(fmt.Sprintf("item %d", i), err))
		}
	}
	return TaskInput{Value: append(out, ']')}, nil
}

// DefinitionBy reads a definition by the reference that a job has: a hash, or that of a part of a map, whose definition
// is made of the one that has the map. load reads one by its hash.
func DefinitionBy(reference string, load func(hash string) ([]byte, error)) ([]byte, error) {
	ref, mapped := domain.MapRefOf(reference)
	if !mapped {
		return load(reference)
	}
	whole, err := load(ref.Definition)
	if err != nil {
		return nil, err
	}
	w, err := decodeDefinition(whole)
	if err != nil {
		return nil, err
	}
	for _, s := range w.Steps {
		if s.Name == ref.Step && s.Map != nil && s.Map.Item != nil {
			return partDefinition(w, s, ref.Items)
		}
	}
	return nil, fmt.Errorf("%w: definition %s has no step %s with a map", ErrInvalid, ref.Definition, ref.Step)
}

// partDefinition is the definition of the jobs that do n items of a step.
func partDefinition(w makegood.Workflow, s makegood.Step, n int) ([]byte, error) {
	part := domain.WithDefaults(domain.MapWorkflow(w, s, n, func(i int) []byte {
		with, _ := json.Marshal(fmt.Sprintf("${ .input.items[%d] }", i)) // A text always can be.
		return with
	}))
	part.Name = domain.MapName(w.Name, s.Name)
	return define(part, levelMaps)
}
