package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/aws/aws-lambda-go/events"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/notify"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/sqsbatch"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/wire"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

var _ queue.Handler = (*Scheduler)(nil).HandleSQS

// letter is the events of one job in a batch, and the records that carried them: one each, in the same order.
type letter struct {
	job     string
	events  []job.Event
	records []events.SQSMessage
	moved   moved
	err     error
	// told: everybody was told, over the job as it became when one of these tasks was refused.
	told bool
}

// HandleSQS handles a batch of the events queue. The events of one job are folded into one load and
// one save; what all jobs of the batch must send goes out together. The answer names the records that
// must be delivered again.
func (s *Scheduler) HandleSQS(ctx context.Context, batch events.SQSEvent) (events.SQSEventResponse, error) {
	return s.handle(ctx, s.open(ctx, batch)), nil
}

// handle moves the jobs of letters and stores those of submissions, carries out what is due of all, and leaves what a
// newer release must decide about.
func (s *Scheduler) handle(ctx context.Context, p *post) events.SQSEventResponse {
	born := s.submitAll(ctx, p)
	var wg sync.WaitGroup
	for _, l := range p.letters {
		wg.Go(func() { l.moved, l.err = s.moveOrPark(ctx, l.job, l.events) })
	}
	wg.Wait()
	for _, l := range p.letters {
		p.leaveReplies(l)
	}
	letters := append(born, p.letters...)
	s.carryOut(ctx, letters)
	for _, l := range letters {
		switch {
		case isNewer(l.err):
			s.leaveLetter(p, l)
		case l.err != nil:
			s.Logger.WarnContext(ctx, "events go back to the queue", "job", l.job, "records", len(l.records), "error", l.err)
			for _, record := range l.records {
				p.failed = append(p.failed, record.MessageId)
			}
		}
	}
	s.leaveAll(ctx, p)
	return sqsbatch.Response(p.failed)
}

// open reads the records of a batch, in their order: events, grouped by job, and submissions. Poison is put
// into quarantine.
func (s *Scheduler) open(ctx context.Context, batch events.SQSEvent) *post {
	p := &post{queue: s.Events}
	for _, record := range batch.Records {
		in, err := wire.DecodeIncoming(record.Body)
		_, stored := in.Event.(job.Submitted)
		switch {
		case err != nil:
			s.putAway(ctx, p, record, in, err)
		case (in.Submit != nil || stored) && s.Submissions != "":
			// Whoever may reply may not submit.
			s.putAway(ctx, p, record, in, errMisplaced)
		case in.Submit != nil:
			p.submissions = append(p.submissions, submission{record: record, message: *in.Submit})
		default:
			p.sortIn(in, record)
		}
	}
	return p
}

// putAway deals with a record that failed: what a newer release must decide about is left, what is hopeless goes into
// quarantine, and all else comes again.
func (s *Scheduler) putAway(ctx context.Context, p *post, record events.SQSMessage, in wire.Incoming, failed error) {
	switch {
	case in.Repeats:
		s.Counts.Left.Add(1)
	case isNewer(failed):
		p.leave(record, failed)
	case !hopeless(failed):
		s.Logger.WarnContext(ctx, "submission goes back to the queue", "job", in.Job, "error", failed)
		p.failed = append(p.failed, record.MessageId)
	default:
		s.Counts.Poisoned.Add(1)
		// The reason may quote the message, so it is in quarantine beside it, and not in the log.
		s.Logger.WarnContext(ctx, "poison goes into quarantine", "messageId", record.MessageId, "bytes", len(record.Body))
		if sqsbatch.Quarantine(ctx, s.Queue, s.Quarantine, record, failed.Error()) != nil {
			p.failed = append(p.failed, record.MessageId)
		}
	}
}

// sortIn puts an event to the others of its job.
func (p *post) sortIn(in wire.Incoming, record events.SQSMessage) {
	i := slices.IndexFunc(p.letters, func(l *letter) bool { return l.job == in.Job })
	if i < 0 {
		p.letters = append(p.letters, &letter{job: in.Job})
		i = len(p.letters) - 1
	}
	l := p.letters[i]
	l.events, l.records = append(l.events, in.Event), append(l.records, record)
}

// moveOrPark moves a job, and deals with what can never be moved: neither is tried again.
func (s *Scheduler) moveOrPark(ctx context.Context, job string, events []job.Event) (moved, error) {
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

// carryOut sends the tasks of all letters, then closes what is not wanted any more, then tells: nobody waits for an agent
// because somebody else is slow to listen. It marks the letters that must come again.
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
			l.moved.commands = nil
		}
	}
	s.send(ctx, &out)
	inParallel(len(letters), func(i int) { s.closeAndTell(ctx, letters[i]) })
}

// closeAndTell carries out what of a letter is left when its tasks are sent.
func (s *Scheduler) closeAndTell(ctx context.Context, l *letter) {
	var closings []job.CloseAttempt
	var notices []job.Announcement
	for _, c := range l.moved.commands {
		switch c := c.(type) {
		case job.CloseAttempt:
			closings = append(closings, c)
		case job.Announce:
			notices = append(notices, c.Announcement)
		}
	}
	if len(closings) > 0 {
		follow, err := s.closeAll(ctx, l, closings)
		if follow.moved.compiled != nil {
			// What is to be told of is told over the job as it is now.
			s.carryOut(ctx, []*letter{follow})
			l.moved, notices = follow.moved, nil
		}
		l.err = errors.Join(l.err, err, follow.err)
	}
	if l.told {
		return
	}
	if err := s.tell(ctx, l, notices); err != nil {
		l.err = errors.Join(l.err, err)
	}
}

// outbox is the tasks to send, by queue, and those that can never be sent.
type outbox struct {
	queues   []string
	messages map[string][]queue.Message
	of       map[string][]errand
	refused  []refusal
}

// refusal is a task that can never be sent, and why.
type refusal struct {
	errand
	reason string
}

// errand is a task on its way, and the letter that fails if it does. A reminder has no dispatch.
type errand struct {
	letter   *letter
	dispatch job.Dispatch
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

// put turns a letter's commands into messages, as far as they are.
func (s *Scheduler) put(ctx context.Context, out *outbox, l *letter) error {
	for _, c := range l.moved.commands {
		switch c := c.(type) {
		case job.Dispatch:
			if err := s.putTask(ctx, out, errand{letter: l, dispatch: c}); err != nil {
				return err
			}
		case job.CloseAttempt, job.Announce:
			// When the tasks are out.
		case job.AlertAgent:
			s.alert(ctx, c.Agent)
		case job.Remind:
			if err := s.remind(out, l, c); err != nil {
				return err
			}
		default:
			panic(fmt.Sprintf("scheduler: unknown command %T", c))
		}
	}
	return nil
}

// putTask puts a task into the outbox, among those that can never be sent if its expressions fail.
func (s *Scheduler) putTask(ctx context.Context, out *outbox, e errand) error {
	name, message, err := s.message(ctx, e.letter.moved, e.dispatch)
	if wrong := new(workflowfile.EvalError); errors.As(err, &wrong) {
		out.refused = append(out.refused, refusal{e, wrong.Reason})
		return nil
	}
	if err != nil {
		return err
	}
	out.add(name, message, e)
	if sentBefore(e.letter.moved.job, e.dispatch) {
		s.Counts.Unstarted.Add(1)
	}
	return nil
}

// sentBefore reports whether the task of this attempt was sent before, and nobody claimed it in time.
func sentBefore(j job.Job, d job.Dispatch) bool {
	step, _ := j.Step(d.Step)
	if d.Undo {
		return step.Undo.Resent > 0
	}
	return step.Forward.Resent > 0
}

// tell makes the announcements of a job in their order, the operator and whoever listens side by side, and notes in the
// job who was told. What could not be told holds up neither the job nor its events: it stays in the job, which
// stays in the index, and the Supervisor comes to it.
func (s *Scheduler) tell(ctx context.Context, l *letter, notices []job.Announcement) error {
	if len(notices) == 0 {
		return nil
	}
	within, cancel := context.WithTimeout(ctx, tellWithin)
	defer cancel()
	var told, heard, unheard int
	var wg sync.WaitGroup
	wg.Go(func() {
		told, _ = s.announce(within, l, notices, s.Notifier, func(a job.Announcement) bool { return a.Operator })
	})
	wg.Go(func() {
		heard, unheard = s.announce(within, l, notices, s.Listener, func(a job.Announcement) bool { return a.Listener })
	})
	wg.Wait()
	if e := toldOf(told, heard, unheard); len(e) > 0 {
		_, err := s.moveOrPark(ctx, l.job, e)
		return err
	}
	return nil
}

// toldOf puts who was told up to which announcement into events.
func toldOf(operator, listener, unheard int) (all []job.Event) {
	switch {
	case operator > 0 && operator == listener:
		all = append(all, job.Told{Seq: operator, Operator: true, Listener: true})
	default:
		if operator > 0 {
			all = append(all, job.Told{Seq: operator, Operator: true})
		}
		if listener > 0 {
			all = append(all, job.Told{Seq: listener, Listener: true})
		}
	}
	if unheard > 0 {
		all = append(all, job.NotHeard{Seq: unheard})
	}
	return all
}

// announce makes those of the notices that are for one, in their order, until one fails: told is the last that was
// made, failed the one that was not. Nobody is told of everything at once.
func (s *Scheduler) announce(ctx context.Context, l *letter, notices []job.Announcement, to notify.Notifier, his func(job.Announcement) bool) (told, failed int) {
	for _, a := range notices {
		if !his(a) {
			continue
		}
		if to != nil {
			err := to.Announce(ctx, notify.Notice{Job: l.job, Workflow: l.moved.job.Workflow, ReplyTo: l.moved.job.ReplyTo, Announcement: a})
			if errors.Is(err, notify.ErrElsewhere) {
				return told, 0
			}
			if err != nil {
				s.Logger.WarnContext(ctx, "announcement is made again later", "job", l.job, "seq", a.Seq, "status", a.ProcessState, "error", err)
				return told, a.Seq
			}
		}
		told = a.Seq
	}
	return told, 0
}

// send sends, and then gives the steps up whose tasks can never be sent: that is our fault, and no time will
// mend it. What follows from that, such as telling of it, does not hold up the tasks of others.
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
				out.refused = append(out.refused, refusal{e, refused.Reason})
			default:
				e.letter.err = fmt.Errorf("send task of step %s to %s: %w", e.dispatch.Step, name, err)
			}
		}
	}
	for _, r := range out.refused {
		s.refuse(ctx, r.errand, r.reason)
	}
}

func (s *Scheduler) refuse(ctx context.Context, e errand, reason string) {
	event := job.DispatchRefused{Step: e.dispatch.Step, Attempt: e.dispatch.Attempt, Reason: reason}
	follow := &letter{job: e.letter.job, events: []job.Event{event}}
	follow.moved, follow.err = s.moveOrPark(ctx, follow.job, follow.events)
	s.carryOut(ctx, []*letter{follow})
	e.letter.told = e.letter.told || follow.moved.compiled != nil
	if follow.err != nil {
		e.letter.err = follow.err
	}
}
