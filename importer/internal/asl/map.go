package asl

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/limits"
)

// overItems is the map of a step: its list, and the limits of its items.
type overItems struct {
	over        *value
	concurrency int
	// items and share are how many may fail; after is from how many on the share counts.
	items, after int
	share        float64
}

// mapState makes a step with a map of a Map whose items are one Task each.
func (w walk) mapState(here comes) {
	task, r, workflow, why := w.itemTask()
	if why != "" {
		w.tell(w.state).left("a Map: " + why)
		w.byHandState(here, "Map")
		return
	}
	s := w.add(w.state.name, here)
	w.itemOf(s, here, task, r, workflow)
	s.overItems = &overItems{over: w.valueOf(here.arrivals, w.list1)}
	w.bounds(s.overItems)
	t := w.tell(w.state)
	t.becomes(fmt.Sprintf("step %s, which is done once for each item, by %s", s.name, s.agent))
	t.note("the output of an item that has failed, and is tolerated, is null")
	w.leftOfMap()
	w.catching(s, here)
	result := w.itemsResult(task, r, workflow, w.path(".steps."+s.name+".output"))
	w.leave(comes{w.done(s, w.apply(here.arrivals, func(arrival *value) (*value, error) { return w.after(arrival, result) })), []*step{s}})
}

// itemTask is the Task that does an item of a Map, or why no step with a map is possible. workflow is set where a job
// of its own does the item.
func (w walk) itemTask() (task *state, r resource, workflow, why string) {
	body, items := w.state.body, w.state.items
	switch {
	case body.get("ItemReader") != nil:
		return nil, r, "", "ItemReader: let a step before it give the list, or a large payload of JSON lines (docs/maps.md)"
	case body.get("ItemBatcher") != nil:
		return nil, r, "", "ItemBatcher: an agent gets one item, and not a batch"
	case items == nil:
		return nil, r, "", "it has no ItemProcessor with states"
	case len(items.states) > 1:
		return nil, r, "", "its items take several states: import its ItemProcessor as a machine of its own, and let that workflow do the items of a step with a map (docs/maps.md)"
	}
	if task = items.states[0]; task.kind != "Task" {
		return nil, r, "", fmt.Sprintf("its items are done by a %s, and not by a Task", task.kind)
	}
	inner := w.within(task)
	r = resourceOf(task)
	switch workflow, why = inner.childOf(r); {
	case workflow != "":
		return task, r, workflow, ""
	case why != "":
		return nil, r, "", why
	case r.http:
		return nil, r, "", "the agent http does no items: let a workflow with that step do them"
	case r.token || r.sync:
		return nil, r, "", "its items are completed from outside: let a workflow with that step do them"
	}
	return task, r, "", ""
}

// within is a walk at the Task that does an item.
func (w walk) within(task *state) walk {
	w.machine, w.state, w.item = w.state.items, task, true
	return w
}

// itemOf gives the step the agent and the input of the Task that does an item.
func (w walk) itemOf(s *step, here comes, task *state, r resource, workflow string) {
	inner := w.within(task)
	t := w.tell(task)
	t.becomes("the items of step " + s.name)
	effective := w.valueOf(here.arrivals, func(arrival *value) (*value, error) {
		item, err := w.selected(arrival)
		if err != nil {
			return nil, err
		}
		variables, order, _ := variablesOf(arrival)
		return inner.effective(w.arrival(item, variables, order))
	})
	s.agent, s.action, s.do = makegood.AgentWorkflow, workflow, stubNone
	if workflow != "" {
		if s.with = w.member(effective, "Input"); isAbsent(s.with) {
			s.with = w.object(nil, nil)
		}
		t.note(fmt.Sprintf("import the machine of workflow %s, too, and deploy both files together; without it a submission is refused (docs/children.md)", workflow))
		inner.leftOfChild()
		return
	}
	s.agent, s.action, s.do = or(r.agent, agentFunctions), or(r.action, s.name), stubEcho
	s.about = append(s.about, "In the state machine it called "+r.what+" for each item.")
	s.with = inner.inputOf(r, effective)
	inner.lasts(s, r)
	inner.retries(s)
	if len(s.routes) > 0 {
		t.note("an item is tried again after every error that is not final, not after some by their names")
		if s.retry.attempts == 1 {
			s.retry = s.routes[0].retry
		}
		s.routes = nil
	}
	if task.body.get("Catch") != nil {
		t.left("Catch: an item that is given up has failed, and the map says how many may")
	}
}

// selected is the input of an item: the value of ItemSelector, or the item itself.
func (w walk) selected(arrival *value) (*value, error) {
	selector := w.state.body.get("ItemSelector")
	if selector == nil && !w.state.jsonata {
		selector = w.state.body.get("Parameters")
	}
	if selector == nil {
		return w.path(".item"), nil
	}
	w.item = true
	s, err := w.filteredSight(arrival)
	if err != nil || w.state.jsonata {
		if err == nil {
			return s.expressionOf(selector)
		}
		return nil, err
	}
	return s.template(selector)
}

// list1 is the list that a Map goes over.
func (w walk) list1(arrival *value) (*value, error) {
	s, err := w.filteredSight(arrival)
	switch {
	case err != nil:
		return nil, err
	case w.state.jsonata && w.state.body.get("Items") != nil:
		return s.expressionOf(w.state.body.get("Items"))
	case w.state.jsonata || w.state.body.get("ItemsPath") == nil:
		return s.input, nil
	default:
		return s.filter(w.state.body.get("ItemsPath"))
	}
}

// filteredSight sees the input of a state, behind its InputPath.
func (w walk) filteredSight(arrival *value) (s sight, err error) {
	s = w.see(arrival)
	if !w.state.jsonata {
		s.input, err = s.filter(w.state.body.get("InputPath"))
	}
	return s, err
}

// bounds says how many items are under way at once, and how many may fail.
func (w walk) bounds(m *overItems) {
	t := w.tell(w.state)
	number := func(field string) (n float64, said bool) {
		v := w.state.body.get(field)
		if v == nil {
			return 0, false
		}
		if v.kind != isNumber {
			t.left(field + " is an expression: it is written out here, and the same for every job")
			return 0, false
		}
		n, err := strconv.ParseFloat(v.text, 64)
		return n, err == nil && n > 0
	}
	for _, field := range []string{"MaxConcurrencyPath", "ToleratedFailurePercentagePath", "ToleratedFailureCountPath"} {
		if w.state.body.get(field) != nil {
			t.left(field + ": it is written out here, and the same for every job")
		}
	}
	if n, said := number("MaxConcurrency"); said {
		m.concurrency = int(min(n, limits.MaxConcurrency))
	} else {
		t.note(fmt.Sprintf("at most %d items are under way at once, as no MaxConcurrency is taken over", limits.PartItems))
	}
	if m.concurrency > limits.PartItems && m.concurrency%limits.PartItems > 0 {
		t.note("concurrency above 100 is rounded down to hundreds")
	}
	if n, said := number("ToleratedFailureCount"); said {
		m.items = int(min(n, makegood.MaxItems))
	}
	switch n, said := number("ToleratedFailurePercentage"); {
	case said && n >= 100:
		m.items = makegood.MaxItems
	case said:
		m.share, m.after = n/100, int(math.Ceil(100/n))
		t.note(fmt.Sprintf("the percentage is of the items that have ended, and not of all; it counts once %d have, and of a shorter list all may fail", m.after))
	}
}

// leftOfMap tells which fields of a Map are not taken over.
func (w walk) leftOfMap() {
	for _, field := range []struct{ name, says string }{
		{"Retry", "here each item is tried again by itself, and what failed by makegood redrive"},
		{"ResultWriter", "the outputs stay in the jobs of the items, and outputs: manifest says which (docs/maps.md)"},
	} {
		if w.state.body.get(field.name) != nil {
			w.tell(w.state).left(field.name + ": " + field.says)
		}
	}
	if w.state.body.get("Catch") != nil {
		w.tell(w.state).note("a Catch is reached by the kind child, whatever the errors of the items were: States.ALL catches it")
	}
}

// itemsResult is the result of a Map: the outputs of its items as the Task gave them.
func (w walk) itemsResult(task *state, r resource, workflow string, list *value) *value {
	payload := task.body.textOf("OutputPath") == "$.Payload" || strings.ReplaceAll(task.body.textOf("Output"), " ", "") == "{%$states.result.Payload%}"
	for _, field := range []string{"ResultSelector", "ResultPath", "OutputPath", "Output", "Assign"} {
		if task.body.get(field) == nil || payload && r.lambda && (field == "OutputPath" || field == "Output") {
			continue
		}
		w.tell(task).left(field + ": the output of an item is what its agent answers")
	}
	one := w.path(".")
	of := one
	switch {
	case workflow != "":
		of = w.childResult(r, one)
	case !payload:
		of = w.resultOf(r, one)
	}
	if of == one {
		return list
	}
	return w.jq("[%s[] | %s]", w.operand(list), w.expression(of))
}
