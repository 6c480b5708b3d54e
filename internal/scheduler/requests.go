package scheduler

import (
	"context"
	"errors"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
)

// Request does what an operator or submitter asks of a job, where the table of verbs allows it. It
// answers after the change is saved. A request that carries the name of one that was granted before
// is the same request.
func (s *Scheduler) Request(ctx context.Context, id string, r job.Requested) (job.Job, machine.Verdict, error) {
	return s.moveAtOnce(ctx, id, r)
}

// Wake looks at a job that has lost its key, does what is due, and gives it one again; one that has its key, or needs
// none, it leaves alone. It answers after that is saved.
func (s *Scheduler) Wake(ctx context.Context, id string) (job.Job, machine.Verdict, error) {
	return s.moveAtOnce(ctx, id, job.DeadlinePassed{})
}

// moveAtOnce moves a job by one event for somebody who waits for the answer.
func (s *Scheduler) moveAtOnce(ctx context.Context, id string, event job.Event) (job.Job, machine.Verdict, error) {
	m, err := s.move(ctx, id, []job.Event{event})
	if park := new(parkError); errors.As(err, &park) {
		return job.Job{}, machine.Verdict{}, errors.Join(park, s.park(ctx, id, park))
	}
	if err != nil {
		return job.Job{}, machine.Verdict{}, err
	}
	w := &work{job: id}
	w.becomes(m)
	s.workOffSaved(ctx, w)
	// If it was closed meanwhile what the request gave up, that is in the answer.
	return w.moved.job, w.verdicts[0], nil
}
