package machine

import (
	"fmt"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

// An agent or a workflow may be paused as a whole. The list of pauses is a fact. A job that needs a paused one is
// paused instead, by the rules of a pause: no new work starts, unclaimed tasks are taken back, claimed ones run on,
// and its times stand still. It goes on by a hint that it may (a deadline, with a key or without), once the pause is
// over.

// heldBack returns what keeps a side from being begun, or sent again.
func (t *turn) heldBack(at side) (job.Hold, bool) {
	if h, on := t.heldWorkflow(); on {
		return h, true
	}
	agent := agentOf(t.w.Steps[at.step], at.undo)
	return t.facts.Held.On(job.HoldName(makegood.HoldAgent, agent))
}

func (t *turn) heldWorkflow() (job.Hold, bool) {
	return t.facts.Held.On(job.HoldName(makegood.HoldWorkflow, t.job.Workflow))
}

// holds reports whether a side must not be begun or sent again, and notes that the job is to be held for that: it
// stands still since the side was due to be sent, or since the hold if that is later.
func (t *turn) holds(at side, from time.Time) bool {
	h, on := t.heldBack(at)
	if !on {
		return false
	}
	held := h // A variable of its own: it is allocated only for a hold.
	held.Since = later(h.Since, from)
	if t.holding == nil || held.Since.Before(t.holding.Since) {
		t.holding = &held
	}
	return true
}

// hold lets the job stand still if a side that came up in this turn is held.
func (t *turn) hold() {
	if !t.going() {
		return
	}
	if h, on := t.heldWorkflow(); on && !(t.forwards() && t.early()) {
		held := h
		held.Since = later(h.Since, later(t.job.CreatedAt, t.job.StartAt))
		t.holding = &held
	}
	if t.holding == nil {
		return
	}
	t.takeBack()
	t.closeOpen()
	t.job.PausedAt, t.job.PausedToo = earlier(t.holding.Since, t.now), false
	if t.idle {
		// Until now it stood still for another reason, which was counted, or its times begin now.
		t.job.PausedAt = t.now
	}
	t.job.HeldBy, t.job.HeldReason = t.holding.String(), t.holding.Why()
	t.note(job.Entry{Kind: makegood.EntryHeld, Verb: makegood.VerbPause, By: t.holding.By, Reason: t.heldFor(t.holding.Reason)})
	// The hold may last long, and the job has no due time meanwhile.
	t.farKey = true
}

// heldFor is what an entry says of what holds the job.
func (t *turn) heldFor(reason string) string {
	if reason == "" {
		return t.job.HeldBy
	}
	return limits.Clip(t.job.HeldBy + ": " + reason)
}

// takeBack ends the attempts that were made in this turn: their tasks were not sent.
func (t *turn) takeBack() {
	for _, at := range t.opened {
		if a := t.activity(at); a.State == job.Dispatched && !a.Closing {
			a.Tries--
			t.job.Transitions--
			t.rest(a, job.NotStarted)
		}
	}
}

// heldUp holds the job if its timeout or its expected time passes while one of its sides waits for a hold: its times
// have stood still since.
func (t *turn) heldUp() {
	for i := range t.job.Steps {
		at := t.inDirection(i)
		switch a := t.activity(at); {
		case a.State == job.Backoff && passed(a.At, t.now):
			t.holds(at, a.At)
		case a.State == job.Dispatched && t.wanted(at) && !a.Closing && !t.shared(at):
			if _, on := t.heldBack(at); !on {
				continue
			}
			if found, known := t.ask(t.question(AskLook, at)); known && found.Finding == job.FoundOpen {
				t.holds(at, a.Opened())
			}
		}
	}
	t.hold()
}

// notHeld forgets what held a job that is not paused any more.
func (t *turn) notHeld() {
	t.job.HeldBy, t.job.HeldReason, t.job.PausedToo = "", "", false
}

// free reports whether the job stands still for a hold that is over.
func (t *turn) free() bool {
	if t.job.HeldBy == "" || !t.job.Paused() || !t.active() {
		return false
	}
	_, on := t.facts.Held.On(t.job.HeldBy)
	return !on
}

// release lets a job go on that was held, unless a person has paused it, too.
func (t *turn) release() {
	t.note(job.Entry{Kind: makegood.EntryHeld, Verb: makegood.VerbResume, Reason: t.heldFor("")})
	if t.job.PausedToo {
		t.notHeld()
		return
	}
	t.resume()
}

// pause grants that a person pauses a job, which may be held already.
func (t *turn) pause() Verdict {
	switch {
	case t.job.Paused() && (t.job.HeldBy == "" || t.job.PausedToo):
		return Verdict{Kind: Duplicate, Reason: "it is paused"}
	case t.job.Paused():
		t.job.PausedToo = true
	default:
		t.closeOpen()
		t.job.PausedAt = t.now
		t.notHeld()
	}
	return Verdict{Kind: Applied}
}

// unpause lets a person take back the pause of a job, unless the job is held by another pause.
func (t *turn) unpause() Verdict {
	_, on := t.facts.Held.On(t.job.HeldBy)
	switch {
	case !t.job.Paused():
		return Verdict{Kind: Refused, Reason: "it is not paused"}
	case on && t.job.PausedToo:
		t.job.PausedToo = false
	case on:
		return Verdict{Kind: Refused, Reason: heldReason(t.job.HeldBy)}
	default:
		t.resume()
	}
	return Verdict{Kind: Applied}
}

// heldReason says why a held job cannot be resumed, and names the command that can.
func heldReason(hold string) string {
	return fmt.Sprintf("%s is paused: makegood resume --whole-%s", hold, hold)
}

// stepHeld takes the word of an agent that it has not begun an attempt because it is paused. Where that is not so (any
// more), its task is sent again.
func (t *turn) stepHeld(e job.StepHeld) Verdict {
	at, verdict := t.replyTo(e.Reply)
	switch {
	case verdict.Kind != Applied:
		return verdict
	case t.shared(at):
		t.sharedHeld(at)
		return verdict
	case t.wanted(at) && !t.going():
		// It is asked to end. Its task is no longer with an agent, so it must be gone when the job goes on.
		return t.endLetGo(at, e)
	case t.activity(at).Closing || !t.wanted(at):
		return Verdict{Kind: Stale, Reason: fmt.Sprintf("attempt %d of step %s is to end", e.Attempt, e.Step)}
	}
	found, known := t.ask(t.question(AskLook, at))
	switch {
	case !known:
	case found.Finding != job.FoundOpen:
		return Verdict{Kind: Stale, Reason: fmt.Sprintf("attempt %d of step %s was claimed, or is closed", e.Attempt, e.Step)}
	case t.holds(at, t.activity(at).Opened()):
	default:
		t.sendAgain(at)
	}
	return verdict
}

// endLetGo ends an attempt of a job that stands still, after its agent has let go of the task.
func (t *turn) endLetGo(at side, e job.StepHeld) Verdict {
	found, known := t.ask(t.question(AskClose, at))
	switch {
	case !known:
		return Verdict{Kind: Applied}
	case found.Finding == job.FoundHeld && !t.lie(at, found):
		return Verdict{Kind: Stale, Reason: fmt.Sprintf("attempt %d of step %s was claimed", e.Attempt, e.Step)}
	}
	return t.learn(at, found)
}

// sendAgain sends the task of an attempt again after its agent has let go. That is counted, so an agent that does so
// for ever comes to an end.
func (t *turn) sendAgain(at side) {
	if limit := maxTransitions(t.w); t.job.Transitions >= limit {
		t.stop(fmt.Sprintf("%d attempts and no end: the job goes in circles", limit))
		return
	}
	t.job.Transitions++
	a := t.activity(at)
	a.OpenedAt = a.Opened()
	leaveOut(a, t.now)
	a.At, a.Cause, a.LookAt = t.now, t.cause, time.Time{}
	a.LookAt = t.nextLook(at)
}

// sharedHeld ends an attempt without claims after its agent has let go of the task. Another delivery may have run:
// its effect is unknown, and it is not counted.
func (t *turn) sharedHeld(at side) {
	a := t.activity(at)
	from := a.Opened()
	a.Unknown = true
	a.Tries--
	switch {
	case t.conclude(at):
	case !t.wanted(at):
		t.rest(a, job.Withdrawn)
	default:
		t.rest(a, job.NotStarted)
		if t.going() && !t.holds(at, from) {
			t.openAttempt(at)
		}
	}
}
