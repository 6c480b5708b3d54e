package machine_test

import (
	"encoding/json"
	"slices"

	"pgregory.net/rapid"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/machine"
)

// kid is the child of an attempt, as its parent can see it.
type kid struct {
	seen    machine.ChildSeen
	step    string
	round   int
	attempt int
	// stays: nothing in its workflow can be undone.
	stays bool
}

// drawChild makes some steps ones that a job of its own does.
func drawChild(t *rapid.T, s *makegood.Step) {
	if rapid.IntRange(0, 5).Draw(t, "child") > 0 {
		return
	}
	undo := s.Undo
	*s = makegood.Step{Name: s.Name, Agent: makegood.AgentWorkflow, Action: "c", Needs: s.Needs, Retry: makegood.Retry{Attempts: 1}}
	if undo != nil && undo.None {
		s.Undo = undo
	}
}

// drawChildChange changes something of a step that a job of its own does.
func (x *world) drawChildChange(s *makegood.Step) {
	switch rapid.IntRange(0, 3).Draw(x.t, "change of a child") {
	case 0:
		s.Action, s.Undo = "another", nil
	case 1:
		s.Undo = &makegood.Undo{None: true}
	case 2:
		s.Undo = nil
	}
}

func (x *world) isChild(step string, undo bool) bool {
	if undo && !domain.CanUndo(x.def(step)) {
		return false
	}
	return machine.AgentOf(x.w, step, undo) == makegood.AgentWorkflow
}

// kidOf is the id of the child of the last attempt of a step.
func (x *world) kidOf(step string) string {
	s, _ := x.job.Step(step)
	return domain.ChildID(x.job.ID, x.job.Birth, step, s.Forward.Attempt)
}

// askChild answers a question about a child, and does first what the answer needs.
func (x *world) askChild(a machine.Ask) job.Found {
	name := x.kidOf(a.Step)
	k := x.kids[name]
	if k == nil {
		k = &kid{step: a.Step, round: x.job.Round}
	}
	finding, act := k.seen.Answer(a)
	switch act {
	case machine.NeverBegin:
		k.seen = machine.ChildSeen{State: makegood.JobCancelled, Never: true, Back: true}
		x.kids[name] = k
	case machine.CancelChild:
		k.seen = machine.ChildSeen{State: makegood.JobUndoing, Back: true}
	}
	found := job.Found{Finding: finding}
	if finding == job.FoundEnded {
		found.Child = &job.ChildEnd{State: k.seen.State}
		if k.seen.State == makegood.JobProcessed {
			found.Child.Output = job.Payload{Inline: json.RawMessage(`1`), Bytes: 1}
		}
	}
	return found
}

// begins does what a dispatch of a child asks for, whenever it comes to it: the child is put there if it is absent, or is
// asked for its undo. refused says that it will not be undone.
func (x *world) begins(d birth) (refused bool) {
	k := x.kids[d.kid]
	switch {
	case !d.Undo && k == nil:
		x.kids[d.kid] = &kid{
			seen: machine.ChildSeen{State: makegood.JobProcessing}, step: d.Step, round: d.round, attempt: d.Attempt,
			stays: rapid.IntRange(0, 5).Draw(x.t, "stays") == 0,
		}
		x.applies(d.Step, d.round, d.kid, d.asked)
	case !d.Undo || k == nil || k.seen.Back:
	case k.stays && k.seen.State == makegood.JobProcessed:
		return true
	case k.seen.State != "":
		k.seen = machine.ChildSeen{State: makegood.JobUndoing, Back: true}
	}
	return false
}

// birth is a dispatch of a child that was derived, and may be carried out at any time, and twice.
type birth struct {
	job.Dispatch
	kid   string
	round int
	asked asked
}

func (x *world) noteBirth(d job.Dispatch) {
	x.births = append(x.births, birth{d, x.kidOf(d.Step), x.job.Round, x.bodies[id(d.Step, d.Attempt)]})
}

// liveOn lets children begin, go on, end, and stop before a person; what they say of it comes at any time, and again.
func (x *world) liveOn() (e job.Event, ok bool) {
	if len(x.births) > 0 && rapid.Bool().Draw(x.t, "begins") {
		if d := rapid.SampledFrom(x.births).Draw(x.t, "birth"); x.begins(d) {
			return job.DispatchRefused{Step: d.Step, Attempt: d.Attempt, Reason: "nothing of it can be undone"}, true
		}
		return nil, false
	}
	if len(x.kids) == 0 {
		return nil, false
	}
	k := x.kids[rapid.SampledFrom(sorted(x.kids)).Draw(x.t, "kid")]
	if rapid.Bool().Draw(x.t, "goes on") {
		x.goesOn(k, rapid.SampledFrom([]makegood.ProcessState{makegood.JobProcessed, makegood.JobUndone, makegood.JobCancelled, makegood.JobError}).Draw(x.t, "to"))
	}
	return job.ChildEnded{Step: k.step, Attempt: k.attempt}, true
}

// goesOn moves a child to a state that its own state and direction allow.
func (x *world) goesOn(k *kid, to makegood.ProcessState) {
	switch {
	case k.seen.State.Finished():
		return
	case k.seen.Back && to == makegood.JobProcessed:
		to = makegood.JobUndone
	}
	back := k.seen.Back || to == makegood.JobUndone || to == makegood.JobCancelled
	k.seen = machine.ChildSeen{State: to, Back: back}
	if back && to.Finished() {
		for _, a := range x.accounts {
			a.undone = a.undone || x.kids[a.key] == k
		}
	}
}

// serveChildren lets every child that is wanted begin, and end as its parent wants it to.
func (x *world) serveChildren() (progress bool) {
	births := x.births
	x.births = nil
	for _, d := range births {
		if s, there := x.job.Step(d.Step); there && s.Attempt >= d.Attempt && x.begins(d) {
			refused := job.DispatchRefused{Step: d.Step, Attempt: d.Attempt, Reason: "nothing of it can be undone"}
			progress = x.move(x.job.Clone(), refused) == machine.Applied || progress
		}
	}
	for _, name := range sorted(x.kids) {
		k := x.kids[name]
		if !k.seen.State.Finished() {
			x.goesOn(k, makegood.JobProcessed)
		}
		if s, there := x.job.Step(k.step); there && s.Attempt >= k.attempt && (s.Forward.State == job.Dispatched || s.Undo.State == job.Dispatched) {
			progress = x.move(x.job.Clone(), job.ChildEnded{Step: k.step, Attempt: k.attempt}) == machine.Applied || progress
		}
	}
	return progress
}

// checkChildren: a child is under way while its attempt is out, and no longer; where its step is said to be undone it is,
// unless a person says so.
func (x *world) checkChildren() {
	for _, name := range sorted(x.kids) {
		k := x.kids[name]
		s, there := x.job.Step(k.step)
		if k.seen.Never || k.round != x.job.Round || !there {
			if !k.seen.State.Finished() {
				x.t.Fatalf("child %s is %s, and its round is over, or its step gone", name, k.seen.State)
			}
			continue
		}
		out := s.Forward.State == job.Dispatched && s.Forward.Attempt == k.attempt || s.Undo.State == job.Dispatched && s.Forward.Attempt == k.attempt
		if !out && !k.seen.State.Finished() {
			x.t.Fatalf("child %s is %s, and its step is %+v", name, k.seen.State, s)
		}
		byHand := x.job.Settled(s.Undo) != nil || x.job.Settled(s.Forward) != nil
		if s.Undo.State == job.Done && !byHand && (!k.seen.Back || !k.seen.State.Finished()) {
			x.t.Fatalf("step %s is said to be undone, and its child %s is %s", k.step, name, k.seen.State)
		}
	}
}

// kidSays reports whether a step is done because of its child, or undone because of it.
func (x *world) kidSays(step string, undo bool) bool {
	k := x.kids[x.kidOf(step)]
	return k != nil && k.seen.State.Finished() && k.seen.Back == undo
}

// checkLookAtChild: a child is looked at in an hour at the latest.
func (x *world) checkLookAtChild(which string, a job.Activity) {
	if a.Inline != "" || a.LookAt.After(x.now.Add(limits.MaxChildLook)) {
		x.t.Fatalf("the child of attempt %s is looked at at %v, inline by %q", which, a.LookAt, a.Inline)
	}
}

// ofChild: an attempt is of a step that a job of its own does, so no agent has it.
func (x *world) ofChild(which string) bool {
	return x.tasks[which].Agent == makegood.AgentWorkflow
}

// notBegun reports whether nothing stands in the place of the child of a step, and nothing that was derived would put
// something there.
func (x *world) notBegun(step string) bool {
	return x.kids[x.kidOf(step)] == nil && !slices.ContainsFunc(x.births, func(d birth) bool { return d.kid == x.kidOf(step) })
}
