// Package putaway handles messages that were put away: into quarantine, because they could not be read, or into dead
// letters, because no function finished with them. It shows them, replays them, and drops them.
//
// # Interruptions
//
// An interruption loses no message. A message is deleted only when its replay has been sent, and one that was only
// looked at is given back. Messages held when the process died come back by themselves, Hold later. A message that was
// sent and not deleted yet is sent once more, without effect: a reply is fenced by its attempt, a submission by its id.
//
// A task is never put back: its Scheduler is told to look at the job, and sends the current attempt when it is due.
// The package makes no decisions about jobs, and knows no queue's vendor.
package putaway

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/sqsbatch"
	"github.com/makegood-dev/makegood/internal/wire"
)

const (
	// Max is how many messages are held at once.
	Max = 10_000
	// Hold is how long a message stays hidden from others while it is looked at.
	Hold = 2 * time.Minute
	// searchFor is how long an answer is waited for that a queue is empty: long enough for SQS to ask all its servers.
	searchFor = 2 * time.Second
	// settleWithin is how long giving back may take, whether or not the caller still waits.
	settleWithin = 30 * time.Second
)

// The queues, by their names inside a deployment.
const (
	eventsQueue      = "events"
	submissionsQueue = "submissions"
	sweepsQueue      = "sweeps"
	tasksPrefix      = "tasks-"
	quarantine       = "quarantine"
	deadSuffix       = "-dead"
)

// Quarantine is the queue of unreadable messages.
const Quarantine = quarantine

// DeadLetters returns the queues of what no function came to an end over, of a deployment with these agents.
func DeadLetters(agents []string) []string {
	all := []string{eventsQueue + deadSuffix, submissionsQueue + deadSuffix, sweepsQueue + deadSuffix}
	for _, a := range agents {
		all = append(all, tasksPrefix+a+deadSuffix)
	}
	return all
}

// Queues are the queue operations that an Office needs.
type Queues interface {
	queue.Sender
	queue.Receiver
}

// Message is a message that was put away.
type Message = api.PutAway

// Wanted says which messages are meant. The zero value means all.
type Wanted struct {
	IDs []string
	// Reason begins the reason. Source is the queue that it came from.
	Reason, Source, Job string
}

// Fits reports whether a message is meant.
func (w Wanted) Fits(l Message) bool {
	return (len(w.IDs) == 0 || slices.Contains(w.IDs, l.ID)) && strings.HasPrefix(l.Reason, w.Reason) &&
		(w.Source == "" || w.Source == l.Source) && (w.Job == "" || w.Job == l.Job)
}

// Office looks at the messages of a deployment.
type Office struct {
	Queues Queues
	// Prefix stands before the name of each queue in what messages say of where they came from.
	Prefix string
	// Job looks a job up, without payloads. ErrNoJob.
	Job func(ctx context.Context, id string) (makegood.Job, error)
	// Vouched: the person that replays has looked at the submissions in quarantine. Agents may put messages there, too,
	// with any origin that they choose; and they may not submit.
	Vouched bool
}

// ErrNoJob: there is no such job.
var ErrNoJob = errors.New("there is no such job")

// Bundle holds messages, hidden from others, until it is closed.
type Bundle struct {
	Messages []Message
	// More: there were more than could be held.
	More bool

	office   Office
	held     map[string][]string // the receipts of the held messages, by queue
	receipts map[place]string    // those of Messages
}

// place is where a message lies.
type place struct{ queue, id string }

// Open takes the wanted messages out of these queues, at most limit, and holds them. It receives each message once, and
// gives the others back at the end. A queue that does not exist is passed over. After an error no message is held.
func (o Office) Open(ctx context.Context, queues []string, want Wanted, limit int) (*Bundle, error) {
	b := &Bundle{office: o, held: map[string][]string{}, receipts: map[place]string{}}
	for _, name := range queues {
		err := b.gather(ctx, name, want, limit)
		if errors.Is(err, queue.ErrNoQueue) {
			continue
		}
		if err != nil {
			return nil, errors.Join(err, b.Close(ctx))
		}
	}
	return b, nil
}

// gather receives until a queue is empty, all that was asked for is found, or no more can be held.
func (b *Bundle) gather(ctx context.Context, name string, want Wanted, limit int) error {
	seen := map[string]bool{}
	for len(want.IDs) == 0 || len(b.Messages) < len(want.IDs) {
		if len(b.Messages) >= limit || len(seen) >= Max {
			b.More = true
			return nil
		}
		records, err := b.receive(ctx, name)
		if err != nil {
			return err
		}
		fresh := false
		for _, record := range records {
			b.held[name] = append(b.held[name], record.ReceiptHandle)
			if seen[record.MessageId] {
				continue
			}
			seen[record.MessageId], fresh = true, true
			// Of more than the limit the next turn tells.
			if l := b.office.read(name, record); want.Fits(l) && len(b.Messages) < limit {
				b.Messages = append(b.Messages, l)
				b.receipts[place{name, l.ID}] = record.ReceiptHandle
			}
		}
		if !fresh {
			return nil // The queue is empty; or the first message is there again, since this took longer than Hold.
		}
	}
	return nil
}

// receive takes a batch, and hides it. None: the queue is empty.
func (b *Bundle) receive(ctx context.Context, name string) ([]events.SQSMessage, error) {
	within, cancel := context.WithTimeout(ctx, searchFor)
	defer cancel()
	records, err := b.office.Queues.Receive(within, name, limits.MaxBatch)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(err, context.DeadlineExceeded):
		return nil, nil
	case err != nil:
		return nil, err
	}
	receipts := make([]string, len(records))
	for i, r := range records {
		receipts[i] = r.ReceiptHandle
	}
	return records, b.office.Queues.Return(ctx, name, Hold, receipts...)
}

// Close gives back the messages still held, even if ctx has ended; those that it cannot give back come back after Hold.
func (b *Bundle) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleWithin)
	defer cancel()
	var errs []error
	for name, receipts := range b.held {
		errs = append(errs, b.office.Queues.Return(ctx, name, 0, receipts...))
	}
	b.held = map[string][]string{}
	return errors.Join(errs...)
}

// remove deletes a message for good.
func (b *Bundle) remove(ctx context.Context, l Message) error {
	receipt := b.receipts[place{l.Queue, l.ID}]
	if err := b.office.Queues.Delete(ctx, l.Queue, receipt); err != nil {
		return err
	}
	b.held[l.Queue] = slices.DeleteFunc(b.held[l.Queue], func(r string) bool { return r == receipt })
	return nil
}

// Drop deletes a message.
func (b *Bundle) Drop(ctx context.Context, l Message) error { return b.remove(ctx, l) }

// read says what a message is that lies in a queue.
func (o Office) read(name string, record events.SQSMessage) Message {
	l := Message{ID: record.MessageId, Queue: name, Deliveries: sqsbatch.ReceiveCount(record), Body: record.Body}
	if ms, err := strconv.ParseInt(record.Attributes["SentTimestamp"], 10, 64); err == nil {
		l.SentAt = time.UnixMilli(ms).UTC()
	}
	if name == quarantine {
		unwrap(&l, o.Prefix)
	} else {
		l.Source = strings.TrimSuffix(name, deadSuffix)
		l.Reason = "no function came to an end over it"
	}
	describe(&l)
	return l
}

// unwrap removes quarantine's wrapping from a message. Queue names that it may have come from begin with prefix.
func unwrap(l *Message, prefix string) {
	var q sqsbatch.Quarantined
	if err := json.Unmarshal([]byte(l.Body), &q); err != nil || q.Type != sqsbatch.TypeQuarantined {
		l.Reason = "it is not in the envelope of a message in quarantine: another program sent it"
		return
	}
	l.Reason, l.Body, l.CutFrom, l.Deliveries = q.Reason, q.Body, q.CutFrom, q.ReceiveCount
	physical := q.Source[strings.LastIndex(q.Source, ":")+1:]
	if source, ours := strings.CutPrefix(physical, prefix); ours {
		l.Source = source
	}
}

// describe says what the body of a message says of itself, which may be anything.
func describe(l *Message) {
	var says struct {
		Type, Job, ID, Step string
		Attempt             int
	}
	if json.Unmarshal([]byte(l.Body), &says) != nil {
		return
	}
	l.Type, l.Job, l.Step, l.Attempt = says.Type, says.Job, says.Step, says.Attempt
	if says.Type == wire.TypeSubmit {
		l.Job = says.ID
	}
}
