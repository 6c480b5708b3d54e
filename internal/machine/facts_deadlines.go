package machine

import (
	"fmt"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

// due is the earliest moment at which anything can be due; zero for a job that is finished and told.
func (t *turn) due() time.Time {
	var due time.Time
	sooner := func(at time.Time) {
		if due.IsZero() || at.Before(due) {
			due = at
		}
	}
	for _, a := range t.job.Untold {
		switch {
		case a.Operator || !t.job.TellAt.After(t.now):
			sooner(t.now.Add(limits.TellAgain))
		default:
			sooner(t.job.TellAt)
		}
	}
	if by := t.publishBy(); !by.IsZero() {
		sooner(by)
	}
	if t.job.ProcessState.Finished() {
		return due
	}
	for i := range t.job.Steps {
		if a, _, ok := dispatched(&t.job.Steps[i]); ok {
			sooner(a.LookAt)
		}
	}
	switch {
	case t.job.ProcessState == makegood.JobError && !t.job.RemindAt.IsZero():
		sooner(t.job.RemindAt)
		return due
	case !t.going():
		sooner(t.now.Add(limits.FarKey))
		return due
	}
	if t.forwards() && !t.job.Deadline.IsZero() {
		sooner(t.job.Deadline)
	}
	if t.job.Expected() && !t.job.WarnAt.IsZero() {
		sooner(t.job.WarnAt)
	}
	if t.forwards() && t.early() {
		sooner(t.job.StartAt)
	}
	if !t.job.NextRoundAt.IsZero() {
		sooner(t.job.NextRoundAt)
	}
	for i := range t.job.Steps {
		for _, at := range sides(i) {
			switch a := t.activity(at); a.State {
			case job.Backoff:
				sooner(a.At)
			case job.Waiting:
				sooner(a.LookAt)
			}
		}
	}
	if due.IsZero() {
		panic(fmt.Sprintf("machine: nothing would ever wake job %s in %s", t.job.ID, t.job.ProcessState))
	}
	return due
}

// publishBy returns when pending changes are to be published if no event comes first; zero: the next event is soon.
func (t *turn) publishBy() time.Time {
	c := t.job.Changes
	switch {
	case len(c.Pending) == 0:
		return time.Time{}
	case !c.At.IsZero():
		return c.At
	case t.job.ProcessState.Finished():
		// Where its key stands, if that is soon enough: to move it costs two units, and mostly it is published at once.
		if by := t.job.CompleteBy; by.After(t.now) && !by.After(t.now.Add(limits.MaxTellAgain)) {
			return by
		}
		return t.now.Add(limits.TellAgain)
	default:
		return time.Time{}
	}
}

// nextLook is when an attempt that is not known to be claimed is looked at next.
func (t *turn) nextLook(at side) time.Time {
	a := t.activity(at)
	if a.Inline != "" {
		return t.inlineEnd(at, a.At)
	}
	if t.isChild(at) || a.Queued {
		return t.childLook(at)
	}
	if p := t.plan(at); p.shared {
		return a.At.Add(p.startBy.Std() + p.timeout.Std())
	}
	for w, end := t.waits(at); w < end; w *= 4 {
		if at := a.At.Add(w); at.After(t.now) && at.After(a.LookAt) {
			return at
		}
	}
	return t.startBy(at)
}

// lookedAtEarly reports whether an attempt that is not known to be claimed is looked at a little early, together with
// another that is due: within a quarter of its wait.
func (t *turn) lookedAtEarly(at side) bool {
	a := t.activity(at)
	waits := a.LookAt.Sub(a.At)
	if a.Closing || a.Queued || a.Inline != "" || t.isChild(at) || !t.going() || !t.wanted(at) || a.LookAt.Sub(t.now) > waits/4 {
		return false
	}
	for w, end := t.waits(at); w < end; w *= 4 {
		if w == waits {
			return true
		}
	}
	return false
}

// waits returns the first of the waits, and their end. An attempt that is not known to be claimed is looked at so long
// after it was sent: after as long as it may be silent, or the Supervisor's period if that is longer, then after 4, 16
// and 64 times that, and last at its StartBy.
func (t *turn) waits(at side) (first, startBy time.Duration) {
	p := t.plan(at)
	return max(p.silence(), t.facts.Period), wait(p.startBy, t.activity(at).Resent).Std()
}

// startBy returns when an unclaimed attempt is sent again. A child that is not there when it is looked at is begun.
func (t *turn) startBy(at side) time.Time {
	a := t.activity(at)
	if t.isChild(at) {
		return a.At
	}
	return a.At.Add(wait(t.plan(at).startBy, a.Resent).Std())
}

// wait is how long the task of an attempt may wait that was sent again resent times. It doubles, so
// that a queue that stands still is not filled.
func wait(startBy makegood.Duration, resent int) makegood.Duration {
	return doubled(startBy, resent, makegood.Duration(limits.MaxStartBy))
}

// childLook is when the child of an attempt is looked at next, should it not say before that it has ended, or the gate,
// should it not say before that the attempt may begin: at doubling intervals.
func (t *turn) childLook(at side) time.Time {
	age := t.now.Sub(t.activity(at).Opened())
	return t.now.Add(min(max(age, limits.ChildLook), limits.MaxChildLook))
}

// lives is when an attempt that is claimed is looked at next: at its CompleteBy; one that was extended before, at
// doubling intervals, up to ten of its heartbeats.
func (t *turn) lives(at side, claim job.Claim) time.Time {
	if t.isChild(at) {
		return t.childLook(at)
	}
	p := t.plan(at)
	silence := p.silence()
	if !claim.CompleteBy.After(claim.StartedAt.Add(silence)) {
		return claim.CompleteBy
	}
	lived := t.now.Sub(t.activity(at).Opened())
	look := t.now.Add(min(max(lived, silence), maxHeartbeats*silence))
	if claim.CompleteBy.After(look) {
		return claim.CompleteBy
	}
	return look
}

// maxHeartbeats is how many of its heartbeats lie, at most, between two looks at an attempt that lives.
const maxHeartbeats = 10

// lie reports whether a claim cannot be true: its attempt was never made, or it lasts much longer than the step
// allows. The open attempt is the newest of its step, so a claim on a newer one is a lie, but only if the job was
// loaded afresh after the claim was seen.
func (t *turn) lie(at side, found job.Found) bool {
	tooLarge := len(found.Claim.LockedBy) > limits.MaxLockedByBytes || found.Claim.Bytes > job.MaxClaimItemBytes
	if tooLarge && found.Finding == job.FoundHeld {
		return true
	}
	switch found.Finding {
	case job.FoundOver:
		return true
	case job.FoundHeld:
		p := t.plan(at)
		limit := t.now.Add(p.silence() + limits.MaxClaimAhead)
		if started := found.Claim.StartedAt; p.heartbeat > 0 && !started.IsZero() {
			// No heartbeat moves it past the timeout.
			limit = earlier(limit, started.Add(p.timeout.Std()+limits.MaxClaimAhead))
		}
		// However often it was moved, and whatever the claim says of when it was made.
		limit = earlier(limit, t.activity(at).ClaimUntil().Add(limits.MaxClaim))
		return found.Claim.CompleteBy.After(limit)
	default:
		return false
	}
}

// Out returns the asks that look at every attempt of a job that is out and can be claimed in an item of its own.
func Out(w makegood.Workflow, j job.Job) (asks []Ask) {
	for i := range j.Steps { // By index: a step is large.
		if a, undo, ok := dispatched(&j.Steps[i]); ok && !w.Steps[i].Shared && a.Inline == "" && !a.Queued && agentOf(w.Steps[i], undo) != makegood.AgentWorkflow {
			asks = append(asks, Ask{Kind: AskLook, Step: j.Steps[i].Name, Attempt: a.Attempt, Undo: undo})
		}
	}
	return asks
}

// noReply is the failure reason of a silent attempt.
const noReply = "no reply by CompleteBy"

// timeout is how long the job may go forward; zero: as long as it takes.
func (t *turn) timeout() makegood.Duration {
	if t.job.Timeout == 0 {
		return t.w.Timeout
	}
	return max(t.job.Timeout, 0)
}

// from is when the time of a job begins that is granted now.
func (t *turn) from() time.Time {
	from := t.now
	if t.job.Paused() {
		from = t.job.PausedAt
	}
	if from.Before(t.job.StartAt) {
		from = t.job.StartAt
	}
	return from
}

// waitForRound returns the time between two rounds. A requested round starts after a millisecond, not at once: its
// key must differ from the key of the event that ends the undo, because an event with a handled key is ignored.
func (t *turn) waitForRound() time.Duration {
	if t.job.RoundAsked {
		return time.Millisecond
	}
	return t.w.OnFailure.Wait.Std()
}

// untilOf is the deadline of a step that waits by itself.
func (t *turn) untilOf(fact Fact) time.Time {
	if fact.Until.IsZero() {
		return t.now.Add(fact.For.Std())
	}
	return fact.Until
}

// tooFar says why a step cannot wait by itself until a time; empty: it can. Ended sooner, it would be taken for over.
func (t *turn) tooFar(until time.Time) string {
	if until.Sub(t.now) <= makegood.MaxWait {
		return ""
	}
	return fmt.Sprintf("it would wait until %s, which is more than %d days ahead: that is the limit", until.UTC().Format(time.RFC3339), int(makegood.MaxWait.Hours()/24))
}
