package asl

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/limits"
)

// batches gives the step the agent of the Task that does a batch. Its stub answers for each item with what the Task
// answered for the batch.
func (w walk) batches(s *step, here comes, by doer) {
	w.itemOf(s, here, by)
	batcher, t := w.state.body.get("ItemBatcher"), w.tell(w.state)
	size, _ := strconv.Atoi(batcher.get("MaxItemsPerBatch").json())
	names, parts := []string{"Item"}, []*value{w.valueOf(here.arrivals, w.selected)}
	if input := batcher.get("BatchInput"); input != nil {
		names = append(names, "BatchInput")
		parts = append(parts, w.valueOf(here.arrivals, func(arrival *value) (*value, error) { return w.said(arrival, input) }))
	}
	s.with, s.action, s.do, s.overItems.batch = w.object(names, parts), s.action+"_batch", stubBatch, size
	t.note("the agent answers for each item of a batch (agent.DoBatch): the stub gives all of them the answer for the batch, as one call of the function did")
	if limits.PartItems%size > 0 {
		t.note(fmt.Sprintf("a batch ends at each %d items of the list, too", limits.PartItems))
	}
	if batcher.get("MaxInputBytesPerBatch") != nil {
		t.left("MaxInputBytesPerBatch: a batch has so many items, whatever their size: lower batch where they are large")
	}
}

// reader adds the step that reads the list of a Map, which its ItemReader did.
func (w walk) reader(here comes, reader *node) (list *value, tails []*step) {
	s := w.add(w.state.name+" items", here)
	r := resourceOf(&state{body: reader, jsonata: w.state.jsonata})
	s.agent, s.action, s.do, s.timeout = r.agent, r.action, stubList, "15m"
	s.about = append(s.about, "It gives the items of a Map as a list, or as a large payload of JSON lines (docs/maps.md), as "+r.what+" did.")
	s.with = w.valueOf(here.arrivals, func(arrival *value) (*value, error) {
		return w.said(arrival, reader.get(w.state.calledWith()))
	})
	t := w.tell(w.state)
	t.note("step " + s.name + " reads the list: a Catch of the Map is not for its failures")
	if reader.get("ReaderConfig").get("MaxItems") != nil {
		t.left("MaxItems: let step " + s.name + " give no more than that")
	}
	return w.path(".steps." + s.name + ".output"), []*step{s}
}

// unread is why no step can read what an ItemReader reads.
func unread(reader *node) string {
	switch kind := reader.get("ReaderConfig").textOf("InputType"); {
	case reader == nil:
	case !strings.HasSuffix(reader.textOf("Resource"), ":s3:getObject"):
		return "ItemReader of a list of objects: let a step before it list them, as a list or as a large payload of JSON lines (docs/maps.md), without ItemReader"
	case kind != "JSON" && kind != "JSONL":
		return "ItemReader of " + clip(or(kind, "no InputType")) + ": let a step before it make a large payload of JSON lines of it (docs/maps.md), without ItemReader"
	}
	return ""
}

// itemsOwn makes a workflow of the states of an item, and the step of the Map has it do the items. Its input is that of
// the item; where its states read more than that, they have it beside.
func (w walk) itemsOwn(s *step, here comes) {
	name := strings.ReplaceAll(w.workflows.unique(snake(w.workflow+" "+w.state.name), "items"), "_", "-")
	processor := w.state.body.get("ItemProcessor").json() + w.state.body.get("Iterator").json()
	inner := newTranslator(name, w.translator.machine)
	inner.report, inner.told, inner.workflows, inner.level = w.report, w.told, w.workflows, w.level+1
	names, parts := []string{"input"}, []*value{w.valueOf(here.arrivals, w.selected)}
	also := func(name string, v *value) {
		names, parts = append(names, name), append(parts, v)
	}
	if strings.Contains(processor, "Map.Item") {
		also("item", w.path(".item"))
		also("index", w.path(".index"))
	}
	variables, order, n := variablesOf(w.single(here.arrivals))
	shared := !strings.Contains(processor, `"DISTRIBUTED"`)
	if shared && strings.Contains(processor, "Execution.Input") {
		also("execution", w.path(w.execution))
		inner.execution = ".input.execution"
	}
	all := make([]*value, n)
	for i, variable := range order {
		all[i] = variables[variable]
		variables[variable] = inner.path(".input.variables" + dotted(variable))
	}
	if shared && n > 0 {
		also("variables", w.object(order, all))
	}
	begin := inner.path(".input")
	if s.with = parts[0]; len(names) > 1 {
		s.with, begin, inner.item = w.object(names, parts), inner.path(".input.input"), ".input."
	}
	if !shared {
		variables, order = nil, nil
	}
	s.agent, s.action = makegood.AgentWorkflow, name
	inner.gives(inner.take(w.state.items, inner.arrival(begin, variables, order)))
	own, err := inner.imported(definition{machine: *w.state.items})
	if err != nil {
		w.translator.failed = err
		return
	}
	w.translator.items = append(append(w.items, own), own.items...)
	w.tell(w.state).note(fmt.Sprintf("each item is a job of workflow %s, whose states stand below: deploy both files together", name))
}

// gives has the last step of a workflow of items give what an item gives.
func (t *translator) gives(out exit) {
	if len(leaves(out.arrivals)) == 0 {
		return // Each item fails.
	}
	given := t.single1(out.arrivals)
	if n := len(t.steps); n > 0 {
		if last := t.steps[n-1]; last.do == stubEcho && last.undo == nil && last.overItems == nil && given == t.path(".steps."+last.name+".output") {
			last.undo = last.idleUndo()
			return
		}
	}
	s := &step{
		name: t.names.unique("result", "result"), agent: agentOutcome, action: "give", do: stubGive, tails: out.tails,
		reach: []*diagram{t.reached(out.arrivals)}, with: given, retry: &retry{attempts: 1},
	}
	s.undo = s.idleUndo()
	t.steps = append(t.steps, s)
}

// idleUndo is an undo without an effect. A job that fails ends only in a workflow that has an undo; in any other
// it waits for a person, and whatever waits for its end with it.
func (s *step) idleUndo() *undo {
	return &undo{agent: s.agent, action: s.action + "_undo", with: s.with, retry: s.retry}
}

// endsBadly has a step with a map end where too many of its items fail, so that a Catch is reached.
func (w walk) endsBadly(s *step) {
	if s.agent == makegood.AgentWorkflow {
		s.undoesChild = true
	} else {
		s.undo = s.idleUndo()
	}
	w.tell(w.state).note("a Catch is reached by the kind child, whatever the errors of the items were: States.ALL catches it; items that were done are undone before, by an undo that does nothing unless you write it")
}
