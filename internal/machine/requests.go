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

// Effect is what a verb does to a job in a state.
type Effect string

// The effects. A verb that changes the wanted state ends a pause: its caller wants it now.
const (
	TurnsRound Effect = "undoes its steps"
	EndsOther  Effect = "ends Cancelled instead of Undone"
	EndsUndone Effect = "ends Undone, without another round"
	GoesOn     Effect = "goes on from what failed"
	NewRound   Effect = "starts again in a new round"
	Pauses     Effect = "starts no new step"
	Resumes    Effect = "goes on"
	MovesStart Effect = "moves its start, while no step has begun"
	MovesEnd   Effect = "has that long from now on, or from its start if that is ahead"
	TurnsAgain Effect = "undoes its steps, and then starts again in a new round"
	EndsAgain  Effect = "starts again in a new round, once it is undone"
	TurnsBack  Effect = "goes forward again, if no step was undone yet"
	ForLater   Effect = "has that long once it is resubmitted, if it goes forward then"
	Already    Effect = limits.OfferAlready
	Refuses    Effect = limits.OfferRefused
)

// Rule is a cell of the table of verbs.
type Rule struct {
	Effect Effect
	Reason string // why it is refused
}

// onItsWay returns the effect of a verb on the job. A verb that goes on from the failed step names its direction: a
// job that stopped in an undo goes on undoing, which surprises a person after mending the first failure.
func onItsWay(effect Effect, j job.Job) string {
	switch {
	case effect != GoesOn:
		return string(effect)
	case j.Desired == makegood.JobProcessed:
		return string(GoesOn) + ", forwards"
	case j.AnotherRound:
		return "goes on undoing, from what failed, and then begins another round"
	default:
		return "goes on undoing, from what failed, and will end " + string(j.Desired)
	}
}

// verbs says what each verb does in each ProcessState. docs/states.md is generated from it.
var verbs = map[makegood.Verb]map[makegood.ProcessState]Rule{
	makegood.VerbCancel: {
		makegood.JobPending:    {Effect: TurnsRound},
		makegood.JobProcessing: {Effect: TurnsRound},
		makegood.JobProcessed:  {Refuses, "it is Processed; undo takes it back"},
		makegood.JobError:      {Effect: TurnsRound},
		makegood.JobUndoing:    {Effect: EndsOther},
		makegood.JobUndone:     {Refuses, "it is Undone; there is no step to cancel"},
		makegood.JobCancelled:  {Effect: Already},
	},
	makegood.VerbUndo: {
		makegood.JobPending:    {Effect: TurnsRound},
		makegood.JobProcessing: {Effect: TurnsRound},
		makegood.JobProcessed:  {Effect: TurnsRound},
		makegood.JobError:      {Effect: TurnsRound},
		makegood.JobUndoing:    {Effect: EndsUndone},
		makegood.JobUndone:     {Effect: Already},
		makegood.JobCancelled:  {Refuses, "it is Cancelled, and undone with that"},
	},
	makegood.VerbResubmit: {
		makegood.JobPending:    {Refuses, "it has not stopped"},
		makegood.JobProcessing: {Refuses, "it has not stopped"},
		makegood.JobProcessed:  {Refuses, "it is Processed; submit a new job to do it again"},
		makegood.JobError:      {Effect: GoesOn},
		makegood.JobUndoing:    {Refuses, "it has not stopped: it is being undone"},
		makegood.JobUndone:     {Effect: NewRound},
		makegood.JobCancelled:  {Refuses, "it is Cancelled, which is final; submit a new job"},
	},
	makegood.VerbPause: {
		makegood.JobPending:    {Effect: Pauses},
		makegood.JobProcessing: {Effect: Pauses},
		makegood.JobProcessed:  {Refuses, "it is Processed; no step is left to pause"},
		makegood.JobError:      {Refuses, "it is in Error and waits already"},
		makegood.JobUndoing:    {Effect: Pauses},
		makegood.JobUndone:     {Refuses, "it is Undone; no step is left to pause"},
		makegood.JobCancelled:  {Refuses, "it is Cancelled; no step is left to pause"},
	},
	makegood.VerbResume: {
		makegood.JobPending:    {Effect: Resumes},
		makegood.JobProcessing: {Effect: Resumes},
		makegood.JobProcessed:  {Refuses, "it is Processed, not paused"},
		makegood.JobError:      {Refuses, "it is in Error, not paused; resubmit goes on from what failed"},
		makegood.JobUndoing:    {Effect: Resumes},
		makegood.JobUndone:     {Refuses, "it is Undone, not paused"},
		makegood.JobCancelled:  {Refuses, "it is Cancelled, not paused"},
	},
	makegood.VerbReschedule: {
		makegood.JobPending:    {Effect: MovesStart},
		makegood.JobProcessing: {Effect: MovesStart}, // Its start was announced, or it was paused at its start.
		makegood.JobProcessed:  {Refuses, "it is Processed; submit a new job to do it again"},
		makegood.JobError:      {Refuses, "it is in Error; resubmit goes on from what failed"},
		makegood.JobUndoing:    {Refuses, "it is being undone"},
		makegood.JobUndone:     {Refuses, "it is Undone; resubmit starts it again"},
		makegood.JobCancelled:  {Refuses, "it is Cancelled, which is final; submit a new job"},
	},
	makegood.VerbEdit: {
		makegood.JobPending:    {Effect: MovesEnd},
		makegood.JobProcessing: {Effect: MovesEnd},
		makegood.JobProcessed:  {Refuses, "it is Processed; no step is left that could take too long"},
		makegood.JobError:      {Effect: ForLater},
		makegood.JobUndoing:    {Refuses, backUntimed},
		makegood.JobUndone:     {Refuses, "it is Undone; resubmit starts it again, with the timeout that it has"},
		makegood.JobCancelled:  {Refuses, "it is Cancelled; no step is left that could take too long"},
	},
	makegood.VerbRedo: {
		makegood.JobPending:    {Effect: TurnsAgain},
		makegood.JobProcessing: {Effect: TurnsAgain},
		makegood.JobProcessed:  {Effect: TurnsAgain},
		makegood.JobError:      {Effect: TurnsAgain},
		makegood.JobUndoing:    {Effect: EndsAgain},
		makegood.JobUndone:     {Effect: NewRound},
		makegood.JobCancelled:  {Refuses, "it is Cancelled, which is final; submit a new job"},
	},
	makegood.VerbForward: {
		makegood.JobPending:    {Refuses, goesForward},
		makegood.JobProcessing: {Refuses, goesForward},
		makegood.JobProcessed:  {Refuses, "it is Processed; submit a new job to do it again"},
		makegood.JobError:      {Effect: TurnsBack},
		makegood.JobUndoing:    {Effect: TurnsBack},
		makegood.JobUndone:     {Refuses, "it is Undone; resubmit starts it again"},
		makegood.JobCancelled:  {Refuses, "it is Cancelled, which is final; submit a new job"},
	},
}

const (
	goesForward  = "it goes forward"
	itsCancelled = "it is being cancelled, which is final; submit a new job"
)

// backUntimed is why the timeout of a job is not changed that is being undone.
const backUntimed = "it is being undone, which its timeout never stops"

// RuleFor returns the cell of the table for a verb in a state.
func RuleFor(v makegood.Verb, s makegood.ProcessState) Rule {
	rule, ok := verbs[v][s]
	if !ok {
		return Rule{Refuses, fmt.Sprintf("there is no verb %q", v)}
	}
	return rule
}

// requested does what an operator or submitter asks for, where the table allows it.
func (t *turn) requested(e job.Requested) Verdict {
	if t.granted(e) {
		return Verdict{Kind: Duplicate, Reason: "this request was granted before"}
	}
	rule := RuleFor(e.Verb, t.job.ProcessState)
	if rule.Effect == GoesOn || rule.Effect == NewRound {
		refused := t.redefine(rule, e)
		if t.definition != "" {
			return Verdict{Kind: Applied}
		}
		if refused != "" {
			return Verdict{Kind: Refused, Reason: refused}
		}
	}
	t.noteRequest(e)
	verdict := t.grant(rule, e)
	if verdict.Kind == Applied {
		t.job.RequestedBy = limits.Clip(e.By)
	}
	if verdict.Kind == Applied && e.Request != "" {
		t.job.Requests = remember(t.job.Requests, job.ShortHash(e.Cause())) // short, whatever name its submitter gave it
	}
	return verdict
}

// remember adds a granted name to the last of its kind, so that the same request again is a duplicate.
func remember(names []string, name string) []string {
	names = append(names, name)
	return names[max(0, len(names)-limits.MaxRequests):]
}

func (t *turn) grant(rule Rule, e job.Requested) Verdict {
	switch rule.Effect {
	case TurnsRound:
		return t.requestUndo(e)
	case EndsOther:
		if t.job.Desired == makegood.JobCancelled {
			return Verdict{Kind: Duplicate, Reason: "it is being cancelled"}
		}
		t.job.Desired = makegood.JobCancelled
		t.endInstead(e)
	case EndsUndone:
		if !t.job.AnotherRound {
			return Verdict{Kind: Duplicate, Reason: "it is " + string(t.job.ProcessState)}
		}
		t.endInstead(e)
	case GoesOn:
		t.goOn()
	case NewRound:
		if left := t.notUndone(); left != "" && e.Verb == makegood.VerbRedo {
			return Verdict{Kind: Refused, Reason: "it is Undone" + left + ": that would be done once more; resubmit starts it again all the same"}
		}
		t.askedRound()
	case TurnsAgain:
		return t.redo(e)
	case EndsAgain:
		return t.endAgain(e)
	case TurnsBack:
		return t.turnForward(e)
	case Pauses:
		return t.pause()
	case Resumes:
		return t.unpause()
	case MovesStart:
		return t.reschedule(e.StartAt)
	case MovesEnd, ForLater:
		return t.edit(e.Timeout)
	case Already:
		return Verdict{Kind: Duplicate, Reason: "it is " + string(t.job.ProcessState)}
	case Refuses:
		return Verdict{Kind: Refused, Reason: rule.Reason}
	default:
		panic(fmt.Sprintf("machine: effect %q", rule.Effect))
	}
	return Verdict{Kind: Applied}
}

// reschedule moves the start of a job that has begun no step. Its timeout counts from the new one.
func (t *turn) reschedule(at time.Time) Verdict {
	ahead := at.Sub(t.now)
	switch {
	case t.begun():
		return Verdict{Kind: Refused, Reason: "it has started"}
	case ahead > makegood.MaxStartDelay:
		return Verdict{Kind: Refused, Reason: fmt.Sprintf("its new start is %s ahead, the limit is %s", ahead.Round(time.Second), makegood.MaxStartDelay)}
	case ahead < 0:
		at = t.now // Never zero: a store may have counted on a later start.
	}
	at = domain.Instant(at)
	if at.Equal(t.job.StartAt) {
		return Verdict{Kind: Duplicate, Reason: "it starts then"}
	}
	t.job.StartAt = at
	t.renewDeadline()
	t.expect()
	return Verdict{Kind: Applied}
}

// begun reports whether any step had an attempt. An attempt that was taken back counts: its agent may have been told.
// A step that a person settled does not.
func (t *turn) begun() bool {
	return slices.ContainsFunc(t.job.Steps, func(s job.StepState) bool {
		return s.Attempt > 0 || s.Forward.State != job.NotStarted && t.job.Settled(s.Forward) == nil
	})
}

// endInstead lets a job that is being undone end otherwise than it would, and ends a pause.
func (t *turn) endInstead(e job.Requested) {
	t.noMoreRounds()
	t.because(reasonOf(e))
	if t.job.Paused() {
		t.resume()
	}
}

func reasonOf(e job.Requested) string {
	if e.Reason != "" {
		return e.Reason
	}
	switch e.Verb {
	case makegood.VerbCancel:
		return "cancelled on request"
	case makegood.VerbRedo:
		return "undone on request, to be done again"
	default:
		return "undone on request"
	}
}

// requestUndo turns a job round, from wherever it is.
func (t *turn) requestUndo(e job.Requested) Verdict {
	want := makegood.JobUndone
	if e.Verb == makegood.VerbCancel {
		want = makegood.JobCancelled
	}
	if t.job.ProcessState == makegood.JobProcessed && !domain.HasUndo(t.w) {
		return Verdict{Kind: Refused, Reason: "no step of its workflow has an undo"}
	}
	t.job.PausedAt = time.Time{}
	t.job.FinishedAt = time.Time{}
	if !t.forwards() {
		// It stopped while being undone: the same road, from what failed, perhaps to another end.
		t.job.Desired = want
		t.noMoreRounds()
		t.goOn()
		return Verdict{Kind: Applied}
	}
	t.job.Transitions = 0
	t.turnRound(want, reasonOf(e))
	return Verdict{Kind: Applied}
}

// goOn takes up the direction that stopped, with fresh attempts for what failed in it.
func (t *turn) goOn() {
	t.job.Transitions = 0
	// While it is stopped still: a failure now counts against no grant, and gets fresh attempts with the rest.
	for i := range t.job.Steps {
		t.catchUp(i)
	}
	t.job.ProcessState = makegood.JobUndoing
	if t.forwards() {
		t.job.ProcessState = makegood.JobProcessing
		t.noReason()
		t.renewDeadline()
		t.expect()
	}
	for i := range t.job.Steps {
		a := t.activity(t.inDirection(i))
		if a.State == job.Failed {
			a.State, a.FinishedAt = job.NotStarted, time.Time{}
			a.Interruptions = 0
			grant(a)
		}
	}
	for i := range t.job.Steps {
		if at := t.inDirection(i); t.activity(at).State == job.Waiting {
			t.dueWait(at)
		}
	}
}

// catchUp acts on the times that fell due in a step while the job stood still. The Supervisor would take up to a
// minute; if the job has less time than that, the Supervisor would find only the job's timeout, time after time. A
// retry that is not due yet gets a reminder of its own.
func (t *turn) catchUp(i int) {
	at := t.inDirection(i)
	a := t.activity(at)
	if a.State == job.Dispatched && a.Closing && t.wanted(at) {
		// Its end was asked for when the job came to stand still. It is wanted again, if it was not closed.
		t.look(at)
	} else {
		t.dueStep(i)
	}
	if a.State == job.Backoff {
		a.Cause = t.cause
		if passed(a.At, t.now) {
			t.openAttempt(at)
		}
	}
}

// newRound starts an undone job again. Attempt numbers and failure counts go on; idempotency keys
// change with the round, since the old ones were undone.
func (t *turn) newRound() {
	t.noMoreRounds()
	t.job.Round++
	t.note(job.Entry{Kind: makegood.EntryRound, Round: t.job.Round})
	t.job.RoundsAgain = 0
	t.job.Desired = makegood.JobProcessed
	t.job.ProcessState = makegood.JobProcessing
	t.noReason()
	t.job.FinishedAt = time.Time{}
	t.job.Transitions = 0
	t.job.Former = nil
	for i := range t.job.Steps {
		s := &t.job.Steps[i]
		s.Forward = job.Activity{FailureCount: s.Forward.FailureCount, Kept: s.Forward.Kept}
		s.Undo = job.Activity{FailureCount: s.Undo.FailureCount, Kept: s.Undo.Kept}
	}
}

// edit sets how long the job may go forward. It counts from now, or from its start if that is ahead; for a stopped
// job, from when it goes on.
func (t *turn) edit(timeout makegood.Duration) Verdict {
	switch {
	case !t.forwards():
		return Verdict{Kind: Refused, Reason: backUntimed}
	case timeout == 0:
		return Verdict{Kind: Refused, Reason: "the timeout is missing"}
	case timeout < 0 && t.timeout() == 0:
		return Verdict{Kind: Duplicate, Reason: "it has no timeout"}
	case timeout > 0 && (timeout.Std() < limits.MinTimeout || timeout.Std() > limits.MaxJobTimeout):
		return Verdict{Kind: Refused, Reason: fmt.Sprintf("the timeout is %s: want from %s to %s, or none", timeout, limits.MinTimeout, limits.MaxJobTimeout)}
	case timeout < 0:
		timeout = makegood.NoTimeout
	}
	t.job.Timeout = timeout
	if t.active() {
		t.renewDeadline()
	}
	return Verdict{Kind: Applied}
}

// timeout is how long the job may go forward; zero: as long as it takes.
func (t *turn) timeout() makegood.Duration {
	if t.job.Timeout == 0 {
		return t.w.Timeout
	}
	return max(t.job.Timeout, 0)
}

// renewDeadline grants the job its whole timeout. While the job is paused its time stands still.
func (t *turn) renewDeadline() {
	if t.timeout() == 0 {
		t.job.Deadline = time.Time{}
		return
	}
	t.job.Deadline = t.from().Add(t.timeout().Std())
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

// endPause ends a pause, if there is one. The times of waiting activities stood still meanwhile.
func (t *turn) endPause() {
	if paused := t.job.PausedAt; !paused.IsZero() {
		for i := range t.job.Steps {
			t.stoodStill(t.inDirection(i), paused)
		}
	}
	t.job.PausedAt = time.Time{}
}

// resume takes a pause back. The job's own timeout did not run meanwhile.
func (t *turn) resume() {
	if stood := later(t.job.PausedAt, t.job.StartAt); !t.early() { // Before its start its time stood still.
		if !t.job.Deadline.IsZero() {
			t.job.Deadline = t.job.Deadline.Add(t.now.Sub(stood))
		}
		t.expectLater(t.now.Sub(stood))
	}
	t.endPause()
	for i := range t.job.Steps {
		if t.active() {
			t.catchUp(i)
		}
	}
	t.nextRoundDue()
}
