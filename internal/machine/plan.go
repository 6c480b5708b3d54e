package machine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
)

// Plan returns the effect of a resubmit without changing the job. Its verdict is Applied if the resubmit would be
// granted; Wanting, with Definition alone, if it needs the definition.
func Plan(w makegood.Workflow, j job.Job, e job.Requested, facts Facts) (makegood.Plan, Verdict) {
	next := j.Clone()
	t := newTurn(w, &next, facts, e.Cause(), j.CreatedAt)
	plan := makegood.Plan{Job: j.ID, Workflow: j.Workflow, From: j.Definition, To: j.Definition, Input: e.Input != nil}
	rule := RuleFor(e.Verb, j.ProcessState)
	plan.Effect = onItsWay(rule.Effect, j)
	switch {
	case e.Verb != makegood.VerbResubmit:
		return plan, Verdict{Kind: Refused, Reason: fmt.Sprintf("there is no plan of %s", e.Verb)}
	case t.granted(e):
		plan.Existed, plan.Effect = true, string(Already)
	case rule.Effect == Refuses:
		return plan, Verdict{Kind: Refused, Reason: rule.Reason}
	default:
		refused := t.redefine(rule, e)
		if t.definition != "" {
			return plan, Verdict{Kind: Wanting, Definition: t.definition}
		}
		if refused != "" {
			return plan, Verdict{Kind: Refused, Reason: refused}
		}
	}
	plan.To = next.Definition
	if plan.Existed {
		e.Input = nil
	}
	plan.Steps = t.planned(w, j, rule, e.Input)
	return plan, Verdict{Kind: Applied}
}

// planned says what becomes of each step of a job that was moved and given an input, if any, as the turn has it now.
func (t *turn) planned(from makegood.Workflow, j job.Job, rule Rule, input *job.Payload) (steps []makegood.PlannedStep) {
	for i, s := range t.w.Steps {
		state, known := j.Step(s.Name)
		p := makegood.PlannedStep{Name: s.Name, State: makegood.StepNotStarted, Fate: makegood.FateNew}
		if known {
			old := from.Steps[slices.IndexFunc(from.Steps, func(o makegood.Step) bool { return o.Name == s.Name })]
			p = plannedStep(state, fateOf(j, state, rule))
			p.Differs = append(forwardDiffers(old, s), undoDiffers(old, s)...)
			another := input != nil && !sameInput(*input, j.Input) && slices.Contains(t.facts.Definition.Reads, s.Name)
			p.SameKey = rule.Effect != NewRound && sameKey(state, t.forwards(), works(old, s, p.Differs), another)
			p.FormerInput = rule.Effect != NewRound && t.undoneAsBefore(i)
		}
		steps = append(steps, p)
	}
	for _, s := range from.Steps {
		if !slices.ContainsFunc(t.w.Steps, func(n makegood.Step) bool { return n.Name == s.Name }) {
			state, _ := j.Step(s.Name)
			steps = append(steps, plannedStep(state, makegood.FateGone))
		}
	}
	return steps
}

// sameKey reports whether a step that was asked before in its round, or its undo on the way back, would be asked for
// different work under the same key: its action differs so, or its input. Another agent makes no difference.
func sameKey(s job.StepState, forwards bool, differs []string, anotherInput bool) bool {
	a := s.Forward
	if !forwards {
		a = s.Undo
	}
	if a.Attempt == 0 || a.State != job.Failed && a.State != job.NotStarted && a.State != job.Backoff {
		return false
	}
	if !forwards {
		return slices.Contains(differs, "undo.action") || slices.Contains(differs, "undo.with")
	}
	return anotherInput || slices.ContainsFunc(differs, func(name string) bool { return name != "agent" && !strings.HasPrefix(name, "undo") })
}

// undoneAsBefore reports whether the undo of a step is ahead, and made of an input of before.
func (t *turn) undoneAsBefore(i int) bool {
	s := t.job.Steps[i]
	if s.Forward.Former == 0 || !domain.CanUndo(t.w.Steps[i]) || t.undoOver(i) {
		return false
	}
	return t.facts.Definition == nil || slices.Contains(t.facts.Definition.UndoReads, s.Name)
}

func plannedStep(s job.StepState, fate makegood.StepFate) makegood.PlannedStep {
	state := makegood.StepState(s.Forward.State)
	return makegood.PlannedStep{Name: s.Name, State: cmp.Or(state, makegood.StepNotStarted), Undo: makegood.StepState(s.Undo.State), Fate: fate}
}

// fateOf says what becomes of a step that stays.
func fateOf(j job.Job, s job.StepState, rule Rule) makegood.StepFate {
	a := s.Forward
	back := j.Desired != makegood.JobProcessed
	if back {
		a = s.Undo
	}
	switch {
	case rule.Effect == NewRound:
		return makegood.FateAhead
	case a.State == job.Failed:
		return makegood.FateAgain
	case a.State == job.NotStarted && !(back && s.Forward.State != job.Done && !s.Forward.Unknown):
		return makegood.FateAhead
	default:
		return makegood.FateStays
	}
}
