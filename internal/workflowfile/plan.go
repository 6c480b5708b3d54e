package workflowfile

import (
	"encoding/json"
	"strings"

	"github.com/makegood-dev/makegood"
)

// plans compiles what the steps of w say about values.
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
		k := compiler{c, view{owner: s.Name, readable: readable, known: known}}
		p := &plan{step: s.Name, readable: readable}
		if s.When != "" {
			p.when = k.when(path+".when", s.When)
		}
		p.forward = k.request(path+".with", s.Agent, s.With)
		p.reads.add(p.forward.reads)
		if p.when != nil {
			p.reads.add(p.when.reads)
		}
		if s.CanUndo() {
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
	if n := r.with.secrets(); n > makegood.MaxTaskSecrets {
		c.add(path, "%d places for secrets, the limit is %d", n, makegood.MaxTaskSecrets)
	}
	r.reads = r.with.reads()
	return r
}

// when compiles an expression that must be the whole of its text.
func (c compiler) when(path, text string) *expression {
	parts, err := split(strings.TrimSpace(text))
	switch {
	case err != nil:
		c.add(path, "%q: %v", clip(text), err)
	case len(parts) == 1 && isSecret(parts[0]):
		c.add(path, "%q: %v", clip(text), errSecret)
	case len(parts) != 1 || !parts[0].expression:
		c.add(path, `when must be one expression, such as "${ .input.express }": got %q`, clip(text))
	default:
		return c.expression(path, parts[0].text)
	}
	return nil
}

// ancestors returns for each step those that come before it by needs, in the order of the workflow.
func ancestors(w makegood.Workflow) map[string][]string {
	needs := make(map[string][]string, len(w.Steps))
	for _, s := range w.Steps {
		needs[s.Name] = s.Needs
	}
	all := make(map[string][]string, len(w.Steps))
	for _, s := range w.Steps {
		reached := map[string]bool{}
		reach(s.Name, needs, reached)
		for _, other := range w.Steps {
			if reached[other.Name] && other.Name != s.Name {
				all[s.Name] = append(all[s.Name], other.Name)
			}
		}
	}
	return all
}

func reach(name string, needs map[string][]string, reached map[string]bool) {
	for _, need := range needs[name] {
		if !reached[need] {
			reached[need] = true
			reach(need, needs, reached)
		}
	}
}
