package asl

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
)

// The agents that an imported project has beside those of its tasks.
const (
	// agentOutcome ends jobs as a Fail would; it is written whole.
	agentOutcome = "outcome"
	// agentByHand stands where nothing could be taken over: it stops the job, and says what is missing.
	agentByHand = "byhand"
)

func (w walk) passState(here comes) {
	w.tell(w.state).becomes("no step: its data stand in the expressions that read them")
	w.leave(comes{w.apply(here.arrivals, func(arrival *value) (*value, error) {
		if w.state.jsonata {
			return w.filtered(arrival)
		}
		result, err := w.effective(arrival)
		if err != nil {
			return nil, err
		}
		if fixed := w.state.body.get("Result"); fixed != nil {
			result = w.node(fixed)
		}
		return w.after(arrival, result)
	}), here.tails})
}

func (w walk) failState(here comes) {
	name, cause := w.state.body.textOf("Error"), w.state.body.textOf("Cause")
	if cause == "" {
		cause = name
	}
	said := w.text(cause)
	for _, field := range []string{"CausePath", "ErrorPath"} {
		if path := w.state.body.textOf(field); path != "" {
			said = w.valueOf(here.arrivals, func(arrival *value) (*value, error) { return w.see(arrival).at(path) })
		}
	}
	if w.state.jsonata {
		said = w.valueOf(here.arrivals, func(arrival *value) (*value, error) {
			return w.see(arrival).expressionOf(&node{kind: isText, text: cause})
		})
		if strings.HasPrefix(name, "{%") {
			name = "failed"
		}
	}
	if name == "" {
		name = "failed"
	}
	s := w.add(w.state.name, here)
	s.agent, s.action, s.do = agentOutcome, "fail", stubFail
	s.with = w.object([]string{"kind", "message"}, []*value{w.text(kindOf(name)), said})
	s.retry = &retry{attempts: 1}
	w.tell(w.state).becomes("step " + s.name + ", which fails with the kind " + kindOf(name))
	w.tell(w.state).note("a job that fails stops in front of a person (Error), or is undone where a step has an undo; it is not just over")
}

func (w walk) choiceState(here comes) {
	rules := w.state.body.get("Choices").items
	d := &decision{number: w.decisions, ordered: len(rules) > 1}
	w.decisions++
	exclusive := map[string]bool{}
	for _, rule := range rules {
		condition := w.valueOf(here.arrivals, func(arrival *value) (*value, error) { return w.ruleOf(arrival, rule) })
		d.outcomes = append(d.outcomes, outcome{yes: condition, no: w.opposite(condition)})
		if equals := rule.get("StringEquals"); equals != nil && rule.textOf("Variable") == rules[0].textOf("Variable") {
			exclusive[equals.text] = true
		}
	}
	d.outcomes = append(d.outcomes, outcome{})
	d.ordered = d.ordered && len(exclusive) != len(rules)
	w.tell(w.state).becomes("no step: its rules stand in the when of the steps behind it")
	loops := w.polls[w.state]
	open := w.openOutcomes(rules, loops)
	for i, rule := range rules {
		out := here
		out.arrivals = w.apply(here.arrivals, func(arrival *value) (*value, error) { return w.chosen(arrival, rule) })
		w.choose1(d, i, open, out, w.machine.byName[rule.textOf("Next")], loops)
	}
	otherwise := w.machine.byName[w.state.body.textOf("Default")]
	here.arrivals = w.apply(here.arrivals, w.filtered)
	if otherwise != nil {
		w.choose1(d, len(rules), open, here, otherwise, loops)
		return
	}
	here.arrivals = w.where(here.arrivals, d, len(rules))
	s := w.add(w.state.name+" no match", here)
	s.agent, s.action, s.do = agentOutcome, "fail", stubFail
	s.with = w.object([]string{"kind", "message"}, []*value{w.text("no_choice_matched"), w.text("no rule of " + w.state.name + " matched")})
	s.retry = &retry{attempts: 1}
	w.tell(w.state).becomes("no step but " + s.name + ", which fails where no rule matches; its rules stand in the when of the steps behind it")
}

// openOutcomes are those that do not lead into a loop that became a repeat.
func (w walk) openOutcomes(rules []*node, loops *poll) int {
	open := 0
	for _, rule := range rules {
		if loops == nil || !loops.again[w.machine.byName[rule.textOf("Next")]] {
			open++
		}
	}
	if otherwise := w.machine.byName[w.state.body.textOf("Default")]; loops == nil || !loops.again[otherwise] {
		open++
	}
	return open
}

// choose1 hands on what leaves a Choice by one of its outcomes.
func (w walk) choose1(d *decision, outcome, open int, out comes, next *state, loops *poll) {
	if loops != nil && loops.again[next] {
		return
	}
	if open > 1 {
		out.arrivals = w.where(out.arrivals, d, outcome)
	}
	w.to(next, -1, out)
}

// ruleOf is the condition of a rule.
func (w walk) ruleOf(arrival *value, rule *node) (*value, error) {
	s, err := w.filtering(arrival)
	switch {
	case err != nil:
		return nil, err
	case w.state.jsonata:
		return s.expressionOf(rule.get("Condition"))
	default:
		return s.rule(rule)
	}
}

// chosen is what leaves a Choice by a rule, which may have an Output and an Assign of its own.
func (w walk) chosen(arrival *value, rule *node) (*value, error) {
	if !w.state.jsonata {
		if rule.get("Assign") != nil {
			of := &state{name: w.state.name, body: rule}
			s := w.see(arrival)
			names, parts, err := s.assign(of, s.input)
			if err != nil {
				return nil, err
			}
			return w.assigned(arrival, s.input, names, parts), nil
		}
		return w.filtered(arrival)
	}
	of := w
	of.state = &state{name: w.state.name, kind: w.state.kind, jsonata: true, body: rule}
	return of.filtered(arrival)
}

// opposite is the opposite of a condition where that reads better than with not; nil: there is none.
func (p *pool) opposite(condition *value) *value {
	if condition.form != formJQ || strings.Contains(condition.text, " and ") || strings.Contains(condition.text, " or ") || strings.Contains(condition.text, "|") {
		return nil
	}
	if left, right, is := strings.Cut(condition.text, " == "); is && !strings.Contains(right, " == ") {
		return p.jq("%s != %s", left, right)
	}
	return nil
}

func (w walk) waitState(here comes) {
	with := w.waits(here)
	if with == nil {
		w.byHandState(here, "Wait")
		return
	}
	s := w.add(w.state.name, here)
	s.agent, s.with = makegood.AgentWait, with
	w.tell(w.state).becomes("step " + s.name + " of agent wait")
	w.leave(comes{w.apply(here.arrivals, w.filtered), []*step{s}})
}

// waits is the with of a step that waits; nil: it cannot be said.
func (w walk) waits(here comes) *value {
	body := w.state.body
	path := func(text string) *value {
		return w.valueOf(here.arrivals, func(arrival *value) (*value, error) {
			s := w.see(arrival)
			if w.state.jsonata {
				return s.expressionOf(&node{kind: isText, text: text})
			}
			return s.at(text)
		})
	}
	one := func(name string, v *value) *value { return w.object([]string{name}, []*value{v}) }
	switch seconds, timestamp := body.get("Seconds"), body.get("Timestamp"); {
	case seconds != nil && seconds.kind == isNumber:
		n, err := strconv.Atoi(seconds.text)
		if longest := int(makegood.MaxWait / time.Second); err != nil || n < 0 || n > longest {
			w.tell(w.state).left(fmt.Sprintf("a wait of %s s: 0 to %d are possible", clip(seconds.text), longest))
			return nil
		}
		return one("for", w.text(length(max(n, 1))))
	case seconds != nil:
		return one("for", w.joined([]*value{path(seconds.text), w.text("s")}))
	case body.get("SecondsPath") != nil:
		return one("for", w.joined([]*value{path(body.textOf("SecondsPath")), w.text("s")}))
	case timestamp != nil && w.state.jsonata:
		return one("until", path(timestamp.text))
	case timestamp != nil:
		if _, err := time.Parse(time.RFC3339, timestamp.text); err != nil {
			w.tell(w.state).left(fmt.Sprintf("%q is no time: want RFC 3339", clip(timestamp.text)))
			return nil
		}
		return one("until", w.text(timestamp.text))
	case body.get("TimestampPath") != nil:
		return one("until", path(body.textOf("TimestampPath")))
	}
	w.tell(w.state).left("it says neither Seconds nor Timestamp")
	return nil
}

// length writes seconds as a duration.
func length(seconds int) string {
	for _, unit := range []struct {
		seconds int
		name    string
	}{{24 * 3600, "d"}, {3600, "h"}, {60, "m"}} {
		if seconds%unit.seconds == 0 && seconds > 0 {
			return strconv.Itoa(seconds/unit.seconds) + unit.name
		}
	}
	return strconv.Itoa(seconds) + "s"
}

func (w walk) parallelState(here comes) {
	w.tell(w.state).becomes("steps side by side: its branches begin behind the same steps, and what follows needs them all")
	if w.state.body.get("Retry") != nil {
		w.tell(w.state).left("Retry of a Parallel does all branches again: here each step is tried again by itself; say retry there")
	}
	one := w.single(here.arrivals)
	effective, err := w.effective(one)
	if err != nil {
		effective = w.missing(err)
	}
	_, order, _ := variablesOf(one)
	begin := comes{w.leaf(w.arrival(effective, one.variables(), order)), here.tails}
	w.translator.around = append(w.translator.around, w.reached(here.arrivals))
	if w.state.body.get("Catch") != nil && w.catches(w.state) > 0 {
		w.translator.catchers = append(w.translator.catchers, catcher{w.state, w.machine, here.arrivals, w.flow})
		w.tell(w.state).note("when a step of a branch fails, the other branches go on to their end; what follows the Parallel is left out")
	}
	results, tails, reach := w.branches(begin)
	w.translator.around = w.around[:len(w.around)-1]
	if n := len(w.catchers); n > 0 && w.catchers[n-1].state == w.state {
		w.translator.catchers = w.catchers[:n-1]
	}
	out := w.apply(here.arrivals, func(arrival *value) (*value, error) { return w.after(arrival, w.list(results)) })
	for _, r := range reach {
		out = w.both(out, r)
	}
	w.leave(comes{w.narrow(out), tails})
}

// branches goes through the branches of a Parallel: what each gives, the steps at their ends, and the ways that lead there.
func (w walk) branches(begin comes) (results []*value, tails []*step, reach []*diagram) {
	notes := w.notes
	for _, b := range w.state.branches {
		out := w.through(b, begin)
		if len(leaves(out.arrivals)) == 0 {
			out.arrivals = begin.arrivals
			reach = append(reach, w.nowhere())
		}
		results = append(results, w.single(out.arrivals).input())
		tails = joinTails(tails, out.tails)
		reach = append(reach, w.reached(out.arrivals))
	}
	if len(tails) == 0 {
		tails = begin.tails
	}
	w.translator.notes = notes
	return results, tails, reach
}

func variablesOf(arrival *value) (all map[string]*value, order []string, n int) {
	return arrival.variables(), slices.Clone(arrival.names[1:]), len(arrival.parts) - 1
}

// byHandState puts a step that stops the job in the place of a state, so that the rest keeps its form.
func (w walk) byHandState(here comes, what string) {
	s := w.byHand(w.state.name, here, what+" "+w.state.name)
	w.tell(w.state).becomes("step " + s.name + ", which stops the job until somebody has written it")
	w.catching(s, here)
	w.leave(comes{w.apply(w.done(s, here.arrivals), func(arrival *value) (*value, error) {
		return w.after(arrival, w.path(".steps."+s.name+".output"))
	}), []*step{s}})
}

// byHand adds a step that stops the job.
func (w walk) byHand(name string, here comes, what string) *step {
	s := w.add(name, here)
	s.agent, s.action, s.do, s.missing = agentByHand, s.name, stubMissing, what
	if in := w.single(here.arrivals).input(); !strings.Contains(w.expression(in), "error(") {
		s.with = in
	}
	s.retry, s.routes = &retry{attempts: 1}, []route{{kind: "not_imported", do: "stop"}}
	return s
}
