package scheduler

import (
	"context"
	"errors"
	"fmt"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/spend"
	"github.com/makegood-dev/makegood/internal/store"
)

// Request does what an operator or submitter asks of a job, where the table of verbs allows it. It
// answers after the change is saved. A request that carries the name of one that was granted before
// is the same request.
func (s *Scheduler) Request(ctx context.Context, id string, r job.Requested) (job.Job, machine.Verdict, error) {
	if r.Input != nil {
		if err := s.keepLarge(ctx, id, "input", r.Input.Inline); err != nil {
			return job.Job{}, machine.Verdict{}, err
		}
	}
	return s.moveAtOnce(ctx, id, r)
}

// Complete takes an answer from outside to a step that waits, or will. It answers after it is saved.
func (s *Scheduler) Complete(ctx context.Context, id string, e job.StepCompleted) (job.Job, machine.Verdict, error) {
	if err := s.keepLarge(ctx, id, "output", e.Output.Inline); err != nil {
		return job.Job{}, machine.Verdict{}, err
	}
	return s.moveAtOnce(ctx, id, e)
}

// Extend has a step wait longer. It answers after that is saved.
func (s *Scheduler) Extend(ctx context.Context, id string, e job.WaitExtended) (job.Job, machine.Verdict, error) {
	return s.moveAtOnce(ctx, id, e)
}

// Settle takes what a person says: that they have dealt with a step, or its undo. It answers after that is saved.
func (s *Scheduler) Settle(ctx context.Context, id string, e job.Settled) (job.Job, machine.Verdict, error) {
	if err := s.keepLarge(ctx, id, "output", e.Output.Inline); err != nil {
		return job.Job{}, machine.Verdict{}, err
	}
	return s.moveAtOnce(ctx, id, e)
}

// Asked is the question to the holder of a step's completion token.
type Asked struct {
	// Closed says why the step takes no answer; empty: it takes one.
	Closed string
	// Text is an approval's question, as long as it takes an answer; Choices are its answers, none: any output.
	Text    string
	Choices []string
	// WhyFor are those of the choices that must say why.
	WhyFor []string
}

// Asks returns the question to the holder of a completion token, which must be genuine. It makes no change. A
// *NewerError where a newer release must say.
func (s *Scheduler) Asks(ctx context.Context, j job.Job, p job.Place) (Asked, error) {
	compiled, err := s.definition(ctx, j.Definition)
	if err != nil {
		return Asked{}, fmt.Errorf("definition %s of job %s: %w", j.Definition, j.ID, err)
	}
	asked := Asked{Closed: machine.ClosedTo(compiled.Workflow, j, p), Choices: machine.Choices(compiled.Workflow, p.Step, p.Undo), WhyFor: machine.WhyFor(compiled.Workflow, p.Step, p.Undo)}
	if asked.Closed != "" {
		return asked, nil
	}
	v := s.newValues(compiled)
	v.birth = j.Birth
	asked.Text, err = s.questionOf(ctx, &moved{compiled: compiled, values: v, job: j}, p.Step, p.Undo)
	return asked, err
}

// Wake looks at a job that has lost its key, or stands still, does the work that is due, and gives it a key that is
// right; it leaves any other job alone. It answers after that is saved.
func (s *Scheduler) Wake(ctx context.Context, id string) (job.Job, machine.Verdict, error) {
	return s.moveAtOnce(ctx, id, job.DeadlinePassed{})
}

// Stands marks the jobs of an audit's page that stand still, among those that no sweep will look at for long. It loads
// each such job; one that cannot be loaded, or is a newer release's, is left as it is.
func (s *Scheduler) Stands(ctx context.Context, page []store.Audited) {
	now := s.now()
	var far []*store.Audited
	for i := range page {
		if page[i].Job != "" && page[i].FarOff(now) {
			far = append(far, &page[i])
		}
	}
	s.crew.Each(len(far), maxClosings, func(i int) {
		j, err := s.config.Jobs.Load(ctx, far[i].Job)
		if err != nil {
			return
		}
		if compiled, err := s.definition(ctx, j.Definition); err == nil {
			far[i].Standing = store.Stray(machine.Standing(compiled.Workflow, j, now))
		}
	})
}

// Reply moves a job by the reply of an agent that waits for the answer. It answers after that is saved: that the reply
// made no change is in the verdict, and no error.
func (s *Scheduler) Reply(ctx context.Context, id string, reply job.Event) (machine.Verdict, error) {
	_, verdict, err := s.moveAtOnce(ctx, id, reply)
	return verdict, err
}

// TaskOut returns the task of the attempt that a reply speaks of, but for what takes reading payloads. ok is false if
// that attempt is not out, or the reply does not carry its token.
func (s *Scheduler) TaskOut(ctx context.Context, id string, r job.Reply) (task makegood.Task, ok bool, err error) {
	j, err := s.config.Jobs.Load(ctx, id)
	if errors.Is(err, store.ErrNewer) || err == nil && machine.OfLaterScheme(r) {
		return makegood.Task{}, false, errNewerJob
	}
	if err != nil {
		return makegood.Task{}, false, fmt.Errorf("load job %s: %w", id, err)
	}
	compiled, err := s.definition(ctx, j.Definition)
	if err != nil {
		return makegood.Task{}, false, fmt.Errorf("definition %s of job %s: %w", j.Definition, id, err)
	}
	task, ok = machine.TaskOut(compiled.Workflow, j, r)
	return task, ok, nil
}

// moveAtOnce moves a job by one event for a caller that waits for the answer.
func (s *Scheduler) moveAtOnce(ctx context.Context, id string, event job.Event) (job.Job, machine.Verdict, error) {
	ctx = s.counting(ctx)
	m, err := s.move(ctx, id, []job.Event{event}, new(knowledge))
	if park := new(parkError); errors.As(err, &park) {
		return job.Job{}, machine.Verdict{}, errors.Join(park, s.park(ctx, id, park))
	}
	if err != nil {
		return job.Job{}, machine.Verdict{}, err
	}
	w := &work{job: id, account: spend.On(ctx)}
	w.becomes(m)
	s.workOffSaved(ctx, w)
	// If it was closed meanwhile what the request gave up, that is in the answer.
	return w.moved.job, w.verdicts[0], nil
}
