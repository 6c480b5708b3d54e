package machine

import (
	"fmt"
	"slices"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

// deadlinePassed acts on everything that is due. The event is only a hint: it acts if the key that the Supervisor saw
// is still stored and has passed. An audit may have found a missing key in a job that must have one, or too late a
// key in a job that stands still: then the job is looked at and gets a correct key.
func (t *turn) deadlinePassed(e job.DeadlinePassed) Verdict {
	if t.free() && (e.Key.IsZero() || e.Key.Equal(t.job.CompleteBy)) {
		// What held it does so no more. That it is still paused is all that keeps it.
		t.release()
		if e.Key.IsZero() || t.now.Before(e.Key) {
			return Verdict{Kind: Applied}
		}
	}
	stands := ""
	if e.Key.IsZero() || e.Key.Equal(t.job.CompleteBy) && t.now.Before(e.Key) {
		stands = t.standing()
	}
	switch {
	case t.job.CompleteBy.IsZero() && t.job.ProcessState.Finished() && t.job.Told():
		return Verdict{Kind: Stale, Reason: "the job has ended, and everybody was told"}
	case stands != "":
		// No sweep would come before it is too late.
	case !e.Key.Equal(t.job.CompleteBy):
		return Verdict{Kind: Stale, Reason: "CompleteBy has moved since it was seen"}
	case t.now.Before(e.Key):
		return Verdict{Kind: Stale, Reason: "CompleteBy has not passed here"}
	}
	if t.job.ProcessState == makegood.JobError && !t.now.Before(t.job.RemindAt) {
		// Still in front of a person: remind them. A listener already knows. A job that was parked has no time yet. An
		// undelivered announcement to an operator is kept, and is reminder enough.
		if !slices.ContainsFunc(t.job.Untold, func(a job.Announcement) bool { return a.Operator }) {
			t.announce(true, false)
		}
		t.job.RemindAt = t.now.Add(limits.FarKey)
	}
	t.publishAgain()
	if t.going() && t.forwards() && (passed(t.job.Deadline, t.now) || passed(t.job.WarnAt, t.now)) {
		t.heldUp()
	}
	if t.going() && t.forwards() && passed(t.job.Deadline, t.now) {
		// What is out is given up by the timeout. That must be saved before it is closed, so no close is due now.
		t.timeUp()
	}
	for i := range t.job.Steps {
		t.dueStep(i)
	}
	t.nextRoundDue()
	return Verdict{Kind: Applied, Reason: stands}
}

// going reports whether the job is being moved on now.
func (t *turn) going() bool { return t.active() && !t.job.Paused() }

// passed reports whether a time that is set has come.
func passed(at, now time.Time) bool { return !at.IsZero() && !now.Before(at) }

// timeUp ends the forward direction of a job that took too long.
func (t *turn) timeUp() {
	reason := fmt.Sprintf("the job's timeout of %s passed", t.timeout())
	if t.w.OnFailure.Action == makegood.FailureStop || !domain.HasUndo(t.w) {
		t.stop(reason)
		return
	}
	t.turnRound(makegood.JobUndone, reason)
}

func (t *turn) dueStep(i int) {
	for _, at := range sides(i) {
		a := t.activity(at)
		switch a.State {
		case job.Backoff:
			if t.going() && t.wanted(at) && passed(a.At, t.now) {
				t.openAttempt(at)
			}
		case job.Dispatched:
			t.dueAttempt(at)
		case job.Waiting:
			t.dueWait(at)
		}
	}
}

// dueAttempt looks at an attempt that is out, when it is time to, or ends it if it is not wanted.
func (t *turn) dueAttempt(at side) {
	a := t.activity(at)
	due := passed(a.LookAt, t.now)
	switch {
	case t.shared(at):
		if due {
			t.silence(at, job.Claim{}, noReply)
		}
	case due && (!t.wanted(at) || !t.going()):
		t.end(at)
	case due || t.lookedAtEarly(at):
		t.look(at)
	}
}

// lookedAtEarly reports whether an attempt that is not known to be claimed is looked at a little early, together with
// another that is due: within a quarter of its wait.
func (t *turn) lookedAtEarly(at side) bool {
	a := t.activity(at)
	waits := a.LookAt.Sub(a.At)
	if a.Closing || a.Inline != "" || !t.going() || !t.wanted(at) || a.LookAt.Sub(t.now) > waits/4 {
		return false
	}
	return slices.Contains(t.waits(at), waits)
}

// noReply is the failure reason of a silent attempt.
const noReply = "no reply by CompleteBy"

// silence ends an attempt that started and did not reply in time. Its effect is unknown.
func (t *turn) silence(at side, claim job.Claim, why string) {
	spared := ""
	if t.facts.Incarnation == 0 {
		// What an embedded engine takes with it when it dies is interrupted: no silence is its doing.
		spared = spare(t.activity(at), claim)
	}
	due := claim.CompleteBy
	if t.shared(at) {
		due = t.activity(at).LookAt
	}
	entry := t.fellSilent(at, claim, why)
	entry.Reason = spared
	t.seenLate(at, due, entry.StartedAt)
	t.attemptFailed(at, entry)
}

// seenLate leaves the time between the end of a silent attempt and its discovery out of the time for which its step
// is tried again: this delay depends on the load of the sweeps, not on the remote service. A claim cannot name an end
// before its own start, so the time moves on by at most the time that has passed.
func (t *turn) seenLate(at side, due, startedAt time.Time) {
	a := t.activity(at)
	if a.FailingSince.IsZero() || due.IsZero() {
		return
	}
	if due = later(later(due, startedAt), a.At); due.Before(t.now) {
		a.FailingSince = a.FailingSince.Add(t.now.Sub(due))
	}
}

// fellSilent keeps the claim of an attempt that did not reply in time, and returns its history entry.
func (t *turn) fellSilent(at side, claim job.Claim, why string) job.Entry {
	a := t.activity(at)
	noteStart(a, claim.StartedAt)
	claim.Attempt = a.Attempt
	if len(claim.LockedBy) > limits.MaxLockedByBytes {
		// No agent of ours is called that, and the job keeps it.
		claim.LockedBy = ""
	}
	claim.Progress, claim.Beside, claim.Bytes = job.Progress{}, 0, 0
	a.Silent = claim
	return job.Entry{Kind: makegood.EntrySilent, LockedBy: claim.LockedBy, StartedAt: claim.StartedAt, Error: &job.StepError{
		Message: limits.Clip(why), Retryable: true, Kind: makegood.KindTimeout, Applied: makegood.AppliedUnknown,
	}}
}

// waits are how long after it was sent an attempt is looked at that is not known to be claimed, but for its StartBy:
// after as long as it may be silent, or the Supervisor's period if that is longer, then 4, 16, 64 times that.
func (t *turn) waits(at side) []time.Duration {
	p := t.plan(at)
	startBy := wait(p.startBy, t.activity(at).Resent).Std()
	var all []time.Duration
	for w := max(p.silence(), t.facts.Period); w < startBy; w *= 4 {
		all = append(all, w)
	}
	return all
}

// startBy returns when an unclaimed attempt is sent again.
func (t *turn) startBy(at side) time.Time {
	a := t.activity(at)
	return a.At.Add(wait(t.plan(at).startBy, a.Resent).Std())
}

// nextLook is when an attempt that is not known to be claimed is looked at next.
func (t *turn) nextLook(at side) time.Time {
	a := t.activity(at)
	if a.Inline != "" {
		return a.At.Add(t.plan(at).timeout.Std())
	}
	if p := t.plan(at); p.shared {
		return a.At.Add(p.startBy.Std() + p.timeout.Std())
	}
	for _, w := range t.waits(at) {
		if at := a.At.Add(w); at.After(t.now) && at.After(a.LookAt) {
			return at
		}
	}
	return t.startBy(at)
}

// lives is when an attempt that is claimed is looked at next: at its CompleteBy; one that was extended before, at
// doubling intervals, up to ten of its heartbeats.
func (t *turn) lives(at side, claim job.Claim) time.Time {
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

// wait is how long the task of an attempt may wait that was sent again resent times. It doubles, so
// that a queue that stands still is not filled.
func wait(startBy makegood.Duration, resent int) makegood.Duration {
	return doubled(startBy, resent, makegood.Duration(limits.MaxStartBy))
}

// interrupted ends the attempts that an earlier run of the embedded engine dispatched. They may have
// started, claimed or not: claims are not flushed, so one may have been lost with the power.
func (t *turn) interrupted(e job.Interrupted) Verdict {
	if t.job.Incarnation >= e.Incarnation || t.job.ProcessState.Finished() {
		return Verdict{Kind: Duplicate, Reason: fmt.Sprintf("run %d is known to the job", e.Incarnation)}
	}
	t.job.Incarnation = e.Incarnation
	for i := range t.job.Steps {
		if at, ok := t.out(i); ok {
			t.interrupt(at, e.Clean)
		}
	}
	return Verdict{Kind: Applied}
}

// interrupt is no failure: the attempt is not counted against those granted, and the next is made at once. But a step
// that runs whenever the engine dies may be the cause, unless it was told to stop (clean). An attempt that another
// process has claimed did not die with the engine, and goes on.
func (t *turn) interrupt(at side, clean bool) {
	a := t.activity(at)
	found, ok := t.ask(t.question(AskLook, at))
	if !ok || found.Finding == job.FoundHeld && found.Claim.Outside() {
		return
	}
	if t.shared(at) {
		// It is never claimed: its item only says whether another process was given the task.
		found = job.Found{}
	}
	// An item that was closed unclaimed names the attempt, but no holder.
	claimed := found.Claim.Attempt == a.Attempt && found.Claim.LockedBy != ""
	if claimed {
		noteStart(a, found.Claim.StartedAt)
	}
	t.noteInterrupted(at, found.Claim, claimed)
	a.Unknown = true
	a.Tries--
	if t.conclude(at) {
		return
	}
	t.rest(a, job.NotStarted)
	if !t.wanted(at) {
		a.State = job.Withdrawn
	}
	if !claimed || clean {
		return
	}
	suspect(a, found.Claim)
	if a.Interruptions > limits.MaxInterruptions && t.active() {
		a.State = job.Failed
		t.stop(fmt.Sprintf("step %s was cut off %d times by the death of the engine, %d of them while nothing else ran: it may be the cause",
			t.name(at), a.Interruptions, a.Interruptions-suspectAfter))
	}
}

// mayRaise reports whether an event may move CompleteBy up. Leaving it early costs one look of the
// Supervisor; moving it costs two index writes, so only those that are about the key do. Of a job that goes on, being
// told is not: the next attempt would only lower the key again.
func (t *turn) mayRaise(event job.Event) bool {
	switch e := event.(type) {
	case job.DeadlinePassed:
		// The step after a wait has often ended before the next sweep; then its key need never be set.
		return !t.overdueWait || t.facts.Period == 0
	case job.AttemptClosed, job.Asked, job.NotAsked:
		return true
	case job.Told, job.NotHeard, job.Published:
		return !t.active() || t.job.Paused()
	case job.Requested:
		return t.farKey || e.Verb == makegood.VerbReschedule || e.Verb == makegood.VerbEdit
	default:
		return t.farKey
	}
}

// setKey sets CompleteBy so that it is never later than the earliest moment at which anything can be
// due, and leaves it alone if it is early enough.
func (t *turn) setKey(seen time.Time, raise bool) {
	due := t.due()
	switch {
	case due.IsZero():
		t.job.CompleteBy = time.Time{}
	case seen.IsZero() || due.Before(seen):
		t.job.CompleteBy = due
	case raise && due.After(seen):
		t.job.CompleteBy = due
	}
}

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
		if a, _, ok := dispatched(t.job.Steps[i]); ok {
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
