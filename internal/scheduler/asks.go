package scheduler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/notify"
	"github.com/makegood-dev/makegood/internal/spend"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// asking is a question that is due, the people asked, and the outcome of each.
type asking struct {
	due      job.Ask
	question notify.Question
	to       []string
	errs     []error
}

// askAll asks the people that are to complete waiting steps, and returns the events that say which were told. A person
// that cannot be told holds up no other: the question stays in the job, and is tried again.
func (s *Scheduler) askAll(ctx context.Context, w *work) (became []job.Event) {
	all := s.askings(ctx, w)
	s.askEach(ctx, all)
	for _, a := range all {
		c, err := a.due, errors.Join(a.errs...)
		if errors.Is(err, notify.ErrElsewhere) {
			continue
		}
		if err != nil {
			s.config.Logger.WarnContext(ctx, "the question is sent again later", "job", w.job, "step", c.Step, "error", err)
			became = append(became, job.NotAsked{Step: c.Step, Attempt: c.Attempt, N: c.N})
			continue
		}
		became = append(became, job.Asked{Step: c.Step, Attempt: c.Attempt, N: c.N})
	}
	w.asks = nil
	return became
}

// askings returns the questions to ask, but for steps that wait no more.
func (s *Scheduler) askings(ctx context.Context, w *work) (all []*asking) {
	for _, c := range w.asks {
		q, ok := machine.QuestionOf(w.moved.compiled.Workflow, w.moved.job, c)
		if !ok {
			continue
		}
		a := &asking{due: c, errs: make([]error, 1)}
		all = append(all, a)
		if s.config.Asker == nil {
			a.errs[0] = fmt.Errorf("no receiver of questions is registered here: %v", q.To)
			continue
		}
		text, err := s.questionOf(ctx, w.moved, q.Step, q.Undo)
		if err != nil {
			a.errs[0] = err
			continue
		}
		a.to, a.errs = q.To, make([]error, len(q.To))
		a.question = notify.Question{
			Job: q.Job, Workflow: q.Workflow, Step: q.Step, Undo: q.Undo, Round: q.Round, N: q.N,
			Since: q.Since, Deadline: q.Deadline, Choices: q.Choices, Text: text, Completion: q.Completion,
		}
		if s.config.Link != nil {
			a.question.Link = s.config.Link(q.Completion)
		}
	}
	return all
}

// askEach asks all people side by side, and each person one question after the other, so that a slow one does not delay
// the others. Where one of a question's people could not be told, all its people are told again.
func (s *Scheduler) askEach(ctx context.Context, all []*asking) {
	calls := make(map[string][]func())
	for _, a := range all {
		for i, name := range a.to {
			ask := func() error { return s.config.Asker.Ask(ctx, name, a.question) }
			calls[name] = append(calls[name], func() {
				if err := s.receivers.Call(ctx, toAsked+name, grace, ask); err != nil {
					a.errs[i] = fmt.Errorf("%s: %w", name, err)
					return
				}
				spend.On(ctx).Add(oneRequest())
			})
		}
	}
	var wg sync.WaitGroup
	for _, theirs := range calls {
		wg.Go(func() {
			for _, call := range theirs {
				call()
			}
		})
	}
	wg.Wait()
}

// questionOf is the text of an approval's question; of another step there is none.
func (s *Scheduler) questionOf(ctx context.Context, m *moved, step string, undo bool) (string, error) {
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

// waitFact is the fact about a step that waits by itself; with is the value of its expressions.
func waitFact(agent string, with json.RawMessage) machine.Fact {
	wait, err := workflowfile.WaitOf(agent, with)
	if err != nil {
		return machine.Fact{Err: err.Error()}
	}
	return machine.Fact{Run: true, Until: wait.Until, For: wait.For}
}
