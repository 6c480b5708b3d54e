package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/spend"
	"github.com/makegood-dev/makegood/internal/wire"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// outbox is the messages that a round of moves has made due. Other commands stay with the work of their job: a later
// round may change them.
type outbox []envelope

// envelope is a message on its way to a queue.
type envelope struct {
	work    *work
	queue   string
	message queue.Message
	// task is the attempt that the message is the task of.
	task job.Dispatch
	// sent notes the outcome of the sending.
	sent func(s *Scheduler, ctx context.Context, e *envelope, err error)
}

func (o *outbox) put(e envelope) { *o = append(*o, e) }

// derive puts what the last move of a job made due into the outbox.
func (s *Scheduler) derive(ctx context.Context, out *outbox, w *work) {
	ctx = spend.With(ctx, w.account)
	w.unwanted = nil
	if w.moved == nil {
		return
	}
	commands := w.moved.commands
	w.moved.commands = nil
	var tasks []job.Dispatch
	for _, c := range commands {
		switch c := c.(type) {
		case job.Dispatch:
			tasks = append(tasks, c)
		case job.PassEdit:
			w.births = append(w.births, birth{Dispatch: c.Dispatch, edit: true, begins: c.Begin})
		case job.Remind:
			w.fail(s.remind(out, w, c))
		case job.CloseAttempt:
			w.unwanted = append(w.unwanted, c)
		case job.Ask:
			w.asks = append(w.asks, c)
		case job.TellParent:
			w.fail(s.tellParent(out, w, c))
		case job.Announce:
			w.notices = append(w.notices, c.Announcement)
		case job.Publish:
			w.publish = &c
		case job.AlertAgent:
			w.alerts = append(w.alerts, alert{agent: c.Agent})
		default:
			panic(fmt.Sprintf("scheduler: unknown command %T", c))
		}
	}
	err := s.dispatch(ctx, out, w, tasks)
	if err == nil {
		return
	}
	if park := new(parkError); errors.As(err, &park) {
		park.seen = w.moved.job.CompleteBy
		w.notices, w.unwanted, w.asks, w.publish = nil, nil, nil, nil
		w.fail(s.park(ctx, w.job, park))
		return
	}
	w.fail(err)
}

// dispatch puts tasks into the outbox. A task with failing expressions can never be sent: that is our fault, and no
// time will mend it.
func (s *Scheduler) dispatch(ctx context.Context, out *outbox, w *work, tasks []job.Dispatch) error {
	for _, d := range tasks {
		if slices.Contains(w.sent, d) {
			continue // The next message is derived under its event's cause, and that of its tasks again.
		}
		err := s.dispatchOne(ctx, out, w, d)
		if reason := never(err); reason != "" {
			w.follows(refused(d, reason))
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// dispatchOne puts a task into the outbox; the attempt of a child it puts among the births.
func (s *Scheduler) dispatchOne(ctx context.Context, out *outbox, w *work, d job.Dispatch) error {
	if isChild(w.moved.compiled.Workflow, d.Step, d.Undo) {
		b, err := birthOf(ctx, w.moved, d)
		if err != nil {
			return err
		}
		w.births = append(w.births, b)
		return nil
	}
	name, message, err := s.message(ctx, w.moved, d)
	if err != nil {
		return err
	}
	out.put(envelope{w, name, message, d, (*Scheduler).taskSent})
	if sentBefore(w.moved.job, d) {
		s.stats.Add(func(t *Stats) { t.Unstarted++ })
	}
	return nil
}

// never says why a task can never be sent; empty: it is sent, or may be.
func never(err error) string {
	if err == nil {
		return ""
	}
	if wrong := new(workflowfile.EvalError); errors.As(err, &wrong) {
		return wrong.Reason
	}
	if refused := new(queue.RefusedError); errors.As(err, &refused) {
		return refused.Reason
	}
	return ""
}

// task makes the task of an attempt.
func (s *Scheduler) task(ctx context.Context, m *moved, d job.Dispatch) (makegood.Task, error) {
	t := machine.TaskOf(m.compiled.Workflow, m.job, d)
	t.ReplyTo, t.Traceparent = s.config.Events, s.config.Watch.Traceparent(m.job, d)
	input, err := m.values.input(ctx, m.job, machine.Want{Step: d.Step, Undo: d.Undo})
	if err != nil {
		return t, err
	}
	t.Input, t.Secrets = input.Value, input.Secrets
	if d.Undo {
		forward, _ := m.job.Step(d.Step)
		if t.Undo.Output, err = m.values.get(ctx, m.job.ID, forward.Forward.Output); err != nil {
			return t, err
		}
	}
	if m.batchOf(d.Step) > 0 {
		err = m.leaveOut(ctx, &t)
	}
	return t, err
}

// message writes the task of an attempt, for the queue of its agent.
func (s *Scheduler) message(ctx context.Context, m *moved, d job.Dispatch) (string, queue.Message, error) {
	t, err := s.task(ctx, m, d)
	if err != nil {
		return "", queue.Message{}, err
	}
	body, err := s.config.Memory.EncodeTask(t)
	if err != nil {
		return "", queue.Message{}, queue.Refused("it has no form on the wire: %v", err)
	}
	to := s.config.Tasks
	if t.Undo != nil && s.config.Undos != nil {
		to = s.config.Undos
	}
	return to(t.Agent), queue.Message{Body: body, Group: crowd(m.job)}, nil
}

// crowd names the group with tasks that may crowd out others': the job's tenant, or its workflow where it has none.
// SQS's fair queues take each group for a tenant, so a group for each job would be none at all.
func crowd(j job.Job) string {
	if j.Tenant != "" {
		return j.Tenant
	}
	return j.Workflow
}

// sentBefore reports whether the task of this attempt was sent before, and not claimed in time.
func sentBefore(of job.Job, d job.Dispatch) bool {
	step, _ := of.Step(d.Step)
	if d.Undo {
		return step.Undo.Resent > 0
	}
	return step.Forward.Resent > 0
}

// remind puts a delayed event into the outbox for a deadline that is near. The Supervisor finds later ones.
func (s *Scheduler) remind(out *outbox, w *work, c job.Remind) error {
	ahead := c.Key.Sub(s.now())
	if !s.config.Reminders || ahead > limits.RemindWithin {
		return nil
	}
	body, err := wire.EncodeEvent(w.job, job.DeadlinePassed(c))
	if err != nil {
		return err
	}
	// Rounded up to the seconds of SQS: an event that comes early is stale.
	delay := (max(0, ahead) + time.Second - 1).Truncate(time.Second)
	message := queue.Message{Body: body, Group: w.job, Delay: delay}
	out.put(envelope{work: w, queue: s.config.Events, message: message, sent: (*Scheduler).reminderSent})
	return nil
}

// send sends the messages of an outbox: those of a queue go out together.
func (s *Scheduler) send(ctx context.Context, out outbox) {
	for len(out) > 0 {
		name, now, others := out[0].queue, out[:0], outbox(nil)
		messages := make([]queue.Message, 0, len(out))
		for _, e := range out {
			if e.queue != name {
				others.put(e)
				continue
			}
			now.put(e)
			messages = append(messages, e.message)
		}
		errs := s.config.Queue.Send(ctx, name, messages...)
		for i := range now {
			var err error
			if i < len(errs) {
				err = errs[i]
			}
			now[i].sent(s, ctx, &now[i], err)
		}
		out = others
	}
}

func (s *Scheduler) taskSent(_ context.Context, e *envelope, err error) {
	switch {
	case err == nil:
		e.work.isSent(e.task)
		s.stats.Add(func(t *Stats) { t.Tasks++ })
	case never(err) != "":
		e.work.follows(refused(e.task, never(err)))
	default:
		e.work.fail(fmt.Errorf("send task of step %s to %s: %w", e.task.Step, e.queue, err))
	}
}

// refused gives a step up that has a task which can never be sent.
func refused(d job.Dispatch, reason string) job.Event {
	return job.DispatchRefused{Step: d.Step, Attempt: d.Attempt, Reason: reason}
}

func (s *Scheduler) reminderSent(ctx context.Context, e *envelope, err error) {
	if err != nil {
		// It spares a wait, and no more: the Supervisor comes anyway.
		s.config.Logger.WarnContext(ctx, "reminder was not sent", "job", e.work.job, "error", err)
		return
	}
	s.stats.Add(func(t *Stats) { t.Reminders++ })
}
