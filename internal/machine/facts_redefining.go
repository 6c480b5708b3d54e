package machine

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

// keepsInput says why the job cannot have another input now; empty: it can. The task of an open attempt is made from
// the input whenever it is sent again, and must stay the same.
func (t *turn) keepsInput() string {
	if t.w.Part != nil {
		return "its input is the items of a map that it does"
	}
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
		if differs := forwardDiffers(old, to.Steps[at]); len(differs) > 0 && t.fixed(side{i, false}) && !t.ofItems(i, to.Steps[at]) {
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

// ofItems reports whether a step that is over differs from another in the work of items alone, which a redrive may do
// again: that of its own map, or, in a part, of the part as a whole. Done items must be undone as they would have been.
func (t *turn) ofItems(i int, to makegood.Step) bool {
	old := t.w.Steps[i]
	switch {
	case old.Map == nil || to.Map == nil:
		return t.w.Part != nil && old.Map == nil && to.Map == nil && sameUndo(old, to)
	case t.w.Part == nil && t.failedItems(i) == 0:
		return false
	case old.Map.Over != to.Map.Over || old.Map.Batch != to.Map.Batch || string(old.Map.Item.With) != string(to.Map.Item.With) || !sameUndo(*old.Map.Item, *to.Map.Item):
		return false
	}
	to.Map = old.Map
	return len(forwardDiffers(old, to)) == 0
}

// sameUndo reports whether the undos of two steps do the same work. Their retry and their times may differ: where a
// file does not give them, they are those of the step.
func sameUndo(a, b makegood.Step) bool { return len(works(a, b, undoDiffers(a, b))) == 0 }

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
		case "agent", "action", "with", "undo", "map":
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

// asksAgain says why the job cannot have another input; empty: it can. A step with an unknown outcome would be asked
// for another effect under the same key, and its undo could refer to only one of the two. reads are the steps that
// are asked with the input.
func (t *turn) asksAgain(rule Rule, input *job.Payload, reads []string) string {
	if input == nil || rule.Effect == NewRound || sameInput(*input, t.job.Input) {
		return ""
	}
	needed := false
	for i, s := range t.job.Steps {
		if s.Forward.Unknown && t.asksWithInput(i, reads) {
			return fmt.Sprintf("the outcome of step %s is unknown, and it would be asked again under the same key with another input; %s", s.Name, t.untilSettled())
		}
		needed = needed || t.sawInput(i)
	}
	if needed && t.formerly() < 0 && len(t.job.Former) >= limits.MaxFormerInputs {
		return fmt.Sprintf("it had %d other inputs in this round that steps were done with: that is the limit", limits.MaxFormerInputs)
	}
	return ""
}

// asksWithInput reports whether a step without an open attempt will be asked with the job's input.
func (t *turn) asksWithInput(i int, reads []string) bool {
	switch s := t.job.Steps[i]; s.Forward.State {
	case job.Failed, job.Backoff, job.NotStarted:
		return t.forwards() && slices.Contains(reads, s.Name)
	default:
		return false
	}
}

// sawInput reports whether a step may have had an effect with the input that the job has, and with none before.
func (t *turn) sawInput(i int) bool {
	f := t.job.Steps[i].Forward
	return f.Former == 0 && (f.State == job.Done || f.Unknown)
}

// formerly is where the input that the job has is among those of before; below zero: nowhere.
func (t *turn) formerly() int {
	return slices.IndexFunc(t.job.Former, func(p job.Payload) bool { return sameInput(p, t.job.Input) })
}

// sameInput reports whether two inputs are equal: an input that is kept elsewhere has a key made from its content.
func sameInput(a, b job.Payload) bool {
	return a.Ref == b.Ref && slices.Equal(a.Inline, b.Inline)
}
