// Package replynotify tells submitters, on the queues that operators registered for them. It decides
// nothing, and alerts nobody.
package replynotify

import (
	"context"
	"fmt"

	"github.com/makegood-dev/makegood/internal/notify"
	"github.com/makegood-dev/makegood/internal/wire"
)

// Replies sends every announcement of a job to the queue that its ReplyTo is registered for. A job
// names a registered name and never an address: a submitter cannot make it send elsewhere.
type Replies struct {
	// Queues gives the queue of each registered name.
	Queues map[string]string
	// Send sends one message to a queue. Messages of one group should not crowd out others.
	Send func(ctx context.Context, queue, body, group string) error
}

var _ notify.Notifier = Replies{}

// Announce sends the announcement; a job to which nobody listens has none. A name that is not
// registered, which can only be one that was taken away after the job was submitted, is an error, so
// the announcement stays untold until the name is there again.
func (r Replies) Announce(ctx context.Context, n notify.Notice) error {
	if n.ReplyTo == "" {
		return nil
	}
	queue, ok := r.Queues[n.ReplyTo]
	if !ok {
		return fmt.Errorf("reply of job %s: no receiver is registered as %q", n.Job, n.ReplyTo)
	}
	body, err := wire.EncodeAnnouncement(n.Job, n.Workflow, n.Announcement)
	if err != nil {
		return err
	}
	if err := r.Send(ctx, queue, body, n.Job); err != nil {
		return fmt.Errorf("reply of job %s to %s: %w", n.Job, n.ReplyTo, err)
	}
	return nil
}

// AgentAlert does nothing: it is for operators.
func (Replies) AgentAlert(context.Context, string, string) error { return nil }

var _ notify.Asker = Replies{}

// Ask sends the question to the queue of a registered name. It holds the completion token: its readers may answer.
func (r Replies) Ask(ctx context.Context, name string, q notify.Question) error {
	queue, ok := r.Queues[name]
	if !ok {
		return fmt.Errorf("question of job %s: no receiver is registered as %q", q.Job, name)
	}
	body, err := wire.EncodeQuestion(wire.Question(q))
	if err != nil {
		return err
	}
	if err := r.Send(ctx, queue, body, q.Job); err != nil {
		return fmt.Errorf("question of job %s to %s: %w", q.Job, name, err)
	}
	return nil
}
