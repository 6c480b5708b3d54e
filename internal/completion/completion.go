// Package completion takes what somebody outside says of a step, for all who serve jobs: that one that waits is done, or
// that a person has dealt with any of them. It checks what was said, has it saved, and answers in the words of package client. It decides nothing about jobs, keeps nothing, and knows
// no way in which it was asked.
package completion

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/view"
	"github.com/makegood-dev/makegood/internal/wire"
)

// Backend decides and saves: an engine in this process, or a deployed one. Its errors are those of scheduler and store.
type Backend interface {
	// Complete takes an answer, and Extend has a step wait longer; both answer after that is saved.
	Complete(ctx context.Context, id string, e job.StepCompleted) (job.Job, machine.Verdict, error)
	Extend(ctx context.Context, id string, e job.WaitExtended) (job.Job, machine.Verdict, error)
	// Settle takes that a person has dealt with a step, and answers after that is saved.
	Settle(ctx context.Context, id string, e job.Settled) (job.Job, machine.Verdict, error)
	// Job reads a job, also one that comes with store.ErrNewer.
	Job(ctx context.Context, id string) (job.Job, error)
	// Asks says what is asked of whoever holds a genuine completion token.
	Asks(ctx context.Context, j job.Job, p job.Place) (scheduler.Asked, error)
}

// Desk takes completions. Beside the errors of its Backend it returns *api.InvalidError, *api.RefusedError and, for
// a token, api.ErrCompletionToken: after them nothing has changed.
type Desk struct {
	Backend Backend
	// Logger hears of every decision: of whom, and never a token or what was answered. Nil: nobody does.
	Logger *slog.Logger
}

// Address is how somebody whom the door knows names a step.
type Address struct {
	Job string
	api.StepRef
	// By is who asks.
	By string
}

// Complete ends a step that is named by its address.
func (d Desk) Complete(ctx context.Context, at Address, a Answer) (makegood.Job, error) {
	p, err := at.check()
	if err != nil {
		return makegood.Job{}, err
	}
	a.Why = at.Why
	e, err := a.event(p, at.By)
	if err != nil {
		return makegood.Job{}, err
	}
	e.Early = at.Early
	j, verdict, err := d.Backend.Complete(ctx, at.Job, e)
	if err != nil {
		return makegood.Job{}, err
	}
	d.log(ctx, "completion", at.Job, verdict, e.Place, at.By)
	if verdict.Kind == machine.Refused {
		return makegood.Job{}, &api.RefusedError{Job: at.Job, Reason: verdict.Reason}
	}
	return view.Of(j, nil), nil
}

// Extend has a step wait longer that is named by its address.
func (d Desk) Extend(ctx context.Context, at Address, until time.Time) (makegood.Job, error) {
	p, err := at.check()
	if err != nil {
		return makegood.Job{}, err
	}
	if until, err = deadline(until); err != nil {
		return makegood.Job{}, err
	}
	j, verdict, err := d.Backend.Extend(ctx, at.Job, job.WaitExtended{Place: p, Until: until})
	if err != nil {
		return makegood.Job{}, err
	}
	d.log(ctx, "completion", at.Job, verdict, p, at.By)
	if verdict.Kind == machine.Refused {
		return makegood.Job{}, &api.RefusedError{Job: at.Job, Reason: verdict.Reason}
	}
	return view.Of(j, nil), nil
}

// Settle takes that a person has dealt with a step, or its undo.
func (d Desk) Settle(ctx context.Context, at Address, s api.SettleOptions) (makegood.Job, error) {
	p, err := at.check()
	if err != nil {
		return makegood.Job{}, err
	}
	e, err := settled(p, s)
	if err != nil {
		return makegood.Job{}, err
	}
	e.By = at.By
	j, verdict, err := d.Backend.Settle(ctx, at.Job, e)
	if err != nil {
		return makegood.Job{}, err
	}
	d.log(ctx, "settlement", at.Job, verdict, p, at.By)
	if verdict.Kind == machine.Refused {
		return makegood.Job{}, &api.RefusedError{Job: at.Job, Reason: verdict.Reason}
	}
	v := view.Of(j, nil)
	v.Existed = verdict.Kind == machine.Duplicate
	return v, nil
}

// CompleteByToken ends the step of a completion token.
func (d Desk) CompleteByToken(ctx context.Context, token string, a Answer) (api.Standing, error) {
	j, p, err := d.Holder(ctx, token)
	if err != nil {
		return api.Standing{}, err
	}
	by := wire.ByToken
	if a.By != "" {
		by = a.By + " (" + wire.ByToken + ")" // So they say; nobody knows them.
	}
	e, err := a.event(p, by)
	if err != nil {
		return api.Standing{}, err
	}
	after, verdict, err := d.Backend.Complete(ctx, j.ID, e)
	if err != nil {
		return api.Standing{}, err
	}
	d.log(ctx, "completion", j.ID, verdict, p, by)
	return standing(after, p, verdict)
}

// ExtendByToken has the step of a completion token wait longer.
func (d Desk) ExtendByToken(ctx context.Context, token string, until time.Time) (api.Standing, error) {
	j, p, err := d.Holder(ctx, token)
	if err != nil {
		return api.Standing{}, err
	}
	if until, err = deadline(until); err != nil {
		return api.Standing{}, err
	}
	after, verdict, err := d.Backend.Extend(ctx, j.ID, job.WaitExtended{Place: p, Until: until})
	if err != nil {
		return api.Standing{}, err
	}
	d.log(ctx, "completion", j.ID, verdict, p, wire.ByToken)
	return standing(after, p, verdict)
}

// Holder returns the job and the place of a completion token. Of one that the job has not made nothing is said but what is
// said of a job that is not there: api.ErrCompletionToken. So nobody learns by it which jobs there are.
func (d Desk) Holder(ctx context.Context, token string) (job.Job, job.Place, error) {
	id, p, err := job.ReadCompletionToken(token)
	switch {
	case errors.Is(err, job.ErrLaterCompletionToken):
		return job.Job{}, p, &scheduler.NewerError{What: "this completion token"}
	case err != nil:
		return job.Job{}, p, &api.InvalidError{Message: fmt.Sprintf("completion: %v", err)}
	}
	j, err := d.Backend.Job(ctx, id)
	switch {
	case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrDamaged):
		return job.Job{}, p, api.ErrCompletionToken
	case err != nil && !errors.Is(err, store.ErrNewer):
		return job.Job{}, p, err
	case !machine.GenuineCompletion(j, p):
		return job.Job{}, p, api.ErrCompletionToken
	}
	return j, p, nil
}

// Look is what whoever holds a completion token sees of a step.
type Look struct {
	// Job is the job's id, Step the step's name; Undo: it is the step's undo.
	Job, Step string
	Undo      bool
	makegood.Activity
	// Answer is what an approval was answered with; empty: nothing yet, or it is none.
	Answer string
	scheduler.Asked
}

// Look returns what whoever holds a completion token sees. It changes nothing.
func (d Desk) Look(ctx context.Context, token string) (Look, error) {
	j, p, err := d.Holder(ctx, token)
	if err != nil {
		return Look{}, err
	}
	asked, err := d.Backend.Asks(ctx, j, p)
	if err != nil {
		return Look{}, err
	}
	look := Look{Job: j.ID, Step: p.Step, Undo: p.Undo, Asked: asked}
	if p.Round != j.Round {
		return look, nil // What there is to see is of another round.
	}
	look.Activity = ActivityOf(j, p)
	if asked.Choices != nil {
		look.Answer = answerOf(j, p)
	}
	return look, nil
}

// answerOf is the answer in the output of an approval.
func answerOf(j job.Job, p job.Place) string {
	s, _ := j.Step(p.Step)
	output := s.Forward.Output
	if p.Undo {
		output = s.Undo.Output
	}
	var says struct {
		Answer string `json:"answer"`
	}
	if json.Unmarshal(output.Inline, &says) != nil {
		return "" // It has none, or a workflow gave it another output when nobody answered.
	}
	return says.Answer
}

func (at Address) check() (job.Place, error) {
	if makegood.CheckJobID(at.Job) != nil {
		return job.Place{}, store.ErrNotFound // No job can have it.
	}
	if err := limits.StepName.Check(at.Step); err != nil {
		return job.Place{}, &api.InvalidError{Message: fmt.Sprintf("step: %v", err)}
	}
	if at.Round < 0 {
		return job.Place{}, &api.InvalidError{Message: fmt.Sprintf("round is %d: want 1 or more, or 0 for whichever the job is in", at.Round)}
	}
	return job.Place{Step: at.Step, Undo: at.Undo, Round: at.Round}, nil
}

// standing is all that whoever holds a token is told of a job.
func standing(j job.Job, p job.Place, v machine.Verdict) (api.Standing, error) {
	if v.Kind == machine.Refused {
		return api.Standing{}, &api.RefusedError{Reason: v.Reason}
	}
	a := ActivityOf(j, p)
	return api.Standing{State: a.State, CompleteBy: a.CompleteBy, Existed: v.Kind == machine.Duplicate}, nil
}

// ActivityOf is how the step of a place stands, without payloads.
func ActivityOf(j job.Job, p job.Place) makegood.Activity {
	for _, s := range view.Of(j, nil).Steps {
		switch {
		case s.Name != p.Step:
		case !p.Undo:
			return s.Activity
		case s.Undo != nil:
			return *s.Undo
		}
	}
	return makegood.Activity{State: makegood.StepNotStarted}
}

func (d Desk) log(ctx context.Context, what, id string, v machine.Verdict, p job.Place, by string) {
	if d.Logger != nil {
		d.Logger.InfoContext(ctx, what, "job", id, "step", p.Step, "undo", p.Undo, "verdict", v.Kind, "reason", v.Reason, "by", by)
	}
}
