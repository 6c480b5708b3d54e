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
	"github.com/makegood-dev/makegood/internal/secret"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// SentInputs evaluates the inputs that the attempts of a job were sent: of step alone, whole, or, where that is empty,
// of all steps, without the large ones. changed are the times at which the job got another definition or another input.
// It makes no write and keeps no values. store.ErrNotFound and store.ErrDamaged; a *NewerError of a job that a newer
// release must say it of.
func (s *Scheduler) SentInputs(ctx context.Context, id, step string, changed []time.Time) (makegood.SentInputs, error) {
	j, err := s.config.Jobs.Load(ctx, id)
	if errors.Is(err, store.ErrNewer) {
		return makegood.SentInputs{}, errNewerJob
	}
	if err != nil {
		return makegood.SentInputs{}, fmt.Errorf("load job %s: %w", id, err)
	}
	compiled, err := s.definition(ctx, j.Definition)
	if err != nil {
		return makegood.SentInputs{}, fmt.Errorf("definition %s of job %s: %w", j.Definition, id, err)
	}
	v := s.newValues(compiled)
	v.birth = j.Birth
	all := makegood.SentInputs{Job: id, Inputs: []makegood.SentInput{}}
	for _, w := range askedOf(compiled.Workflow, j, step) {
		if len(all.Inputs) == limits.MaxSentInputs {
			all.More = true
			return all, nil
		}
		in, err := v.sent(ctx, j, w, changed)
		if err != nil {
			return all, err
		}
		if step == "" && in.Bytes > limits.MaxSentInputBytes {
			in.Value = nil
		}
		all.Inputs = append(all.Inputs, in)
	}
	return all, nil
}

// askedOf are the sides of a job that an agent was asked for, of one step or, where that is empty, of all. Sides that
// the job has and its definition has not any more are left out.
func askedOf(w makegood.Workflow, j job.Job, step string) (all []machine.Want) {
	for _, s := range j.Steps {
		defined := slices.ContainsFunc(w.Steps, func(d makegood.Step) bool { return d.Name == s.Name })
		if step != "" && step != s.Name || !defined {
			continue
		}
		if s.Forward.Attempt > 0 {
			all = append(all, machine.Want{Step: s.Name})
		}
		if s.Undo.Attempt > 0 && !isChild(w, s.Name, true) { // The undo of a child is sent no input.
			all = append(all, machine.Want{Step: s.Name, Undo: true})
		}
	}
	return all
}

// sent evaluates the input of a side, and says whether its latest attempt got the same.
func (v *values) sent(ctx context.Context, j job.Job, w machine.Want, changed []time.Time) (makegood.SentInput, error) {
	s, _ := j.Step(w.Step)
	a := s.Forward
	if w.Undo {
		a = s.Undo
	} else if s.Forward.Former > 0 {
		j.Input = j.Former[s.Forward.Former-1] // What its attempts saw; the job has got another since.
		changed = nil
	}
	in := makegood.SentInput{Step: w.Step, Undo: w.Undo, Attempt: a.Attempt, Secrets: []string{}}
	opened := openedAt(a)
	if !opened.IsZero() {
		in.OpenedAt = &opened
	}
	in.Changed = v.changedSince(j, w, opened, changed)
	if a.Queued {
		in.Changed = "the attempt stands before the gate of its agent: nothing was sent"
	}
	in.AsSent = in.Changed == ""
	var input workflowfile.TaskInput
	err := v.evaluation(ctx, j, w, func(data workflowfile.Data) (err error) {
		input, err = v.compiled.Input(ctx, w.Step, w.Undo, data)
		return err
	})
	if parked := new(parkError); errors.As(err, &parked) {
		in.Problem, in.AsSent = parked.reason, false
		return in, nil
	}
	if err != nil {
		fact, err := fault(err)
		in.Problem, in.AsSent = fact.Err, false
		return in, err
	}
	for _, hidden := range input.Secrets {
		in.Secrets = append(in.Secrets, hidden.Name)
	}
	slices.Sort(in.Secrets)
	in.Secrets, in.Bytes = slices.Compact(in.Secrets), len(input.Value)
	in.Value, err = secret.Marked(input.Value, input.Secrets)
	if err != nil {
		return in, fmt.Errorf("input of step %s of job %s: %w", w.Step, j.ID, err)
	}
	return in, nil
}

// openedAt is when the latest attempt of a side was made, as far as the job still knows; zero: it does not.
func openedAt(a job.Activity) time.Time {
	switch {
	case !a.OpenedAt.IsZero():
		return a.OpenedAt.UTC()
	case a.State == job.Backoff || !a.FinishedAt.IsZero() && a.At.After(a.FinishedAt):
		return a.LastStartedAt.UTC() // At is of the attempt that is to follow, or was to.
	}
	return a.At.UTC()
}

// changedSince names a value read by an input that has changed since a moment; empty: none is known.
func (v *values) changedSince(j job.Job, w machine.Want, opened time.Time, changed []time.Time) string {
	if opened.IsZero() {
		return "when its latest attempt was made is not known any more"
	}
	for _, at := range changed {
		if !at.Before(opened) {
			return "the job has got another definition or another input since"
		}
	}
	for _, name := range v.compiled.Reads(w.Step, w.Undo) {
		read, _ := j.Step(name)
		// An undo reads its own step, and a step those before it: all had ended before it was asked.
		if read.Forward.FinishedAt.After(opened) {
			return "step " + name + ", which it reads, has ended since"
		}
	}
	return ""
}
