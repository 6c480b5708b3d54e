package workflowfile

import (
	"context"
	"encoding/json"
	"errors"
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
		row("batch", count(&m.Batch, limits.MaxBatchItems).unless(m.Batch == 0),
			"How many items are one task. The agent answers for each of them, and only those that failed are tried again."),
		row("tolerate", toleranceKind(&m.Tolerate), "How many items may fail before the step has failed. Default: none."),
		row("outputs", word(&m.Outputs, makegood.OutputsList, makegood.OutputsManifest).
			refuse(m.Outputs != makegood.OutputsList && m.Outputs != makegood.OutputsManifest, "outputs %q is not known: want list or manifest", m.Outputs),
			"The output of the step: the outputs of its items in their order, where that has at most 256 KB and refers to no large payload; else, and with manifest, the jobs that have them.").or(makegood.OutputsList),
	)
}

func toleranceKind(t *makegood.Tolerance) kind {
	return object("tolerate", "",
		row("items", count(&t.Items, makegood.MaxItems).unless(t.Items == 0), "How many may fail."),
		row("share", into(&t.Share, reader.share).as(typed("number")).
			refuse(t.Share < 0 || t.Share >= 1, "share %v is out of range: above 0 and below 1", t.Share).
			refuse(t.Share > 0 && t.After == 0, "a share counts from how many items on? Say after: 100"),
			"Which part of those that have ended may have failed; above 0 and below 1."),
		row("after", count(&t.After, makegood.MaxItems).unless(t.After == 0), "How many must have ended before the share counts."),
	).refuse(t.After > 0 && t.Share == 0, "after %d is of a share, and there is none", t.After)
}

// overList checks a step with a map: the fields that are its items' in the place of the step.
func (r rules) overList(path string, s makegood.Step, i int) {
	if s.Map == nil || s.Map.Item == nil || r.workflow.Part != nil {
		return // A part was checked with the step that has the map.
	}
	r.level = max(r.level, levelMaps)
	item := *s.Map.Item
	if s.Map.Count != 0 {
		r.add(path+".map.count", "count follows from the list: leave it out")
	}
	if s.Agent != makegood.AgentWorkflow || item.Map != nil || item.Any || item.Only != "" || item.When != "" || len(item.OnError) > 0 || len(item.Needs) > 0 {
		r.add(path+".map.item", "item follows from the step: leave it out")
		return
	}
	stepKind(i, &item).check(r, path)
	if item.Agent == makegood.HTTPAgent || domain.WaitsByItself(item.Agent) { // What they do is in the text of their with.
		r.add(path+".agent", "the agent %s does no items of a map: let a workflow with that step do them (agent: workflow)", item.Agent)
	}
	if s.Map.Batch > 1 && (item.Agent == makegood.AgentWorkflow || item.Repeat != nil) {
		r.add(path+".map.batch", "the items of a batch are done by one task of an agent: it goes neither with agent: workflow nor with repeat")
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
	if again := s.Map.Item.Repeat; again != nil && again.Until != "" { // It is evaluated in the job of the item.
		own := c
		own.view = view{owner: s.Name, fields: []string{"output"}}
		own.condition(path+".repeat.until", again.Until, `"${ .output.ready }"`)
	}
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

// items are the inputs of the items of a step with a map, as a JSON list. Each evaluation has its limit, and 100,000 of
// them have one together: they would take hours.
func (p *plan) items(ctx context.Context, r *request, data Data, budget *jq.Budget) (TaskInput, error) {
	root, err := data.root(r.reads, p.names(r.reads, false))
	if err != nil {
		return TaskInput{}, p.fault(ctx, false, "with", err)
	}
	value, err := r.over.value(ctx, root)
	if err != nil {
		return TaskInput{}, p.fault(ctx, false, "map.over", err)
	}
	m := &mapping{with: r.with, root: root, filling: &filling{value: func(e *expression) (any, error) { return e.within(ctx, root, budget) }}}
	switch ref, is, wrong := payloadIn(value); {
	case wrong != nil:
		return TaskInput{}, p.fault(ctx, false, "map.over", r.over.fault(wrong))
	case is && data.Values == nil:
		return TaskInput{}, p.fault(ctx, false, "map.over", r.over.fault(errors.New("gives a large payload, and none are kept here")))
	case is:
		final, err := data.Values(ctx, ref, m.value)
		if err != nil {
			return TaskInput{}, fmt.Errorf("read the items of step %s: %w", p.step, err)
		}
		if final != nil {
			return TaskInput{}, p.fault(ctx, false, "map.over", r.over.fault(final))
		}
	default:
		list, ok := value.([]any)
		if !ok {
			return TaskInput{}, p.fault(ctx, false, "map.over", r.over.fault(fmt.Errorf("gives %s, want a list, or a large payload of JSON lines", preview(value))))
		}
		for _, item := range list {
			if err := m.item(item); err != nil {
				return TaskInput{}, p.fault(ctx, false, "with", err)
			}
		}
	}
	return TaskInput{Value: m.list()}, nil
}

// payloadIn reads the reference to a large payload that a value is.
func payloadIn(value any) (p makegood.Payload, is bool, err error) {
	members, ok := value.(map[string]any)
	if !ok || members[limits.PayloadMark] == nil {
		return p, false, nil
	}
	text, err := jq.Append(nil, value, makegood.MaxPayloadBytes)
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	return p, err == nil, err
}

// mapping collects the inputs of items.
type mapping struct {
	with    *template
	root    map[string]any
	filling *filling
	out     []byte
	n       int
	// part is where the inputs of the latest part begin.
	part int
}

// value adds the item that a text is.
func (m *mapping) value(text []byte) error {
	item, err := jq.Decode(text)
	if err != nil {
		return fmt.Errorf("item %d is no JSON: %w", m.n, err)
	}
	return m.item(item)
}

func (m *mapping) item(item any) (err error) {
	if m.n == makegood.MaxItems {
		return fmt.Errorf("more than %d items, which is the limit", makegood.MaxItems)
	}
	if m.n%limits.PartItems == 0 {
		m.part = len(m.out)
	}
	m.root["item"], m.root["index"] = item, m.n
	var input []byte
	if m.with == nil {
		input, err = jq.Append(nil, item, makegood.MaxPayloadBytes)
	} else {
		input, err = m.with.append(nil, m.filling)
	}
	const around = len(`{"items":[]}`)
	m.out = append(append(m.out, input...), ',')
	switch {
	case err != nil:
	case len(m.out)-m.part+around > makegood.MaxPayloadBytes:
		err = fmt.Errorf("the inputs of its part have more than %d bytes together: pass less, or an id by which the item is found", makegood.MaxPayloadBytes)
	case len(m.out) > limits.MaxMapBytes:
		err = fmt.Errorf("the inputs of the items have more than %d bytes together: pass less, or an id by which the item is found", limits.MaxMapBytes)
	}
	if err != nil {
		return at(fmt.Sprintf("item %d", m.n), err)
	}
	m.n++
	return nil
}

func (m *mapping) list() []byte {
	list := append([]byte{'['}, m.out...)
	if m.n > 0 {
		list = list[:len(list)-1]
	}
	return append(list, ']')
}

// ErrNoMap: a reference names the part of a map that the definition does not have. It is an ErrInvalid.
var ErrNoMap = fmt.Errorf("%w: there is no such step with a map", ErrInvalid)

// LoadBy loads a definition by the reference that a job has, which is then its Hash: a hash, or that of a part of a
// map, whose definition is made of the one that has the map. stored reads one by its hash; read is Load, or remembers.
func LoadBy(reference string, stored func(hash string) ([]byte, error), read func(definition []byte) (*Compiled, error)) (*Compiled, error) {
	definition, err := definitionBy(reference, stored)
	if err != nil {
		return nil, err
	}
	c, err := read(definition)
	if err != nil || c.Workflow.Part == nil {
		return c, err
	}
	part := *c
	part.Hash = reference
	return &part, nil
}

func definitionBy(reference string, load func(hash string) ([]byte, error)) ([]byte, error) {
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
	return nil, fmt.Errorf("definition %s, step %s: %w", ref.Definition, ref.Step, ErrNoMap)
}

// partDefinition is the definition of the jobs that do n items of a step.
func partDefinition(w makegood.Workflow, s makegood.Step, n int) ([]byte, error) {
	part := domain.WithDefaults(domain.MapWorkflow(w, s, n, func(i, batch int) []byte {
		place := fmt.Sprint(i)
		if batch > 0 {
			place = fmt.Sprintf("%d:%d", i, i+batch)
		}
		with, _ := json.Marshal(fmt.Sprintf("${ .input.items[%s] }", place)) // A text always can be.
		return with
	}))
	part.Name = domain.MapName(w.Name, s.Name)
	return define(part, levelMaps)
}
