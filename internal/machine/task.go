package machine

import (
	"fmt"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
)

// TaskOf writes the task of an attempt that Pending named, but for what takes reading payloads and
// configuration: its input, the output that an undo is told, and where to reply.
func TaskOf(w makegood.Workflow, j job.Job, d job.Dispatch) makegood.Task {
	t := turn{job: &j}
	i, ok := t.indexOf(d.Step)
	if !ok {
		panic(fmt.Sprintf("machine: job %s has no step %s", j.ID, d.Step))
	}
	s, a, p := w.Steps[i], t.activity(side{i, d.Undo}), planOf(w.Steps[i], d.Undo)
	forward := fmt.Sprintf("%s/%s/%d", j.ID, d.Step, j.Round)
	task := makegood.Task{
		Job: j.ID, Workflow: j.Workflow, Step: d.Step, Round: j.Round, Attempt: d.Attempt,
		Agent: s.Agent, Action: s.Action, Key: forward + repetition(*a),
		Birth: j.Birth, Token: Token(j, d.Step, d.Attempt), Completion: CompletionToken(j, d.Step, d.Undo),
		ClaimUntil: a.ClaimUntil(), Alone: a.Alone,
		SentAt: a.At, StartBy: a.At.Add(wait(p.startBy, a.Resent).Std()), Timeout: p.timeout, Heartbeat: p.heartbeat,
	}
	if p.shared {
		task.Shared = true
		task.CompleteBy = a.LookAt
	}
	if a.Inline != "" {
		task.CompleteBy = a.LookAt
	}
	if d.Undo {
		task.Agent, task.Action, task.Key = s.Undo.Agent, s.Undo.Action, forward+"/undo"
		task.Undo = &makegood.UndoTask{ForwardKey: forward, Repeats: j.Steps[i].Forward.Repeats, Outcome: makegood.OutcomeUnknown}
		if j.Steps[i].Forward.State == job.Done {
			task.Undo.Outcome = makegood.OutcomeDone
		}
	}
	return task
}

// TaskOut writes the task of the attempt that a reply names, as TaskOf does. ok is false if that attempt is not out,
// or the reply does not carry its token.
func TaskOut(w makegood.Workflow, j job.Job, r job.Reply) (task makegood.Task, ok bool) {
	if !Genuine(j, r) {
		return makegood.Task{}, false
	}
	for _, s := range j.Steps {
		if a, undo, out := dispatched(s); out && s.Name == r.Step && a.Attempt == r.Attempt {
			return TaskOf(w, j, job.Dispatch{Step: s.Name, Attempt: a.Attempt, Undo: undo}), true
		}
	}
	return makegood.Task{}, false
}

// repetition returns the suffix of a repeated step's key: each success is another effect. The first has no suffix, so
// all keys of a step begin with that of its undo's ForwardKey (makegood.UndoTask.Keys).
func repetition(a job.Activity) string {
	if a.Repeats == 0 {
		return ""
	}
	return fmt.Sprintf("/%d", a.Repeats+1)
}

// AgentOf returns the agent that an attempt of a step, or of its undo, belongs to.
func AgentOf(w makegood.Workflow, step string, undo bool) string {
	for _, s := range w.Steps {
		if s.Name == step {
			return agentOf(s, undo)
		}
	}
	panic(fmt.Sprintf("machine: workflow %s has no step %s", w.Name, step))
}

// ClosingEnds returns the end that is set for an unwanted attempt, if its claim ends no later than that: as long from
// now as it may be silent.
func ClosingEnds(w makegood.Workflow, step string, undo bool, now time.Time) time.Time {
	for _, s := range w.Steps {
		if s.Name == step {
			return now.Add(planOf(s, undo).silence())
		}
	}
	panic(fmt.Sprintf("machine: workflow %s has no step %s", w.Name, step))
}
