package machine_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/store"
)

// answer does what package store says of looking at a claim item, and of closing it.
func (s *story) answer(ask machine.Ask) job.Found {
	if machine.AgentOf(s.w, ask.Step, ask.Undo) == makegood.AgentWorkflow {
		return s.answerChild(ask)
	}
	if ask.Kind == machine.AskPermit {
		return s.permit(ask)
	}
	name, until := s.slotOf(ask.Step, ask.Undo), s.activityOf(ask.Step, ask.Undo).ClaimUntil()
	found := job.Found{Finding: job.FoundSilent}
	by := ""
	if ask.LockedBy != "" {
		by = " of " + ask.LockedBy
	}
	switch ask.Kind {
	case machine.AskLook:
		found = store.Looked(s.items[name], ask.Attempt, until, s.now)
	case machine.AskClose:
		c := store.Closing{Attempt: ask.Attempt, Until: until, Now: s.now, LockedBy: ask.LockedBy}
		if ask.Mark {
			by = " (unwanted)"
			c.Ends = machine.ClosingEnds(s.w, ask.Step, ask.Undo, s.now)
		}
		s.items[name], found = store.Closed(s.items[name], c)
	case machine.AskOverrule:
		item, err := store.Overruled(s.items[name], ask.Attempt, ask.LockedBy, until)
		if err != nil {
			s.t.Fatal(err)
		}
		s.items[name] = item
	default:
		s.t.Fatalf("unknown ask %q", ask.Kind)
	}
	s.answers = append(s.answers, fmt.Sprintf("  ? %s %s#%d%s: %s\n", ask.Kind, named(ask.Step, ask.Undo), ask.Attempt, by, s.found(found)))
	return found
}

func (s *story) found(f job.Found) string {
	switch f.Finding {
	case job.FoundHeld:
		return fmt.Sprintf("held by %s until %s", f.Claim.LockedBy, s.when(f.Claim.CompleteBy))
	case job.FoundOver:
		return fmt.Sprintf("over, #%d is claimed by %s", f.Claim.Attempt, f.Claim.LockedBy)
	default:
		return string(f.Finding)
	}
}

// close carries out the closings that were derived last, those of all steps or of the ones named, and brings the
// answers to the job in one fold. Those that are lost are never heard of.
func (s *story) close(a args) string {
	steps := slices.DeleteFunc(a.words[1:], func(w string) bool { return w == "lost" })
	var events []job.Event
	var out strings.Builder
	for _, c := range s.closings {
		if len(steps) > 0 && !slices.Contains(steps, c.Step) {
			continue
		}
		s.answers = nil
		found := s.answer(machine.Ask{Kind: machine.AskClose, Step: c.Step, Attempt: c.Attempt, Undo: c.Undo, Mark: c.Mark, Redrives: c.Redrives})
		out.WriteString(s.answers[0])
		events = append(events, job.AttemptClosed{Step: c.Step, Attempt: c.Attempt, Found: found, Asked: c.Asked})
	}
	if len(steps)+1 < len(a.words) {
		return out.String() + s.show()
	}
	for _, e := range events {
		s.last = e
		out.WriteString(s.apply(e))
	}
	return out.String() + s.show() + s.commands(events...)
}

// named reports whether a step or its undo is meant.
func named(step string, undo bool) string {
	if undo {
		return "undo of " + step
	}
	return step
}

func (s *story) slotOf(step string, undo bool) string {
	return machine.AgentOf(s.w, step, undo) + "/" + step
}

// slot names the claim item that the latest attempt of a step is about.
func (s *story) slot(step string) string {
	state, _ := s.job.Step(step)
	return s.slotOf(step, state.Undo.Attempt > state.Forward.Attempt)
}

func (s *story) activityOf(step string, undo bool) job.Activity {
	state, _ := s.job.Step(step)
	if undo {
		return state.Undo
	}
	return state.Forward
}

// claim does what package store says that a claim does, with the task as it was sent.
func (s *story) claim(a args) string {
	state, _ := s.job.Step(a.words[1])
	n := s.number(a.or("attempt", strconv.Itoa(state.Attempt)))
	task, ok := s.tasks[fmt.Sprintf("%s#%d", state.Name, n)]
	if !ok {
		s.t.Fatalf("no task of attempt %d of step %s was sent", n, state.Name)
	}
	name := task.Agent + "/" + task.Step
	item, err := store.Claimed(s.items[name], job.Claim{
		Attempt: n, LockedBy: a.or("by", "a1"), StartedAt: s.now, CompleteBy: store.Lasting(task, s.now, s.now),
		Beside: s.number(a.or("beside", "0")),
	}, task.ClaimUntil)
	if err != nil {
		return err.Error() + "\n"
	}
	s.items[name] = item
	return s.show()
}

func (s *story) heartbeat(a args) string {
	name := s.slot(a.words[1])
	item := s.items[name]
	task := s.tasks[fmt.Sprintf("%s#%d", a.words[1], item.Attempt)]
	claim := item.Claim
	claim.LockedBy = a.or("by", claim.LockedBy)
	claim.CompleteBy = store.Lasting(task, claim.StartedAt, s.now)
	next, err := store.Extended(item, claim, task.ClaimUntil)
	if err != nil && !errors.Is(err, store.ErrWithdrawn) {
		return err.Error() + "\n"
	}
	s.items[name] = next
	if err != nil {
		return err.Error() + "\n" + s.show()
	}
	return s.show()
}

// lie writes a claim as no good agent does: of an attempt that was never made, or far ahead.
func (s *story) lie(a args) string {
	state, _ := s.job.Step(a.words[1])
	s.items[s.slot(state.Name)] = store.ClaimItem{Claim: job.Claim{
		Attempt: s.number(a.or("attempt", strconv.Itoa(state.Attempt))), LockedBy: a.or("by", "liar"),
		StartedAt:  s.start.Add(s.duration(a.or("startedAt", s.when(s.now))).Std()),
		CompleteBy: s.now.Add(s.duration(a.or("ahead", "30s")).Std()),
	}}
	return s.show()
}

// expire takes away an item whose time to live has passed.
func (s *story) expire(a args) string {
	name := s.slot(a.words[1])
	if at := s.items[name].ExpiresAt; s.now.Before(at) {
		s.t.Fatalf("the item of step %s does not expire before %s", a.words[1], s.when(at))
	}
	delete(s.items, name)
	return s.show()
}

// attempt says what the job knows of an attempt that is out, and what its claim item does.
func (s *story) attempt(a job.Activity, item store.ClaimItem) string {
	line := fmt.Sprintf(" #%d", a.Attempt)
	if a.Resent > 0 {
		line += fmt.Sprintf(" (sent again %d times, last at %s)", a.Resent, s.when(a.At))
	}
	if a.Closing {
		line += ", closing"
	}
	if a.Inline != "" {
		return line + fmt.Sprintf(", run by %s until %s", a.Inline, s.when(a.LookAt))
	}
	line += ", look at " + s.when(a.LookAt)
	switch {
	case item.Attempt < a.Attempt:
		return line
	case item.Closed != "":
		return line + fmt.Sprintf("; closed: %s", item.Closed)
	case item.Attempt > a.Attempt:
		return line + fmt.Sprintf("; #%d claimed by %s", item.Attempt, item.LockedBy)
	}
	line += fmt.Sprintf("; claimed by %s until %s", item.LockedBy, s.when(item.CompleteBy))
	if !item.Ends.IsZero() {
		line += fmt.Sprintf(", at most until %s", s.when(item.Ends))
	}
	return line
}

// runs are the inline attempts that the last save has opened.
func (s *story) runs() string {
	var out strings.Builder
	for _, chain := range machine.Inlined(s.w, s.job, s.lockedBy()) {
		for i, d := range chain {
			task, does := machine.TaskOf(s.w, s.job, d), "run"
			if i > 0 {
				does = "then"
			}
			fmt.Fprintf(&out, "  -> %s %s#%d key %s of %s here, complete by %s\n", does, task.Action, task.Attempt, task.Key, task.Agent, s.when(task.CompleteBy))
		}
	}
	return out.String()
}

// lockedBy names the save of the decision under way, or of the last one.
func (s *story) lockedBy() string { return fmt.Sprintf("%s:%d", s.lane.LockedBy, s.decisions) }

// send writes a task. Whenever it is sent, it can be claimed until the same moment, and brings the same token.
func (s *story) send(d job.Dispatch) string {
	if machine.AgentOf(s.w, d.Step, d.Undo) == makegood.AgentWorkflow {
		return s.begin(d)
	}
	task := machine.TaskOf(s.w, s.job, d)
	id := fmt.Sprintf("%s#%d", d.Step, d.Attempt)
	if first, ok := s.tasks[id]; ok && (!first.ClaimUntil.Equal(task.ClaimUntil) || first.Token != task.Token) {
		s.t.Errorf("task %s is sent as %+v, and was as %+v", id, task, first)
	} else if !ok {
		s.tasks[id] = task
	}
	outcome := ""
	if task.Undo != nil {
		outcome = fmt.Sprintf(" outcome %s of %s", task.Undo.Outcome, strings.Join(task.Undo.Keys(), ", "))
	}
	within := fmt.Sprintf("start by %s", s.when(task.StartBy))
	if task.Shared {
		within = fmt.Sprintf("shared, complete by %s", s.when(task.CompleteBy))
	}
	heartbeat := ""
	if task.Heartbeat > 0 {
		heartbeat = fmt.Sprintf(", heartbeat %s", task.Heartbeat)
	}
	if task.Alone {
		heartbeat += ", alone"
	}
	if of := s.job.InputOf(d.Step, d.Undo); string(of.Inline) != string(s.job.Input.Inline) {
		heartbeat += fmt.Sprintf(", with the input %s of before", of.Inline)
	}
	return fmt.Sprintf("  -> task %s#%d key %s%s to %s at %s, %s, timeout %s%s\n",
		task.Action, task.Attempt, task.Key, outcome, task.Agent, s.when(task.SentAt), within, task.Timeout, heartbeat)
}

// reply comes from the claim that is held, of the step's latest attempt and with its token, unless said otherwise.
func (s *story) reply(a args) job.Reply {
	var item store.ClaimItem
	state, ok := s.job.Step(a.words[1])
	if ok {
		item = s.items[s.slot(state.Name)]
	}
	if claim, is := s.within(state.Name); is {
		item = store.ClaimItem{Claim: claim}
	}
	r := job.Reply{
		Step: a.words[1], Attempt: s.number(a.or("attempt", strconv.Itoa(state.Attempt))),
		LockedBy: a.or("by", item.LockedBy), StartedAt: item.StartedAt,
	}
	switch a.or("token", "") {
	case "":
		r.Token = machine.Token(s.job, r.Step, r.Attempt)
	case "other":
		// That of the attempt before: who got its task has no other.
		r.Token = machine.Token(s.job, r.Step, r.Attempt-1)
	case "wrong":
		r.Token = "1.AAAAAAAAAAAAAAAAAAAAAA"
	case "none":
	default:
		s.t.Fatalf("a story knows no token %q", a.values["token"])
	}
	return r
}
