package asl

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/limits"
)

// overItems is the map of a step: its list, and the limits of its items.
type overItems struct {
	over               *value
	concurrency, batch int
	// items and share are how many may fail; after is from how many on the share counts.
	items, after int
	share        float64
	// manifest: the output is the list of the jobs that have the outputs.
	manifest bool
}

// doer does the items of a Map: the agent of their one Task, or a job of the workflow that this Task starts. Without a
// task it is a job of a workflow that is made of their states.
type doer struct {
	task     *state
	r        resource
	workflow string
}

// mapState makes a step with a map of a Map.
func (w walk) mapState(here comes) {
	by, why := w.itemsBy()
	if why != "" {
		w.tell(w.state).left("a Map: " + why)
		w.byHandState(here, "Map")
		return
	}
	over := w.valueOf(here.arrivals, w.list1)
	if reader := w.state.body.get("ItemReader"); reader != nil {
		over, here.tails = w.reader(here, reader)
	}
	s := w.add(w.state.name, here)
	s.overItems = &overItems{over: over}
	switch {
	case by.task == nil:
		w.itemsOwn(s, here)
	case w.state.body.get("ItemBatcher") != nil:
		w.batches(s, here, by)
	default:
		w.itemOf(s, here, by)
	}
	w.bounds(s.overItems)
	t := w.tell(w.state)
	t.becomes(fmt.Sprintf("step %s, which is done once for each item, by %s", s.name, s.agent))
	t.note("the output of an item that has failed, and is tolerated, is null")
	if w.state.body.get("Retry") != nil {
		t.left("Retry: here each item is tried again by itself, and what failed by makegood redrive")
	}
	w.catching(s, here)
	if len(s.routes) > 0 {
		w.endsBadly(s)
	}
	result := w.itemsResult(s, by)
	w.leave(comes{w.done(s, w.apply(here.arrivals, func(arrival *value) (*value, error) { return w.after(arrival, result) })), []*step{s}})
}

// itemsBy is what does the items of a Map, or why no step with a map is possible.
func (w walk) itemsBy() (by doer, why string) {
	items, batcher := w.state.items, w.state.body.get("ItemBatcher")
	if items == nil {
		return by, "it has no ItemProcessor with states"
	}
	if task := items.states[0]; len(items.states) == 1 && task.kind == "Task" && !shapes(task) {
		r := resourceOf(task)
		workflow, _ := w.within(task).childOf(r)
		if workflow != "" || !r.http && !r.token && !r.sync {
			by = doer{task, r, workflow}
		}
	}
	switch {
	case w.level > 0 && (by.task == nil || by.workflow != ""):
		return by, "its items need jobs of their own, and those of the Map around have them: at most 3 jobs stand above one (docs/children.md)"
	case unread(w.state.body.get("ItemReader")) != "":
		return by, unread(w.state.body.get("ItemReader"))
	case batcher == nil:
		return by, ""
	case by.task == nil || by.workflow != "":
		return by, "ItemBatcher: only an agent does batches, and these take jobs of their own: let a step before it give a list of batches, without ItemBatcher"
	}
	most, err := strconv.Atoi(batcher.get("MaxItemsPerBatch").json())
	batch := w.path(".batch")
	called, wrong := w.within(by.task).effective(w.arrival(batch, nil, nil))
	switch {
	case err != nil || most < 1 || most > limits.MaxBatchItems:
		return by, fmt.Sprintf("ItemBatcher: MaxItemsPerBatch is to be a number of 1 to %d here, and no size in bytes: let a step before it give a list of larger batches, without ItemBatcher", limits.MaxBatchItems)
	case wrong != nil || w.inputOf(by.r, called) != batch:
		return by, "ItemBatcher: its Task calls with something else than its input, the batch: hand the whole batch over (Payload: $)"
	}
	return by, ""
}

// shapes reports whether a Task has a Catch, or gives something else than its agent answers.
func shapes(task *state) bool {
	if task.body.textOf("OutputPath") == "$.Payload" || strings.ReplaceAll(task.body.textOf("Output"), " ", "") == "{%$states.result.Payload%}" {
		return task.body.get("Catch") != nil || task.body.get("Assign") != nil || !strings.HasSuffix(task.body.textOf("Resource"), ":lambda:invoke")
	}
	return slices.ContainsFunc([]string{"Catch", "ResultSelector", "ResultPath", "OutputPath", "Output", "Assign"}, func(field string) bool { return task.body.get(field) != nil })
}

// within is a walk at the Task that does an item.
func (w walk) within(task *state) walk {
	w.machine, w.state, w.item = w.state.items, task, "."
	return w
}

// itemOf gives the step the agent and the input of the Task that does an item.
func (w walk) itemOf(s *step, here comes, by doer) {
	inner := w.within(by.task)
	t := w.tell(by.task)
	t.becomes("the items of step " + s.name)
	effective := w.valueOf(here.arrivals, func(arrival *value) (*value, error) {
		item, err := w.selected(arrival)
		if err != nil {
			return nil, err
		}
		variables, order, _ := variablesOf(arrival)
		return inner.effective(w.arrival(item, variables, order))
	})
	if by.workflow != "" {
		s.agent, s.action, s.with = makegood.AgentWorkflow, by.workflow, w.given(effective, "Input")
		inner.importsToo(by.workflow)
		inner.leftOfChild()
		return
	}
	s.agent, s.action, s.do = or(by.r.agent, agentFunctions), or(by.r.action, s.name), stubEcho
	s.about = append(s.about, "In the state machine it called "+by.r.what+" for each item.")
	s.with = inner.inputOf(by.r, effective)
	inner.lasts(s, by.r)
	inner.retries(s)
	if len(s.routes) > 0 {
		t.note("an item is tried again after every error that is not final, not after some by their names")
		if s.retry.attempts == 1 {
			s.retry = s.routes[0].retry
		}
		s.routes = nil
	}
}

// selected is the input of an item: the value of ItemSelector, or the item itself.
func (w walk) selected(arrival *value) (*value, error) {
	selector := w.state.body.get("ItemSelector")
	if selector == nil && !w.state.jsonata {
		selector = w.state.body.get("Parameters")
	}
	w.item = "."
	if selector == nil {
		return w.path(".item"), nil
	}
	return w.said(arrival, selector)
}

// list1 is the list that a Map goes over.
func (w walk) list1(arrival *value) (*value, error) {
	s, err := w.filtering(arrival)
	switch {
	case err != nil:
		return nil, err
	case w.state.jsonata && w.state.body.get("Items") != nil:
		return s.expressionOf(w.state.body.get("Items"))
	default:
		return s.filter(w.state.body.get("ItemsPath"))
	}
}

// bounds says how many items are under way at once, and how many may fail.
func (w walk) bounds(m *overItems) {
	t := w.tell(w.state)
	number := func(field string) (n float64, said bool) {
		v := w.state.body.get(field)
		switch {
		case w.state.body.get(field+"Path") != nil:
			t.left(field + "Path: it is written out here, and the same for every job")
			return 0, false
		case v == nil:
			return 0, false
		case v.kind != isNumber:
			t.left(field + " is an expression: it is written out here, and the same for every job")
			return 0, false
		}
		n, err := strconv.ParseFloat(v.text, 64)
		return n, err == nil && n > 0
	}
	if n, said := number("MaxConcurrency"); said {
		m.concurrency = int(min(n*float64(max(m.batch, 1)), limits.MaxConcurrency))
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

// itemsResult is the result of a Map: the outputs of its items as their Task, or their last state, gave them.
func (w walk) itemsResult(s *step, by doer) *value {
	list := w.path(".steps." + s.name + ".output")
	one := w.path(".")
	of := one
	switch {
	case by.task == nil:
	case by.workflow != "":
		of = w.childResult(by.r, one)
	case !shapes(by.task) && by.task.body.get("OutputPath") == nil && by.task.body.get("Output") == nil:
		of = w.resultOf(by.r, one)
	}
	if size := s.overItems.batch; size > 0 {
		list = w.jq("[%s as $all | range($all | length) | select(. %% %d %% %d == 0) | $all[.]]", w.operand(list), limits.PartItems, size)
	}
	if of != one {
		list = w.jq("[%s[] | %s]", w.operand(list), w.expression(of))
	}
	if w.state.body.get("ResultWriter") == nil {
		return list
	}
	s.overItems.manifest = true
	if path := w.state.body.get("ResultPath"); path != nil && path.kind == isNull || w.state.next == "" && w.level == 0 {
		w.tell(w.state).note("ResultWriter: the outputs stay in the jobs of the items, and the output of the step says which (outputs: manifest, docs/maps.md)")
		return list
	}
	return w.missing(errors.New("ResultWriter: the outputs stay in the jobs of the items (outputs: manifest, docs/maps.md): let what reads the objects in S3 read those"))
}
