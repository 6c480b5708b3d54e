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
	// What it wrote.
	What string
}

// Error says it to whoever asked.
func (e *NewerError) Error() string {
	return e.What + " was written by a newer release of Makegood, and this one must not decide about it; ask again when the deployment is done"
}

// Is reports whether target is store.ErrNewer.
func (e *NewerError) Is(target error) bool { return target == store.ErrNewer }

// errNewerJob is the NewerError of a job.
var errNewerJob = &NewerError{What: "this job"}

// isNewer reports whether an error says that a newer release must decide.
func isNewer(err error) bool { return errors.Is(err, wire.ErrNewer) || errors.Is(err, store.ErrNewer) }

// post is a batch of one queue, sorted by what its records say.
type post struct {
	queue       string
	letters     []*letter
	submissions []submission
	// left are the records that a newer release must decide about.
	left []sqsbatch.Unread
	// failed are the message ids of those that must come again.
	failed []string
}

// leave takes a record out of what is dealt with here.
func (p *post) leave(record events.SQSMessage, why error) {
	p.left = append(p.left, sqsbatch.Unread{Record: record, Why: why})
}

// leaveReplies takes those replies out of a letter whose token is of a later scheme.
func (p *post) leaveReplies(l *letter) {
	isNewer := func(v machine.Verdict) bool { return v.Kind == machine.Newer }
	if !slices.ContainsFunc(l.moved.verdicts, isNewer) {
		return
	}
	var said []job.Event
	var records []events.SQSMessage
	for i, record := range l.records {
		if isNewer(l.moved.verdicts[i]) {
			p.leave(record, errors.New(l.moved.verdicts[i].Reason))
			continue
		}
		said, records = append(said, l.events[i]), append(records, record)
	}
	l.events, l.records = said, records
}

// leaveLetter leaves all of a letter whose job is a newer release's. Its deadlines are dropped: the key stands in the
// index, and each sweep says it again, so that to leave one would multiply it.
func (s *Scheduler) leaveLetter(p *post, l *letter) {
	for i, record := range l.records {
		if _, is := l.events[i].(job.DeadlinePassed); is {
			s.Counts.Left.Add(1)
			continue
		}
		p.leave(record, l.err)
	}
}

// leaveAll sends again what is left of a batch.
func (s *Scheduler) leaveAll(ctx context.Context, p *post) {
	left := sqsbatch.Leaving{
		Sender: s.Queue, Queue: p.queue, Quarantine: s.Quarantine, Now: s.now, Logger: s.Logger,
	}.Leave(ctx, p.left)
	s.Counts.Left.Add(int64(left.Again))
	s.Counts.Poisoned.Add(int64(left.Poisoned))
	p.failed = append(p.failed, left.Failed...)
}
