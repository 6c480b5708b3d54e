package scheduler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/notify"
	"github.com/makegood-dev/makegood/internal/spend"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// askAll asks those who are to complete steps that wait, and returns the events that say who was told. Who cannot be told
// holds up nobody: it stays in the job, and is tried again.
func (s *Scheduler) askAll(ctx context.Context, w *work) (became []job.Event) {
	for _, c := range w.asks {
		q, ok := machine.QuestionOf(w.moved.compiled.Workflow, w.moved.job, c)
		if !ok {
			continue // It waits no more.
		}
		err := s.askOne(ctx, w, q)
		if errors.Is(err, notify.ErrElsewhere) {
			continue
		}
		if err != nil {
			s.config.Logger.WarnContext(ctx, "who is asked is told again later", "job", w.job, "step", c.Step, "error", err)
			became = append(became, job.NotAsked{Step: c.Step, Attempt: c.Attempt, N: c.N})
			continue
		}
		became = append(became, job.Asked{Step: c.Step, Attempt: c.Attempt, N: c.N})
	}
	w.asks = nil
	return became
}

// askOne tells everybody who is asked at this moment. Where one of them could not be told, all are told again.
func (s *Scheduler) askOne(ctx context.Context, w *work, q machine.Question) error {
	if s.config.Asker == nil {
		return fmt.Errorf("nobody is registered here who could be asked: %v", q.To)
	}
	text, err := s.questionOf(ctx, w.moved, q.Step, q.Undo)
	if err != nil {
		return err
	}
	asked := notify.Question{
		Job: q.Job, Workflow: q.Workflow, Step: q.Step, Undo: q.Undo, Round: q.Round, N: q.N,
		Since: q.Since, Deadline: q.Deadline, Choices: q.Choices, Text: text, Completion: q.Completion,
	}
	if s.config.Link != nil {
		asked.Link = s.config.Link(q.Completion)
	}
	for _, name := range q.To {
		if err := s.patiently(ctx, func() error { return s.config.Asker.Ask(ctx, name, asked) }); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		spend.On(ctx).Add(oneRequest())
	}
	return nil
}

// questionOf is the text of an approval's question; of another step there is none.
func (s *Scheduler) questionOf(ctx context.Context, m moved, step string, undo bool) (string, error) {
	if machine.AgentOf(m.compiled.Workflow, step, undo) != makegood.AgentApproval {
		return "", nil
	}
	with, err := m.values.input(ctx, m.job, machine.Want{Step: step, Undo: undo})
	if err != nil {
		return "", err
	}
	wait, err := workflowfile.WaitOf(makegood.AgentApproval, with.Value)
	return wait.Question, err
}

// waitFact is the fact about a step that waits by itself, of which with is what its expressions gave.
func waitFact(agent string, with json.RawMessage) machine.Fact {
	wait, err := workflowfile.WaitOf(agent, with)
	if err != nil {
		return machine.Fact{Err: err.Error()}
	}
	return machine.Fact{Run: true, Until: wait.Until, For: wait.For}
}
