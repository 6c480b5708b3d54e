package scheduler

import (
	"context"
	"errors"
	"slices"

	"github.com/aws/aws-lambda-go/events"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/sqsbatch"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/wire"
)

// NewerError: a newer release wrote what deciding would rest on. It is a store.ErrNewer.
type NewerError struct {
	// What the newer release wrote.
	What string
}

// Error says it to the caller.
func (e *NewerError) Error() string {
	return e.What + " was written by a newer release of Makegood, and this one must not decide about it; ask again when the deployment is done"
}

// Is reports whether target is store.ErrNewer.
func (e *NewerError) Is(target error) bool { return target == store.ErrNewer }

// errNewerJob is the NewerError of a job.
var errNewerJob = &NewerError{What: "this job"}

// isNewer reports whether an error says that a newer release must decide.
func isNewer(err error) bool { return errors.Is(err, wire.ErrNewer) || errors.Is(err, store.ErrNewer) }

// leave takes a record out of the batch.
func (b *batch) leave(record events.SQSMessage, why error) {
	b.left = append(b.left, sqsbatch.Unread{Record: record, Why: why})
}

// leaveReplies takes the replies with a token of a later scheme out of work.
func (b *batch) leaveReplies(w *work) {
	isNewer := func(v machine.Verdict) bool { return v.Kind == machine.Newer }
	if !slices.ContainsFunc(w.verdicts, isNewer) {
		return
	}
	var said []job.Event
	var records []events.SQSMessage
	for i, record := range w.records {
		if isNewer(w.verdicts[i]) {
			b.leave(record, errors.New(w.verdicts[i].Reason))
			continue
		}
		said, records = append(said, w.events[i]), append(records, record)
	}
	w.events, w.records = said, records
}

// leaveWork leaves all records of a job that is a newer release's. Its deadlines are dropped: the key stands in the
// index, and each sweep says it again, so that to leave one would multiply it.
func (s *Scheduler) leaveWork(b *batch, w *work) {
	for i, record := range w.records {
		if _, is := w.events[i].(job.DeadlinePassed); is {
			s.stats.Add(func(t *Stats) { t.Left++ })
			continue
		}
		b.leave(record, w.err)
	}
}

// leaveAll sends the left records of a batch again.
func (s *Scheduler) leaveAll(ctx context.Context, b *batch) {
	left := sqsbatch.Leaving{
		Sender: s.config.Queue, Queue: b.queue, Quarantine: s.config.Quarantine, Now: s.now, Logger: s.config.Logger,
	}.Leave(ctx, b.left)
	s.stats.Add(func(t *Stats) {
		t.Left += int64(left.Again)
		t.Poisoned += int64(left.Poisoned)
	})
	b.failed = append(b.failed, left.Failed...)
}
