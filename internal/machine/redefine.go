package machine

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
)

// Definition is a definition that somebody wants a job to be moved to: a fact.
type Definition struct {
	Hash     string
	Workflow makegood.Workflow
	// Err says why there is none that a job could be moved to; empty: there is.
	Err string
	// Misfit says where the input that the job would have does not fit what the definition says of inputs; empty: it fits.
	Misfit string
}

// Plan says what a resubmit would do, and changes nothing. Its verdict is Applied where the resubmit would be granted; Wanting,
// with Definition alone, where it takes the definition to know.
func Plan(w makegood.Workflow, j job.Job, e job.Requested, facts Facts) (makegood.Plan, Verdict) {
	next := j.Clone()
	t := newTurn(w, &next, facts, e.Cause(), j.CreatedAt)
	plan := makegood.Plan{Job: j.ID, Workflow: j.Workflow, From: j.Definition, To: j.Definition, Input: e.Input != nil}
	rule := RuleFor(e.Verb, j.ProcessState)
	plan.Effect = string(rule.Effect)
	switch {
	case e.Verb != makegood.Resubmit:
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
	plan.Steps = planned(w, t.w, j, rule)
	return plan, Verdict{Kind: Applied}
}

// granted reports whether a request was granted before.
func (t *turn) granted(e job.Requested) bool {
	return e.Request != "" && slices.Contains(t.job.Requests, job.ShortHash(e.Cause()))
}

// redefine moves the job to the definition, and gives it the input, that a resubmit asks for. It says why that is refused;
// then nothing has changed. Where it takes the definition to know, that is asked for.
func (t *turn) redefine(rule Rule, e job.Requested) (refused string) {
	if why := t.keepsInput(); e.Input != nil && why != "" {
		return why
	}
	moves := e.Definition != "" && e.Definition != t.job.Definition
	if moves || e.Input != nil && len(t.w.Input) > 0 {
		to := t.facts.Definition
		if to == nil {
			t.definition = cmp.Or(e.Definition, t.job.Definition)
			return ""
		}
		if why := cmp.Or(to.Err, t.unlike(rule, to.Workflow), to.Misfit); why != "" {
			return why
		}
		if moves {
			t.moveTo(*to)
		}
	}
	if e.Input != nil {
		t.job.Input = *e.Input
	}
	return ""
}

// keepsInput says why the job cannot have another input now; empty: it can. The task of an attempt that is out is made of
// the input whenever it is sent again, and must be what it was.
func (t *turn) keepsInput() string {
	for i := range t.job.Steps {
		for _, at := range sides(i) {
			switch a := t.activity(at); a.State {
			case job.Dispatched:
				return fmt.Sprintf("attempt %d of %s is under way, with the input that the job has", a.Attempt, named(t.name(at), at.undo))
			case job.Waiting:
				return named(t.name(at), at.undo) + " waits, for what it was asked with the input that the job has"
			}
		}
	}
	return ""
}

// unlike says in what a definition differs from what the job has begun; empty: in nothing. What is over or under way must be
// there as it was. A new round begins afresh.
func (t *turn) unlike(rule Rule, to makegood.Workflow) string {
	if to.Name != t.w.Name {
		return fmt.Sprintf("it is a definition of the workflow %s, and the job is of %s", to.Name, t.w.Name)
	}
	if rule.Effect == NewRound {
		return ""
	}
	for i, old := range t.w.Steps {
		at := slices.IndexFunc(to.Steps, func(s makegood.Step) bool { return s.Name == old.Name })
		if at < 0 {
			if why := t.mustStay(i); why != "" {
				return fmt.Sprintf("the definition has no step %s, %s", old.Name, why)
			}
			continue
		}
		if differs := forwardDiffers(old, to.Steps[at]); len(differs) > 0 && t.fixed(side{i, false}) {
			return fmt.Sprintf("step %s is %s, and the definition has another %s", old.Name, where(t.job.Steps[i].Forward), strings.Join(differs, ", "))
		}
		if differs := undoDiffers(old, to.Steps[at]); len(differs) > 0 && t.fixed(side{i, true}) {
			return fmt.Sprintf("the undo of step %s is %s, and the definition has another %s", old.Name, where(t.job.Steps[i].Undo), strings.Join(differs, ", "))
		}
	}
	return ""
}

// mustStay says what of a step a job cannot lose; empty: nothing.
func (t *turn) mustStay(i int) string {
	s := t.job.Steps[i]
	switch {
	case t.fixed(side{i, false}):
		return "which is " + where(s.Forward)
	case s.Forward.Unknown:
		return "which may have had an effect"
	case t.fixed(side{i, true}), s.Undo.State == job.Failed:
		return "whose undo is " + where(s.Undo)
	}
	return ""
}

// where says where an activity is, as a sentence has it.
func where(a job.Activity) string {
	switch a.State {
	case job.Dispatched:
		return "under way"
	case job.Backoff:
		return "between two attempts"
	default:
		return string(a.State)
	}
}

// fixed reports whether a side is over or under way, so that nothing of it may change. One that has failed may: the
// mistake may be in it. So may the undo of a step of which nothing is to be undone.
func (t *turn) fixed(at side) bool {
	a := t.activity(at)
	switch a.State {
	case job.NotStarted, job.Failed, job.Withdrawn:
		return false
	case job.Skipped:
		return !at.undo || t.job.Settled(*a) != nil
	default:
		return true
	}
}

// forwardDiffers names the fields in which a step differs from another, but for its undo.
func forwardDiffers(a, b makegood.Step) []string {
	a.Undo, b.Undo = nil, nil
	return differing(a, b, "")
}

// undoDiffers names the fields in which the undo of a step differs from that of another. Two that do nothing are the same.
func undoDiffers(a, b makegood.Step) []string {
	switch {
	case !a.CanUndo() && !b.CanUndo():
		return nil
	case !a.CanUndo() || !b.CanUndo():
		return []string{"undo"}
	}
	return differing(*a.Undo, *b.Undo, "undo.")
}

// differing names the fields in which two values of a struct differ, as JSON has them.
func differing[T any](a, b T, prefix string) (names []string) {
	x, y := fieldsOf(a), fieldsOf(b)
	all := maps.Clone(x)
	maps.Copy(all, y)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if string(x[name]) != string(y[name]) {
			names = append(names, prefix+name)
		}
	}
	return names
}

// fieldsOf are the fields of a part of a definition, as JSON has them.
func fieldsOf(part any) map[string]json.RawMessage {
	text, err := json.Marshal(part)
	var fields map[string]json.RawMessage
	if err == nil {
		err = json.Unmarshal(text, &fields)
	}
	if err != nil {
		panic(fmt.Sprintf("machine: a part of a definition that is no JSON: %v", err))
	}
	return fields
}

// moveTo gives the job another definition. Its steps are those of the definition, in its order; what is known of them stays,
// and their attempts go on from the highest number that they may have had.
func (t *turn) moveTo(to Definition) {
	steps := make([]job.StepState, len(to.Workflow.Steps))
	for i, s := range to.Workflow.Steps {
		at, known := t.indexOf(s.Name)
		if !known {
			steps[i] = job.StepState{Name: s.Name, Attempt: t.job.Gone}
			continue
		}
		steps[i] = t.job.Steps[at]
		if old := t.w.Steps[at]; len(forwardDiffers(old, s)) > 0 && !t.fixed(side{at, false}) {
			otherwise(&steps[i].Forward)
		}
		if len(undoDiffers(t.w.Steps[at], s)) > 0 && !t.fixed(side{at, true}) {
			otherwise(&steps[i].Undo)
		}
	}
	for i, s := range t.w.Steps {
		if !slices.ContainsFunc(to.Workflow.Steps, func(n makegood.Step) bool { return n.Name == s.Name }) {
			// Should a step of this name come back, the claims of its attempts are there still.
			t.job.Gone = max(t.job.Gone, t.job.Steps[i].Attempt)
		}
	}
	t.job.Changes.Pending = movePlaces(t.job.Changes.Pending, t.job.Steps, steps)
	t.job.Definition, t.job.Steps = to.Hash, steps
	t.w, t.graph = to.Workflow, newGraph(to.Workflow)
	for i := range t.job.Steps {
		if t.job.Steps[i].Forward.WentTo != "" {
			t.leaveOut(i)
		}
	}
}

// otherwise forgets of an activity what was said of it as it was described before: a success that is late, an answer that was
// kept for it, by which step it began.
func otherwise(a *job.Activity) {
	a.Silent, a.By = job.Claim{}, ""
	if a.Completion != nil && a.Completion.Early {
		a.Completion = nil
	}
}

// planned says what becomes of each step of a job.
func planned(from, to makegood.Workflow, j job.Job, rule Rule) (steps []makegood.PlannedStep) {
	for _, s := range to.Steps {
		state, known := j.Step(s.Name)
		p := makegood.PlannedStep{Name: s.Name, State: makegood.NotStarted, Fate: makegood.StepNew}
		if known {
			old := from.Steps[slices.IndexFunc(from.Steps, func(o makegood.Step) bool { return o.Name == s.Name })]
			p = plannedStep(state, fateOf(j, state, rule))
			p.Differs = append(forwardDiffers(old, s), undoDiffers(old, s)...)
		}
		steps = append(steps, p)
	}
	for _, s := range from.Steps {
		if !slices.ContainsFunc(to.Steps, func(n makegood.Step) bool { return n.Name == s.Name }) {
			state, _ := j.Step(s.Name)
			steps = append(steps, plannedStep(state, makegood.StepGone))
		}
	}
	return steps
}

func plannedStep(s job.StepState, fate makegood.StepFate) makegood.PlannedStep {
	state := makegood.StepState(s.Forward.State)
	return makegood.PlannedStep{Name: s.Name, State: cmp.Or(state, makegood.NotStarted), Undo: makegood.StepState(s.Undo.State), Fate: fate}
}

// fateOf says what becomes of a step that stays.
func fateOf(j job.Job, s job.StepState, rule Rule) makegood.StepFate {
	a := s.Forward
	back := j.Desired != makegood.Processed
	if back {
		a = s.Undo
	}
	switch {
	case rule.Effect == NewRound:
		return makegood.StepAhead
	case a.State == job.Failed:
		return makegood.StepAgain
	case a.State == job.NotStarted && !(back && s.Forward.State != job.Done && !s.Forward.Unknown):
		return makegood.StepAhead
	default:
		return makegood.StepStays
	}
}
