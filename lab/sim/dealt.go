package sim

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/jobformat"
	"github.com/makegood-dev/makegood/internal/wire"
)

// The rules here are about messages: what may be sent, and what must have happened before one is deleted.
// Without them much would heal unnoticed, by the Supervisor, a StartBy later.

// dealt looks at an event that is deleted because a process dealt with it. w.mu is held.
func (w *world) dealt(l *life, m *message) {
	in, err := w.reading.event(m.body)
	if err == nil && in.Schedule != nil {
		w.hinted(l, in.Schedule.Schedule, in.Schedule.Key)
	}
	if err != nil || in.Event == nil || l.passedOn[in.Job+" "+in.Event.Cause()] {
		return
	}
	j, found := w.store.Stored(in.Job)
	if !found {
		return
	}
	if _, deadline := in.Event.(job.DeadlinePassed); deadline && j.Needs > jobformat.Level && l.older {
		return // The key stands in the index, and a newer one comes to it.
	}
	switch e := in.Event.(type) {
	case job.StepSucceeded:
		w.replied(j, e.Reply)
	case job.StepFailed:
		w.replied(j, e.Reply)
	case job.StepWaiting:
		w.replied(j, e.Reply)
	}
	// A stranger's makes nothing due, though the true one of the same name does.
	if untrue(j, in.Event) || w.another(m, in) {
		return
	}
	w.derived(l.seen[in.Job], in.Event.Cause())
	w.silenced(l, l.seen[in.Job])
	if e, ok := in.Event.(job.DeadlinePassed); ok && e.Key.IsZero() && l.engine != nil {
		w.derived(l.seen[in.Job], job.Interrupted{Incarnation: l.engine.incarnation}.Cause())
	}
}

// untrue reports whether an event is a reply of who never got the task.
func untrue(j job.Job, e job.Event) bool {
	switch e := e.(type) {
	case job.StepSucceeded:
		return !machine.Genuine(j, e.Reply)
	case job.StepFailed:
		return !machine.Genuine(j, e.Reply)
	case job.StepWaiting:
		return !machine.Genuine(j, e.Reply)
	default:
		return false
	}
}

// another reports whether the same is said by a message that is still there. Then that one may be what made
// tasks due, and whoever was given it sends them: this process may have seen them by chance, when it came
// back to note that an announcement was made.
func (w *world) another(deleted *message, is wire.Incoming) bool {
	for _, m := range w.queues[eventsQueue].order {
		if m == deleted || m.gone || m.group != deleted.group {
			continue
		}
		if in, err := w.reading.event(m.body); err == nil && in.Event != nil && in.Event.Cause() == is.Event.Cause() {
			return true
		}
	}
	return false
}

// replied: the reply of a claim that holds, to an attempt that is out, is not deleted unheeded.
func (w *world) replied(j job.Job, r job.Reply) {
	item := w.store.latestOf(j, r.Step)
	holds := item.Attempt == r.Attempt && item.LockedBy == r.LockedBy && item.Closed == ""
	if r.LockedBy != "" && holds && outOf(j, r.Step) == r.Attempt && machine.Genuine(j, r) {
		w.violate(j.ID, "I4: the reply of %s is deleted, and its claim holds", on(j.ID, r.Step, r.Attempt))
	}
}

// outOf is the attempt of a step, or of its undo, that is out; 0: none is.
func outOf(j job.Job, step string) int {
	s, _ := j.Step(step)
	for _, a := range []job.Activity{s.Forward, s.Undo} {
		if a.State == job.Dispatched {
			return a.Attempt
		}
	}
	return 0
}

// derived: the last that says an event is not deleted before the tasks that it made due in the job as the process saw
// it last were sent, by whoever. One that was judged too early, by a clock that is slow, has made nothing due there.
func (w *world) derived(j job.Job, cause string) {
	for _, s := range j.Steps {
		for _, a := range []job.Activity{s.Forward, s.Undo} {
			name := on(j.ID, s.Name, a.Attempt)
			switch asked := a.State == job.Dispatched && a.Closing && a.Cause == cause; {
			case asked && !w.closings[name]:
				w.violate(j.ID, "ADV-4: the event %s is deleted, and nobody tried to close %s", cause, name)
			case asked:
				w.violate(j.ID, "ADV-4: the event %s is deleted, and the job is not told how the closing of %s went", cause, name)
			}
		}
	}
	if j.Paused() || j.ProcessState.Finished() || j.ProcessState == makegood.JobError {
		return
	}
	forwards, of := j.Desired == makegood.JobProcessed, w.workflowOf(j.ID)
	for _, s := range j.Steps {
		if defOf(of, s.Name).Agent == makegood.AgentWorkflow {
			w.childBegun(j, s, cause)
			continue
		}
		a := s.Forward
		if !forwards {
			a = s.Undo
		}
		name := on(j.ID, s.Name, a.Attempt)
		// Of a step that was completed meanwhile nobody wants the task.
		if a.State == job.Dispatched && !a.Closing && !a.Queued && !a.Held() && a.Cause == cause && w.claimed[name] == 0 && w.sent[name] == 0 {
			w.violate(j.ID, "ADV-1: the event %s is deleted, and the task of %s was never sent", cause, name)
		}
	}
}

// maySend looks at a message before it is sent.
func (w *world) maySend(l *life, m queue.Message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if l.gone() {
		return
	}
	if strings.HasPrefix(l.name, "supervisor") {
		w.maySweep(l, m)
	}
	task, err := w.reading.task(m.Body)
	if err != nil {
		return
	}
	// A task is sent for what made it due, and not for whatever else happens to its job.
	name := on(task.Job, task.Step, task.Attempt)
	w.tried[name] = true
	w.gated(task, "is sent")
	if !l.submitted[task.Job] {
		// Who submits it again in the same batch knows it twice.
		w.referee(task.Job).Sends(task.Step, task.Attempt, l.seen[task.Job])
	}
	if w.causes[name]["submit"] {
		return
	}
	if l.engine != nil && w.causes[name][job.Interrupted{Incarnation: l.engine.incarnation}.Cause()] {
		return // Whatever touches a job first in this run.
	}
	for cause := range w.causes[name] {
		if _, child := domain.ChildOf(task.Job); child && (cause == "undo:" || cause == "cancel:" || cause == "redrive:" || strings.HasPrefix(cause, "edit:")) {
			return // Its parent asks for that, by no message.
		}
		if strings.HasPrefix(cause, "refused:") || w.inline[task.Job+"/"+cause] {
			return // Its process was just told so, by no message.
		}
	}
	for _, e := range l.batch[task.Job] {
		if w.causes[name][e.Cause()] {
			return
		}
	}
	if len(w.causes[name]) > 0 {
		w.violate(task.Job, "DSP-1: the task of %s is sent again for what is no matter of its", name)
	}
}

// maySweep looks at a message of the Supervisor before it is sent. The first two times that a sweep looks at the
// queue are to see whether it moves.
func (w *world) maySweep(l *life, m queue.Message) {
	if l.engine != nil {
		return
	}
	if l.depth.Waiting > depthLimit {
		w.violate(m.Group, "OPS-1: %s sends, and %d events wait, the limit is %d", l.name, l.depth.Waiting, depthLimit)
	}
	still := func(d queue.Depth) bool { return d.Waiting > 0 && d.InFlight == 0 }
	if l.looks == 2 && still(l.before) && still(l.depth) {
		w.violate(m.Group, "OPS-1: %s sends, and %d events wait and nobody takes them", l.name, l.depth.Waiting)
	}
}

// caused notes what made each attempt due. w.mu is held.
func (c change) caused() {
	for _, s := range c.after.Steps {
		for _, a := range []job.Activity{s.Forward, s.Undo} {
			if a.State != job.Dispatched {
				continue
			}
			name := on(c.after.ID, s.Name, a.Attempt)
			if c.causes[name] == nil {
				c.causes[name] = map[string]bool{}
			}
			c.causes[name][a.Cause] = true
		}
	}
}

// known: what runs is known to its job, and begins while it may. w.mu is held.
func (w *world) known(task makegood.Task) {
	j, found := w.store.Stored(task.Job)
	s, _ := j.Step(task.Step)
	name := on(task.Job, task.Step, task.Attempt)
	if !found || s.Attempt < task.Attempt || j.Round < task.Round {
		w.violate(task.Job, "ADV-1: %s runs, and its job has not made it", name)
	}
	w.gated(task, "runs")
	if w.nobodys[name] {
		w.violate(task.Job, "I5: %s runs, and was closed before anybody claimed it", name)
	}
	for _, a := range directions(s) {
		if a.Attempt == task.Attempt && a.Inline != "" {
			return // Whatever a liar has written of it into the item of its step, its claim is the job's.
		}
	}
	item := w.store.InSlot(store.Slot{Agent: task.Agent, Job: task.Job, Birth: task.Birth, Step: task.Step})
	if until := w.leases[item.LockedBy].until; item.Attempt == task.Attempt && item.LockedBy != "" && time.Now().After(until) {
		w.violate(task.Job, "I8: %s begins %s after its CompleteBy", name, time.Since(until))
	}
}

// own: nobody is told that another holds what they hold themselves. w.mu is held.
func (w *world) own(slot store.Slot, c job.Claim, err error) {
	item := w.store.InSlot(slot)
	if errors.Is(err, store.ErrTaken) && item.Attempt == c.Attempt && item.LockedBy == c.LockedBy {
		w.violate(slot.Job, "law 11: CLM-1: the claim of %s is its own, and is said to be another's", on(slot.Job, slot.Step, c.Attempt))
	}
}

// payloads: what finished a step is not changed afterwards.
func (w *world) payloads() {
	for key, was := range w.outputs {
		if now, _ := w.store.Payload(context.Background(), key[0], key[1]); !bytes.Equal(was, now) {
			w.violate(key[0], "CMP-2: the output %s of job %s was changed after the step was done", key[1], key[0])
		}
	}
}
