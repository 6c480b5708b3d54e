package scheduler

import (
	"context"
	"errors"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/machine"
)

// Request does what an operator or submitter asks of a job, where the table of verbs allows it. It
// answers after the change is saved. A request that carries the name of one that was granted before
// is the same request.
func (s *Scheduler) Request(ctx context.Context, id string, r makegood.Requested) (makegood.Job, machine.Verdict, error) {
	l := &letter{job: id, events: []makegood.Event{r}}
	var park *parkError
	l.moved, l.err = s.move(ctx, id, l.events)
	if errors.As(l.err, &park) {
		return makegood.Job{}, machine.Verdict{}, errors.Join(park, s.park(ctx, id, park))
	}
	if l.err != nil {
		return makegood.Job{}, machine.Verdict{}, l.err
	}
	job, verdict := l.moved.job, l.moved.verdicts[0]
	s.carryOutSaved(ctx, l)
	return job, verdict, nil
}
