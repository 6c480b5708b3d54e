package machine

import (
	"fmt"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

// rest leaves an activity in a state without an open attempt.
func (t *turn) rest(a *job.Activity, state job.ActivityState) {
	a.State = state
	a.OpenedAt, a.LookAt, a.Closing, a.Queued, a.QueuedOver = time.Time{}, time.Time{}, false, false, 0
	a.Inline, a.Wait, a.Redriven = "", nil, ""
}

func (t *turn) done(at side, output job.Payload) {
	a := t.activity(at)
	t.rest(a, job.Done)
	a.FinishedAt = t.now
	a.Output, a.Error, a.FailingSince = output, nil, time.Time{}
	a.Answered, a.Refused = 0, 0
	a.Deferred = 0
	a.Silent, a.Cause = nil, ""
	a.Alone = false
	if a.Completion != nil && a.Completion.Early {
		// It never waited: the completion kept for the wait did not end it.
		a.Completion = nil
	}
}

// noteStart keeps when an activity was first claimed, and last.
func noteStart(a *job.Activity, at time.Time) {
	at = domain.Instant(at)
	switch {
	case a.StartedAt.IsZero():
		a.StartedAt = at
	case !a.StartedAt.Equal(at):
		a.LastStartedAt = at
	}
}

// suspectAfter is how often the death of the embedded engine may cut a step off before its attempts run alone.
const suspectAfter = 3

// suspect counts an engine death against an attempt. After a few deaths its successors run alone; from then on only
// the death of an engine that ran no other attempt counts, since batch mates are cut off as often as the cause.
func suspect(a *job.Activity, claim job.Claim) {
	if a.Interruptions < suspectAfter || claim.Beside == 0 {
		a.Interruptions++
	}
	if a.Interruptions >= suspectAfter {
		a.Alone = true
	}
}

// spare leaves a silent attempt uncounted if it shared its process with others, since one of the others may have
// killed it, and says so. Its successors run alone, so this happens once: later silences count, whatever the
// agent says of batch mates.
func spare(a *job.Activity, claim job.Claim) (why string) {
	if claim.Beside <= 0 || a.Alone {
		return ""
	}
	a.Alone = true
	a.Tries--
	if a.Inline != "" {
		return "not one of those granted: it was inline, in a process that may have ended for another reason; the next is not"
	}
	return fmt.Sprintf("not one of those granted: its process had %d more under way, and the next runs alone", claim.Beside)
}

// countFailure counts the failure of a started attempt. ended is its history entry.
func (t *turn) countFailure(at side, ended job.Entry) {
	a := t.activity(at)
	a.FailureCount++
	t.job.FailureCount++
	ended.Failure = t.job.FailureCount
	t.noteOf(at, ended)
	a.Error = ended.Error
}

// mayTryAgain reports whether an activity has another attempt after a failure: one is left of those granted, and its
// time is not over. A failure that is not counted (spare) does not begin that time.
func (t *turn) mayTryAgain(a *job.Activity, retry makegood.Retry) bool {
	if retry.For > 0 && a.FailingSince.IsZero() && a.Tries > 0 {
		a.FailingSince = t.now
	}
	return a.Tries < retry.Attempts && (a.FailingSince.IsZero() || retry.For == 0 || t.now.Before(a.FailingSince.Add(retry.For.Std())))
}

// leaveOut excludes the time since the latest attempt was due, or sent, from the time for which the step is tried
// again: no attempt ran until then.
func leaveOut(a *job.Activity, until time.Time) {
	if !a.FailingSince.IsZero() && passed(a.At, until) {
		a.FailingSince = a.FailingSince.Add(until.Sub(a.At))
	}
}

// grant gives an activity fresh attempts, and a repeated step its whole time. Keys of its repetitions go on.
func grant(a *job.Activity) {
	a.Tries, a.FailingSince, a.RepeatTries, a.RepeatSince, a.Refused = 0, time.Time{}, 0, time.Time{}, 0
	a.Deferred = 0
}

// repeats notes when the first attempt of a step was made that is repeated.
func (t *turn) repeats(at side) {
	if a := t.activity(at); !at.undo && t.w.Steps[at.step].Repeat != nil && a.RepeatSince.IsZero() {
		a.RepeatSince = t.now
	}
}

// skip ends a step that is not to be done.
func (t *turn) skip(i int) {
	a := &t.job.Steps[i].Forward
	a.State, a.FinishedAt = job.Skipped, t.now
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
	a.Silent = &claim
	return job.Entry{Kind: makegood.EntrySilent, LockedBy: claim.LockedBy, StartedAt: claim.StartedAt, Error: &job.StepError{
		Message: limits.Clip(why), Retryable: true, Kind: makegood.KindTimeout, Applied: makegood.AppliedUnknown,
	}}
}

// leaveWait ends an unwanted wait. Work that was handed to another party may have had its effect.
func (t *turn) leaveWait(at side) {
	a := t.activity(at)
	a.Unknown = a.Unknown || !t.waitsByItself(at)
	t.noteOf(at, job.Entry{Kind: makegood.EntryWithdrawn})
	t.rest(a, job.Withdrawn)
}

// stoodStill moves the times of a wait by a pause: its deadline and its reminders stand still meanwhile.
func (t *turn) stoodStill(at side, paused time.Time) {
	a := t.activity(at)
	if since := a.RepeatSince; !since.IsZero() {
		if paused.After(since) {
			since = paused
		}
		a.RepeatSince = a.RepeatSince.Add(t.now.Sub(since))
	}
	if a.State != job.Waiting {
		return
	}
	stood := t.stood(a, paused)
	wait := *a.Wait
	wait.Deadline = wait.Deadline.Add(stood)
	a.At = a.At.Add(stood)
	a.Wait = &wait
	a.LookAt = t.nextMoment(at)
}
