package machine_test

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
)

// request makes a request for a verb.
func (s *story) request(verb string, a args) job.Event {
	s.requests++
	e := job.Requested{Verb: makegood.Verb(verb), Request: a.or("request", fmt.Sprintf("r%d", s.requests)), Reason: a.or("reason", "")}
	if at, ok := a.values["startAt"]; ok {
		e.StartAt = s.start.Add(s.duration(at).Std())
	}
	if timeout := a.or("timeout", ""); timeout == "none" {
		e.Timeout = makegood.NoTimeout
	} else if timeout != "" {
		e.Timeout = s.duration(timeout)
	}
	e.Definition, e.By = a.or("definition", ""), a.or("by", "")
	e.Step, e.Indexes = a.or("step", ""), job.Indexes(a.or("items", ""))
	e.Edit = s.edit(a)
	e.Redrives, e.Never = s.number(a.or("redrives", "0")), a.has("never")
	if input, ok := a.values["input"]; ok {
		e.Input = &job.Payload{Inline: json.RawMessage(input), Bytes: len(input)}
	}
	return e
}

// define begins another definition.
func (s *story) define(a args) {
	s.other = a.words[1]
	other := makegood.Workflow{Name: a.or("of", s.w.Name), Timeout: s.duration(a.or("timeout", "0s")), Expect: s.duration(a.or("expect", "0s")), Input: only(a)}
	if on, ok := a.values["onFailure"]; ok {
		if err := other.OnFailure.UnmarshalText([]byte(on)); err != nil {
			s.t.Fatal(err)
		}
	}
	s.definitions[s.other] = other
}

// only is the one input that a definition takes, in the place of a schema; none: it takes any.
func only(a args) json.RawMessage {
	if input, ok := a.values["takes"]; ok {
		return json.RawMessage(input)
	}
	return nil
}

// definition is a definition that the story tells, as a fact, for a job that asks for it by an event.
func (s *story) definition(hash string, event job.Event) *machine.Definition {
	if hash == job.CurrentDefinition {
		hash = s.other
	}
	w, ok := s.definitions[hash]
	if hash == s.job.Definition {
		w, ok = s.w, true
	}
	input := s.job.Input
	if asked, is := event.(job.Requested); is && asked.Input != nil {
		input = *asked.Input
	}
	if !ok {
		return &machine.Definition{Err: "there is no definition " + hash}
	}
	of := definitionOf(hash, domain.WithDefaults(w))
	if len(w.Input) > 0 && string(w.Input) != string(input.Inline) {
		of.Misfit = fmt.Sprintf("the input must be %s", w.Input)
	}
	return of
}

// definitionOf is a definition as a fact: what has no with is asked with the job's input.
func definitionOf(hash string, w makegood.Workflow) *machine.Definition {
	of := &machine.Definition{Hash: hash, Workflow: w}
	for _, s := range w.Steps {
		if s.With == nil {
			of.Reads = append(of.Reads, s.Name)
		}
		if domain.CanUndo(s) && s.Undo.With == nil {
			of.UndoReads = append(of.UndoReads, s.Name)
		}
	}
	return of
}

// plan shows what a resubmit would do.
func (s *story) plan(a args) string {
	e := s.event(string(makegood.VerbResubmit), a).(job.Requested)
	s.requests--
	var facts machine.Facts
	plan, v := machine.Plan(s.w, s.job, e, facts)
	if v.Definition != "" {
		facts.Definition = s.definition(v.Definition, e)
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
		if p.SameKey {
			out.WriteString(", asked for another thing under the same key")
		}
		if p.FormerInput {
			out.WriteString(", undone with the input of before")
		}
	}
	return out.String() + "\n"
}
