package oracle

import (
	"slices"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

// The rules of the referee about two saves of a job, one after the other.

// move is what became of a side of a step from one save to the next.
type move struct {
	step    string
	undo    bool
	was, is job.Activity
}

// opened notes whose attempts are out. Those of a shared step need no claim to have run.
func (r *Referee) opened(j job.Job) {
	for _, s := range j.Steps {
		for _, undo := range []bool{false, true} {
			a := activity(s, undo)
			if a.State != job.Dispatched {
				continue
			}
			r.undoes[attemptName{s.Name, a.Attempt}] = undo
			if r.def(s.Name).Shared && a.Inline == "" && !a.Queued {
				r.Took(s.Name, a.Attempt, 0)
			}
		}
	}
}

// outOfTime reports whether the job's timeout may have passed. How it is granted is judged by granted.
func (r *Referee) outOfTime(before job.Job, now time.Time) bool {
	return !before.Deadline.IsZero() && (!r.Exact || !now.Before(before.Deadline))
}

// granted: a resubmit and a new round have the whole timeout before them, counted from when they were decided: after the
// save before, and not after this one, or from a start that is yet to come. Nothing else but the end of a pause moves the deadline.
func (r *Referee) granted(before, j job.Job, now time.Time) {
	timeout, asked := r.timeout(j), !slices.Equal(before.Requests, j.Requests)
	from, to := later(r.savedAt, j.StartAt), later(now, j.StartAt)
	forward := before.Desired != makegood.JobProcessed && j.Desired == makegood.JobProcessed && j.Round == before.Round
	resubmitted := forward || j.Round != before.Round && !began(before, j) || before.ProcessState == makegood.JobError && j.ProcessState != makegood.JobError
	switch {
	case timeout == 0 || !r.Exact || j.Desired != makegood.JobProcessed:
	case resubmitted && (j.Deadline.Before(from.Add(timeout)) || j.Deadline.After(to.Add(timeout))):
		r.wrong("it goes on, and has until %v, with a timeout of %s from between %v and %v", j.Deadline, timeout, from, to)
	case resubmitted: // or settled, which need not be named among the requests
	case !asked && before.HeldBy != "" && !j.PausedAt.Equal(before.PausedAt):
		if by := j.Deadline.Sub(before.Deadline); by < 0 || by > now.Sub(before.PausedAt) {
			r.wrong("it was held since %v and goes on, and its deadline goes from %v to %v", before.PausedAt, before.Deadline, j.Deadline)
		}
	case !asked && !j.Deadline.Equal(before.Deadline):
		r.wrong("nothing was granted, and its deadline goes from %v to %v", before.Deadline, j.Deadline)
	}
}

// turned: a job is undone because somebody asked for it, because a step was given up and onFailure is undo, or because
// its time is over and onFailure is not stop.
func (r *Referee) turned(before, j job.Job, now time.Time) {
	if r.asked || before.Desired != makegood.JobProcessed || j.Desired == makegood.JobProcessed {
		return
	}
	failed := false
	for _, s := range j.Steps {
		failed = failed || s.Forward.State == job.Failed && r.usedUp(move{step: s.Name, is: s.Forward}, now)
	}
	switch r.workflow.OnFailure.Action {
	case makegood.FailureUndo, makegood.FailureRestart:
		if !failed && !r.outOfTime(before, now) {
			r.wrong("it is undone: no step has used up its attempts or failed for good, its time is not over, and nobody asked for it")
		}
	case makegood.FailureWait:
		if !r.outOfTime(before, now) {
			r.wrong("it is undone, onFailure is wait, its time is not over, and nobody asked for it")
		}
	case makegood.FailureStop:
		r.wrong("it is undone, onFailure is stop, and nobody asked for it")
	}
}

// began reports whether the rounds between two saves began by themselves: a resubmit makes a round the first of those granted.
func began(before, j job.Job) bool { return j.RoundsAgain-before.RoundsAgain == j.Round-before.Round }

// round: another one begins by itself only where onFailure is restart, rounds are left, everything was undone, the wait
// is over, and the job's time is not.
func (r *Referee) round(before, j job.Job, now time.Time) {
	if j.Round == before.Round {
		return
	}
	on, asked := r.workflow.OnFailure, !slices.Equal(before.Requests, j.Requests)
	for _, s := range before.Steps {
		if asked {
			break // The one before may have ended by the request itself, within this save.
		}
		if d := s.Forward.State; d == job.Dispatched || s.Undo.State == job.Dispatched || s.Undo.State == job.Backoff || s.Undo.State == job.Failed {
			r.wrong("round %d begins, and %s of the one before is %q, its undo %q", j.Round, s.Name, d, s.Undo.State)
		}
	}
	switch {
	case !began(before, j):
	case on.Action != makegood.FailureRestart || j.RoundsAgain >= on.Rounds:
		r.wrong("round %d begins by itself, the %dth to do so, and onFailure is %s", j.Round, j.RoundsAgain, on)
	case before.NextRoundAt.IsZero() || r.Exact && now.Before(before.NextRoundAt):
		r.wrong("round %d begins by itself, and was to begin at %v", j.Round, before.NextRoundAt)
	case r.Exact && !before.Paused() && !before.Deadline.IsZero() && r.savedAt.After(before.Deadline):
		r.wrong("round %d begins by itself, and its time was over at %v", j.Round, before.Deadline)
	}
}

// stopped: a job waits for a person because a step or an undo was given up, or because its time is over. One that was
// parked says so in its own way, and one that makes attempts without end was stopped for that.
func (r *Referee) stopped(before, j job.Job, now time.Time) {
	if j.ProcessState != makegood.JobError || before.ProcessState == makegood.JobError || before.LockedBy == j.LockedBy {
		return
	}
	undo, made := j.Desired != makegood.JobProcessed, 0
	for _, s := range j.Steps {
		made += s.Attempt
		if activity(s, undo).State == job.Failed {
			return
		}
	}
	if undo || !r.outOfTime(before, now) {
		if made < manyAttempts {
			r.wrong("it is in Error: nothing is given up in the direction that is wanted, and its time is not over")
		}
	}
}

// manyAttempts is how many attempts a job may make before it is asked whether it goes in circles.
const manyAttempts = 50

// times: the first start of a step is its start, in one round, and the end of a job is its end.
func (r *Referee) times(before, j job.Job) {
	if j.FinishedAt.IsZero() == j.ProcessState.Finished() {
		r.wrong("it is %s, and finished at %v", j.ProcessState, j.FinishedAt)
	}
	if before.ProcessState == j.ProcessState && before.Round == j.Round && before.ProcessState.Finished() && !before.FinishedAt.Equal(j.FinishedAt) {
		r.wrong("it finished at %v, and now at %v", before.FinishedAt, j.FinishedAt)
	}
	if j.ProcessState == makegood.JobError && before.LockedBy != j.LockedBy && j.Paused() {
		r.wrong("it is in Error, and paused")
	}
}

func (r *Referee) moved(before, j job.Job, m move, now time.Time) {
	if before.Round != j.Round || before.LockedBy == j.LockedBy {
		return
	}
	// A job that goes forward again forgets its undos.
	forgotten := m.undo && !slices.Equal(before.Requests, j.Requests)
	if !forgotten && !m.was.StartedAt.IsZero() && !m.is.StartedAt.Equal(m.was.StartedAt) {
		r.wrong("%s started at %v, and now at %v", m.step, m.was.StartedAt, m.is.StartedAt)
	}
	r.missed(before, m)
	r.spared(m, j.Incarnation > before.Incarnation)
	r.putOff(m)
	if m.is.FailureCount < m.was.FailureCount {
		r.wrong("%s had failed %d times, and now %d", m.step, m.was.FailureCount, m.is.FailureCount)
	}
	opened := m.is.State == job.Dispatched && m.is.Attempt != m.was.Attempt
	still := j.ProcessState == makegood.JobError || j.Paused()
	switch {
	case opened && still && !m.is.Closing && !r.def(m.step).Shared:
		r.wrong("attempt %d of %s is made in a job that is %s (paused: %v)", m.is.Attempt, m.step, j.ProcessState, j.Paused())
	case opened && m.was.State == job.Backoff && r.Exact && now.Before(m.was.At):
		r.wrong("attempt %d of %s is made %s before its time", m.is.Attempt, m.step, m.was.At.Sub(now))
	case m.is.State == job.Backoff && (m.was.State != job.Backoff || !m.is.At.Equal(m.was.At)):
		r.rests(m, now)
	}
	// What runs out in a job that was turned round is not given up, though it has failed; turned judges those.
	wanted := m.undo || j.Desired == makegood.JobProcessed
	if wanted && m.is.State == job.Failed && m.was.State != job.Failed && !r.usedUp(m, now) {
		r.wrong("%s is given up after %d of %d attempts", m.step, len(r.tally(m.step, m.undo).claimed), retryOf(r.def(m.step), m.undo).Attempts)
	}
}

// missed: an attempt of a chain that is over before the step before it is done does not count, whether it ran or not.
// One that now waits has answered, and counts: the step before it was done in the same save, which the job before
// does not say.
func (r *Referee) missed(before job.Job, m move) {
	def := r.def(m.step)
	over := m.was.State == job.Dispatched && m.was.Inline != "" && (m.is.State != job.Dispatched || m.is.Attempt != m.was.Attempt)
	if m.undo || !def.Shared || !over || m.is.State == job.Done || m.is.State == job.Waiting || m.is.FailureCount != m.was.FailureCount || len(def.Needs) != 1 {
		return
	}
	if need, _ := before.Step(def.Needs[0]); need.Forward.State == job.Done || need.Forward.State == job.Skipped {
		return
	}
	t := r.tally(m.step, m.undo)
	delete(t.ran, m.was.Attempt)
	delete(t.claimed, m.was.Attempt)
}

// spared: an attempt that fell silent in company is not counted, and no other. One that the death of the engine cut off counts for
// nothing anyhow, and runs alone after a few, again and again if one that was cut off beside others comes behind one that replied.
func (r *Referee) spared(m move, interrupted bool) {
	if !m.is.Alone || m.was.Alone {
		return
	}
	if fellSilent := m.is.Silence().Attempt != m.was.Silence().Attempt; interrupted && !fellSilent && m.is.Interruptions >= suspectAfter {
		return
	}
	if !r.company[attemptName{m.step, m.is.Silence().Attempt}] && !r.lied {
		r.wrong("attempt %d of %s is spared, and nothing ran beside it", m.is.Silence().Attempt, m.step)
	}
	t := r.tally(m.step, m.undo)
	delete(t.ran, m.is.Silence().Attempt)
	delete(t.claimed, m.is.Silence().Attempt)
}

// putOff: an attempt that failed is not counted if its service asked for a pause, or the breaker had paused its agent.
func (r *Referee) putOff(m move) {
	if m.is.Deferred <= m.was.Deferred {
		return
	}
	name := attemptName{m.step, m.was.Attempt}
	if !r.excused[name] || m.is.Deferred > m.was.Deferred+1 || m.is.Deferred > limits.MaxDeferrals {
		r.wrong("attempt %d of %s is put off, the %dth: no breaker had paused its agent, and its service has asked for no pause", m.was.Attempt, m.step, m.is.Deferred)
	}
	t := r.tally(m.step, m.undo)
	delete(t.ran, m.was.Attempt)
	delete(t.claimed, m.was.Attempt)
}

// suspectAfter is after how many deaths of the engine what it died over runs alone.
const suspectAfter = 3

// rests: a wait is no longer than the workflow lets it be.
func (r *Referee) rests(m move, now time.Time) {
	retry := retryOf(r.def(m.step), m.undo)
	longest := Longest(retry, max(m.is.Tries, 1))
	if m.is.Deferred > 0 {
		longest = max(longest, limits.MaxSlowDown)
	} else if m.is.Tries == 0 {
		longest = r.workflow.OnFailure.Wait.Std()
		if m.is.Alone {
			longest = max(longest, Longest(retry, 1)) // The first was spared.
		}
		granted := r.tally(m.step, m.undo)
		granted.ran, granted.claimed = map[int]bool{}, map[int]bool{}
	}
	if r.Exact && m.is.At.After(now.Add(longest)) {
		r.wrong("%s rests for %s after attempt %d, and may for %s", m.step, m.is.At.Sub(now), m.is.Attempt, longest)
	}
}

// usedUp: a side is given up when its attempts are used up, or no other can succeed.
func (r *Referee) usedUp(m move, now time.Time) bool {
	t := r.tally(m.step, m.undo)
	if retry := retryOf(r.def(m.step), m.undo); retry.For > 0 && !now.Before(m.is.FailingSince.Add(retry.For.Std())) {
		return true
	}
	if !m.undo && domain.WaitsByItself(r.def(m.step).Agent) {
		// Nobody replies: it ends by its deadline, or by an answer that says no more than the job keeps of it.
		return m.is.Tries >= r.def(m.step).Retry.Attempts || m.is.Error != nil && !m.is.Error.Retryable
	}
	return len(t.claimed) >= retryOf(r.def(m.step), m.undo).Attempts || t.final || t.refused || r.lied || m.is.Interruptions > limits.MaxInterruptions
}
