package scheduler

import (
	"context"
	"fmt"

	"github.com/aws/aws-lambda-go/events"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/spend"
	"github.com/makegood-dev/makegood/internal/sqsbatch"
	"github.com/makegood-dev/makegood/internal/wire"
)

var (
	_ queue.Handler = (*Scheduler)(nil).HandleSQS
	_ queue.Handler = (*Scheduler)(nil).HandleSubmissions
)

// errMisplaced: a submission came by the queue of replies, or another message by that of submissions.
var errMisplaced = fmt.Errorf("%w: submissions alone come by the submissions queue", wire.ErrPoison)

// errHint: a hint to the schedules or the pauses came to the Scheduler; package router leads them elsewhere.
var errHint = fmt.Errorf("%w: a hint that is no event of a job", wire.ErrPoison)

// HandleSQS handles a batch of the events queue. The events of one job are folded into one load and one save; what all
// jobs of the batch must send goes out together. The answer names the records that must be delivered again.
func (s *Scheduler) HandleSQS(ctx context.Context, received events.SQSEvent) (events.SQSEventResponse, error) {
	// A sender of replies may not submit, where there is another queue for that.
	b := s.decode(s.config.Events, received, func(submits bool) bool { return !submits || s.config.Submissions == "" })
	return s.handle(ctx, b), nil
}

// HandleSubmissions handles a batch of the submissions queue, where there is one (Config.Submissions): submissions, and
// the news that a job was stored in a transaction. Anything else there is poison.
func (s *Scheduler) HandleSubmissions(ctx context.Context, received events.SQSEvent) (events.SQSEventResponse, error) {
	b := s.decode(s.config.Submissions, received, func(submits bool) bool { return submits })
	return s.handle(ctx, b), nil
}

// batch is what the records of one queue say.
type batch struct {
	queue string
	// work is one entry for each job that events came for, and one for each submission with a stored job.
	work        []*work
	submissions []submission
	// records are all records, as they came.
	records []events.SQSMessage
	unfit   []unfit
	// left are the records that a newer release must decide about, failed the message ids of those that must come again.
	left   []sqsbatch.Unread
	failed []string
}

// submission is a Submit message, and the record that carried it.
type submission struct {
	record  events.SQSMessage
	message wire.Submit
	account *spend.Account
}

// unfit is a record that cannot be decoded or acted on, now or ever, and the reason.
type unfit struct {
	record events.SQSMessage
	in     wire.Incoming
	why    error
}

// decode reads the records that a queue delivered, in their order. takes says whether that queue is the place for
// submissions, and for other messages.
func (s *Scheduler) decode(name string, received events.SQSEvent, takes func(submits bool) bool) *batch {
	b := &batch{queue: name, records: received.Records, work: make([]*work, 0, len(received.Records))}
	for _, record := range received.Records {
		in, err := s.config.Memory.DecodeIncoming(record.Body)
		_, stored := in.Event.(job.Submitted)
		switch {
		case err != nil:
			b.unfit = append(b.unfit, unfit{record, in, err})
		case !takes(in.Submit != nil || stored):
			b.unfit = append(b.unfit, unfit{record, in, errMisplaced})
		case in.Submit != nil:
			b.submissions = append(b.submissions, submission{record: record, message: *in.Submit})
		case in.HoldsDue != nil, in.Schedule != nil:
			b.unfit = append(b.unfit, unfit{record, in, errHint})
		default:
			b.event(in, record)
		}
	}
	return b
}

// event puts an event to the others of its job.
func (b *batch) event(in wire.Incoming, record events.SQSMessage) {
	for _, w := range b.work {
		if w.job == in.Job {
			w.came(in, record)
			return
		}
	}
	w := workOn(in.Job)
	w.came(in, record)
	b.work = append(b.work, w)
}

// handle stores the jobs of submissions, does all work, and settles what becomes of the records.
func (s *Scheduler) handle(ctx context.Context, b *batch) events.SQSEventResponse {
	defer s.config.Clock.Invoked()()
	defer s.openAccounts(b)()
	s.putAllAway(ctx, b) // Before the work, which may take all the time there is.
	s.submitAll(ctx, b)
	s.workOff(ctx, b.work)
	s.putAllAway(ctx, b)
	for _, w := range b.work {
		b.leaveReplies(w)
		s.settle(ctx, b, w)
	}
	s.leaveAll(ctx, b)
	return sqsbatch.Response(b.failed)
}

// putAllAway deals with all records that turned out unfit so far.
func (s *Scheduler) putAllAway(ctx context.Context, b *batch) {
	for _, u := range b.unfit {
		s.putAway(ctx, b, u)
	}
	b.unfit = nil
}

// putAway deals with an unfit record: one that a newer release must decide about is left, a hopeless one goes into
// quarantine, and any other comes again.
func (s *Scheduler) putAway(ctx context.Context, b *batch, u unfit) {
	switch {
	case u.in.Repeats:
		s.stats.Add(func(t *Stats) { t.Left++ })
	case isNewer(u.why):
		b.leave(u.record, u.why)
	case !hopeless(u.why):
		s.config.Logger.WarnContext(ctx, "submission goes back to the queue", "job", u.in.Job, "error", u.why)
		b.failed = append(b.failed, u.record.MessageId)
	default:
		// The reason may quote the message, so it is in quarantine beside it, and not in the log.
		s.config.Logger.WarnContext(ctx, "poison goes into quarantine", "messageId", u.record.MessageId, "bytes", len(u.record.Body))
		if sqsbatch.Quarantine(ctx, s.config.Queue, s.config.Quarantine, u.record, u.why.Error()) != nil {
			b.failed = append(b.failed, u.record.MessageId)
			return
		}
		s.stats.Add(func(t *Stats) { t.Poisoned++ })
	}
}

// settle says what becomes of the records of work: they have done their service, or come again, or are left.
func (s *Scheduler) settle(ctx context.Context, b *batch, w *work) {
	switch {
	case w.err == nil:
	case isNewer(w.err):
		s.leaveWork(b, w)
	default:
		s.config.Logger.WarnContext(ctx, "events go back to the queue", "job", w.job, "records", len(w.records), "error", w.err)
		for _, record := range w.records {
			b.failed = append(b.failed, record.MessageId)
		}
	}
}
