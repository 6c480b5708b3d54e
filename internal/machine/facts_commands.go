package machine

import (
	"fmt"
	"strconv"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
)

// alertFrom is the resend from which on an operator is told that a task is not claimed.
const alertFrom = 3

// Pending returns the commands that event makes due and that have no answer yet: the tasks of the attempts that it
// opened or sent again, the closings that it asked for, undelivered announcements, and the alert about an agent that
// claims no tasks. It is derived from the saved job alone, so the same event delivered again derives the same, and an
// event that is not the cause of an attempt never sends it again.
func Pending(w makegood.Workflow, j job.Job, event job.Event, now time.Time) []job.Command {
	if forged(j, event) {
		// A foreign event makes no command due, not even again, and causes no announcement before the tasks are out.
		return nil
	}
	var commands []job.Command
	cause := event.Cause()
	if key, ok := remind(j, event, cause, now); ok {
		commands = append(commands, job.Remind{Key: key})
	}
	if c, child := domain.ChildOf(j.ID); child && j.ProcessState.Finished() && !IsTelling(event) {
		commands = append(commands, job.TellParent{Parent: c.Parent, ChildEnded: job.ChildEnded{Step: c.Step, Attempt: c.Attempt}})
	}
	edit := editIn(event)
	for i := range j.Steps {
		s := &j.Steps[i] // By index: a step is large.
		if ask, ok := askOf(j, s, cause); ok {
			commands = append(commands, ask)
		}
		a, undo, ok := dispatched(s)
		if edit != nil && ok && a.Cause != cause && passes(w, &j, i, *edit) && j.EditOf(s.Name).N > 0 {
			begin := !undo && a.Repeats == 0 && !a.Closing && wanted(j, undo) && !a.Held()
			commands = append(commands, job.PassEdit{Dispatch: job.Dispatch{Step: s.Name, Attempt: a.Attempt, Undo: undo}, Begin: begin})
		}
		switch {
		case !ok || a.Cause != cause:
		case a.Inline != "":
			// Run by the one process whose save opened it (Inlined), however often its event comes.
		case a.Closing:
			unwanted := undo == (j.Desired == makegood.JobProcessed) || a.Held()
			c := job.CloseAttempt{Step: s.Name, Attempt: a.Attempt, Undo: undo, Mark: unwanted, Asked: cause}
			if agentOf(w.Steps[i], undo) == makegood.AgentWorkflow {
				c.Redrives = a.Repeats
			}
			commands = append(commands, c)
		case a.Queued:
		case wanted(j, undo) && !a.Held():
			commands = append(commands, job.Dispatch{Step: s.Name, Attempt: a.Attempt, Undo: undo})
			if a.Resent >= alertFrom && agentOf(w.Steps[i], undo) != makegood.AgentWorkflow {
				commands = append(commands, job.AlertAgent{Agent: agentOf(w.Steps[i], undo)})
			}
		}
	}
	for _, a := range Untold(j, now) {
		commands = append(commands, a)
	}
	if len(j.Changes.Pending) > 0 {
		// The next save of a running job records the announcement, at no cost. A job at rest has no next save.
		rests := j.ProcessState.Finished() || !j.Changes.At.IsZero()
		commands = append(commands, job.Publish{Seq: j.Changes.Seq, Confirm: rests})
	}
	return commands
}

// editIn returns the edit of a map that an event asks for; nil: it asks for none.
func editIn(event job.Event) *job.MapEdit {
	if e, asked := event.(job.Requested); asked && e.Verb == makegood.VerbEdit {
		return e.Edit
	}
	return nil
}

// forged reports whether an event is a reply without the token of its attempt.
func forged(j job.Job, event job.Event) bool {
	switch e := event.(type) {
	case job.StepSucceeded:
		return !Genuine(j, e.Reply)
	case job.StepFailed:
		return !Genuine(j, e.Reply)
	case job.StepWaiting:
		return !Genuine(j, e.Reply)
	case job.StepHeld:
		return !Genuine(j, e.Reply)
	case job.StepCompleted:
		return e.Token != "" && !GenuineCompletion(j, e.Place)
	default:
		return false
	}
}

// askOf returns the command to ask people to complete a waiting step, if this event made it due.
func askOf(j job.Job, s *job.StepState, cause string) (job.Ask, bool) {
	for _, undo := range []bool{false, true} {
		a := &s.Forward
		if undo {
			a = &s.Undo
		}
		if a.State == job.Waiting && a.Cause == cause && a.Wait.Heard < a.Wait.Asked && wanted(j, undo) {
			return job.Ask{Step: s.Name, Attempt: a.Attempt, Undo: undo, N: a.Wait.Asked}, true
		}
	}
	return job.Ask{}, false
}

// Untold returns the announcements to make now: to an operator at every occasion, to a listener that could not be
// told when their time has come.
func Untold(j job.Job, now time.Time) (commands []job.Announce) {
	for _, a := range j.Untold {
		a.Listener = a.Listener && !now.Before(j.TellAt)
		if a.Operator || a.Listener {
			commands = append(commands, job.Announce{Announcement: a})
		}
	}
	return commands
}

// remind returns the job's key if event made a retry, the start or the next round due at it. Any event except those
// of telling reminds of the last two: the key was another before, and an extra reminder is harmless.
func remind(j job.Job, event job.Event, cause string, now time.Time) (time.Time, bool) {
	key := j.CompleteBy
	if !key.IsZero() && !IsTelling(event) {
		starts := key.Equal(j.StartAt) && !now.After(key) && !j.Paused()
		if starts || key.Equal(j.NextRoundAt) {
			return key, true
		}
	}
	for i := range j.Steps {
		for _, a := range []*job.Activity{&j.Steps[i].Forward, &j.Steps[i].Undo} {
			if a.Cause != cause {
				continue
			}
			if a.State == job.Backoff && a.At.Equal(key) || a.State == job.Waiting && a.LookAt.Equal(key) {
				return key, true
			}
		}
	}
	return time.Time{}, false
}

// IsTelling reports whether an event only notes that receivers were told, or were not.
func IsTelling(event job.Event) bool {
	switch event.(type) {
	case job.Told, job.NotHeard, job.Published, job.NotPublished, job.Asked, job.NotAsked:
		return true
	default:
		return false
	}
}

// wanted reports whether an attempt in this direction may be sent: a shared one is not withdrawn when
// the job stops, pauses or turns round, only never sent again.
func wanted(j job.Job, undo bool) bool {
	forwards := j.Desired == makegood.JobProcessed
	return undo != forwards && !j.Paused() && j.ProcessState != makegood.JobError
}

// TaskOf writes the task of an attempt that Pending named, but for what takes reading payloads and
// configuration: its input, the output that an undo is told, and where to reply.
func TaskOf(w makegood.Workflow, j job.Job, d job.Dispatch) makegood.Task {
	t := turn{job: j}
	i, ok := t.indexOf(d.Step)
	if !ok {
		panic(fmt.Sprintf("machine: job %s has no step %s", j.ID, d.Step))
	}
	s, a, p := w.Steps[i], t.activity(side{i, d.Undo}), planOf(w.Steps[i], d.Undo)
	forward := j.ID + "/" + d.Step + "/" + strconv.Itoa(j.Round)
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
		undo := makegood.UndoTask{ForwardKey: forward, Repeats: j.Steps[i].Forward.Repeats, Outcome: makegood.OutcomeUnknown}
		if j.Steps[i].Forward.State == job.Done {
			undo.Outcome = makegood.OutcomeDone
		}
		task.Undo = &undo
	}
	return task
}

// TaskOut writes the task of the attempt that a reply names, as TaskOf does. ok is false if that attempt is not out,
// or the reply does not carry its token.
func TaskOut(w makegood.Workflow, j job.Job, r job.Reply) (task makegood.Task, ok bool) {
	if !Genuine(j, r) {
		return makegood.Task{}, false
	}
	for i := range j.Steps {
		s := &j.Steps[i]
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
	return agentOf(mustStep(w, step), undo)
}

// ClosingEnds returns the end that is set for an unwanted attempt, if its claim ends no later than that: as long from
// now as it may be silent.
func ClosingEnds(w makegood.Workflow, step string, undo bool, now time.Time) time.Time {
	return now.Add(planOf(mustStep(w, step), undo).silence())
}

// mustStep finds a step of the workflow by its name.
func mustStep(w makegood.Workflow, name string) makegood.Step {
	i, ok := stepNamed(w.Steps, nil, name)
	if !ok {
		panic(fmt.Sprintf("machine: workflow %s has no step %s", w.Name, name))
	}
	return w.Steps[i]
}
