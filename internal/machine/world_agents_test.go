package machine_test

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/testkit/layers"
)

// sorted are the keys of a map whose order must not matter.
func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// claim is what an agent does, behind the Scheduler's back, with any task that was ever sent: a queue may bring it
// again at any time.
func (x *world) claim() {
	var ids []string
	for _, which := range sorted(x.tasks) {
		if t := x.tasks[which]; (!t.Shared || t.Agent == outside) && !x.dead[which] && !x.inline[which] && !x.ofChild(which) {
			ids = append(ids, which)
		}
	}
	if len(ids) > 0 {
		x.claimOf(rapid.SampledFrom(ids).Draw(x.t, "claim"))
	}
}

func (x *world) claimOf(which string) {
	task, ok := x.tasks[which]
	if !ok || x.dead[which] || x.inline[which] || x.ofChild(which) {
		return
	}
	if task.Shared {
		x.giveAway(which)
		return
	}
	name := task.Agent + "/" + task.Step
	lockedBy := fmt.Sprintf("a:%d", len(x.claimed))
	if task.Agent == outside {
		lockedBy = job.OutsidePrefix + lockedBy
	}
	claim := job.Claim{
		Attempt: task.Attempt, LockedBy: lockedBy, StartedAt: x.now, CompleteBy: store.Lasting(task, x.now, x.now),
	}
	item, err := store.Claimed(x.items[name], claim, task.ClaimUntil)
	if err != nil {
		return
	}
	if x.over[which] {
		x.t.Fatalf("attempt %s was claimed after it had ended", which)
	}
	if by := x.claimed[which]; by != "" {
		x.t.Fatalf("attempt %s was claimed twice, by %s and %s", which, by, claim.LockedBy)
	}
	x.items[name] = item
	x.claimed[which] = claim.LockedBy
	x.idle[which] = rapid.Bool().Draw(x.t, "idle") || x.harmless[task.Step]
	if task.Undo == nil {
		if task.Round != x.job.Round {
			x.t.Fatalf("attempt %s of round %d was claimed in round %d", which, task.Round, x.job.Round)
		}
		if !x.idle[which] {
			x.appliesTask(which)
		}
		if s, _ := x.job.Step(task.Step); s.Undo.State == job.Done {
			x.t.Fatalf("step %s was claimed forward after its undo", task.Step)
		}
	}
}

// lane is the right to run inline attempts after the coming save, where the process that decides has it.
func (x *world) lane() machine.Lane {
	x.decisions++
	l := machine.Lane{LockedBy: fmt.Sprintf("s:%d", x.decisions)}
	if rapid.Bool().Draw(x.t, "inline here") {
		l.Agents = []string{"a"}
	}
	if rapid.IntRange(0, 3).Draw(x.t, "little time") == 0 {
		l.Until = x.now.Add(time.Duration(rapid.IntRange(0, 40).Draw(x.t, "until")) * time.Second)
	}
	return l
}

// runInline runs the inline attempts that a save has opened, there and then: with an effect or without one. A chain goes
// on as long as its steps are done, and may end before any but the first.
func (x *world) runInline(l machine.Lane) {
	for _, chain := range machine.Inlined(x.w, x.job, l.LockedBy) {
		for i, d := range chain {
			which := id(d.Step, d.Attempt)
			if by := x.claimed[which]; by != "" || !slices.Contains(l.Agents, x.tasks[which].Agent) {
				x.t.Fatalf("attempt %s is run inline by %s, and was by %q", which, l.LockedBy, by)
			}
			x.claimed[which] = l.LockedBy
			if i > 0 && x.chainEnds(chain[i-1], d) {
				x.said[which] = saysHeld
				continue
			}
			x.idle[which] = rapid.Bool().Draw(x.t, "idle") || x.harmless[d.Step]
			if !d.Undo && !x.idle[which] {
				x.appliesTask(which)
			}
		}
	}
}

// chainEnds: the process does not begin the second of two attempts of a chain.
func (x *world) chainEnds(first, second job.Dispatch) bool {
	before := id(first.Step, first.Attempt)
	if x.said[before] == saysHeld || x.bad[machine.Want{Step: second.Step}] != "" || rapid.IntRange(0, 3).Draw(x.t, "chain ends") == 0 {
		return true
	}
	x.replyOf(before, saysDone)
	return x.said[before] != saysDone
}

// giveAway gives the task of an attempt that nobody claims to an agent outside, as often as that asks for it. Its item says so.
func (x *world) giveAway(which string) {
	task := x.tasks[which]
	if task.Agent != outside || !x.now.Before(task.CompleteBy) {
		return
	}
	name := task.Agent + "/" + task.Step
	claim := job.Claim{Attempt: task.Attempt, LockedBy: job.OutsideShared, StartedAt: x.now, CompleteBy: task.CompleteBy}
	if item, err := store.Claimed(x.items[name], claim, task.ClaimUntil); err == nil {
		x.items[name], x.claimed[which] = item, claim.LockedBy
	}
}

// heartbeat extends every claim that has not run out by a timeout from a little earlier, as heartbeats do.
func (x *world) heartbeat() {
	now := x.now.Add(-time.Duration(rapid.IntRange(0, 15000).Draw(x.t, "earlier")) * time.Millisecond)
	for _, name := range sorted(x.items) {
		item := x.items[name]
		task, ok := x.tasks[id(name[2:], item.Attempt)]
		if !ok || task.Shared || item.Closed != "" || item.LockedBy == "liar" || !now.Before(item.CompleteBy) {
			continue
		}
		claim := item.Claim
		claim.CompleteBy = store.Lasting(task, claim.StartedAt, now)
		claim.Progress = job.Progress{Value: "1", At: now}
		x.items[name], _ = store.Extended(item, claim, task.ClaimUntil)
	}
}

// lie writes a claim of an attempt that was never made, or far ahead. An agent that lies harms its own step only: what
// it did before stays done.
func (x *world) lie() {
	s := rapid.SampledFrom(x.job.Steps).Draw(x.t, "lies")
	undo := s.Undo.State == job.Dispatched
	if undo && !domain.CanUndo(x.def(s.Name)) || machine.AgentOf(x.w, s.Name, undo) != "a" {
		return
	}
	name := x.slot(s.Name, undo)
	claim := job.Claim{Attempt: s.Attempt, LockedBy: "liar", StartedAt: x.now, CompleteBy: x.now.Add(100 * time.Hour)}
	if s.Attempt == 0 || rapid.Bool().Draw(x.t, "newer") {
		claim.Attempt += 50
	}
	// A lie does not reopen what was closed: every write of a slot that is closed is of a newer attempt.
	if item := x.items[name]; item.Attempt < claim.Attempt || item.Attempt == claim.Attempt && item.Closed == "" {
		x.items[name] = store.ClaimItem{Claim: claim, ExpiresAt: x.now.Add(limits.MaxClaim)}
	}
}

// restart ends the process: with it go the tasks that were sent and the agents that run them, and perhaps the claims
// that were not flushed. What was given to an agent outside goes on.
func (x *world) restart() {
	x.run++
	lost := rapid.Bool().Draw(x.t, "power fails")
	for _, which := range sorted(x.tasks) {
		task := x.tasks[which]
		if x.ofChild(which) {
			continue // Its child goes on.
		}
		if x.isOutside(task) {
			x.seen.Played(layers.Outside)
			continue
		}
		x.dead[which] = true
		name := task.Agent + "/" + task.Step
		if item := x.items[name]; lost && item.Attempt == task.Attempt && item.Closed == "" {
			delete(x.items, name)
			x.seen.Played(layers.PowerLost)
		}
	}
}

// expire takes away the items whose time to live has passed.
func (x *world) expire() {
	maps.DeleteFunc(x.items, func(_ string, i store.ClaimItem) bool { return i.ExpiresAt.Before(x.now) })
}

// reply makes a reply of an attempt that was claimed, or of a shared one that is out; or one by a stranger.
func (x *world) reply(says string) (job.Event, bool) {
	ids := sorted(x.tasks)
	if len(ids) == 0 {
		return nil, false
	}
	return x.replyOf(rapid.SampledFrom(ids).Draw(x.t, "attempt"), says), true
}

func (x *world) replyOf(which, says string) job.Event {
	task := x.tasks[which]
	if said, ok := x.said[which]; ok {
		// An agent says one thing of an attempt, however often it is delivered.
		says = said
	} else if says == saysDone && x.idle[which] && x.over[which] {
		says = saysFailed // What has ended takes effect no more.
	}
	r := job.Reply{Step: task.Step, Attempt: task.Attempt, Token: task.Token, LockedBy: x.claimed[which]}
	if task.Shared && !x.inline[which] {
		r.LockedBy = ""
	}
	if !task.Shared && r.LockedBy == "" {
		// Nobody works on it: so nobody has its token, but for who only read the queue of another.
		r.Token = machine.Token(x.job, task.Step, task.Attempt+1)
	} else {
		x.said[which] = says
	}
	switch says {
	case saysDone:
		if s, _ := x.job.Step(task.Step); s.Forward.Attempt == task.Attempt && x.claimed[which] != "" && task.Attempt > x.notDone[s.Name] {
			x.appliesTask(which)
		}
		if x.idle[which] {
			x.idle[which] = false
		}
		return job.StepSucceeded{Reply: r}
	case saysHeld:
		return job.StepHeld{Reply: r}
	case saysWaiting:
		e := job.StepWaiting{Reply: r}
		if rapid.IntRange(0, 9).Draw(x.t, "deadline") > 0 {
			e.Deadline = x.drawTime("until")
		}
		return e
	}
	failure := job.StepError{Message: "no", Retryable: rapid.Bool().Draw(x.t, "retryable"), Applied: makegood.AppliedUnknown}
	if x.idle[which] {
		failure.Applied = makegood.AppliedNo
	}
	e := job.StepFailed{Reply: r, Error: failure}
	x.drawAnswers(task, x.idle[which], &e)
	return e
}

// noteShared: a shared attempt may run as soon as it is out, but for an inline one (runInline).
func (x *world) noteShared() {
	for i, s := range x.job.Steps {
		if x.w.Steps[i].Shared && s.Forward.State == job.Dispatched && s.Forward.Inline == "" {
			x.appliesTask(id(s.Name, s.Forward.Attempt))
		}
	}
}

// closeAll carries out every closing that is asked for, and brings the answers.
func (x *world) closeAll() (progress bool) {
	for len(x.closings) > 0 {
		answered := len(x.answers)
		x.close()
		x.closings = nil
		if len(x.answers) == answered {
			return progress
		}
		progress = x.move(x.job.Clone(), x.answers[len(x.answers)-1]) == machine.Applied || progress
	}
	return progress
}

// drawBeside lets something happen while an attempt outside that nobody claims may run: its engine dies, or its job turns back.
func (x *world) drawBeside() (e job.Event, ok bool) {
	for _, s := range x.job.Steps {
		which := id(s.Name, s.Forward.Attempt)
		task := x.tasks[which]
		out := s.Forward.State == job.Dispatched && task.Shared && task.Agent == outside && x.now.Before(task.CompleteBy)
		if !out || rapid.Bool().Draw(x.t, "something else") {
			continue
		}
		x.giveAway(which)
		if !x.nested && rapid.Bool().Draw(x.t, "the engine dies") {
			x.restart()
			return job.Interrupted{Incarnation: x.run}, true
		}
		x.requests++
		return job.Requested{Verb: makegood.VerbCancel, Request: fmt.Sprintf("r%d", x.requests)}, true
	}
	return nil, false
}
