package modelcheck

import (
	"fmt"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/store"
)

// question is what the core is asked. It is a function, so each question is asked once.
type question struct {
	job job
	ev  event
}

// answer is what it said: the job as it is to be, what the save of it rests on, and what is to be
// sent once it is saved (or at once, if it does not change).
type answer struct {
	applied         bool
	job             job
	ended           uint8
	onClaims, moves bool
	out             [maxOut]message
	broken          string
}

// ask puts an event to the core.
func (m *model) ask(j job, e event) answer {
	q := question{j, e}
	if a, ok := m.answers[q]; ok {
		return a
	}
	a := m.decide(j, e)
	m.answers[q] = a
	return a
}

// decide runs the shipped Apply and Pending, as the Scheduler does.
func (m *model) decide(j job, e event) (a answer) {
	defer func() {
		if r := recover(); r != nil {
			a.broken = fmt.Sprintf("the core panics: %v", r)
		}
	}()
	ev, before := m.event(e, j), m.full(j)
	after, v := m.apply(before, ev)
	a.applied = v.Kind == machine.Applied
	if a.applied {
		a.job = m.compact(after)
		a.moves = !after.CompleteBy.Equal(before.CompleteBy)
		a.onClaims = v.OnClaims
		for _, name := range v.Ended {
			for i := range m.w.Steps {
				if stepName(i) == name {
					a.ended |= 1 << i
				}
			}
		}
		a.broken = m.judge(j, before, after, e, ev)
	} else {
		a.job = j
	}
	a.out = m.commands(after, ev)
	return a
}

// apply asks until the core has all its facts: no step is skipped, and no expression fails.
func (m *model) apply(j makegood.Job, e makegood.Event) (makegood.Job, machine.Verdict) {
	facts := machine.Facts{Random: 1, Values: map[machine.Want]machine.Fact{}}
	for {
		next, v := machine.Apply(m.w, j, e, facts, base)
		if v.Kind != machine.Wanting {
			return next, v
		}
		for _, want := range v.Wants {
			facts.Values[want] = machine.Fact{Run: true}
		}
	}
}

// commands derives what is to be sent from the job as it is saved.
func (m *model) commands(j makegood.Job, e makegood.Event) (out [maxOut]message) {
	n := 0
	for _, c := range machine.Pending(m.w, j, e) {
		switch c := c.(type) {
		case makegood.Dispatch:
			out[n] = m.task(j, c)
			n++
		case makegood.Announce:
			out[n] = message{kind: sendNotice, n: small(c.Seq)}
			n++
		case makegood.AlertAgent, makegood.Remind:
			// Neither is relied on.
		default:
			panic(fmt.Sprintf("%T", c))
		}
	}
	return out
}

// task runs the shipped TaskOf, and keeps of the task what the remote will see: the round in its key.
func (m *model) task(j makegood.Job, d makegood.Dispatch) message {
	t := machine.TaskOf(m.w, j, d)
	var i, round int
	if _, err := fmt.Sscanf(t.Key, "j/s%d/%d", &i, &round); err != nil || stepName(i) != d.Step {
		panic(fmt.Sprintf("the key of step %s is %q", d.Step, t.Key))
	}
	code := taskSent | taskRound*small(round)
	key := fmt.Sprintf("j/s%d/%d", i, round)
	if t.Undo != nil {
		code |= taskUndo
		if t.Undo.ForwardKey != key {
			panic(fmt.Sprintf("the undo of %q carries the key %q", key, t.Undo.ForwardKey))
		}
		key += "/undo"
	}
	if t.Key != key || (t.Undo != nil) != d.Undo || t.Attempt != d.Attempt {
		panic(fmt.Sprintf("the task of %+v is %+v", d, t))
	}
	return message{kind: sendTask, step: uint8(i), n: small(t.Attempt), code: code}
}

// judge holds what must be true of one decision.
func (m *model) judge(j job, before, after makegood.Job, e event, ev makegood.Event) string {
	if e.kind == evStaleDue {
		return "DeadlinePassed acted with a key that is not the one stored"
	}
	if again, v := m.apply(after, ev); v.Kind == machine.Applied {
		return fmt.Sprintf("applied twice: the second time gives %+v", again)
	}
	failures := 0
	for i, s := range after.Steps {
		failures += s.Forward.FailureCount + s.Undo.FailureCount
		for _, a := range []makegood.Activity{s.Forward, s.Undo} {
			old := j.steps[i]
			if n := a.Attempt; n > 0 && n != int(old.forward.attempt) && n != int(old.undo.attempt) && n <= int(old.attempt) {
				return fmt.Sprintf("attempt %d of %s is opened again", n, s.Name)
			}
		}
		if n := s.Forward.Attempt; n > 0 && n == s.Undo.Attempt {
			return fmt.Sprintf("attempt %d of %s is of the step and of its undo", n, s.Name)
		}
	}
	if failures != after.FailureCount {
		return fmt.Sprintf("the job counts %d failures, its steps %d", after.FailureCount, failures)
	}
	return ""
}

// strangers are replies that nobody may take: of another claim than the one held, and of another
// attempt than the one it is of.
func (m *model) strangers(j job) string {
	full := m.full(j)
	for i := range m.w.Steps {
		slot := int(j.steps[i].slot)
		if slot == 0 {
			continue
		}
		name, by := stepName(i), lockedBy(j.steps[i].slot)
		for _, e := range []makegood.Event{
			makegood.StepSucceeded{Step: name, Attempt: slot, LockedBy: "stranger"},
			makegood.StepFailed{Step: name, Attempt: slot, LockedBy: "stranger"},
			makegood.StepSucceeded{Step: name, Attempt: slot - 1, LockedBy: by},
			makegood.StepFailed{Step: name, Attempt: slot + 1, LockedBy: by},
		} {
			if _, v := m.apply(full, e); v.Kind == machine.Applied {
				return fmt.Sprintf("%+v is taken, but attempt %d is claimed by %s", e, slot, by)
			}
		}
	}
	return ""
}

// conflicts asks the shipped predicate whether the save of an actor would fail now.
func (m *model) conflicts(a *actor) bool {
	i := 0
	for bit, set := range []bool{a.onClaims, a.moves, a.newRev, a.newClaims, a.newKey} {
		if set {
			i |= 1 << bit
		}
	}
	return m.saveConflicts[i]
}

// fillPredicates asks the shipped predicates once for every case in which a model can meet them.
func (m *model) fillPredicates() {
	for i := range m.saveConflicts {
		is := func(bit int) int64 { return int64(i >> bit & 1) }
		stored := makegood.Job{Rev: 1 + is(2), Claims: makegood.Claims{Rev: 1 + is(3)}, CompleteBy: timeOf(when(5 - is(4)))}
		change := store.Change{Job: makegood.Job{Rev: 1, Claims: makegood.Claims{Rev: 1}, CompleteBy: timeOf(5)}, Seen: timeOf(5), OnClaims: is(0) > 0}
		if is(1) > 0 {
			change.Job.CompleteBy = timeOf(7)
		}
		m.saveConflicts[i] = store.MaySave(stored, change) != nil
	}
	for open := range maxAttempt {
		for slot := range maxAttempt {
			for attempt := range maxAttempt {
				j := makegood.Job{Open: map[string]int{}}
				if open > 0 {
					j.Open["s"] = open
				}
				if slot > 0 {
					j.Claims.Slots = map[string]makegood.Claim{"s": {Attempt: slot, LockedBy: "another"}}
				}
				m.mayClaim[open][slot][attempt] = store.MayClaim(j, "s", makegood.Claim{Attempt: attempt, LockedBy: "mine"}) == nil
			}
		}
	}
}
