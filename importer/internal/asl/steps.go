package asl

import (
	"slices"
	"strings"
)

// step is a step of the workflow that is being made.
type step struct {
	name, agent, action string
	// state is what it was; nil: it was made beside one.
	state *state
	// tails are the steps behind which it begins; only: it begins when a route goes to it.
	tails []*step
	only  bool
	// reach says on which ways it is done: all of these lead to it.
	reach []*diagram
	// with is its input; nil: the job's.
	with               *value
	timeout, heartbeat string
	retry              *retry
	routes             []route
	undo               *undo
	repeat             *repeat
	do                 stubKind
	// missing says what a step stands for that stops the job; about is what its stub is told beside.
	missing string
	about   []string
	// routed is the decision whether it was given up; nil: nothing leads elsewhere then.
	routed *routed
	// undoesChild: its undo is that of the job that does it.
	undoesChild bool
	// overItems is set where it is done once for each item of a list.
	overItems *overItems
	// wait is how long a step waits to be completed.
	wait string
}

type retry struct {
	attempts     int
	backoff, max string
}

// route is one of onError. target is set where it says goto.
type route struct {
	kind   string
	do     string
	retry  *retry
	target *state
}

type undo struct {
	agent, action string
	with          *value
	retry         *retry
	state         *state
}

type repeat struct {
	until string
	every string
}

// stubKind is what the code of an action does until it is written.
type stubKind string

const (
	// stubEcho answers what it was asked.
	stubEcho stubKind = "echo"
	// stubWait hands the step over to whoever completes it.
	stubWait stubKind = "wait"
	// stubFail is written whole: it fails. So is stubGive: it gives its input.
	stubFail stubKind = "fail"
	stubGive stubKind = "give"
	// stubList answers an empty list, and stubBatch for each item of a batch.
	stubList  stubKind = "list"
	stubBatch stubKind = "batch"
	// stubUndo has no effect; stubMissing stops the job.
	stubUndo    stubKind = "undo"
	stubMissing stubKind = "missing"
	// stubNone: the agent is built in.
	stubNone stubKind = "none"
)

// add adds a step behind what comes to the state that is being looked at.
func (w walk) add(name string, here comes) *step {
	s := &step{name: w.names.unique(snake(name), "state"), state: w.state, tails: here.tails, do: stubNone}
	s.reach = append(slices.Clone(w.around), w.reached(here.arrivals))
	w.translator.steps = append(w.steps, s)
	if w.stepOf[w.state] == nil {
		w.stepOf[w.state] = s
	}
	return s
}

// done is what leaves a step when it is done, and not given up.
func (w walk) done(s *step, arrivals *diagram) *diagram {
	if s.routed == nil {
		return arrivals
	}
	return w.where(arrivals, s.routed.decision, s.routed.done)
}

// handler is an entry of a Catch, of the state itself or of a Parallel around it.
type handler struct {
	body  *node
	index int
	of    catcher
}

// handlers are the entries that a failure of the state goes through.
func (w walk) handlers(here comes) []handler {
	var all []handler
	add := func(c catcher) {
		if catch := c.state.body.get("Catch"); catch != nil {
			for i, body := range catch.items {
				if i < w.catches(c.state) {
					all = append(all, handler{body, i, c})
				}
			}
		}
	}
	add(catcher{w.state, w.machine, here.arrivals, w.flow})
	for i := len(w.catchers) - 1; i >= 0; i-- {
		add(w.catchers[i])
	}
	return all
}

// catching gives a step its routes for errors, and hands on to the states that they lead to.
func (w walk) catching(s *step, here comes) {
	handlers := w.handlers(here)
	if len(handlers) == 0 {
		return
	}
	d := &decision{number: w.decisions}
	w.decisions++
	r := &routed{decision: d, whole: true}
	var seen []string
	var outs []func(outcome int)
	for _, h := range handlers {
		kinds := w.kinds(h)
		condition := w.caught(s, kinds, seen)
		seen = append(seen, kinds...)
		if condition == nil {
			continue
		}
		target := h.of.machine.byName[h.body.textOf("Next")]
		at := w.goesTo(h, target)
		for _, kind := range kinds {
			do := "skip"
			if at != nil {
				do = "goto"
			}
			s.routes = append(s.routes, route{kind: kind, do: do, target: at})
		}
		if at == nil {
			r.whole = false
		} else if !slices.Contains(r.pending, at) {
			r.pending = append(r.pending, at)
		}
		d.outcomes = append(d.outcomes, outcome{yes: condition, no: w.opposite2(condition)})
		outs = append(outs, func(outcome int) { w.hand(s, h, target, here, d, outcome) })
	}
	if len(d.outcomes) == 0 {
		return
	}
	d.outcomes = append(d.outcomes, outcome{})
	r.done = len(d.outcomes) - 1
	w.translator.routed = append(w.routed, r)
	s.routed = r
	for i, out := range outs {
		out(i)
	}
}

// kinds are the kinds of error that an entry of a Catch is for.
func (w walk) kinds(h handler) []string {
	var kinds []string
	for _, e := range h.body.get("ErrorEquals").items {
		kind := "*"
		if e.text != "States.ALL" && e.text != "States.TaskFailed" {
			kind = kindOf(e.text)
			if w.state.kind == "Map" && e.text == "States.ExceedToleratedFailureThreshold" {
				kind = "child"
			}
			w.renamed(e.text, kind)
		}
		if e.text == "States.TaskFailed" {
			w.tell(w.state).note("States.TaskFailed is every error here, a timeout too")
		}
		if !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	if slices.Contains(kinds, "*") {
		return []string{"*"}
	}
	return kinds
}

// renamed tells under what kind an error is known here, unless the engine gives that itself.
func (w walk) renamed(name, kind string) {
	if !strings.HasPrefix(name, "States.") {
		w.tell(w.state).note("the error " + name + " is the kind " + kind + ": the agent says so, by agent.Kind")
	}
}

// caught is the condition that a step was given up for one of these kinds, and none that were seen before; nil: never.
func (w walk) caught(s *step, kinds, seen []string) *value {
	if slices.Contains(seen, "*") {
		return nil
	}
	errorOf := ".steps." + s.name + ".error"
	if kinds[0] != "*" {
		var terms []string
		for _, kind := range kinds {
			if !slices.Contains(seen, kind) {
				terms = append(terms, errorOf+".kind == "+quoted(kind))
			}
		}
		if len(terms) == 0 {
			return nil
		}
		return w.jq("%s", strings.Join(terms, " or "))
	}
	text := errorOf + " != null"
	for _, kind := range seen {
		text += " and " + errorOf + ".kind != " + quoted(kind)
	}
	return w.jq("%s", text)
}

// opposite2 is the opposite of a condition that asks for an error.
func (w walk) opposite2(condition *value) *value {
	if text, is := strings.CutSuffix(condition.text, " != null"); is && !strings.Contains(text, " ") {
		return w.jq("%s == null", text)
	}
	return w.opposite(condition)
}

// hand hands the data of a failure on to where an entry of a Catch leads.
func (w walk) hand(s *step, h handler, target *state, here comes, d *decision, outcome int) {
	errorOf := ".steps." + s.name + ".error"
	kind := w.make(value{form: formKind, parts: []*value{w.path(errorOf + ".kind")}})
	said := w.object([]string{"Error", "Cause"}, []*value{kind, w.path(errorOf + ".message")})
	if path := h.body.get("ResultPath"); path == nil || path.kind != isNull {
		w.tell(h.of.state).note("what a failure puts into the data: Error is the kind of the error, and Cause what the agent said of it")
	}
	at := w
	at.state, at.machine, at.flow = h.of.state, h.of.machine, h.of.flow
	raw := h.of.arrivals
	failed := at.apply(raw, func(arrival *value) (*value, error) { return at.failed(arrival, h.body, said) })
	if h.of.state != w.state {
		// Of a Parallel: on the ways within it that lead to this step.
		for _, reach := range s.reach {
			failed = w.both(failed, reach)
		}
	}
	failed = w.where(failed, d, outcome)
	at.to(target, h.index, comes{failed, []*step{s}})
}

// failed is what an entry of a Catch hands on.
func (w walk) failed(arrival *value, catch *node, said *value) (*value, error) {
	s := w.see(arrival)
	if w.state.jsonata {
		s.errorOutput = said
		of := w
		of.state = &state{name: w.state.name, jsonata: true, body: catch}
		return of.output(arrival, s, said)
	}
	names, parts, err := s.assign(&state{name: w.state.name, body: catch}, said)
	if err != nil {
		return nil, err
	}
	out, err := s.put(catch.get("ResultPath"), said)
	if err != nil {
		return nil, err
	}
	return w.assigned(arrival, out, names, parts), nil
}

// goesTo is the state whose step a route can go to: the first behind a Catch that is a step and that nothing else leads
// to. nil: there is none, so the step is passed by, and what follows has a condition.
func (w walk) goesTo(h handler, target *state) *state {
	f := h.of.flow
	if f.back[edge{h.of.state, target, h.index}] || target.name == h.of.machine.startAt {
		return nil
	}
	var behind *state
	for range MaxStates {
		for _, e := range f.into[target] {
			// Behind a Pass whatever else leads here stands in the way: it could not go here itself, past that Pass.
			if e.from != behind && (e.catch < 0 || behind != nil) {
				return nil
			}
		}
		switch target.kind {
		case "Task", "Wait", "Fail", "Map":
			return target
		case "Pass":
			behind, target = target, h.of.machine.byName[target.next]
			if target == nil || f.back[edge{behind, target, -1}] {
				return nil
			}
		default:
			return nil
		}
	}
	return nil
}
