package scheduler

import (
	"context"
	"fmt"
	"sync"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/wire"

	"github.com/aws/aws-lambda-go/events"
)

// maxSubmitting is how many submissions of a batch are stored at the same time: one of each message of SQS.
const maxSubmitting = 10

// errMisplaced: a submission came by the queue of replies, or something else by that of submissions.
var errMisplaced = fmt.Errorf("%w: submissions, and nothing else, come by the submissions queue", wire.ErrPoison)

// HandleSubmissions handles a batch of the submissions queue, where there is one (Config.Submissions): submissions, and
// the news that a job was stored in a transaction. Anything else there is poison.
func (s *Scheduler) HandleSubmissions(ctx context.Context, batch events.SQSEvent) (events.SQSEventResponse, error) {
	p := &post{queue: s.Submissions}
	for _, record := range batch.Records {
		in, err := wire.DecodeIncoming(record.Body)
		_, stored := in.Event.(job.Submitted)
		switch {
		case err != nil:
			s.putAway(ctx, p, record, in, err)
		case in.Submit != nil:
			p.submissions = append(p.submissions, submission{record: record, message: *in.Submit})
		case stored:
			p.sortIn(in, record)
		default:
			s.putAway(ctx, p, record, in, errMisplaced)
		}
	}
	return s.handle(ctx, p), nil
}

// submission is a Submit message, and the record that carried it.
type submission struct {
	record  events.SQSMessage
	message wire.Submit
}

// submitAll stores the jobs of a batch's Submit messages, several at a time, and gives the letters of what
// is due of them, to be sent with all else that the batch sends: a submission by message has nobody who
// waits for it, so what cannot be sent brings its record back.
func (s *Scheduler) submitAll(ctx context.Context, p *post) (letters []*letter) {
	stored := make([]submitted, len(p.submissions))
	errs := make([]error, len(p.submissions))
	places := make(chan struct{}, maxSubmitting)
	var wg sync.WaitGroup
	for i, sub := range p.submissions {
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			stored[i], errs[i] = s.submitMessage(ctx, sub.message)
		})
	}
	wg.Wait()
	for i, sub := range p.submissions {
		// One that ended without an answer, as a process that is killed ends it, has none.
		if stored[i].letter != nil {
			stored[i].letter.records = []events.SQSMessage{sub.record}
			letters = append(letters, stored[i].letter)
			continue
		}
		s.putAway(ctx, p, sub.record, wire.Incoming{Job: sub.message.ID}, errs[i])
	}
	return letters
}

// submitMessage does what a Submit message asks for, but for the sending. A birth that panics is our bug,
// and fails its own record alone.
func (s *Scheduler) submitMessage(ctx context.Context, m wire.Submit) (stored submitted, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("submit job %s: %v", m.ID, r)
		}
	}()
	definition, err := s.current(ctx, m.Workflow)
	if err != nil {
		return submitted{}, err
	}
	return s.submit(ctx, Submission{ID: m.ID, Definition: definition, Input: m.Input, StartAt: m.StartAt, ReplyTo: m.ReplyTo})
}
