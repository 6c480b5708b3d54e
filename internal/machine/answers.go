package machine

import (
	"fmt"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

// answeredWith ends a waiting step with an output from outside. The onAnswer of an approval decides how the job goes
// on, for the answer of a person (c) and of a deadline (nil) alike. After any other output the job goes on.
func (t *turn) answeredWith(at side, output job.Payload, c *job.Completion) {
	a := t.activity(at)
	answer, _ := answerIn(output)
	do := t.w.Steps[at.step].OnAnswer[answer]
	if at.undo || !t.forwards() {
		do = makegood.AnswerDo{}
	}
	switch do.Action {
	case "":
		t.done(at, output)
	case makegood.AnswerUndo:
		t.done(at, output)
		t.turnRound(makegood.JobUndone, fmt.Sprintf("step %s was %s", t.name(at), answerOf(answer, c)))
	case makegood.AnswerGoto:
		t.done(at, output)
		a.State, a.WentTo = job.Skipped, do.Step
		t.leaveOut(at.step)
	case makegood.AnswerStop, makegood.AnswerFail:
		t.refusedBy(at, do.Action, answerOf(answer, c))
	default:
		panic(fmt.Sprintf("machine: onAnswer %q", do.Action))
	}
}

// failsBy reports whether an answer is one after which its step may be asked again, as after a failure.
func (t *turn) failsBy(e job.StepCompleted) bool {
	i, ok := t.indexOf(e.Step)
	if !ok || e.Undo {
		return false
	}
	answer, _ := answerIn(e.Output)
	do := t.w.Steps[i].OnAnswer[answer].Action
	return do == makegood.AnswerStop || do == makegood.AnswerFail
}

// refusedBy ends an approval with an answer that is a failure. Its step had no effect and is not tried again by
// itself: the person has answered.
func (t *turn) refusedBy(at side, action makegood.AnswerAction, reason string) {
	a := t.activity(at)
	failure := &job.StepError{Message: limits.Clip(reason), Kind: makegood.KindAnswer, Applied: makegood.AppliedNo}
	ended := job.Entry{Kind: makegood.EntryFailed, Error: failure}
	if action == makegood.AnswerFail {
		t.attemptFailed(at, ended)
		return
	}
	t.countFailure(at, ended)
	t.rest(a, job.Failed)
	a.FinishedAt = t.now
	if t.active() {
		t.stop(fmt.Sprintf("step %s was %s", t.name(at), reason))
	}
}

// answerOf names the answer, its author and the reason.
func answerOf(answer string, c *job.Completion) string {
	if c == nil {
		return fmt.Sprintf("not answered in time, which counts as %q", answer)
	}
	says := fmt.Sprintf("answered %q", answer)
	if c.By != "" {
		says += " by " + c.By
	}
	if c.Why != "" {
		says += ": " + c.Why
	}
	return says
}
