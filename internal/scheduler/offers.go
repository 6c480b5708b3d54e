package scheduler

import (
	"context"
	"errors"
	"fmt"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/store"
)

// Offers returns the requests that a job allows as it stands, without a change. store.ErrNotFound and store.ErrDamaged;
// a *NewerError of a job that a newer release must say it of.
func (s *Scheduler) Offers(ctx context.Context, id string) (makegood.Offers, error) {
	j, err := s.config.Jobs.Load(ctx, id)
	if errors.Is(err, store.ErrNewer) {
		return makegood.Offers{}, errNewerJob
	}
	if err != nil {
		return makegood.Offers{}, fmt.Errorf("load job %s: %w", id, err)
	}
	compiled, err := s.definition(ctx, j.Definition)
	if err != nil {
		return makegood.Offers{}, fmt.Errorf("definition %s of job %s: %w", j.Definition, id, err)
	}
	now := s.now()
	claims, err := Held(ctx, s.config.Closings, compiled.Workflow, j, now)
	if err != nil {
		return makegood.Offers{}, err
	}
	paused, err := s.held(ctx, j, nil)
	if err != nil {
		return makegood.Offers{}, err
	}
	offers, err := offersOf(j, func() makegood.Offers {
		return machine.Offers(compiled.Workflow, j, claims, s.facts(new(knowledge), paused, &j), now)
	})
	if err != nil {
		return offers, err
	}
	v := s.newValues(compiled)
	v.birth = j.Birth
	return s.withQuestions(ctx, &moved{compiled: compiled, values: v, job: j}, offers)
}

// offersOf turns a panic of the core over a job that cannot be decided about into an error.
func offersOf(j job.Job, ask func() makegood.Offers) (offers makegood.Offers, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("job %s cannot be decided about: %v", j.ID, r)
		}
	}()
	return ask(), nil
}

// withQuestions adds the questions of the waiting approvals. A question with expressions that give no value is left
// out: its step can be answered all the same.
func (s *Scheduler) withQuestions(ctx context.Context, m *moved, offers makegood.Offers) (makegood.Offers, error) {
	for i := range offers.Steps {
		o := &offers.Steps[i]
		if answer, ok := domain.StepOffer(*o, domain.AskComplete); !ok || !answer.Granted() || len(o.Choices) == 0 {
			continue
		}
		text, err := s.questionOf(ctx, m, o.Step, o.Undo)
		if ctx.Err() != nil {
			return offers, context.Cause(ctx)
		}
		if err != nil {
			s.config.Logger.WarnContext(ctx, "the question of a step cannot be read", "job", m.job.ID, "step", o.Step, "error", err)
			continue
		}
		o.Question = text
	}
	return offers, nil
}
