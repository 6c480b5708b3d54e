package machine

import (
	"cmp"
	"slices"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
)

// A job may get another input while it stands still. Steps that ran with the old input are undone with the old input:
// the job keeps it, and each step that may have to be undone records which input its attempts saw.

// redefine moves the job to the definition, and gives it the input, that a resubmit asks for. Unless its verdict is
// Applied, the job is unchanged: the request is refused, or the definition is wanting.
func (t *turn) redefine(rule Rule, e job.Requested) Verdict {
	if why := t.keepsInput(); e.Input != nil && why != "" {
		return Verdict{Kind: Refused, Reason: why}
	}
	moves := e.Definition != "" && e.Definition != domain.DefinitionOf(t.job.Definition)
	if !moves && e.Input == nil {
		return Verdict{Kind: Applied}
	}
	to := t.facts.Definition
	if to == nil {
		return Verdict{Kind: Wanting, Definition: cmp.Or(e.Definition, t.job.Definition)}
	}
	if why := cmp.Or(to.Err, t.unlike(rule, to.Workflow), t.asksAgain(rule, e.Input, to.Reads), to.Misfit); why != "" {
		return Verdict{Kind: Refused, Reason: why}
	}
	if e.Input != nil {
		t.giveInput(*e.Input, to.Reads)
	}
	if moves {
		t.moveTo(*to)
	}
	return Verdict{Kind: Applied}
}

// moveTo gives the job another definition. Its steps are those of the definition, in its order; known states stay,
// and attempts go on from the highest number that they may have had.
func (t *turn) moveTo(to Definition) {
	steps := make([]job.StepState, len(to.Workflow.Steps))
	for i, s := range to.Workflow.Steps {
		at, known := t.indexOf(s.Name)
		if !known {
			// Should it have been there before, the claims of its attempts are there still, and so are their completion tokens.
			of := job.Activity{Generation: t.job.Gone}
			steps[i] = job.StepState{Name: s.Name, Attempt: t.job.Gone, Forward: of, Undo: of}
			continue
		}
		steps[i] = t.job.Steps[at]
		old := t.w.Steps[at]
		if len(works(old, s, forwardDiffers(old, s))) > 0 && !t.fixed(side{at, false}) {
			anew(&steps[i].Forward, steps[i].Attempt)
		}
		if len(works(old, s, undoDiffers(old, s))) > 0 && !t.fixed(side{at, true}) {
			anew(&steps[i].Undo, steps[i].Attempt)
		}
	}
	for i, s := range t.w.Steps {
		if !slices.ContainsFunc(to.Workflow.Steps, func(n makegood.Step) bool { return n.Name == s.Name }) {
			t.job.Gone = max(t.job.Gone, t.job.Steps[i].Attempt)
		}
	}
	t.job.Changes.Pending = movePlaces(t.job.Changes.Pending, t.job.Steps, steps)
	t.job.Definition, t.job.Steps = to.Hash, steps
	t.w, t.graph = to.Workflow, GraphOf(to.Workflow)
	for i := range t.job.Steps {
		if t.job.Steps[i].Forward.WentTo != "" {
			t.leaveOut(i)
		}
	}
}

// anew clears from a changed activity the records of its earlier definition: late successes, answers given or kept,
// completion tokens of attempts up to the last, and the step that began it.
func anew(a *job.Activity, attempt int) {
	a.Silent, a.Completion, a.By = nil, nil, ""
	a.Generation = attempt
}

// giveInput gives the job another input. In a step that is asked with it, earlier answers and completion tokens
// belong to another question.
func (t *turn) giveInput(input job.Payload, reads []string) {
	if sameInput(input, t.job.Input) {
		return
	}
	was := t.formerly()
	for i := range t.job.Steps {
		s := &t.job.Steps[i]
		if t.sawInput(i) {
			if was < 0 {
				was = len(t.job.Former)
				t.job.Former = append(t.job.Former, t.job.Input)
			}
			s.Forward.Former = uint8(was + 1) // At most limits.MaxFormerInputs.
		}
		if t.asksWithInput(i, reads) {
			s.Forward.Generation = s.Attempt
			if c := s.Forward.Completion; c != nil && !c.Early {
				s.Forward.Completion = nil
			}
		}
	}
	t.job.Input = input
}
