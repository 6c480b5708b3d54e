package machine_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
)

// body is what a remote service is asked for: who asks it, and for what; of a step that is asked with the job's input, with which.
type body struct{ agent, action, with, input string }

// of names the step, and its round.
func (a account) of() string { return fmt.Sprintf("%s/%d", a.step, a.round) }

// asked is what an attempt asks for, and the input that it saw. Of an undo it is what is asked of its step, and the input it has.
type asked struct {
	body
	saw string
}

// account is what a service may know under one idempotency key: one body, from one agent.
type account struct {
	step  string
	round int
	key   string
	body  body
	// undone: an undo that was described beside this body, over the same input, has succeeded since.
	undone bool
	// others are the undos that were made of another body.
	others []asked
}

// bodyOf is what a step asks of its service, as its job and its definition are now; that of an undo is what it undoes.
func (x *world) bodyOf(step string, undo bool) asked {
	s, saw := x.def(step), string(x.job.InputOf(step, undo).Inline)
	b := body{agent: s.Agent, action: s.Action, with: string(s.With)}
	if s.With == nil {
		b.input = saw
	}
	return asked{b, saw}
}

// noteBodies notes what the attempts that are out ask for.
func (x *world) noteBodies() {
	for _, s := range x.job.Steps {
		for i, a := range []job.Activity{s.Forward, s.Undo} {
			which := id(s.Name, a.Attempt)
			if _, known := x.bodies[which]; known || a.State != job.Dispatched && a.State != job.Waiting {
				continue
			}
			x.bodies[which] = x.bodyOf(s.Name, i == 1)
			if token := machine.CompletionToken(x.job, s.Name, i == 1); x.tokens[token] == (body{}) {
				x.tokens[token] = x.sideBody(s.Name, i == 1)
			}
			if of := (account{step: s.Name, round: x.job.Round}).of(); i == 0 {
				x.sawn[of] = append(x.sawn[of], x.bodies[which].saw)
			}
		}
	}
}

// checkKeyOf: each repetition of a step has a key of its own, all its attempts have the same, and nothing else has it.
func (x *world) checkKeyOf(task makegood.Task, a job.Activity) {
	of := fmt.Sprintf("%s in round %d, undo %v, repetition %d", task.Step, task.Round, task.Undo != nil, a.Repeats)
	was, known := x.keys[task.Key]
	if !known {
		x.keys[task.Key], x.keys[of] = of, task.Key
	}
	if known && was != of || x.keys[of] != task.Key {
		x.t.Fatalf("%s goes out under %s, which is of %s", of, task.Key, was)
	}
}

// sideBody is what a step asks for, or what its undo does.
func (x *world) sideBody(step string, undo bool) body {
	b := x.bodyOf(step, undo)
	if s := x.def(step); undo && domain.CanUndo(s) {
		b.body = body{agent: s.Undo.Agent, action: s.Undo.Action, with: string(s.Undo.With)}
		if s.Undo.With == nil {
			b.input = b.saw
		}
	}
	return b.body
}

// checkToken: a completion token completes what it was given for, and nothing that took its place.
func (x *world) checkToken(e job.Event) {
	c, ok := e.(job.StepCompleted)
	if _, there := x.job.Step(c.Step); !there {
		return // Its step has gone, and the completion with it.
	}
	if of, known := x.tokens[c.Token]; ok && known && of != x.sideBody(c.Step, c.Undo) {
		x.t.Fatalf("a token of %+v completes %+v", of, x.sideBody(c.Step, c.Undo))
	}
}

// applies: a service may have done under a key what it was asked for.
func (x *world) applies(step string, round int, key string, b asked) {
	name := fmt.Sprint(key, b.body)
	if x.ledger[name] == nil {
		x.ledger[name] = &account{step: step, round: round, key: key, body: b.body}
		x.accounts = append(x.accounts, x.ledger[name])
	}
	a := x.ledger[name]
	a.undone = false
	x.sawn[a.of()] = append(x.sawn[a.of()], b.saw)
}

// nothingStands: a person has seen to it that nothing of a step stands.
func (x *world) nothingStands(step string) {
	for _, a := range x.accounts {
		if a.step == step && a.round == x.job.Round {
			a.undone = true
		}
	}
}

// appliesTask does so for an attempt.
func (x *world) appliesTask(which string) {
	if task := x.tasks[which]; task.Undo == nil && !x.applied[which] {
		x.applied[which] = true
		x.applies(task.Step, task.Round, task.Key, x.bodies[which])
		x.fence.do(x, task)
	}
}

// appliesOutside does so for those outside, or a person, who act for a step: for an attempt of it, or for none.
func (x *world) appliesOutside(step string, attempt int) {
	which := id(step, attempt)
	b, known := x.bodies[which]
	if !known {
		b = x.bodyOf(step, false)
	}
	x.applies(step, x.job.Round, cmp.Or(x.tasks[which].Key, fmt.Sprintf("%s/%s/%d", x.job.ID, step, x.job.Round)), b)
}

// mayStand reports whether anything of a step may stand in this round.
func (x *world) mayStand(step string) bool {
	for _, a := range x.accounts {
		if a.step == step && a.round == x.job.Round && !a.undone && !x.onlyWaited(x.job, a) {
			return true
		}
	}
	return false
}

// onlyWaited: nothing was done but waiting, and whoever described the step has nothing undone of that.
func (x *world) onlyWaited(j job.Job, a *account) bool {
	steps := x.of(j).Steps
	i := slices.IndexFunc(steps, func(s makegood.Step) bool { return s.Name == a.step })
	return i >= 0 && domain.WaitsByItself(a.body.agent) && !domain.CanUndo(steps[i])
}

// takesBack notes which undos a save has ended: each undoes what was asked for by a body like its own, under every key of its step.
func (x *world) takesBack(before, after job.Job) {
	for _, s := range after.Steps {
		was := activityOf(before, s.Name, true)
		if s.Undo.State != job.Done || was.State == job.Done && before.Round == after.Round {
			continue
		}
		which := id(s.Name, s.Undo.Attempt)
		b, known := x.bodies[which]
		if !known {
			b = x.bodyOf(s.Name, true) // Nobody was sent a task.
		}
		byHand := after.Settled(s.Undo) != nil
		for _, a := range x.accounts {
			switch of := a.step == s.Name && a.round == after.Round; {
			case of && !byHand && x.isChild(s.Name, true): // What its child says of it counts, and of nothing else.
			case of && (byHand || a.body == b.body && slices.Contains(x.sawn[a.of()], b.saw)):
				a.undone = true
			case of:
				a.others = append(a.others, b)
			}
		}
		if task := x.tasks[which]; known && !byHand {
			x.fence.undo(x, task)
		}
	}
}

// checkLedger: in a round that is over, each account is undone, or the job names its step.
func (x *world) checkLedger(j job.Job) {
	for _, a := range x.accounts {
		s, there := j.Step(a.step)
		switch {
		case a.undone || a.round != j.Round || x.onlyWaited(j, a):
		case there && s.Undo.State == job.Irreversible:
		case there && j.Settled(s.Undo) != nil:
		default:
			x.t.Fatalf("in round %d %+v may stand under %s, the undo of step %s is %q, and was of %+v: %s", j.Round, a.body, a.key, a.step, s.Undo.State, a.others, j.Reason)
		}
	}
}

// checkNamed: a job that has ended names the steps of which something may stand.
func (x *world) checkNamed(s job.StepState) {
	if s.Undo.State == job.Irreversible && x.mayStand(s.Name) && !strings.Contains(x.job.Reason, s.Name) {
		x.t.Fatalf("something of step %s may stand, and the job does not say so: %s", s.Name, x.job.Reason)
	}
}

// checkProcessed: of a step that is done nothing stands but what it is said to have done.
func (x *world) checkProcessed() {
	for _, s := range x.job.Steps {
		done, known := x.bodies[id(s.Name, s.Forward.Attempt)]
		byHand := s.Forward.Completion != nil || x.job.Settled(s.Forward) != nil
		if s.Forward.State != job.Done || !known || byHand {
			continue
		}
		for _, a := range x.accounts {
			if a.step == s.Name && a.round == x.job.Round && !a.undone && a.body != done.body {
				x.t.Fatalf("step %s is done by %+v, and %+v may stand under %s", s.Name, done, a.body, a.key)
			}
		}
	}
}

// mayRun returns an attempt of a step that may be running in another process, although nobody holds a claim of it; empty: none.
func (x *world) mayRun(step string) string {
	for _, which := range sorted(x.tasks) {
		task := x.tasks[which]
		over := x.said[which] != "" || x.dead[which] || !x.now.Before(task.CompleteBy)
		if task.Step == step && task.Undo == nil && task.Shared && task.Round == x.job.Round && !over {
			return which
		}
	}
	return ""
}

// checkUndoBegins: the undo of a step begins when nothing of the step runs any more.
func (x *world) checkUndoBegins(before job.Job) {
	for _, s := range x.job.Steps {
		was := activityOf(before, s.Name, true)
		if begins := s.Undo.State == job.Dispatched && s.Undo.Attempt != was.Attempt; !begins {
			continue
		}
		if which := x.mayRun(s.Name); which != "" {
			x.t.Fatalf("the undo of step %s begins at %v, and attempt %s of agent %s may run until %v", s.Name, x.now, which, x.tasks[which].Agent, x.tasks[which].CompleteBy)
		}
	}
}

// outside is the agent that runs in another process than the engine.
const outside = "o"

// isOutside reports whether an attempt goes on when the engine dies: its agent runs elsewhere, and was given its task.
func (x *world) isOutside(task makegood.Task) bool {
	return task.Agent == outside && x.claimed[id(task.Step, task.Attempt)] != ""
}

// ready is what the repeat.until of a step gives.
func (x *world) ready() machine.Fact {
	return machine.Fact{Run: x.helped > 0 || rapid.Bool().Draw(x.t, "ready")}
}
