package makegoodtest

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/wire"
)

// watchedQueues are the queues of one life.
type watchedQueues struct {
	embedded.Queues
	life *life
}

var _ embedded.Queues = (*watchedQueues)(nil)

func (q *watchedQueues) Send(ctx context.Context, name string, messages ...queue.Message) (errs []error) {
	if len(messages) == 0 {
		return nil
	}
	err := q.life.do("Send."+name, sent(messages), func() error {
		errs = q.Queues.Send(ctx, name, messages...)
		return nil
	})
	if err == nil {
		return errs
	}
	errs = make([]error, len(messages))
	for i := range errs {
		errs[i] = err
	}
	return errs
}

func (q *watchedQueues) Depth(ctx context.Context, name string) (depth queue.Depth, err error) {
	err = q.life.do("Depth."+name, "messages were counted in queue "+name, func() (err error) {
		depth, err = q.Queues.Depth(ctx, name)
		return err
	})
	return depth, err
}

func (q *watchedQueues) Receive(ctx context.Context, name string, limit int) (records []events.SQSMessage, err error) {
	err = q.life.do("Receive."+name, "a message was received from queue "+name, func() (err error) {
		records, err = q.Queues.Receive(ctx, name, limit)
		return err
	})
	if err != nil {
		return nil, err
	}
	return records, nil
}

func (q *watchedQueues) Delete(ctx context.Context, name string, receipts ...string) error {
	return q.life.do("Delete."+name, "a handled message was deleted from queue "+name, func() error {
		return q.Queues.Delete(ctx, name, receipts...)
	})
}

func (q *watchedQueues) Return(ctx context.Context, name string, after time.Duration, receipts ...string) error {
	return q.life.do("Return."+name, "a message that could not be handled went back to queue "+name, func() error {
		return q.Queues.Return(ctx, name, after, receipts...)
	})
}

// sent says of messages that they were sent.
func sent(messages []queue.Message) string {
	clauses := make([]string, len(messages))
	for i, m := range messages {
		clauses[i] = message(m.Body) + " was sent"
	}
	return strings.Join(clauses, ", and ")
}

// message says what a message is.
func message(body string) string {
	if task, err := wire.DecodeTask(body); err == nil {
		return "the task for " + attempt(task)
	}
	_, event, err := wire.DecodeEvent(body)
	if err != nil {
		return "a message"
	}
	switch e := event.(type) {
	case job.StepSucceeded:
		return fmt.Sprintf("the reply \"done\" of attempt %d of step %s", e.Attempt, e.Step)
	case job.StepFailed:
		return fmt.Sprintf("the reply \"failed: %s\" of attempt %d of step %s", e.Error.Message, e.Attempt, e.Step)
	case job.DeadlinePassed:
		return "the Supervisor's word that a job is overdue"
	case job.ChildEnded:
		return fmt.Sprintf("the word that the job of attempt %d of step %s has ended", e.Attempt, e.Step)
	case job.Interrupted:
		return "the word that the engine was started again"
	default:
		return "an event"
	}
}

// attempt names an attempt.
func attempt(task makegood.Task) string {
	if task.Undo != nil {
		return fmt.Sprintf("attempt %d of step %s, its undo,", task.Attempt, task.Step)
	}
	return fmt.Sprintf("attempt %d of step %s", task.Attempt, task.Step)
}

// changes says in clauses what a save changes of a job.
func changes(before, after job.Job) string {
	var clauses []string
	for _, is := range after.Steps {
		was, _ := before.Step(is.Name)
		clauses = append(clauses, change("step "+is.Name, was.Forward, is.Forward)...)
		clauses = append(clauses, change("the undo of step "+is.Name, was.Undo, is.Undo)...)
	}
	if before.ProcessState != after.ProcessState {
		clauses = append(clauses, "the job is "+string(after.ProcessState))
	}
	if len(clauses) == 0 {
		return "the job was looked at"
	}
	return strings.Join(clauses, ", that ")
}

func change(of string, was, is job.Activity) []string {
	if was.State == is.State && was.Attempt == is.Attempt {
		return nil
	}
	var clause string
	switch is.State {
	case job.NotStarted:
		clause = of + " is to begin anew"
	case job.Dispatched:
		clause = fmt.Sprintf("attempt %d of %s is to be made", is.Attempt, of)
	case job.Backoff:
		clause = of + " failed and is to be tried again"
	case job.Waiting:
		clause = of + " waits"
	case job.Done:
		clause = of + " is done"
	case job.Skipped:
		clause = of + " is skipped"
	case job.Failed:
		clause = of + " is given up"
	case job.Withdrawn:
		clause = of + " is withdrawn"
	case job.Irreversible:
		clause = of + " does not exist"
	default:
		panic(fmt.Sprintf("makegoodtest: state %q of an activity", is.State))
	}
	return []string{clause}
}
