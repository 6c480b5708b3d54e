package machine

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
)

// Definition is the definition to which a job is to be moved: a fact.
type Definition struct {
	Hash     string
	Workflow makegood.Workflow
	// Err says why there is none that a job could be moved to; empty: there is.
	Err string
	// Misfit says where the input that the job would have does not fit what the definition says of inputs; empty: it fits.
	Misfit string
	// Reads are the steps with tasks made from the job's input, UndoReads those with such undos.
	Reads, UndoReads []string
}

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

// granted reports whether a request was granted before.
func (t *turn) granted(e job.Requested) bool {
	return e.Request != "" && slices.Contains(t.job.Requests, job.ShortHash(e.Cause()))
}

// redefine moves the job to the definition, and gives it the input, that a resubmit asks for. If refused, it returns
// the reason and the job is unchanged. If it needs the definition, it asks for it.
func (t *turn) redefine(rule Rule, e job.Requested) (refused string) {
	if why := t.keepsInput(); e.Input != nil && why != "" {
		return why
	}
	moves := e.Definition != "" && e.Definition != t.job.Definition
	if !moves && e.Input == nil {
		return ""
	}
	to := t.facts.Definition
	if to == nil {
		t.definition = cmp.Or(e.Definition, t.job.Definition)
		return ""
	}
	if why := cmp.Or(to.Err, t.unlike(rule, to.Workflow), t.asksAgain(rule, e.Input, to.Reads), to.Misfit); why != "" {
		return why
	}
	if e.Input != nil {
		t.giveInput(*e.Input, to.Reads)
	}
	if moves {
		t.moveTo(*to)
	}
	return ""
}

// keepsInput says why the job cannot have another input now; empty: it can. The task of an open attempt is made from
// the input whenever it is sent again, and must stay the same.
func (t *turn) keepsInput() string {
	for i := range t.job.Steps {
		for _, at := range sides(i) {
			switch a := t.activity(at); a.State {
			case job.Dispatched:
				return fmt.Sprintf("attempt %d of %s is under way, with the input that the job has", a.Attempt, named(t.name(at), at.undo))
			case job.Waiting:
				return named(t.name(at), at.undo) + " waits, for a task made from the input that the job has"
			}
		}
	}
	return ""
}

// unlike names the differences between a definition and the parts that the job has begun; empty: none. Finished and
// running parts must be there unchanged. A new round begins afresh.
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
		if differs := t.strands(i, old, to.Steps[at]); len(differs) > 0 {
			return fmt.Sprintf("the outcome of step %s is unknown, and the definition has another %s: what the step may have done would be left standing; %s",
				old.Name, strings.Join(differs, ", "), t.untilSettled())
		}
	}
	return ""
}

// strands names the changes to a step with a possible effect that would leave the effect without its undo. An undo
// that has failed may be corrected, like that of a step that was done.
func (t *turn) strands(i int, old, to makegood.Step) []string {
	s := t.job.Steps[i]
	if !s.Forward.Unknown || s.Forward.State == job.Done || t.undoOver(i) {
		return nil
	}
	differs := works(old, to, forwardDiffers(old, to))
	if domain.CanUndo(old) && s.Undo.State != job.Failed {
		differs = append(differs, works(old, to, undoDiffers(old, to))...)
	}
	return differs
}

// undoOver reports whether the undo of a step needs no more work.
func (t *turn) undoOver(i int) bool {
	switch t.job.Steps[i].Undo.State {
	case job.Done, job.Skipped, job.Irreversible:
		return true
	default:
		return false
	}
}

// untilSettled says what settles the outcome of a step.
func (t *turn) untilSettled() string {
	if t.forwards() {
		return "settle it as not done when no effect of it stands, or undo the job"
	}
	return "settle its undo first"
}

// works names those of the differing fields of a step or its undo that define its work: the action, its input and its
// agent. The needs count if the step begins after any of several, since it sees only one.
func works(old, to makegood.Step, differs []string) (names []string) {
	for _, name := range differs {
		switch strings.TrimPrefix(name, "undo.") {
		case "agent", "action", "with", "undo":
			names = append(names, name)
		case "needs", "any":
			if old.Any || to.Any {
				names = append(names, name)
			}
		}
	}
	return names
}

// mustStay names the part of a step that a job cannot lose; empty: none.
func (t *turn) mustStay(i int) string {
	s := t.job.Steps[i]
	switch {
	case t.fixed(side{i, false}):
		return "which is " + where(s.Forward)
	case s.Forward.Unknown:
		return "which may have had an effect"
	case t.fixed(side{i, true}), s.Undo.State == job.Failed:
		return "which has an undo that is " + where(s.Undo)
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

// fixed reports whether a side is over or under way, so that it must not change. A failed one may: the mistake may be
// in its definition. So may the undo of a step that needs no undo.
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

// undoDiffers names the fields in which the undos of two steps differ. Two undos without an action are the same.
func undoDiffers(a, b makegood.Step) []string {
	switch {
	case !domain.CanUndo(a) && !domain.CanUndo(b):
		return nil
	case !domain.CanUndo(a) || !domain.CanUndo(b):
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
	t.w, t.graph = to.Workflow, newGraph(to.Workflow)
	for i := range t.job.Steps {
		if t.job.Steps[i].Forward.WentTo != "" {
			t.leaveOut(i)
		}
	}
}

// anew clears from a changed activity the records of its earlier definition: late successes, answers given or kept,
// completion tokens of attempts up to the last, and the step that began it.
func anew(a *job.Activity, attempt int) {
	a.Silent, a.Completion, a.By = job.Claim{}, nil, ""
	a.Generation = attempt
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
