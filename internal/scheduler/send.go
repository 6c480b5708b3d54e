package scheduler

import (
	"context"
	"fmt"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/wire"
)

// message writes the task of an attempt, for the queue of its agent.
func (s *Scheduler) message(ctx context.Context, m moved, d job.Dispatch) (string, queue.Message, error) {
	task := machine.TaskOf(m.compiled.Workflow, m.job, d)
	task.ReplyTo = s.Events
	input, err := m.values.input(ctx, m.job, machine.Want{Step: d.Step, Undo: d.Undo})
	if err != nil {
		return "", queue.Message{}, err
	}
	task.Input = input
	if d.Undo {
		forward, _ := m.job.Step(d.Step)
		if task.Undo.Output, err = m.values.get(ctx, m.job.ID, forward.Forward.Output); err != nil {
			return "", queue.Message{}, err
		}
	}
	body, err := wire.EncodeTask(task)
	if err != nil {
		return "", queue.Message{}, fmt.Errorf("step %s of job %s: %w", d.Step, m.job.ID, err)
	}
	return s.Tasks(task.Agent), queue.Message{Body: body, Group: m.job.ID}, nil
}

// remind puts a delayed event into the outbox for what is due soon. What is due later the Supervisor
// finds.
func (s *Scheduler) remind(out *outbox, l *letter, c job.Remind) error {
	ahead := c.Key.Sub(s.now())
	if !s.Reminders || ahead > makegood.RemindWithin {
		return nil
	}
	body, err := wire.EncodeEvent(l.job, job.DeadlinePassed(c))
	if err != nil {
		return err
	}
	// Rounded up to the seconds of SQS: an event that comes early is stale.
	delay := (max(0, ahead) + time.Second - 1).Truncate(time.Second)
	out.add(s.Events, queue.Message{Body: body, Group: l.job, Delay: delay}, errand{letter: l})
	return nil
}

// alert tells an operator that nobody claims an agent's tasks: once for many jobs, and never at the
// cost of their events.
func (s *Scheduler) alert(ctx context.Context, agent string) {
	now := s.now()
	last, known := s.alerts.LoadOrStore(agent, now.Add(alertEvery))
	if known && (now.Before(last.(time.Time)) || !s.alerts.CompareAndSwap(agent, last, now.Add(alertEvery))) {
		return
	}
	if err := s.Notifier.AgentSilent(ctx, agent); err != nil {
		s.Logger.WarnContext(ctx, "alert about an agent was not delivered", "agent", agent, "error", err)
		s.alerts.Store(agent, now.Add(alertAgain))
	}
}

// carryOutSaved carries out what a save has made due for a caller, who may have hung up since: that must
// not cost the job the time until it is found due. An error is not the caller's: the job is stored, and
// the Supervisor sees to it.
func (s *Scheduler) carryOutSaved(ctx context.Context, l *letter) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendWithin)
	defer cancel()
	s.carryOut(ctx, []*letter{l})
	if l.err != nil {
		s.Logger.WarnContext(ctx, "what is due waits for the Supervisor", "job", l.job, "error", l.err)
	}
}
