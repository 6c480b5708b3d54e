// Package asl takes over state machines that are written in Amazon States Language: it reads a definition, and writes a
// workflow file, the stubs of the agents that its steps need, and a report that says state by state what became of it.
// The report names each part that cannot be taken over, and the workflow has a step in its place that stops the job.
//
// It follows the data of a machine through its states: what a state would see is said by the job's input and the
// outputs of steps, so that states which only move data need no step. It reads and writes no files, and runs nothing.
package asl

import (
	"fmt"
	"slices"
	"strings"

	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// Options say what cannot be read from a definition.
type Options struct {
	// Name is that of the workflow, a limits.WorkflowName; empty: the definition's own, or From.
	Name string
	// From is what the file is called, without its ending.
	From string
	// Machine is which state machine of a template is meant, by its logical id; empty: there is one.
	Machine string
}

// Imported is what a definition became.
type Imported struct {
	// Workflow is its name, and YAML the workflow file, which is valid.
	Workflow string
	YAML     []byte
	// Agents are the names of the agents that the workflow needs and that are not built in, sorted.
	Agents []string
	Report Report

	steps []*step
	// items are the workflows of the jobs that do the items of Maps.
	items []*Imported
}

// Import takes over a definition. What is no definition is refused with Errors; every other error is a mistake of ours.
func Import(source []byte, o Options) (*Imported, error) {
	d, err := read(source, o.Machine)
	if err != nil {
		return nil, err
	}
	name, err := workflowName(o, d)
	if err != nil {
		return nil, err
	}
	t := newTranslator(name, or(d.name, name))
	t.workflows.unique(snake(name), "items")
	out := t.take(&d.machine, t.arrival(t.path(".input"), nil, nil))
	done, err := t.imported(d)
	if err != nil {
		return nil, err
	}
	for _, of := range done.items {
		done.steps = append(done.steps, of.steps...)
	}
	done.Agents = agents(done.steps)
	everywhere(t.report, done.steps, d)
	t.report.Output = t.expression(t.single1(out.arrivals))
	t.inOrder(&d.machine)
	t.report.count()
	done.Report = *t.report
	return done, nil
}

// take takes over a machine, and returns what leaves it.
func (t *translator) take(m *machine, begin *value) exit {
	t.findPolls(m)
	t.findSaga(m)
	t.dropFails(m, false)
	return t.through(m, comes{arrivals: t.leaf(begin)})
}

func workflowName(o Options, d definition) (string, error) {
	name := o.Name
	if name == "" {
		name = strings.ReplaceAll(snake(or(d.name, o.From)), "_", "-")
	}
	if name == "" {
		name = "imported"
	}
	if err := limits.WorkflowName.Check(name); err != nil {
		return "", Errors{{"", err.Error()}}
	}
	return name, nil
}

// dropFails finds the entries at the end of each Catch that lead to a Fail and nothing else: a step that is given up
// ends its job by itself. caught: a Parallel around would catch it instead.
func (t *translator) dropFails(m *machine, caught bool) {
	for _, s := range m.states {
		for _, b := range s.branches {
			t.dropFails(b, caught || s.body.get("Catch") != nil)
		}
		catch := s.body.get("Catch")
		if catch == nil || caught || t.dropped[s] > 0 {
			continue
		}
		for i := len(catch.items) - 1; i >= 0; i-- {
			fail := failBehind(m, m.byName[catch.items[i].textOf("Next")])
			if fail == nil {
				break
			}
			t.dropped[s]++
			t.tell(s).note("a failure that leads to " + fail.name + " is the job's own end here, with the error of the step as its reason")
		}
	}
	for _, s := range m.states {
		if s.kind == "Fail" && t.droppedOnly(m, s) {
			t.tell(s).becomes("no step: a step that is given up ends the job")
		}
	}
}

// failBehind is the Fail that a state is, or that only Pass states lead to.
func failBehind(m *machine, s *state) *state {
	for range len(m.states) {
		switch s.kind {
		case "Fail":
			return s
		case "Pass":
			if s = m.byName[s.next]; s == nil {
				return nil
			}
		default:
			return nil
		}
	}
	return nil
}

// droppedOnly reports whether only dropped entries lead to a state.
func (t *translator) droppedOnly(m *machine, to *state) bool {
	found := false
	for _, s := range m.states {
		if s.next == to.name || s.kind == "Choice" && slices.Contains(targets(m, s), to) {
			return false
		}
		catch := s.body.get("Catch")
		if catch == nil {
			continue
		}
		for i, c := range catch.items {
			if c.textOf("Next") == to.name {
				if i < len(catch.items)-t.dropped[s] {
					return false
				}
				found = true
			}
		}
	}
	return found
}

// imported writes down the workflow that was found.
func (t *translator) imported(d definition) (*Imported, error) {
	if t.failed != nil {
		return nil, t.failed
	}
	if n := len(t.steps); n > limits.MaxSteps {
		return nil, Errors{{"", fmt.Sprintf("workflow %s would have more than %d steps, which is the limit: split it", t.workflow, limits.MaxSteps)}}
	}
	t.route()
	yaml, err := t.yaml(d)
	if err != nil {
		return nil, err
	}
	if t.long {
		return nil, Errors{{"", fmt.Sprintf("an expression would have more than %d characters: too many ways lead to one state with different data", maxJQ)}}
	}
	if _, err := workflowfile.Parse(t.workflow+".yaml", yaml); err != nil && t.saga != nil {
		t.undosByHand()
		if yaml, err = t.yaml(d); err != nil {
			return nil, err
		}
	}
	if _, err := workflowfile.Parse(t.workflow+".yaml", yaml); err != nil {
		return nil, fmt.Errorf("the workflow that was made is not valid, which is a mistake of makegood-import; the definition is needed to mend it: %w", err)
	}
	return &Imported{Workflow: t.workflow, YAML: yaml, steps: t.steps, items: t.items}, nil
}

// single1 is what an execution gives at its end, whichever that is.
func (t *translator) single1(d *diagram) *value {
	if len(leaves(d)) == 0 {
		return t.constant("null")
	}
	return t.single(d).input()
}

// inOrder puts the report into the order of the definition.
func (t *translator) inOrder(m *machine) {
	for _, s := range m.states {
		r := *t.tell(s)
		r.Differences, r.Left = append([]string{}, r.Differences...), append([]string{}, r.Left...)
		t.report.States = append(t.report.States, r)
		for _, b := range s.branches {
			t.inOrder(b)
		}
		if s.items != nil && t.told[s.items.states[0]] != nil {
			t.inOrder(s.items)
		}
	}
}

// route says which steps begin by a route, and where conditions can be left out because the engine leaves out what
// follows a step that went elsewhere.
func (t *translator) route() {
	for _, r := range t.routed {
		for _, s := range r.pending {
			if target := t.stepOf[s]; target != nil {
				target.only = true
				r.targets = append(r.targets, target)
			}
		}
	}
	behind := t.behind()
	t.followers = behind
	for _, s := range t.steps {
		sure := map[*decision]int{}
		for _, r := range t.routed {
			if r.whole && !slices.ContainsFunc(r.targets, func(target *step) bool { return target == s || behind[target][s] }) {
				sure[r.decision] = r.done
			}
		}
		for i, reach := range s.reach {
			s.reach[i] = t.assume(reach, sure)
		}
	}
}

// before are the steps that a step waits for.
func (t *translator) before(s *step) []*step {
	if !s.only {
		return s.tails
	}
	var all []*step
	for _, from := range t.steps {
		if from != s && slices.ContainsFunc(from.routes, func(r route) bool { return r.target != nil && t.stepOf[r.target] == s }) {
			all = append(all, from)
		}
	}
	return all
}

// behind are the steps that follow each, directly or not.
func (t *translator) behind() map[*step]map[*step]bool {
	all := map[*step]map[*step]bool{}
	for _, s := range t.steps {
		all[s] = map[*step]bool{}
	}
	// Steps are in an order in which each stands behind those that it follows.
	for i, s := range t.steps {
		for _, earlier := range t.steps[:i] {
			for _, b := range t.before(s) {
				if b == earlier || all[earlier][b] {
					all[earlier][s] = true
				}
			}
		}
	}
	return all
}

// everywhere notes what is otherwise for all of it.
func everywhere(r *Report, steps []*step, d definition) {
	add := func(text string) { r.Everywhere = append(r.Everywhere, text) }
	add("a path at which nothing is gives null here, where the state machine would have failed")
	add("each wait before a retry is a random part of the one that was written down, so that many do not come at once")
	if slices.ContainsFunc(steps, func(s *step) bool { return s.timeout == "15m" }) {
		add("a task that says no TimeoutSeconds has 15 minutes here, which is what a Lambda function has")
	}
	if slices.ContainsFunc(steps, func(s *step) bool { return s.undo != nil && s.undo.state != nil }) {
		add("a step that is given up turns the whole job round: every step that has an undo and was done, or may have been, is undone")
	}
	if n := d.body.get("TimeoutSeconds"); n != nil && n.kind != isNumber {
		add("TimeoutSeconds of the state machine is not a number, and was left out")
	}
}
