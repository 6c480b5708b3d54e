package workflowfile

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/limits"
)

// plans compiles the values and expressions of the steps of w.
func (c *check) plans(w makegood.Workflow) map[string]*plan {
	plans := make(map[string]*plan, len(w.Steps))
	var known []string
	for _, s := range w.Steps {
		known = append(known, s.Name)
	}
	before := ancestors(w)
	for i, s := range w.Steps {
		path := stepPath(i)
		readable := before[s.Name]
		k := compiler{c, view{owner: s.Name, readable: readable, known: known, input: c.inputRoot()}}
		p := &plan{step: s.Name, readable: readable}
		if s.When != "" {
			p.when = k.condition(path+".when", s.When, `"${ .input.express }"`)
		}
		if s.Repeat != nil && s.Repeat.Until != "" {
			k.view.repeated = true
			p.until = k.condition(path+".repeat.until", s.Repeat.Until, `"${ .output.ready }"`)
			k.view.repeated = false
		}
		if s.Map != nil {
			p.forward = k.mapped(path, s)
		} else {
			p.forward = k.request(path+".with", s.Agent, s.With)
		}
		p.reads.add(p.forward.reads)
		for _, e := range []*expression{p.when, p.until} {
			if e != nil {
				p.reads.add(e.reads)
			}
		}
		if domain.CanUndo(s) {
			k.view.readable = append(readable[:len(readable):len(readable)], s.Name)
			p.undo = c.undo(k, path, s)
		}
		plans[s.Name] = p
	}
	return plans
}

// undo compiles the with of an undo. One that is the step's own was found fault with there.
func (c *check) undo(k compiler, path string, s makegood.Step) *request {
	if string(s.Undo.With) == string(s.With) {
		k.check = newCheck(nil)
	}
	return k.request(path+".undo.with", s.Undo.Agent, s.Undo.With)
}

func (c compiler) request(path, agent string, with json.RawMessage) *request {
	r := &request{http: agent == makegood.HTTPAgent}
	if with == nil {
		return r
	}
	r.with = c.template(path, decodeWith(with))
	n := r.with.secrets()
	if n > 0 && !domain.GetsTasks(agent) {
		c.add(path, "no task is sent to agent %s, so a secret cannot be put in", agent)
	}
	if n > limits.MaxTaskSecrets {
		c.add(path, "%d places for secrets, the limit is %d", n, limits.MaxTaskSecrets)
	}
	r.reads = r.with.reads()
	return r
}

// condition compiles an expression that must be the whole of its text, as such is.
func (c compiler) condition(path, text, such string) *expression {
	parts, err := split(strings.TrimSpace(text))
	switch {
	case err != nil:
		c.add(path, "%q: %v", clip(text), err)
	case len(parts) == 1 && isSecret(parts[0]):
		c.add(path, "%q: %v", clip(text), errSecret)
	case len(parts) != 1 || !parts[0].expression:
		c.add(path, `%s must be one expression, such as %s: got %q`, last(path), such, clip(text))
	default:
		return c.expression(path, parts[0].text)
	}
	return nil
}

// ancestors returns for each step the steps with outputs that it may read, in the order of the workflow: those that
// have surely ended when it begins, and its alternatives where any of several needs suffices.
func ancestors(w makegood.Workflow) map[string][]string {
	o := order{steps: make(map[string]makegood.Step, len(w.Steps)), w: w, sure: map[string]map[string]bool{}}
	for _, s := range w.Steps {
		o.steps[s.Name] = s
	}
	all := make(map[string][]string, len(w.Steps))
	for _, s := range w.Steps {
		sure := o.surelyBefore(s.Name)
		for _, other := range w.Steps {
			if other.Name != s.Name && (sure[other.Name] || s.Any && slices.Contains(s.Needs, other.Name)) {
				all[s.Name] = append(all[s.Name], other.Name)
			}
		}
	}
	return all
}

// order computes which steps come before which.
type order struct {
	w     makegood.Workflow
	steps map[string]makegood.Step
	sure  map[string]map[string]bool
}

// surelyBefore are the steps that have ended when one begins, whichever it begins by.
func (o order) surelyBefore(name string) map[string]bool {
	if sure, known := o.sure[name]; known {
		return sure
	}
	sure := map[string]bool{}
	o.sure[name] = sure // of a circle, which is refused elsewhere
	s := o.steps[name]
	ways := map[string]int{}
	before := domain.Before(o.w, s)
	for _, need := range before {
		ways[need]++
		for other := range o.surelyBefore(need) {
			if other != need {
				ways[other]++
			}
		}
	}
	for other, n := range ways {
		if !s.Any || n == len(before) {
			sure[other] = true
		}
	}
	return sure
}
