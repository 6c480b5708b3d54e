package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/aws/aws-lambda-go/events"
	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/sqsbatch"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/wire"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

var _ queue.Handler = (*Scheduler)(nil).HandleSQS

// letter is the events of one job in a batch, and the records that carried them.
type letter struct {
	job     string
	events  []makegood.Event
	records []string
	moved   moved
	err     error
}

// HandleSQS handles a batch of the events queue. The events of one job are folded into one load and
// one save; what all jobs of the batch must send goes out together. The answer names the records that
// must be delivered again.
func (s *Scheduler) HandleSQS(ctx context.Context, batch events.SQSEvent) (events.SQSEventResponse, error) {
	letters, submissions, failed := s.open(ctx, batch)
	born, refused := s.submitAll(ctx, submissions)
	failed = append(failed, refused...)
	var wg sync.WaitGroup
	for _, l := range letters {
		wg.Go(func() { l.moved, l.err = s.moveOrPark(ctx, l.job, l.events) })
	}
	wg.Wait()
	letters = append(born, letters...)
	s.carryOut(ctx, letters)
	for _, l := range letters {
		if l.err != nil {
			s.Logger.WarnContext(ctx, "events go back to the queue", "job", l.job, "records", len(l.records), "error", l.err)
			failed = append(failed, l.records...)
		}
	}
	return sqsbatch.Response(failed), nil
}

// open reads the records of a batch, in their order: events, grouped by job, and submissions. Poison is put
// into quarantine; failed are the records for which that did not work.
func (s *Scheduler) open(ctx context.Context, batch events.SQSEvent) (letters []*letter, submissions []submission, failed []string) {
	for _, record := range batch.Records {
		in, err := wire.DecodeIncoming(record.Body)
		switch {
		case err != nil:
			if s.putAway(ctx, record, in.Job, err) {
				failed = append(failed, record.MessageId)
			}
		case in.Submit != nil:
			submissions = append(submissions, submission{record: record, message: *in.Submit})
		default:
			letters = sortIn(letters, in, record.MessageId)
		}
	}
	return letters, submissions, failed
}

// putAway deals with a record that failed: what is hopeless goes into quarantine. It reports whether the
// record must be delivered again.
func (s *Scheduler) putAway(ctx context.Context, record events.SQSMessage, job string, failed error) (again bool) {
	if !hopeless(failed) {
		s.Logger.WarnContext(ctx, "submission goes back to the queue", "job", job, "error", failed)
		return true
	}
	s.Counts.Poisoned.Add(1)
	// The reason may quote the message, so it is in quarantine beside it, and not in the log.
	s.Logger.WarnContext(ctx, "poison goes into quarantine", "messageId", record.MessageId, "bytes", len(record.Body))
	return sqsbatch.Quarantine(ctx, s.Queue, s.Quarantine, record, failed.Error()) != nil
}

// sortIn puts an event to the others of its job.
func sortIn(letters []*letter, in wire.Incoming, record string) []*letter {
	i := slices.IndexFunc(letters, func(l *letter) bool { return l.job == in.Job })
	if i < 0 {
		letters = append(letters, &letter{job: in.Job})
		i = len(letters) - 1
	}
	letters[i].events = append(letters[i].events, in.Event)
	letters[i].records = append(letters[i].records, record)
	return letters
}

// moveOrPark moves a job, and deals with what can never be moved: neither is tried again.
func (s *Scheduler) moveOrPark(ctx context.Context, job string, events []makegood.Event) (moved, error) {
	m, err := s.move(ctx, job, events)
	var park *parkError
	switch {
	case errors.As(err, &park):
		return moved{}, s.park(ctx, job, park)
	case errors.Is(err, store.ErrNotFound):
		// Deleted after its time, or never ours. State is never made anew from a message.
		s.Counts.Unknown.Add(1)
		s.Logger.InfoContext(ctx, "event of an unknown job", "job", job, "events", len(events))
		return moved{}, nil
	default:
		return m, err
	}
}

// carryOut sends the tasks and announcements of all letters, and marks those that were not sent.
func (s *Scheduler) carryOut(ctx context.Context, letters []*letter) {
	var out outbox
	for _, l := range letters {
		if l.err != nil || len(l.moved.commands) == 0 {
			continue
		}
		var park *parkError
		if l.err = s.put(ctx, &out, l); errors.As(l.err, &park) {
			park.seen = l.moved.job.CompleteBy
			l.err = s.park(ctx, l.job, park)
		}
	}
	s.send(ctx, &out)
}

// outbox is the tasks to send, by queue.
type outbox struct {
	queues   []string
	messages map[string][]queue.Message
	of       map[string][]errand
}

// errand is a task on its way, and the letter that fails if it does. A reminder has no dispatch.
type errand struct {
	letter   *letter
	dispatch makegood.Dispatch
}

func (o *outbox) add(name string, m queue.Message, e errand) {
	if o.messages == nil {
		o.messages = make(map[string][]queue.Message)
		o.of = make(map[string][]errand)
	}
	if _, ok := o.messages[name]; !ok {
		o.queues = append(o.queues, name)
	}
	o.messages[name] = append(o.messages[name], m)
	o.of[name] = append(o.of[name], e)
}

// put turns a letter's commands into messages, and makes its announcements.
func (s *Scheduler) put(ctx context.Context, out *outbox, l *letter) error {
	var notices []makegood.Announcement
	for _, c := range l.moved.commands {
		switch c := c.(type) {
		case makegood.Dispatch:
			name, message, err := s.message(ctx, l.moved, c)
			if wrong := new(workflowfile.EvalError); errors.As(err, &wrong) {
				s.refuse(ctx, errand{letter: l, dispatch: c}, wrong.Reason)
				continue
			}
			if err != nil {
				return err
			}
			out.add(name, message, errand{letter: l, dispatch: c})
			if sentBefore(l.moved.job, c) {
				s.Counts.Unstarted.Add(1)
			}
		case makegood.Announce:
			notices = append(notices, c.Announcement)
		case makegood.AlertAgent:
			s.alert(ctx, c.Agent)
		case makegood.Remind:
			if err := s.remind(out, l, c); err != nil {
				return err
			}
		default:
			panic(fmt.Sprintf("scheduler: unknown command %T", c))
		}
	}
	return s.tell(ctx, l, notices)
}

// sentBefore reports whether the task of this attempt was sent before, and nobody claimed it in time.
func sentBefore(job makegood.Job, d makegood.Dispatch) bool {
	step, _ := job.Step(d.Step)
	if d.Undo {
		return step.Undo.Resent > 0
	}
	return step.Forward.Resent > 0
}

// tell makes the announcements of a job in their order, and notes in the job which were made. One that
// cannot be made holds up neither the job nor its events: it stays in the job, which stays in the
// index, and the Supervisor comes to it within a minute.
func (s *Scheduler) tell(ctx context.Context, l *letter, notices []makegood.Announcement) error {
	told := 0
	for _, a := range notices {
		if err := s.announce(ctx, l.job, l.moved.job.Workflow, l.moved.job.ReplyTo, a); err != nil {
			s.Logger.WarnContext(ctx, "announcement is made again in a minute", "job", l.job, "seq", a.Seq, "status", a.ProcessState, "error", err)
			break
		}
		told = a.Seq
	}
	if told == 0 {
		return nil
	}
	_, err := s.moveOrPark(ctx, l.job, []makegood.Event{makegood.Told{Seq: told}})
	return err
}

// send sends, and gives a step up whose task can never be sent: that is our fault, and no time will
// mend it.
func (s *Scheduler) send(ctx context.Context, out *outbox) {
	for _, name := range out.queues {
		errs := s.Queue.Send(ctx, name, out.messages[name]...)
		for i, e := range out.of[name] {
			var err error
			if i < len(errs) {
				err = errs[i]
			}
			var refused *queue.RefusedError
			reminder := e.dispatch.Step == ""
			switch {
			case err == nil && reminder:
				s.Counts.Reminders.Add(1)
			case err == nil:
				s.Counts.Tasks.Add(1)
			case reminder:
				// It spares a wait, and no more: the Supervisor comes anyway.
				s.Logger.WarnContext(ctx, "reminder was not sent", "job", e.letter.job, "error", err)
			case errors.As(err, &refused):
				s.refuse(ctx, e, refused.Reason)
			default:
				e.letter.err = fmt.Errorf("send task of step %s to %s: %w", e.dispatch.Step, name, err)
			}
		}
	}
}

func (s *Scheduler) refuse(ctx context.Context, e errand, reason string) {
	event := makegood.DispatchRefused{Step: e.dispatch.Step, Attempt: e.dispatch.Attempt, Reason: reason}
	follow := &letter{job: e.letter.job, events: []makegood.Event{event}}
	follow.moved, follow.err = s.moveOrPark(ctx, follow.job, follow.events)
	s.carryOut(ctx, []*letter{follow})
	if follow.err != nil {
		e.letter.err = follow.err
	}
}
