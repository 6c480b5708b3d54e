package machine

import "github.com/makegood-dev/makegood/internal/job"

// waiting takes an agent's answer that another party will complete the step. It ends the attempt, as a success does;
// such an answer to an ended attempt is stale.
func (t *turn) waiting(e job.StepWaiting) Verdict {
	at, verdict := t.replyTo(e.Reply)
	if verdict.Kind != Applied {
		return verdict
	}
	a := t.activity(at)
	noteStart(a, e.StartedAt)
	leaveOut(a, earlier(e.StartedAt, t.now))
	a.Alone = false
	t.beginWait(at, e.Deadline)
	return verdict
}
