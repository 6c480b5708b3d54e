package scheduler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/payload"
)

// keepLarge makes sure that the large payloads which a value of a job refers to are there, and stay, before anything is saved
// that refers to them. what names the value. ErrInvalid, if one is not there, or is no reference.
func (s *Scheduler) keepLarge(ctx context.Context, id, what string, value json.RawMessage) error {
	wrong, err := s.lacksLarge(ctx, id, what, value)
	switch {
	case err != nil:
		return fmt.Errorf("keep the payloads of job %s: %w", id, err)
	case wrong != "":
		return fmt.Errorf("%w: job %s: %s", ErrInvalid, id, wrong)
	}
	return nil
}

// keepReplied does so with what a reply brings. One that refers to what is not there is a failure that no other attempt would
// mend by itself: whoever wrote it said that it had written something, and had not.
func (s *Scheduler) keepReplied(ctx context.Context, j job.Job, e job.Event) (job.Event, error) {
	switch said := e.(type) {
	case job.StepSucceeded:
		wrong, err := s.lacksLarge(ctx, j.ID, "the output", said.Output.Inline)
		if wrong != "" {
			e = job.StepFailed{Reply: said.Reply, Error: lacking(wrong)}
		}
		return e, err
	case job.StepCompleted:
		// One that was asked for at a door was refused there.
		wrong, err := s.lacksLarge(ctx, j.ID, "the output", said.Output.Inline)
		if wrong != "" {
			failure := lacking(wrong)
			said.Output, said.Error = job.Payload{}, &failure
		}
		return said, err
	}
	return e, nil
}

func lacking(wrong string) job.StepError {
	return job.StepError{Message: makegood.Clip(wrong), Applied: makegood.AppliedUnknown}
}

// lacksLarge says which of the payloads that a value refers to is not as it says; empty: all are, and stay.
func (s *Scheduler) lacksLarge(ctx context.Context, id, what string, value json.RawMessage) (wrong string, err error) {
	if s.config.Large == nil {
		return "", nil
	}
	refs, err := makegood.FindPayloads(value)
	if err != nil {
		return fmt.Sprintf("%s: %v", what, err), nil
	}
	for _, p := range refs {
		err := s.config.Large.Keep(ctx, id, p)
		if errors.Is(err, payload.ErrNotFound) || errors.Is(err, payload.ErrAltered) {
			return fmt.Sprintf("%s refers to a payload (%v, written by %s) that is not there for this job: write it first, for the same job", what, p, writer(p)), nil
		}
		if err != nil {
			return "", err
		}
	}
	return "", nil
}

// writer is who wrote a payload, for people.
func writer(p makegood.Payload) string {
	if p.By == "" {
		return "whoever submits it"
	}
	return "agent " + p.By
}
