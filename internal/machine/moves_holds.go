package machine

import (
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
)

// An agent or a workflow may be paused as a whole. The list of pauses is a fact. A job that needs a paused one is
// paused instead, by the rules of a pause: no new work starts, unclaimed tasks are taken back, claimed ones run on,
// and its times stand still. It goes on by a hint that it may (a deadline, with a key or without), once the pause is
// over.

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

// hold lets the job stand still if a side that came up in this turn is held. idle: the job stood still already when the
// event came.
func (t *turn) hold(idle bool) {
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
	if idle {
		// Until now it stood still for another reason, which was counted, or its times begin now.
		t.job.PausedAt = t.now
	}
	t.job.HeldBy, t.job.HeldReason = t.holding.String(), t.holding.Why()
	t.note(job.Entry{Kind: makegood.EntryHeld, Verb: makegood.VerbPause, By: t.holding.By, Reason: t.heldFor(t.holding.Reason)})
	// The hold may last long, and the job has no due time meanwhile.
	t.farKey = true
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
