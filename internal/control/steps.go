package control

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/view"
)

// Complete implements api.Jobs.
func (s *Service) Complete(ctx context.Context, id string, at api.StepRef, output json.RawMessage) (makegood.Job, error) {
	return s.Answer(ctx, id, at, Answer{Output: output})
}

// Fail implements api.Jobs.
func (s *Service) Fail(ctx context.Context, id string, at api.StepRef, why makegood.StepError) (makegood.Job, error) {
	return s.Answer(ctx, id, at, Answer{Error: &why})
}

// Answer ends a step that waits, by its address, with the rules of Complete and Fail in api.Jobs; the same answer
// under the same Answer.Request is the same answer.
func (s *Service) Answer(ctx context.Context, id string, at api.StepRef, a Answer) (makegood.Job, error) {
	x := saying{what: a.verb(), log: "completion", job: id, by: s.by(ctx)}
	var err error
	if x.place, err = place(id, at); err != nil {
		return makegood.Job{}, x.failed(at.Step, err)
	}
	a.Why = at.Why
	e, err := a.event(x.place, x.by)
	if err != nil {
		return makegood.Job{}, x.failed(at.Step, err)
	}
	e.Early = at.Early
	j, verdict, err := s.parts.Scheduler.Complete(ctx, id, e)
	return s.said(ctx, x, j, verdict, err)
}

// Heartbeat implements api.Jobs.
func (s *Service) Heartbeat(ctx context.Context, id string, at api.StepRef, until time.Time) (makegood.Job, error) {
	x := saying{what: "heartbeat", log: "completion", job: id, by: s.by(ctx)}
	var err error
	if x.place, err = place(id, at); err != nil {
		return makegood.Job{}, x.failed(at.Step, err)
	}
	if until, err = deadline(until); err != nil {
		return makegood.Job{}, x.failed(at.Step, err)
	}
	j, verdict, err := s.parts.Scheduler.Extend(ctx, id, job.WaitExtended{Place: x.place, Until: until})
	return s.said(ctx, x, j, verdict, err)
}

// Settle implements api.Jobs.
func (s *Service) Settle(ctx context.Context, id string, at api.StepRef, o api.SettleOptions) (makegood.Job, error) {
	x := saying{what: "settle", log: "settlement", job: id, by: s.by(ctx)}
	var err error
	if x.place, err = place(id, at); err != nil {
		return makegood.Job{}, x.failed(at.Step, err)
	}
	e, err := settled(x.place, o)
	if err != nil {
		return makegood.Job{}, x.failed(at.Step, err)
	}
	e.By = x.by
	j, verdict, err := s.parts.Scheduler.Settle(ctx, id, e)
	v, err := s.said(ctx, x, j, verdict, err)
	v.Existed = err == nil && verdict.Kind == machine.Duplicate
	return v, err
}

// saying describes a request about a step: the words for its error and for the log.
type saying struct {
	what, log, job string
	place          job.Place
	by             string
}

func (x saying) failed(step string, err error) error {
	return fmt.Errorf("%s step %s of job %s: %w", x.what, step, x.job, err)
}

// said returns the job after a request about a step, by its address.
func (s *Service) said(ctx context.Context, x saying, j job.Job, v machine.Verdict, err error) (makegood.Job, error) {
	if err != nil {
		return makegood.Job{}, x.failed(x.place.Step, s.failed(ctx, x.job, err))
	}
	s.log(ctx, x, v)
	if v.Kind == machine.Refused {
		return makegood.Job{}, x.failed(x.place.Step, &api.RefusedError{Job: x.job, Reason: v.Reason})
	}
	return view.Of(j, nil), nil
}

// place checks the address of a step.
func place(id string, at api.StepRef) (job.Place, error) {
	if domain.CheckJobID(id) != nil {
		return job.Place{}, api.ErrNotFound // No job can have it.
	}
	if err := limits.StepName.Check(at.Step); err != nil {
		return job.Place{}, invalid("step: %v", err)
	}
	if at.Round < 0 {
		return job.Place{}, invalid("round is %d: want 1 or more, or 0 for whichever the job is in", at.Round)
	}
	return job.Place{Step: at.Step, Undo: at.Undo, Round: at.Round}, nil
}

func (s *Service) log(ctx context.Context, x saying, v machine.Verdict) {
	s.parts.Logger.InfoContext(ctx, x.log, "job", x.job, "step", x.place.Step, "undo", x.place.Undo, "verdict", v.Kind, "reason", v.Reason, "by", x.by)
}
