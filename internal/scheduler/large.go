package scheduler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/payload"
)

// keepLarge makes sure that the large payloads which a value of a job refers to are there, and stay, before a save that
// refers to them. what names the value. ErrInvalid, if one is not there, or is no reference.
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

// keepReplied does so with the value of a reply. A reference to a missing payload is a failure that no other attempt
// would mend by itself: the writer reported a write that it had not made.
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
	return job.StepError{Message: limits.Clip(wrong), Applied: makegood.AppliedUnknown}
}

// lacksLarge says which of the payloads that a value refers to is not as it says; empty: all are, and stay.
func (s *Scheduler) lacksLarge(ctx context.Context, id, what string, value json.RawMessage) (wrong string, err error) {
	if s.config.Large == nil {
		return "", nil
	}
	refs, err := domain.FindPayloads(value)
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

// writer names the writer of a payload, for people.
func writer(p makegood.Payload) string {
	if p.By == "" {
		return "the submitter"
	}
	return "agent " + p.By
}

const (
	// renewed bounds how many jobs with renewed payloads a Scheduler remembers.
	renewed = 1000
	// renewWithin is how long a look at a job may take for that. Payloads kept by then are young, and the next goes on.
	renewWithin = 5 * time.Second
)

// renewals are the jobs with payloads that this process has kept anew, and when. A forgotten job is only kept again.
type renewals struct {
	mu sync.Mutex
	at map[string]time.Time
}

// due reports whether a job's payloads are to be kept, and notes that they are.
func (r *renewals) due(id string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if last, is := r.at[id]; is && now.Sub(last) < limits.FarKey {
		return false
	}
	if r.at == nil || len(r.at) >= renewed {
		r.at = map[string]time.Time{}
	}
	r.at[id] = now
	return true
}

// forget has the next look keep them again.
func (r *renewals) forget(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.at, id)
}

// renew keeps all payloads that a job refers to when the job has an event; jobs without events are reached by the
// Supervisor's sweeps and its audit. A job younger than LargeAge has no old payloads. The job does not wait for it: a
// payload that failed is tried again with the next event.
func (s *Scheduler) renew(ctx context.Context, j job.Job, v *values) {
	now := s.now()
	if s.config.Large == nil || s.config.LargeAge == 0 || now.Sub(j.CreatedAt) < s.config.LargeAge {
		return
	}
	if !s.renewals.due(j.ID, now) {
		return
	}
	within, cancel := context.WithTimeout(ctx, renewWithin)
	defer cancel()
	if err := s.keepAll(within, j, v); err != nil {
		s.renewals.forget(j.ID)
		s.config.Logger.WarnContext(ctx, "payloads of a job were not kept anew; the next event tries again", "job", j.ID, "error", err)
	}
}

// keepAll keeps all that the values of a job refer to.
func (s *Scheduler) keepAll(ctx context.Context, j job.Job, v *values) error {
	var wrong []error
	for _, p := range j.Values() {
		value, err := v.get(ctx, j.ID, p)
		if err != nil {
			return err
		}
		refs, err := domain.FindPayloads(value)
		if err != nil {
			continue // It was stored before references were looked for.
		}
		for _, ref := range refs {
			wrong = append(wrong, s.config.Large.Keep(ctx, j.ID, ref))
		}
	}
	return errors.Join(wrong...)
}
