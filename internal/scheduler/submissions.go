package scheduler

import (
	"context"
	"fmt"
	"sync"

	"github.com/aws/aws-lambda-go/events"

	"github.com/makegood-dev/makegood/internal/spend"
	"github.com/makegood-dev/makegood/internal/wire"
)

// maxSubmitting is how many submissions of a batch are stored at the same time: one of each message of SQS.
const maxSubmitting = 10

// submitAll stores the jobs of a batch's Submit messages, several at a time, and adds their commands to its work, to be
// sent with all else that the batch sends: no caller waits for a submission by message, so a failed sending brings its
// record back.
func (s *Scheduler) submitAll(ctx context.Context, b *batch) {
	stored := make([]submitted, len(b.submissions))
	errs := make([]error, len(b.submissions))
	places := make(chan struct{}, maxSubmitting)
	var wg sync.WaitGroup
	for i, sub := range b.submissions {
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			stored[i], errs[i] = s.submitMessage(spend.With(ctx, sub.account), sub.message)
		})
	}
	wg.Wait()
	var due []*work
	for i, sub := range b.submissions {
		// One that ended without an answer, as a process that is killed ends it, has none.
		if w := stored[i].work; w != nil {
			w.records = []events.SQSMessage{sub.record}
			due = append(due, w)
			continue
		}
		b.unfit = append(b.unfit, unfit{sub.record, wire.Incoming{Job: sub.message.ID}, errs[i]})
	}
	b.work = append(due, b.work...)
}

// submitMessage does what a Submit message asks for, but for the sending. A birth that panics is our bug,
// and fails its own record alone.
func (s *Scheduler) submitMessage(ctx context.Context, m wire.Submit) (stored submitted, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("submit job %s: %v", m.ID, r)
		}
	}()
	// In Go nil is null, but a message without an input has more likely lost it.
	if m.Input == nil {
		return submitted{}, fmt.Errorf("%w: input of job %s is missing; null is an input", ErrInvalid, m.ID)
	}
	definition, err := s.current(ctx, m.Workflow)
	if err != nil {
		return submitted{}, err
	}
	return s.submit(ctx, Submission{ID: m.ID, Definition: definition, Input: m.Input, StartAt: m.StartAt, ReplyTo: m.ReplyTo, Tenant: m.Tenant, Labels: m.Labels, Priority: m.Priority, Traceparent: m.Traceparent})
}
