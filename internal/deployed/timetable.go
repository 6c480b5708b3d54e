package deployed

import (
	"context"
	"errors"
	"time"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/timetable"
	"github.com/makegood-dev/makegood/internal/wire"
)

// timetable makes the service that keeps and fires the schedules of a stack. current returns an error if there is no
// workflow of a name.
func (s *stack) timetable(submit submitter, current func(ctx context.Context, workflow string) error) *timetable.Timetable {
	return timetable.New(timetable.Config{
		Schedules: s.store, Jobs: s.store, Submit: submit, Stored: s.hint, Logger: s.log,
		Knows: func(ctx context.Context, workflow string) error { return orUnknown(workflow, current(ctx, workflow)) },
	})
}

// submitter submits to the workflow that is current for a name.
type submitter = func(ctx context.Context, workflow string, sub scheduler.Submission) (job.Job, bool, error)

// hint sends the Scheduler a delayed message for a schedule that is due before a sweep looks that far.
func (s *stack) hint(ctx context.Context, name string, key time.Time) {
	ahead := max(0, time.Until(key))
	if ahead > limits.RemindWithin {
		return
	}
	body, err := wire.EncodeScheduleDue(wire.ScheduleDue{Schedule: name, Key: key})
	if err == nil {
		// Rounded up to the seconds of SQS: a message that comes early is stale.
		delay := (ahead + time.Second - 1).Truncate(time.Second)
		err = errors.Join(s.sender.Send(ctx, EventsQueue, queue.Message{Body: body, Group: name, Delay: delay})...)
	}
	if err != nil {
		// It spares a wait, and no more: the Supervisor comes anyway.
		s.log.WarnContext(ctx, "a schedule waits for the Supervisor", "schedule", name, "error", err)
	}
}
