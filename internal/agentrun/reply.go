package agentrun

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/pause"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/spend"
)

// speaker takes the replies of an attempt.
type speaker interface {
	// say sends a reply, once; it must not send after until. Errors are those of queue.Sender.
	say(ctx context.Context, a *attempt, reply job.Event, until time.Time) error
}

// reply tells the outcome. Where that is refused as our fault, it tells the refusal instead: as a
// final failure, since the next attempt would have no better reply.
func (a *attempt) reply(event job.Event) error {
	err := a.send(event)
	if refused := refusal(err); refused != nil {
		event = a.failed(agent.Final(fmt.Errorf("the reply cannot be sent: %w", refused)))
		err = a.send(event)
	}
	if err != nil {
		// No harm is done. The record is delivered again, finds its attempt claimed and is dropped; the claim that stays looks
		// like silence, and the Supervisor ends it at CompleteBy.
		a.note(slog.LevelWarn, "the outcome could not be told", "untold", "error", err)
		return err
	}
	a.count(event)
	return nil
}

// refusal returns the refusal of a queue; nil: err is none.
func refusal(err error) *queue.RefusedError {
	refused, _ := errors.AsType[*queue.RefusedError](err)
	return refused
}

// count counts an outcome that was told.
func (a *attempt) count(event job.Event) {
	switch event := event.(type) {
	case job.StepSucceeded:
		a.tell(func(t *Stats) { t.Succeeded++ })
		a.note(slog.LevelDebug, "told a success", "succeeded")
	case job.StepWaiting:
		a.tell(func(t *Stats) { t.Waiting++ })
		a.note(slog.LevelDebug, "told that the step waits", "waiting", "until", event.Deadline)
	case job.StepFailed:
		a.tell(func(t *Stats) { t.Failed++ })
		// The message may quote a payload; the job keeps it, the log does not.
		a.note(slog.LevelDebug, "told a failure", "failed",
			"retryable", event.Error.Retryable, "applied", event.Error.Applied)
	default:
		panic(fmt.Sprintf("agentrun: an agent does not reply with %T", event))
	}
}

// send sends one event to the queue that waits for it, and tries again as long as it may be said.
func (a *attempt) send(event job.Event) error {
	until := a.lease.lastWord()
	// The end of the batch's context stops work; the outcome should still be sent.
	ctx, cancel := pause.Until(a.batch, until)
	defer cancel()
	err := a.to.say(ctx, a, event, until)
	if err != nil {
		try := func() error { return a.to.say(ctx, a, event, until) }
		refused := func(err error) bool { return refusal(err) != nil }
		err = a.tryAgain(ctx, err, try, refused, backoff.WithMaxElapsedTime(0))
	}
	if err != nil {
		return fmt.Errorf("reply %T of job %s, step %s, attempt %d to %s: %w", event, a.task.Job, a.task.Step, a.task.Attempt, a.task.ReplyTo, err)
	}
	return nil
}

// bodyOf writes a reply as the message that goes to a queue, with the usage so far. A *queue.RefusedError if it has no
// such form.
func (r *Runner) bodyOf(ctx context.Context, task *makegood.Task, reply job.Event) (string, error) {
	body, err := r.config.Memory.EncodeReply(task.Job, reply, spend.On(ctx).Due())
	if err != nil {
		return "", queue.Refused("%v", err)
	}
	return body, nil
}
