package control

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/view"
	"github.com/makegood-dev/makegood/internal/wire"
)

// Completion implements api.Jobs.
func (s *Service) Completion(token string) api.Completion { return tokenHolder{s, token} }

// tokenHolder makes requests under a completion token.
type tokenHolder struct {
	service *Service
	token   string
}

// Complete implements api.Completion.
func (h tokenHolder) Complete(ctx context.Context, output json.RawMessage) (api.Standing, error) {
	return h.service.AnswerByToken(ctx, h.token, Answer{Output: output})
}

// Fail implements api.Completion.
func (h tokenHolder) Fail(ctx context.Context, why makegood.StepError) (api.Standing, error) {
	return h.service.AnswerByToken(ctx, h.token, Answer{Error: &why})
}

// Heartbeat implements api.Completion.
func (h tokenHolder) Heartbeat(ctx context.Context, until time.Time) (api.Standing, error) {
	standing, err := h.service.extendByToken(ctx, h.token, until)
	return standing, byToken("heartbeat", err)
}

// AnswerByToken ends the step of a completion token.
func (s *Service) AnswerByToken(ctx context.Context, token string, a Answer) (api.Standing, error) {
	standing, err := s.answerByToken(ctx, token, a)
	return standing, byToken(a.verb(), err)
}

func (s *Service) answerByToken(ctx context.Context, token string, a Answer) (api.Standing, error) {
	j, p, err := s.holder(ctx, token)
	if err != nil {
		return api.Standing{}, err
	}
	by := wire.ByToken
	if a.By != "" {
		by = a.By + " (" + wire.ByToken + ")" // The name is not authenticated.
	}
	e, err := a.event(p, by)
	if err != nil {
		return api.Standing{}, err
	}
	after, verdict, err := s.parts.Scheduler.Complete(ctx, j.ID, e)
	if err != nil {
		return api.Standing{}, err
	}
	s.log(ctx, saying{log: "completion", job: j.ID, place: p, by: by}, verdict)
	return standing(after, p, verdict)
}

func (s *Service) extendByToken(ctx context.Context, token string, until time.Time) (api.Standing, error) {
	j, p, err := s.holder(ctx, token)
	if err != nil {
		return api.Standing{}, err
	}
	if until, err = deadline(until); err != nil {
		return api.Standing{}, err
	}
	after, verdict, err := s.parts.Scheduler.Extend(ctx, j.ID, job.WaitExtended{Place: p, Until: until})
	if err != nil {
		return api.Standing{}, err
	}
	s.log(ctx, saying{log: "completion", job: j.ID, place: p, by: wire.ByToken}, verdict)
	return standing(after, p, verdict)
}

// byToken words the error of a request under a completion token.
func byToken(what string, err error) error {
	return store.About(inWords(err), "%s", what)
}

// holder returns the job and the place of a completion token. A token that no job has made, and a token of a job that
// is not stored, have one error, api.ErrCompletionToken: a guess reveals no job.
func (s *Service) holder(ctx context.Context, token string) (job.Job, job.Place, error) {
	id, p, err := job.ReadCompletionToken(token)
	switch {
	case errors.Is(err, job.ErrLaterCompletionToken):
		return job.Job{}, p, &scheduler.NewerError{What: "this completion token"}
	case err != nil:
		return job.Job{}, p, invalid("completion: %v", err)
	}
	j, err := s.parts.Store.Load(ctx, id)
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

// StepLook is the view of a step for the holder of its completion token.
type StepLook struct {
	// Job is the job's id, Step the step's name; Undo: it is the step's undo.
	Job, Step string
	Undo      bool
	makegood.Activity
	// Answer is the answer to an approval; empty: none yet, or the step is no approval.
	Answer string
	scheduler.Asked
}

// LookByToken returns the step of a completion token for its holder. It changes no state.
func (s *Service) LookByToken(ctx context.Context, token string) (StepLook, error) {
	j, p, err := s.holder(ctx, token)
	if err != nil {
		return StepLook{}, byToken("look", err)
	}
	asked, err := s.parts.Scheduler.Asks(ctx, j, p)
	if err != nil {
		return StepLook{}, byToken("look", err)
	}
	look := StepLook{Job: j.ID, Step: p.Step, Undo: p.Undo, Asked: asked}
	if p.Round != j.Round {
		return look, nil // The state to show is of another round.
	}
	look.Activity = ActivityOf(j, p)
	if asked.Choices != nil {
		look.Answer = answerOf(j, p)
	}
	return look, nil
}

// answerOf returns the answer in the output of an approval.
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
		return "" // It has none, or a workflow gave it another output at its deadline.
	}
	return says.Answer
}

// standing returns all that the holder of a token learns about a job.
func standing(j job.Job, p job.Place, v machine.Verdict) (api.Standing, error) {
	if v.Kind == machine.Refused {
		return api.Standing{}, &api.RefusedError{Reason: v.Reason}
	}
	a := ActivityOf(j, p)
	return api.Standing{State: a.State, CompleteBy: a.CompleteBy, Existed: v.Kind == machine.Duplicate}, nil
}

// ActivityOf returns the state of the step at a place, without payloads.
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
