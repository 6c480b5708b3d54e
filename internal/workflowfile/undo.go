package workflowfile

import (
	"context"
	"errors"
	"slices"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/limits"
)

// errUnsure: whether an expression gives a value depends on data that is unknown before there is a job.
var errUnsure = errors.New("depends on the job")

// maxTried is how many expressions of undos are tried in one workflow: each may take all steps that one is allowed.
const maxTried = 200

// undosWithoutOutput tries each undo with null for the outputs that may be missing: its own step's, since a step with
// an unknown outcome is undone too, and those of steps that may be skipped. An undo that reads no other outputs, and
// gives no input then, would stop every such job for a person.
func (c *check) undosWithoutOutput(w makegood.Workflow, plans map[string]*plan) {
	certain := surelyDone(w)
	tried := 0
	for i, s := range w.Steps {
		p := plans[s.Name]
		if p == nil || p.undo == nil || p.undo.with == nil || string(s.Undo.With) == string(s.With) {
			continue // values inherited from the step gave a result when the step began
		}
		if tried += len(p.undo.with.expressions()); tried > maxTried {
			return
		}
		err := p.undoWithoutOutput(func(name string) bool { return name == s.Name || !certain[name] })
		if err != nil && !errors.Is(err, errUnsure) {
			c.add(stepPath(i)+".undo.with", "the undo of step %q must work with a null output, since it runs also where the outcome is unknown: %s",
				s.Name, limits.Clip(err.Error()))
		}
	}
}

// surelyDone are the steps that have surely given an output when a reader begins: no when skips them, no error passes
// them by, and no way leads past them.
func surelyDone(w makegood.Workflow) map[string]bool {
	goes := slices.ContainsFunc(w.Steps, func(s makegood.Step) bool { return s.Only != "" })
	certain := map[string]bool{}
	for _, s := range w.Steps {
		certain[s.Name] = s.When == "" && len(s.OnError) == 0 && !goes
	}
	for _, s := range w.Steps {
		for _, need := range s.Needs {
			certain[need] = certain[need] && !s.Any
		}
	}
	return certain
}

// undoWithoutOutput returns the error that an undo ends in when the outputs that may be null are.
func (p *plan) undoWithoutOutput(mayBeNull func(step string) bool) error {
	value := func(e *expression) (any, error) {
		if !e.sureWhere(mayBeNull) {
			return nil, errUnsure
		}
		root, err := Data{}.root(e.reads, p.names(e.reads, true))
		if err != nil {
			return nil, err
		}
		return e.value(context.Background(), root)
	}
	for _, e := range p.undo.with.expressions() {
		if _, err := value(e); err != nil && !errors.Is(err, errUnsure) {
			return err
		}
	}
	if !p.undo.http {
		return nil
	}
	_, err := p.undo.httpRequest(Data{}, &filling{value: value})
	return err
}

// sureWhere reports whether an expression reads only outputs that may be null.
func (e *expression) sureWhere(mayBeNull func(step string) bool) bool {
	if e.program == nil || e.reads.input || e.reads.job || e.reads.all {
		return false
	}
	for name := range e.reads.steps {
		if !mayBeNull(name) {
			return false
		}
	}
	return true
}

// expressions are all expressions in a template.
func (t *template) expressions() []*expression {
	var all []*expression
	if t.whole != nil {
		all = append(all, t.whole)
	}
	for _, p := range t.texts {
		if p.expression != nil {
			all = append(all, p.expression)
		}
	}
	for _, f := range t.fields {
		all = append(all, f.value.expressions()...)
	}
	for _, item := range t.items {
		all = append(all, item.expressions()...)
	}
	return all
}
