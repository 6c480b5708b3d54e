package asl

import (
	"fmt"
	"slices"

	"github.com/makegood-dev/makegood/internal/limits"
)

// translator makes steps of states. It goes through each machine once, in the order in which its states lead to each
// other, and keeps for each state what comes to it on each way there.
type translator struct {
	*pool
	// workflow is the name of the workflow, machine that of the state machine.
	workflow, machine string
	steps             []*step
	names             names
	report            *Report
	told              map[*state]*StateReport
	stepOf            map[*state]*step
	// waiting is what comes to states that were not looked at yet.
	waiting map[*state]*comes
	// around are the ways on which the Parallel states around are reached.
	around []*diagram
	// catchers are the Parallel states around that catch, the innermost last.
	catchers []catcher
	// routed are the decisions whether a task was given up, where one goes elsewhere then.
	routed    []*routed
	decisions int
	// dropped is how many entries at the end of a Catch do nothing that needs a route.
	dropped map[*state]int
	polls   map[*state]*poll
	saga    *saga
	// level is how many Maps are around whose items are jobs of the workflow; item and execution are where in the input
	// of such a job the item lies, and the input of the execution.
	level           int
	item, execution string
	// workflows are the names of all of the import, and items those workflows that do items; failed is why one cannot be.
	workflows names
	items     []*Imported
	failed    error
	// followers are the steps behind each step, when all are there.
	followers map[*step]map[*step]bool
	// notes are those of the state that is being looked at.
	notes []string
}

func newTranslator(workflow, machine string) *translator {
	return &translator{
		pool: newPool(), workflow: workflow, machine: machine, names: names{}, workflows: names{}, report: &Report{Workflow: workflow}, execution: ".input",
		told: map[*state]*StateReport{}, stepOf: map[*state]*step{}, waiting: map[*state]*comes{}, dropped: map[*state]int{}, polls: map[*state]*poll{},
	}
}

// comes is what comes to a state: which ways lead there, with what, and behind which steps.
type comes struct {
	arrivals *diagram
	tails    []*step
}

// exit is what leaves a machine at its ends.
type exit = comes

// catcher is a Parallel state that catches what fails in it.
type catcher struct {
	state    *state
	machine  *machine
	arrivals *diagram
	flow     flow
}

// routed is the decision of a task with routes that lead elsewhere.
type routed struct {
	decision *decision
	done     int
	// targets are the steps that it goes to; whole: all of its other outcomes go to one of them.
	targets []*step
	whole   bool
	// pending are the states whose steps the targets will be.
	pending []*state
}

// comeTo adds a way to a state.
func (t *translator) comeTo(s *state, arrivals *diagram, tails []*step) {
	known := t.waiting[s]
	if known == nil {
		known = &comes{arrivals: t.nowhere()}
		t.waiting[s] = known
	}
	known.arrivals = t.unite(known.arrivals, arrivals)
	for _, tail := range tails {
		if !slices.Contains(known.tails, tail) {
			known.tails = append(known.tails, tail)
		}
	}
}

// through goes through a machine, and returns what leaves it.
func (t *translator) through(m *machine, begin comes) exit {
	f := t.flow(m)
	t.comeTo(m.byName[m.startAt], begin.arrivals, begin.tails)
	out := exit{arrivals: t.nowhere()}
	for _, s := range f.order {
		if t.waiting[s] == nil {
			t.unreached(s)
			continue
		}
		here := *t.waiting[s]
		here.arrivals = t.narrow(here.arrivals)
		w := walk{translator: t, machine: m, flow: f, state: s, exit: &out}
		t.notes = nil
		w.pass(here)
		t.tell(s).note(t.notes...)
		t.notes = nil
		if len(t.steps) > limits.MaxSteps {
			break
		}
	}
	for _, s := range m.states {
		if !slices.Contains(f.order, s) {
			t.unreached(s)
		}
	}
	return out
}

// unreached tells of a state to which no way leads, unless it became something else.
func (t *translator) unreached(s *state) {
	if t.told[s] != nil {
		return
	}
	t.tell(s).left("no way leads here")
	for _, b := range s.branches {
		for _, inner := range b.states {
			t.unreached(inner)
		}
	}
}

// walk is one state being looked at.
type walk struct {
	*translator
	machine *machine
	flow    flow
	state   *state
	exit    *exit
	// item is where the item of a Map lies that it looks at; empty: where that of the Map around does.
	item string
}

// pass makes of a state what it becomes, and hands on what leaves it.
func (w walk) pass(here comes) {
	switch w.state.kind {
	case "Pass":
		w.passState(here)
	case "Succeed":
		w.tell(w.state).becomes("no step: the end")
		w.leave(comes{w.apply(here.arrivals, w.filtered), here.tails})
	case "Fail":
		w.failState(here)
	case "Choice":
		w.choiceState(here)
	case "Wait":
		w.waitState(here)
	case "Parallel":
		w.parallelState(here)
	case "Map":
		w.mapState(here)
	case "Task":
		w.taskState(here)
	default:
		panic("asl: a state of type " + w.state.kind)
	}
}

// leave hands on what leaves a state: to the next, or out of the machine.
func (w walk) leave(out comes) {
	if w.state.next == "" {
		w.exit.arrivals = w.unite(w.exit.arrivals, out.arrivals)
		w.exit.tails = joinTails(w.exit.tails, out.tails)
		return
	}
	w.to(w.machine.byName[w.state.next], -1, out)
}

// to hands on to a state, or tells that the way there leads back.
func (w walk) to(next *state, catch int, out comes) {
	if !w.flow.back[edge{w.state, next, catch}] {
		w.comeTo(next, out.arrivals, out.tails)
		return
	}
	w.tell(w.state).left(fmt.Sprintf("the way back to %q: a workflow has no loops, so a step stands there that stops the job; "+
		"a step that is asked until it is ready is a repeat, and more of the same belongs into the agent, or into jobs of their own", next.name))
	w.byHand(w.state.name+" again", out, "loop back to "+next.name)
}

func joinTails(all, more []*step) []*step {
	for _, s := range more {
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

// see is what expressions of the state see of an arrival.
func (w walk) see(arrival *value) sight {
	return sight{
		pool: w.pool, input: arrival.input(), variables: arrival.variables(), state: w.state.name, machine: w.translator.machine, notes: &w.translator.notes,
		item: or(w.item, w.translator.item), execution: w.execution,
	}
}

// missing stands where a value could not be translated: who reads it fails, and says why, so that no step works with less.
func (w walk) missing(err error) *value {
	w.tell(w.state).left(err.Error())
	return w.jq("error(%s)", quoted("makegood-import has not taken over "+oneLine(w.state.name)+": "+clip(err.Error())))
}

// apply changes each arrival. Where that cannot be translated it is told, and who reads what goes on fails.
func (w walk) apply(d *diagram, change func(arrival *value) (*value, error)) *diagram {
	return w.mapLeaves(d, func(arrival *value) *value {
		changed, err := change(arrival)
		if err != nil {
			return w.assigned(arrival, w.missing(err), nil, nil)
		}
		return changed
	})
}

// valueOf evaluates something of each arrival; what cannot be translated is told, and fails where it is read.
func (w walk) valueOf(d *diagram, of func(arrival *value) (*value, error)) *value {
	return w.choose(w.mapLeaves(d, func(arrival *value) *value {
		v, err := of(arrival)
		if err != nil {
			return w.missing(err)
		}
		return v
	}))
}

// effective is the input of a state after InputPath and Parameters, or its Arguments.
func (w walk) effective(arrival *value) (*value, error) {
	if n := w.state.body.get(w.state.calledWith()); n != nil {
		return w.said(arrival, n)
	}
	s, err := w.filtering(arrival)
	return s.input, err
}

// said is the value of a field of the state, which sees the input behind InputPath; without the field it is {}.
func (w walk) said(arrival *value, n *node) (*value, error) {
	s, err := w.filtering(arrival)
	switch {
	case err != nil || n == nil:
		return w.object(nil, nil), err
	case w.state.jsonata:
		return s.expressionOf(n)
	default:
		return s.template(n)
	}
}

// filtering sees the input of a state, behind its InputPath.
func (w walk) filtering(arrival *value) (s sight, err error) {
	s = w.see(arrival)
	if !w.state.jsonata {
		if s.input, err = s.filter(w.state.body.get("InputPath")); err != nil {
			err = fmt.Errorf("InputPath: %w", err)
		}
	}
	return s, err
}

// filter evaluates InputPath or OutputPath.
func (s sight) filter(path *node) (*value, error) {
	switch {
	case path == nil:
		return s.input, nil
	case path.kind == isNull:
		return s.object(nil, nil), nil
	default:
		return s.at(path.text)
	}
}

// filtered is what a state without a result hands on.
func (w walk) filtered(arrival *value) (*value, error) {
	s, err := w.filtering(arrival)
	switch {
	case err != nil:
		return nil, err
	case w.state.jsonata:
		return w.output(arrival, s, nil)
	}
	names, parts, err := s.assign(w.state, s.input)
	if err != nil {
		return nil, err
	}
	out, err := s.filter(w.state.body.get("OutputPath"))
	if err != nil {
		return nil, err
	}
	return w.assigned(arrival, out, names, parts), nil
}

// after is what a state hands on that has a result.
func (w walk) after(arrival, result *value) (*value, error) {
	s := w.see(arrival)
	if w.state.jsonata {
		s.result = result
		return w.output(arrival, s, result)
	}
	body := w.state.body
	selected := result
	if selector := body.get("ResultSelector"); selector != nil {
		of := s
		of.input = result
		var err error
		if selected, err = of.template(selector); err != nil {
			return nil, fmt.Errorf("ResultSelector: %w", err)
		}
	}
	names, parts, err := s.assign(w.state, selected)
	if err != nil {
		return nil, err
	}
	out, err := s.put(body.get("ResultPath"), selected)
	if err != nil {
		return nil, fmt.Errorf("ResultPath: %w", err)
	}
	s.input = out
	if out, err = s.filter(body.get("OutputPath")); err != nil {
		return nil, fmt.Errorf("OutputPath: %w", err)
	}
	return w.assigned(arrival, out, names, parts), nil
}

// put puts a result where ResultPath says.
func (s sight) put(path *node, result *value) (*value, error) {
	switch {
	case path == nil:
		return result, nil
	case path.kind == isNull:
		return s.input, nil
	}
	names, err := referencePath(path.text)
	if err != nil {
		return nil, err
	}
	return s.set(s.input, names, result), nil
}

// assign evaluates Assign of a state that speaks JSONPath, in which $ is the result.
func (s sight) assign(of *state, result *value) (names []string, parts []*value, err error) {
	n := of.body.get("Assign")
	if n == nil {
		return nil, nil, nil
	}
	s.input = result
	v, err := s.template(n)
	if err != nil {
		return nil, nil, fmt.Errorf("in Assign: %w", err)
	}
	return v.names, v.parts, nil
}

// output is what a state hands on that speaks JSONata.
func (w walk) output(arrival *value, s sight, result *value) (*value, error) {
	var names []string
	var parts []*value
	if n := w.state.body.get("Assign"); n != nil {
		v, err := s.expressionOf(n)
		if err != nil {
			return nil, fmt.Errorf("in Assign: %w", err)
		}
		names, parts = v.names, v.parts
	}
	out := s.input
	if result != nil {
		out = result
	}
	if n := w.state.body.get("Output"); n != nil {
		var err error
		if out, err = s.expressionOf(n); err != nil {
			return nil, fmt.Errorf("in Output: %w", err)
		}
	}
	return w.assigned(arrival, out, names, parts), nil
}
