package machine_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/machine"
)

// checkWaits holds what must be true of every side of a step that waits, was completed from outside, or began.
func (x *world) checkWaits(before job.Job, e job.Event) {
	for _, s := range x.job.Steps {
		for _, undo := range []bool{false, true} {
			is := activityOf(x.job, s.Name, undo)
			x.checkWaiting(s.Name, undo, is)
			if len(before.Steps) == 0 || before.Round != x.job.Round {
				continue
			}
			was := activityOf(before, s.Name, undo)
			if before.Incarnation == x.job.Incarnation {
				x.checkFirst(s.Name, was, is, e)
			}
			x.checkKept(s.Name, was, is, e)
			x.checkDone(s.Name, undo, was, is, e)
			x.checkOrder(s.Name, undo, was, is)
			x.checkStill(before, s.Name, undo, was, is, e)
		}
	}
}

// checkWaiting: what waits has an end and a moment at which it is looked at, and is wanted. Nothing else does.
func (x *world) checkWaiting(step string, undo bool, a job.Activity) {
	if (a.State == job.Waiting) != (a.Wait != nil) {
		x.t.Fatalf("step %s is %q, and its wait is %+v", step, a.State, a.Wait)
	}
	if a.Held() && a.State != job.Dispatched {
		x.t.Fatalf("step %s is %q, and its answer is held until an attempt has ended: %+v", step, a.State, a.Completion)
	}
	if a.State != job.Waiting {
		return
	}
	s, _ := x.job.Step(step)
	switch {
	case x.job.ProcessState.Finished():
		x.t.Fatalf("step %s waits in a job that is %s", step, x.job.ProcessState)
	case undo == (x.job.Desired == makegood.JobProcessed):
		x.t.Fatalf("step %s waits (undo: %v) in a job that is to be %s", step, undo, x.job.Desired)
	case a.Completion != nil && a.Completion.Early:
		x.t.Fatalf("step %s waits, and an answer is kept for when it does", step)
	case a.LookAt.IsZero() || a.LookAt.After(a.Wait.Deadline):
		x.t.Fatalf("step %s waits until %v, and is looked at at %v", step, a.Wait.Deadline, a.LookAt)
	case a.Wait.Heard > a.Wait.Asked:
		x.t.Fatalf("step %s waits, and more was heard than asked: %+v", step, a.Wait)
	case undo && (s.Forward.State == job.Waiting || s.Forward.State == job.Dispatched):
		x.t.Fatalf("the undo of step %s waits, and the step is %q", step, s.Forward.State)
	case x.job.Needs < job.LevelWaits:
		x.t.Fatalf("step %s waits, and a release that knows of no waits may decide about its job", step)
	}
}

// checkFirst: an answer that was taken stands.
func (x *world) checkFirst(step string, was, is job.Activity, e job.Event) {
	c, ok := e.(job.StepCompleted)
	if !ok || c.Step != step || was.Completion == nil || is.Completion == nil || was.Completion.Early {
		return
	}
	if over := was.State == job.Done || was.Held(); over && was.Completion.Answer != is.Completion.Answer {
		x.t.Fatalf("step %s was completed with %+v, and then with %+v", step, was.Completion, is.Completion)
	}
}

// checkKept: an answer that is held counts when the attempt has ended, and one that is kept stays until it counts, or the step
// is done without it.
func (x *world) checkKept(step string, was, is job.Activity, e job.Event) {
	c := was.Completion
	if c == nil {
		return
	}
	if c.Early && is.Completion == nil && is.State == job.Done {
		return // It was done without waiting: what was kept for that is nothing any more.
	}
	if asked, ok := e.(job.Requested); ok && (asked.Definition != "" || asked.Input != nil) && !c.Held {
		return // It was given to the step as it was described before, or asked.
	}
	if settled, ok := e.(job.Settled); ok && settled.Step == step && !c.Held && x.job.Settled(is) != nil {
		return // Whoever settles a step knows better than an answer that was kept, or led to nothing.
	}
	if is.Completion == nil {
		x.t.Fatalf("step %s has lost the answer %+v", step, c)
	}
	switch {
	case c.Held && is.Held(), c.Early && is.Completion.Early:
		if is.Completion.Answer != c.Answer {
			x.t.Fatalf("step %s keeps %+v, and kept %+v", step, is.Completion, c)
		}
	case c.Held && c.Error == nil:
		if is.State != job.Done || !bytes.Equal(is.Output.Inline, c.Output.Inline) || is.Completion.Answer != c.Answer {
			x.t.Fatalf("step %s was completed with %s, its attempt has ended, and it is %+v", step, c.Output.Inline, is)
		}
	case c.Held:
		if is.FailureCount <= was.FailureCount {
			x.t.Fatalf("step %s was said to have failed, its attempt has ended, and it has %d failures", step, is.FailureCount)
		}
	case c.Early && is.Completion.Answer != c.Answer:
		x.t.Fatalf("step %s kept %+v, and has %+v", step, c, is.Completion)
	}
}

// checkDone: a step or an undo is done because its agent said so, or who completes it, or because its time has passed.
func (x *world) checkDone(step string, undo bool, was, is job.Activity, e job.Event) {
	if is.State != job.Done || was.State == job.Done {
		return
	}
	rules := x.def(step).Waiting
	if undo && domain.CanUndo(x.def(step)) {
		rules = x.def(step).Undo.Waiting
	}
	completed, isAnswer := e.(job.StepCompleted)
	_, due := e.(job.DeadlinePassed)
	_, resumed := e.(job.Requested)
	if _, settled := e.(job.Settled); settled {
		resumed = true // A job in Error goes on, and what came due meanwhile is looked at.
	}
	success, isSuccess := e.(job.StepSucceeded)
	settled, isSettled := e.(job.Settled)
	output := is.Output.Inline
	switch {
	case was.Held() || was.Completion != nil && was.Completion.Early && bytes.Equal(output, was.Completion.Output.Inline):
	case isSuccess && success.Step == step:
	case x.isChild(step, undo) && x.kidSays(step, undo):
	case isAnswer && completed.Step == step && completed.Undo == undo && completed.Error == nil:
		x.checkOutput(completed, step, undo, output)
	case isSettled && settled.Step == step && settled.Undo == undo && settled.Done:
		x.checkOutput(job.StepCompleted{Output: settled.Output, By: settled.By}, step, undo, output)
	case machine.AgentOf(x.w, step, undo) == makegood.AgentWait && len(output) == 0:
		if was.State == job.Waiting && x.now.Before(was.Wait.Deadline) {
			x.t.Fatalf("step %s waits until %v, and is done at %v", step, was.Wait.Deadline, x.now)
		}
	case (due || resumed || isSettled) && was.State == job.Waiting && !x.now.Before(was.Wait.Deadline) && rules != nil && rules.OnTimeout != nil:
		if want := rules.OnTimeout.Output; string(want) != "null" && !bytes.Equal(want, output) {
			x.t.Fatalf("the time of step %s has passed, and its output is %s, want %s", step, output, want)
		}
	default:
		x.t.Fatalf("step %s (undo: %v) is done by %#v, and was %+v", step, undo, e, was)
	}
}

// checkOutput: the output of a step is the answer that was given. That of an approval says which of its choices it was.
func (x *world) checkOutput(e job.StepCompleted, step string, undo bool, output json.RawMessage) {
	if undo && !domain.CanUndo(x.def(step)) || machine.AgentOf(x.w, step, undo) != makegood.AgentApproval {
		if !bytes.Equal(output, e.Output.Inline) {
			x.t.Fatalf("step %s was completed with %s, and its output is %s", step, e.Output.Inline, output)
		}
		return
	}
	var says struct{ Answer, By string }
	if err := json.Unmarshal(output, &says); err != nil || !slices.Contains([]string{"yes", "no"}, says.Answer) || says.By != e.By {
		x.t.Fatalf("the approval %s was answered %s by %q, and its output is %s", step, e.Output.Inline, e.By, output)
	}
}

// checkOrder: a step begins after the steps that it needs are done, except in a chain, and an undo after the undos of the
// steps that follow have come to rest.
func (x *world) checkOrder(step string, undo bool, was, is job.Activity) {
	if is.Attempt <= was.Attempt {
		return
	}
	for _, other := range x.w.Steps {
		s, _ := x.job.Step(other.Name)
		switch {
		case !undo && x.def(step).Shared && (is.Inline != "" && s.Forward.Inline == is.Inline || is.State == job.NotStarted):
		case !undo && slices.Contains(x.def(step).Needs, other.Name) && s.Forward.State != job.Done && s.Forward.State != job.Skipped:
			x.t.Fatalf("step %s begins, and %s, which it needs, is %q: %+v", step, other.Name, s.Forward.State, s.Forward)
		case undo && (other.Name == step || slices.Contains(other.Needs, step)) && (s.Forward.State == job.Dispatched || s.Forward.State == job.Waiting):
			x.t.Fatalf("the undo of step %s begins, and %s is %q", step, other.Name, s.Forward.State)
		}
	}
}

// checkStill: while a job is paused the time of a wait stands still.
func (x *world) checkStill(before job.Job, step string, undo bool, was, is job.Activity, e job.Event) {
	if !before.Paused() || was.State != job.Waiting || before.HeldBy != "" {
		return
	}
	// It is left where another step falls silent meanwhile, which turns the job.
	if _, due := e.(job.DeadlinePassed); due && is.State != job.Waiting && is.State != job.Withdrawn {
		x.t.Fatalf("step %s waits in a paused job, and its time is over", step)
	}
	if x.job.Paused() || is.State != job.Waiting || is.Attempt != was.Attempt {
		return
	}
	from := before.PausedAt
	if was.At.After(from) {
		from = was.At
	}
	if left, now := was.Wait.Deadline.Sub(from), is.Wait.Deadline.Sub(x.now); left != now {
		x.t.Fatalf("step %s (undo: %v) had %v left when its job was paused, and has %v when it goes on", step, undo, left, now)
	}
}

// waits reports whether some step waits for those outside.
func (x *world) waits() bool {
	return slices.ContainsFunc(x.job.Steps, func(s job.StepState) bool {
		return s.Forward.State == job.Waiting || s.Undo.State == job.Waiting
	})
}

// waitEnded reports whether something that waited waits no more, or will not when it is looked at next.
func (x *world) waitEnded(before job.Job) bool {
	for _, s := range x.job.Steps {
		for _, undo := range []bool{false, true} {
			was, is := activityOf(before, s.Name, undo), activityOf(x.job, s.Name, undo)
			over := was.State == job.Waiting && (is.State != job.Waiting || is.Attempt != was.Attempt)
			if over || is.State == job.Waiting && !x.now.Before(is.LookAt) {
				return true
			}
		}
	}
	return false
}

// dueWaits says when something is due of what waits: a moment at which somebody is to be asked, asking again, its deadline.
func (x *world) dueWaits(note func(time.Time)) {
	for _, s := range x.job.Steps {
		for _, undo := range []bool{false, true} {
			a := activityOf(x.job, s.Name, undo)
			if a.State != job.Waiting {
				continue
			}
			note(a.Wait.Deadline)
			rules := x.def(s.Name).Waiting
			if undo {
				rules = x.def(s.Name).Undo.Waiting
			}
			all := asksAfter(rules)
			// A hold that is noticed late has stood a while already: what was asked meanwhile was asked too early.
			if a.Wait.Asked > len(all) || !x.wasHeld && a.Wait.Asked > 0 && x.now.Before(a.At.Add(all[a.Wait.Asked-1])) {
				x.t.Fatalf("step %s has asked %d times, since %v", s.Name, a.Wait.Asked, a.At)
			}
			if a.Wait.Asked < len(all) {
				note(a.At.Add(all[a.Wait.Asked]))
			}
			switch {
			case a.Wait.Heard == a.Wait.Asked:
			case a.Wait.AskAt.After(x.now):
				note(a.Wait.AskAt)
			default:
				note(x.now.Add(limits.TellAgain))
			}
		}
	}
}

// asksAfter says how long after a step began to wait somebody is asked.
func asksAfter(rules *makegood.WaitRules) (all []time.Duration) {
	if rules == nil {
		return nil
	}
	if len(rules.Ask) > 0 {
		all = append(all, 0)
	}
	for _, after := range rules.Remind {
		all = append(all, after.Std())
	}
	if rules.Escalate != nil {
		all = append(all, rules.Escalate.After.Std())
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// checkAsk: whoever is asked to complete a step that waits gets what they need to.
func (x *world) checkAsk(c job.Ask) {
	q, ok := machine.QuestionOf(x.w, x.job, c)
	if !ok || q.Step != c.Step || q.Undo != c.Undo || len(q.To) == 0 || q.Completion == "" || q.N != c.N || q.Deadline.IsZero() {
		x.t.Fatalf("%+v asks %+v", c, q)
	}
	if approval := machine.AgentOf(x.w, c.Step, c.Undo) == makegood.AgentApproval; approval != (len(q.Choices) > 0) {
		x.t.Fatalf("%+v offers %v", c, q.Choices)
	}
}
