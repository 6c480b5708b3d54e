package oracle

import (
	"slices"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
)

// settle begins whatever may begin, until nothing more can.
func (j *Job) settle(now time.Time) {
	for j.State != makegood.JobError && !j.State.Finished() && j.begin(now) {
	}
}

// begin makes one thing happen, and reports whether there was one.
func (j *Job) begin(now time.Time) bool {
	for _, s := range j.Steps {
		for _, side := range []*Side{&s.Forward, &s.Undo} {
			if side.Phase == Resting && j.wants(side) && j.live() && !side.At.IsZero() && !now.Before(side.At) {
				j.open(s, side, now)
				return true
			}
		}
	}
	if j.forwards() {
		return j.beginForward(now)
	}
	return j.beginUndo(now)
}

func (j *Job) beginForward(now time.Time) bool {
	all := true
	for _, s := range j.shallowFirst() {
		if s.Forward.Phase == Idle && j.live() && !now.Before(j.order.StartAt) {
			begins, never := j.mayBegin(s)
			switch {
			case begins:
				j.startForward(s, now)
				return true
			case never:
				s.Forward.Phase, s.Forward.FinishedAt = Skipped, now
				return true
			}
		}
		all = all && (s.Forward.Phase == Done || s.Forward.Phase == Skipped)
	}
	if all {
		j.end(makegood.JobProcessed, now)
	}
	return all
}

// shallowFirst are the steps in the order in which they begin that may begin at the same moment: those with the fewest
// before them on the longest way, as the file has them; undos the other way round.
func (j *Job) shallowFirst() []*Step {
	return slices.SortedStableFunc(slices.Values(j.Steps), func(a, b *Step) int { return j.depth(a) - j.depth(b) })
}

func (j *Job) depth(s *Step) (longest int) {
	for _, name := range j.before(s) {
		longest = max(longest, 1+j.depth(j.step(name)))
	}
	return longest
}

func (j *Job) startForward(s *Step, now time.Time) {
	switch name := s.def.Name; {
	case j.order.Broken[name]:
		j.giveUp(&s.Forward, makegood.KindExpression, now)
	case j.order.Skips[name]:
		s.Forward.Phase, s.Forward.FinishedAt = Skipped, now
	default:
		j.open(s, &s.Forward, now)
	}
}

// open makes an attempt, under a number that the step never had.
func (j *Job) open(s *Step, side *Side, now time.Time) {
	if broken := j.order.Broken[s.def.Name] && !side.undo || j.order.BrokenUndo[s.def.Name] && side.undo; broken && side.byItself() {
		// What it waits for is asked for each time.
		j.giveUp(side, makegood.KindExpression, now)
		return
	}
	s.Numbers++
	side.stood(later(side.At, side.SentAt), now)
	side.Phase, side.Attempt, side.Claimed, side.Inline = Out, s.Numbers, false, false
	side.Tries++
	if side.Since.IsZero() {
		side.Since = now
	}
	side.Earliest, side.Latest, side.At = time.Time{}, time.Time{}, time.Time{}
	if side.byItself() {
		j.openWait(side, now)
		return
	}
	side.SentAt, side.Resent = now, 0
	if j.runsHere(side, now, 0) {
		j.inline(side, now)
	}
	j.send(s, side)
	if side.Inline && !side.undo {
		j.chain(s, now)
	}
}

// send notes that a task goes out. An undo is told what is known of its step.
func (j *Job) send(s *Step, side *Side) {
	sent := Sent{Step: s.def.Name, Attempt: side.Attempt, Undo: side.undo, Alone: side.Alone, Inline: side.Inline}
	if side.undo {
		sent.Outcome = makegood.OutcomeUnknown
		if s.Forward.Phase == Done {
			sent.Outcome = makegood.OutcomeDone
		}
	}
	j.Sent = append(j.Sent, sent)
}

// beginUndo: each after all steps that need it, and after its own attempts.
func (j *Job) beginUndo(now time.Time) bool {
	all := true
	for _, s := range slices.Backward(j.shallowFirst()) {
		if s.Undo.Phase == Idle && j.mayUndo(s) && j.startUndo(s, now) {
			return true
		}
		all = all && undone(s)
	}
	if all && j.AskedFor && !j.Paused && slices.ContainsFunc(j.Steps, stands) {
		j.noOther() // What stands would be done once more. A paused job ends when it is resumed.
	}
	if all && j.Another {
		return j.betweenRounds(now)
	}
	if all {
		j.end(j.Wanted, now)
	}
	return all
}

// stands: nobody can undo it, or a person has left its undo out.
func stands(s *Step) bool {
	return s.Undo.Phase == Irreversible || s.Undo.Phase == Skipped && s.Undo.settled != nil
}

// betweenRounds: the next one is waited for, unless the job's timeout passes before it. A paused job does not know that yet.
func (j *Job) betweenRounds(now time.Time) bool {
	if j.Paused {
		return false
	}
	if j.NextRoundAt.IsZero() {
		j.NextRoundAt = now.Add(j.workflow.OnFailure.Wait.Std())
		if j.AskedFor {
			j.NextRoundAt = now.Add(time.Millisecond)
		}
	}
	if j.AskedFor {
		return false // Its time begins with it.
	}
	if j.Deadline.IsZero() || now.Before(j.Deadline) && j.NextRoundAt.Before(j.Deadline) {
		return false
	}
	j.noOther()
	j.end(j.Wanted, now)
	return true
}

// nextRound begins when its time has come, unless that of the job is over.
func (j *Job) nextRound(now time.Time) {
	if j.live() && j.AskedFor && !j.NextRoundAt.IsZero() && !now.Before(j.NextRoundAt) {
		j.newRound()
		j.State = makegood.JobProcessing
		j.grantTime(now)
		return
	}
	if !j.live() || j.NextRoundAt.IsZero() || now.Before(j.NextRoundAt) || !j.Deadline.IsZero() && !now.Before(j.Deadline) {
		return
	}
	again := j.Again + 1
	j.newRound()
	j.State, j.Again = makegood.JobProcessing, again
}

// undone: nothing more will be done about a step.
func undone(s *Step) bool {
	return s.Forward.Phase != Out && (s.Undo.Phase == Done || s.Undo.Phase == Skipped || s.Undo.Phase == Irreversible)
}

// mayUndo: all that follow it are undone, also those that follow what somebody settled.
func (j *Job) mayUndo(s *Step) bool {
	if s.Forward.Phase == Out {
		return false
	}
	for _, follower := range j.Steps {
		if slices.Contains(j.before(follower), s.def.Name) && !(undone(follower) && j.mayUndo(follower)) {
			return false
		}
	}
	return true
}

// startUndo undoes what was done, or may have been; it reports whether anything happened.
func (j *Job) startUndo(s *Step, now time.Time) bool {
	switch {
	case s.Forward.Phase != Done && !s.Forward.Unknown:
		s.Undo.Phase = Skipped
	case !domain.CanUndo(s.def) && s.Forward.byItself():
		// Nothing was done but waiting.
		s.Undo.Phase = Skipped
	case !domain.CanUndo(s.def):
		s.Undo.Phase = Irreversible
	case !j.live():
		return false
	case j.order.BrokenUndo[s.def.Name]:
		j.giveUp(&s.Undo, makegood.KindExpression, now)
	default:
		j.open(s, &s.Undo, now)
	}
	return true
}

// end is the end of a job, and of a pause.
func (j *Job) end(state makegood.ProcessState, now time.Time) {
	j.State, j.FinishedAt, j.Paused = state, now, false
}

// stop puts the job before a person, who is told, as is whoever listens; and once a day again.
func (j *Job) stop(now time.Time) {
	j.unpause(now)
	j.notBegun()
	j.State = makegood.JobError
	j.announce(Notice{State: makegood.JobError, Operator: true, Listener: true})
	j.RemindAt = now.Add(remindEvery)
}

// notBegun: an attempt that was to run here is not begun if the very decision that made it makes it unwanted.
func (j *Job) notBegun() {
	for _, s := range j.Steps {
		for _, side := range []*Side{&s.Forward, &s.Undo} {
			if side.Phase == Out && side.Inline && side.opened == j.decision {
				side.Phase, side.Claimed = Idle, false
				side.Tries--
			}
		}
	}
}

// turn: what was done is to be undone. What rests is taken back; what is out runs to its end.
func (j *Job) turn(wanted makegood.ProcessState) {
	j.notBegun()
	j.Wanted, j.State = wanted, makegood.JobUndoing
	j.noOther()
	for _, s := range j.Steps {
		if s.Forward.Phase == Resting {
			s.Forward.Phase = TakenBack
		}
		if s.Forward.Phase == Waits {
			j.leave(&s.Forward)
		}
	}
}

// giveUp: a route says what follows, or else onFailure. An undo that is given up puts the job in Error.
func (j *Job) giveUp(side *Side, kind string, now time.Time) {
	side.Phase, side.FinishedAt = GivenUp, now
	switch {
	case j.State == makegood.JobError || !j.wants(side):
		// Its job was turned round, or has stopped, already.
	case side.undo:
		j.stop(now)
	case j.passedBy(side, kind, now):
	case stopsFor(side, kind):
		j.stop(now)
	case j.workflow.OnFailure.Action == makegood.FailureUndo:
		j.turn(makegood.JobUndone)
	case j.workflow.OnFailure.Action == makegood.FailureStop:
		j.stop(now)
	case j.workflow.OnFailure.Action == makegood.FailureRestart:
		j.turn(makegood.JobUndone)
		j.Another = j.Again+1 < j.workflow.OnFailure.Rounds
	default:
		side.Phase, side.FinishedAt = Resting, time.Time{}
		side.whole()
		side.Earliest = now.Add(j.workflow.OnFailure.Wait.Std())
		side.Latest, side.At = side.Earliest, time.Time{}
	}
}

// timeOut: undo what was done, or stop, if nothing can be undone or onFailure is stop.
func (j *Job) timeOut(now time.Time) {
	if j.workflow.OnFailure.Action == makegood.FailureStop || !domain.HasUndo(j.workflow) {
		j.stop(now)
		return
	}
	j.turn(makegood.JobUndone)
}

// Longest is the longest wait after the n-th failure: the backoff, doubled each time, up to max.
func Longest(r makegood.Retry, n int) time.Duration {
	wait := r.Backoff.Std()
	for range n - 1 {
		if wait >= r.Max.Std() {
			break
		}
		wait *= 2
	}
	return min(wait, r.Max.Std())
}

// rest: the next attempt comes after a random wait; what a remote asked for is kept to, up to max.
func (s *Side) rest(retry makegood.Retry, asked time.Duration, now time.Time) {
	least := min(asked, retry.Max.Std())
	s.Phase = Resting
	s.Earliest = now.Add(least)
	longest := Longest(retry, s.Tries)
	if retry.For > 0 && !s.Failing.IsZero() {
		longest = min(longest, s.Failing.Add(retry.For.Std()).Sub(now))
	}
	s.Latest = now.Add(max(least, longest))
}

// inTime: the time for which it is tried again is not over. It begins with the first failure that counts.
func (s *Side) inTime(retry makegood.Retry, now time.Time) bool {
	if retry.For > 0 && s.Failing.IsZero() && s.Tries > 0 {
		s.Failing = now
	}
	return s.Failing.IsZero() || retry.For == 0 || now.Before(s.Failing.Add(retry.For.Std()))
}

// stood: nothing was tried for some time, which is none of that for which it is tried again.
func (s *Side) stood(from, until time.Time) {
	if !s.Failing.IsZero() && until.After(from) {
		s.Failing = s.Failing.Add(until.Sub(from))
	}
}
