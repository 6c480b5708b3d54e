package machine_test

import (
	"fmt"
	"strings"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
)

// definition is a definition that the story tells, as a fact.
func (s *story) definition(hash string) *machine.Definition {
	if hash == job.CurrentDefinition {
		hash = s.other
	}
	w, ok := s.definitions[hash]
	if !ok {
		return &machine.Definition{Err: "there is no definition " + hash}
	}
	return &machine.Definition{Hash: hash, Workflow: w.WithDefaults()}
}

// plan shows what a resubmit would do.
func (s *story) plan(a args) string {
	e := s.event(string(makegood.Resubmit), a).(job.Requested)
	s.requests--
	var facts machine.Facts
	plan, v := machine.Plan(s.w, s.job, e, facts)
	if v.Definition != "" {
		facts.Definition = s.definition(v.Definition)
		plan, v = machine.Plan(s.w, s.job, e, facts)
	}
	if v.Kind != machine.Applied {
		return fmt.Sprintf("%s: %s\n", v.Kind, v.Reason)
	}
	var out strings.Builder
	fmt.Fprintf(&out, "plan: %s, from %s to %s", plan.Effect, plan.From, plan.To)
	if plan.Input {
		out.WriteString(", with another input")
	}
	if plan.Existed {
		out.WriteString(", granted before")
	}
	for _, p := range plan.Steps {
		fmt.Fprintf(&out, "\n  %s %s: %s", p.Name, p.State, p.Fate)
		if p.Undo != "" {
			fmt.Fprintf(&out, ", undo %s", p.Undo)
		}
		if p.Differs != nil {
			fmt.Fprintf(&out, ", another %s", strings.Join(p.Differs, ", "))
		}
	}
	return out.String() + "\n"
}
