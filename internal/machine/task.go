package machine

import (
	"fmt"

	"github.com/makegood-dev/makegood"
)

// TaskOf writes the task of an attempt that Pending named, but for what takes reading payloads and
// configuration: its input, the output that an undo is told, and where to reply.
func TaskOf(w makegood.Workflow, job makegood.Job, d makegood.Dispatch) makegood.Task {
	t := turn{w: w, job: &job}
	i, ok := t.indexOf(d.Step)
	if !ok {
		panic(fmt.Sprintf("machine: job %s has no step %s", job.ID, d.Step))
	}
	s, a, p := w.Steps[i], t.activity(i, d.Undo), planOf(w.Steps[i], d.Undo)
	forward := fmt.Sprintf("%s/%s/%d", job.ID, d.Step, job.Round)
	task := makegood.Task{
		Job: job.ID, Workflow: job.Workflow, Step: d.Step, Round: job.Round, Attempt: d.Attempt,
		Agent: s.Agent, Action: s.Action, Key: forward,
		SentAt: a.At, StartBy: a.At.Add(wait(p.startBy, a.Resent).Std()), Timeout: p.timeout,
	}
	if p.shared {
		task.Shared = true
		task.CompleteBy = t.attemptDue(i, d.Undo)
	}
	if d.Undo {
		task.Agent, task.Action, task.Key = s.Undo.Agent, s.Undo.Action, forward+"/undo"
		task.Undo = &makegood.UndoTask{ForwardKey: forward, Outcome: makegood.OutcomeUnknown}
		if job.Steps[i].Forward.State == makegood.Done {
			task.Undo.Outcome = makegood.OutcomeDone
		}
	}
	return task
}
