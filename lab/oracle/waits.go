package oracle

import (
	"fmt"
	"slices"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
)

// Steps that wait: for whoever completes them from outside, or for a time.

// Word is what somebody outside says of a step: that it is done, with an output, or that it has failed.
type Word struct {
	Step string
	Undo bool
	// Round is the round they mean; 0: whichever it is.
	Round int
	// Holds: they hold the completion token of the step in that round. Else they are known, and name its address.
	Holds bool
	// Early: it may be kept until the step waits.
	Early bool
	// Request names the asking, By is who says it.
	Request, By string
	Output      string
	Failure     *job.StepError
}

// heard is a word as it is remembered. Until has ended it counts when the attempt that is out has ended; for the wait,
// when the step waits.
type heard struct {
	Word
	at                     time.Time
	untilEnded, forTheWait bool
}

func (w Word) same(other Word) bool {
	if w.Failure != nil || other.Failure != nil {
		return w.Failure != nil && other.Failure != nil && *w.Failure == *other.Failure
	}
	return w.Output == other.Output
}

// Waits: an agent's reply, that somebody or something else will complete the step until then; no time: until far ahead.
func (j *Job) Waits(step string, attempt int, until, began, now time.Time) {
	side := j.step(step).side(attempt)
	if side == nil || side.Phase != Out || j.early(side) {
		return
	}
	j.tell(func() {
		j.answered(side, began)
		side.Alone = false
		j.wait(side, until, now)
		j.settle(now)
	})
}

// wait: the attempt is over, and nobody works on the side. A word that came before counts now.
func (j *Job) wait(side *Side, until, now time.Time) {
	side.Claimed = false
	switch {
	case j.conclude(side, now):
	case !j.wants(side):
		j.leave(side)
	case side.word != nil && side.word.forTheWait:
		j.take(side, now)
	default:
		latest := now.Add(makegood.MaxWait)
		if until.IsZero() || until.After(latest) {
			until = latest
		}
		side.Phase, side.WaitsSince, side.Until, side.waitFor = Waits, now, until, max(0, until.Sub(now))
		side.Questions, side.Heard = 0, 0
		j.question(side, now)
	}
}

// leave: nobody wants it any more. Whoever it was handed to may have done it.
func (j *Job) leave(side *Side) {
	side.Unknown = side.Unknown || !side.byItself()
	side.Phase = TakenBack
}

// conclude ends a side whose attempt has ended by the word that was given before, if there was one.
func (j *Job) conclude(side *Side, now time.Time) bool {
	if side.word == nil || !side.word.untilEnded {
		return false
	}
	j.take(side, now)
	return true
}

// take: the word that was given counts.
func (j *Job) take(side *Side, now time.Time) {
	side.word.untilEnded, side.word.forTheWait, side.Claimed = false, false, false
	if failure := side.word.Failure; failure != nil {
		j.count(side, failure.Applied != makegood.AppliedNo)
		j.after(side, failure.Kind, failure.Retryable, failure.RetryAfter.Std(), now)
		return
	}
	j.endsWith(side, side.word.Output, side.word.outputOf(side), now)
}

func (j *Job) finish(side *Side, output string, now time.Time) {
	side.Phase, side.FinishedAt, side.Claimed, side.Alone, side.Output = Done, now, false, false, output
	if side.word != nil && side.word.forTheWait {
		side.word = nil // It never waited.
	}
}

// outputAt is the output of a side that a word completes. That of an approval says who gave which answer, and when.
func (w heard) outputOf(side *Side) string {
	if side.agent() != makegood.AgentApproval {
		return w.Output
	}
	return fmt.Sprintf(`{"answer":%s,"by":%q,"at":%q}`, w.Output, w.By, w.at.UTC().Format(time.RFC3339))
}

// Said: somebody outside says how a step ended. found is what closing the attempt that is out has shown, if it has ended.
func (j *Job) Said(w Word, now time.Time, found ...Finding) Answer {
	s := j.step(w.Step)
	side := &s.Forward
	if w.Undo {
		side = &s.Undo
	}
	if answer := j.hears(side, w); answer != Granted {
		return answer
	}
	j.tell(func() {
		if !now.Before(j.order.StartAt) { // Before its start nothing begins by what is kept.
			j.heeded()
		}
		j.said(side, w, now, found)
		j.settle(now)
	})
	return Granted
}

func (j *Job) said(side *Side, w Word, now time.Time, found []Finding) {
	switch {
	case !w.Holds && side.Phase != Waits:
		side.word = &heard{Word: w, at: now, forTheWait: true}
	case side.Phase == Out:
		side.word = &heard{Word: w, at: now, untilEnded: true}
		for _, f := range found {
			j.endedBy(side, f, now)
		}
	case side.Phase == Resting && w.Failure != nil:
		side.word = &heard{Word: w, at: now}
		side.Unknown = side.Unknown || w.Failure.Applied != makegood.AppliedNo
		j.giveUp(side, w.Failure.Kind, now)
	default:
		side.word = &heard{Word: w, at: now}
		j.take(side, now)
	}
}

func (j *Job) endedBy(side *Side, f Finding, now time.Time) {
	switch {
	case side.Phase != Out || f.Step != side.def.Name || f.Attempt != side.Attempt:
	case f.Silent:
		j.silence(side, f, now)
	default:
		j.unclaimed(side, now)
	}
}

// hears says what somebody is answered who completes a step.
func (j *Job) hears(side *Side, w Word) Answer {
	last := side.word
	over := side.Phase == Done || side.WentTo != "" || side.Phase == GivenUp || side.Phase == TakenBack && !side.FinishedAt.IsZero()
	underWay := side.Phase == Out || side.Phase == Resting
	switch {
	case w.Round != 0 && w.Round != j.Round, w.Undo && !domain.CanUndo(side.def):
		return Refused
	case last != nil && w.Request != "" && last.Request == w.Request:
		return So
	case last != nil && last.same(w) && (over || side.rejected && side.Phase == Resting || last.untilEnded || last.forTheWait):
		return So
	case over, last != nil && last.untilEnded, j.State.Finished(), !j.wants(side):
		return Refused
	case side.agent() == makegood.AgentApproval && w.Failure == nil && !slices.Contains(choices, w.Output):
		return Refused
	case last != nil && last.forTheWait:
		return Refused
	case side.Phase == Waits:
		return Granted
	case !w.Holds && w.Early && (underWay || side.Phase == Idle):
		return Granted
	case !w.Holds || !underWay || j.early(side):
		return Refused
	case side.Phase == Resting && w.Failure != nil:
		if _, again := triedAgain(side, w.Failure.Kind, w.Failure.Retryable); again {
			return So
		}
	}
	return Granted
}

// choices are what approvals are answered in the workflows that are tried.
var choices = []string{`"yes"`, `"no"`}

// WaitLonger: whoever completes a step lets it wait longer; no time: as long as it did at first, from now.
func (j *Job) WaitLonger(step string, undo bool, round int, until, now time.Time) Answer {
	s := j.step(step)
	side := &s.Forward
	if undo {
		side = &s.Undo
	}
	if side.Phase != Waits || round != 0 && round != j.Round {
		return Refused
	}
	if until.IsZero() {
		until = now.Add(side.waitFor)
	}
	if latest := now.Add(makegood.MaxWait); until.After(latest) {
		until = latest
	}
	if j.Paused { // What the pause has lasted is added when it ends.
		until = until.Add(-now.Sub(later(j.pausedAt, side.WaitsSince)))
	}
	if !until.After(side.Until) {
		return So
	}
	j.tell(func() {
		j.heeded()
		side.Until = until
		j.settle(now)
	})
	return Granted
}

// Told: those who are asked to complete a step were told.
func (j *Job) Told(step string, attempt, n int, now time.Time) {
	side := j.step(step).side(attempt)
	if side != nil && side.Phase == Waits && n <= side.Questions {
		side.Heard = max(side.Heard, n)
		j.tell(func() { j.settle(now) })
	}
}

// question counts how often somebody is to be asked by now: when it begins to wait, at each reminder, and when others are.
func (j *Job) question(side *Side, now time.Time) {
	for side.Questions < len(side.asks()) && !now.Before(side.WaitsSince.Add(side.asks()[side.Questions])) {
		side.Questions++
	}
}

// asks are how long after it began to wait somebody is asked, and asked again.
func (s *Side) asks() (all []time.Duration) {
	rules := s.rules()
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

// waitDue: somebody is asked, or the time is over, which is what the workflow says it is.
func (j *Job) waitDue(side *Side, now time.Time) {
	if side.Phase != Waits || !j.wants(side) || !j.live() {
		return
	}
	if now.Before(side.Until) {
		j.question(side, now)
		return
	}
	rules := side.rules()
	switch {
	case side.agent() == makegood.AgentWait:
		j.finish(side, "", now)
	case rules != nil && rules.OnTimeout != nil:
		output := string(rules.OnTimeout.Output)
		if output == "null" {
			output = ""
		}
		j.endsWith(side, output, output, now)
	default:
		j.count(side, !side.byItself())
		j.after(side, makegood.KindTimeout, true, 0, now)
	}
}

// unpause: what waits stood still meanwhile.
func (j *Job) unpause(now time.Time) {
	if !j.Paused {
		return
	}
	j.Paused = false
	for _, s := range j.Steps {
		for _, side := range []*Side{&s.Forward, &s.Undo} {
			if side.Phase == Waits {
				stood := now.Sub(later(j.pausedAt, side.WaitsSince))
				side.WaitsSince, side.Until = side.WaitsSince.Add(stood), side.Until.Add(stood)
			}
		}
	}
}

// overdueWaits: what came due while the job stood still is due when it goes on.
func (j *Job) overdueWaits(now time.Time) {
	for _, s := range j.Steps {
		for _, side := range []*Side{&s.Forward, &s.Undo} {
			j.waitDue(side, now)
			j.rested(s, side, now)
		}
	}
}

// rested: what rested long enough begins when the job goes on, also where what waits stops it again at once.
func (j *Job) rested(s *Step, side *Side, now time.Time) {
	switch {
	case side.Phase != Resting || !j.wants(side) || !j.live() || side.At.IsZero() || now.Before(side.At):
	case side.byItself():
		side.Phase = Idle // It begins behind what waited before.
	default:
		j.open(s, side, now)
	}
}

// openWait begins a side that waits by itself.
func (j *Job) openWait(side *Side, now time.Time) {
	if side.StartedAt.IsZero() {
		side.StartedAt = now
	}
	until := j.order.Waits[side.def.Name].at(now)
	if side.agent() == makegood.AgentWait && !now.Before(until) && (side.word == nil || !side.word.forTheWait) {
		j.finish(side, "", now)
		return
	}
	j.wait(side, until, now)
}

// Lasting is how long a step waits by itself, or until when.
type Lasting struct {
	For   time.Duration
	Until time.Time
}

func (l Lasting) at(now time.Time) time.Time {
	if l.Until.IsZero() {
		return now.Add(l.For)
	}
	return l.Until
}

func (s *Side) agent() string {
	if s.undo {
		return s.def.Undo.Agent
	}
	return s.def.Agent
}

func (s *Side) byItself() bool {
	return (!s.undo || domain.CanUndo(s.def)) && domain.WaitsByItself(s.agent())
}

func (s *Side) rules() *makegood.WaitRules {
	if s.undo {
		return s.def.Undo.Waiting
	}
	return s.def.Waiting
}

// level is what a release must know to decide about the job: one of before steps that wait, and of before what came
// with them, leaves it alone.
func (j *Job) level() int {
	for _, s := range j.Steps {
		if s.Forward.Phase == Out && s.Forward.Inline || s.Undo.Phase == Out && s.Undo.Inline {
			j.needs = job.LevelInline
		}
		if j.needs == job.LevelInline {
			return j.needs
		}
		if d := s.def; len(d.OnError) > 0 || d.Any || d.Only != "" || d.Repeat != nil || d.Waiting != nil || d.Heartbeat > 0 {
			j.needs = job.LevelWaits
		}
		if domain.CanUndo(s.def) && (s.def.Undo.Waiting != nil || s.def.Undo.Heartbeat > 0) {
			j.needs = job.LevelWaits
		}
		for _, side := range []*Side{&s.Forward, &s.Undo} {
			if side.Phase == Waits || side.word != nil || side.byItself() {
				j.needs = job.LevelWaits
			}
		}
	}
	return j.needs
}
