package putaway

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/wire"
)

// Result says what becomes of a message that is replayed.
type Result = api.ReplayResult

// The results.
const (
	Sent    = api.ReplaySent
	Asked   = api.ReplayAsked
	Over    = api.ReplayOver
	Refused = api.ReplayRefused
)

// Outcome is what becomes of a message, and why.
type Outcome = api.Replayed

func refused(format string, args ...any) Outcome {
	return Outcome{Result: Refused, Why: fmt.Sprintf(format, args...)}
}

// plan is the message that a replay sends; no queue: none.
type plan struct {
	Outcome
	queue   string
	message queue.Message
}

// replayer lets messages have their intended effect.
type replayer struct {
	// send brings a message to a queue; after nil it will be dealt with. queue.ErrNoQueue, *queue.RefusedError.
	send func(ctx context.Context, name string, m queue.Message) error
	// job looks a job up; see Office.
	job func(ctx context.Context, id string) (makegood.Job, error)
	// vouched: see Office.
	vouched bool
}

// replay carries out the plan for a message, and then removes it.
func (r replayer) replay(ctx context.Context, l Message, remove func(context.Context) error) (Outcome, error) {
	p, err := r.plan(ctx, l)
	if err != nil || p.Result == Refused {
		return p.Outcome, err
	}
	if p.queue != "" {
		var never *queue.RefusedError
		switch err := r.send(ctx, p.queue, p.message); {
		case errors.As(err, &never):
			return refused("the queue refuses it: %s", never.Reason), nil
		case errors.Is(err, queue.ErrNoQueue):
			return refused("there is no queue %s any more", p.queue), nil
		case err != nil:
			return Outcome{}, fmt.Errorf("replay %s to %s: %w", l.ID, p.queue, err)
		}
	}
	if err := remove(ctx); err != nil {
		return p.Outcome, fmt.Errorf("%s was replayed, and is there still: %w", l.ID, err)
	}
	return p.Outcome, nil
}

func (o Office) replayer() replayer {
	return replayer{job: o.Job, vouched: o.Vouched, send: func(ctx context.Context, name string, m queue.Message) error {
		for _, err := range o.Queues.Send(ctx, name, m) {
			return err
		}
		return nil
	}}
}

// Foresee returns the outcome that Replay would have, without any effect.
func (b *Bundle) Foresee(ctx context.Context, l Message) (Outcome, error) {
	p, err := b.office.replayer().plan(ctx, l)
	return p.Outcome, err
}

// Replay does with a message as its sender meant: a reply, a deadline or a submission that decodes now goes to its
// own queue again; for a task the Scheduler is asked to send the current attempt. Then it deletes the message. After
// an error it is unknown whether it was sent; the message may be there still, and may be replayed again without harm.
func (b *Bundle) Replay(ctx context.Context, l Message) (Outcome, error) {
	return b.office.replayer().replay(ctx, l, func(ctx context.Context) error { return b.remove(ctx, l) })
}

// plan returns the plan for a message.
func (r replayer) plan(ctx context.Context, l Message) (plan, error) {
	switch {
	case l.CutFrom > 0:
		return plan{Outcome: refused("only its beginning was kept, of %d bytes: its sender has to send it again", l.CutFrom)}, nil
	case l.Source == sweepsQueue:
		return plan{Outcome: refused("it is a tick of the schedule, and the next has come long since: drop it")}, nil
	case strings.HasPrefix(l.Source, tasksPrefix):
		return r.task(ctx, l)
	case l.Source == submissionsQueue && l.Queue == Quarantine && !r.vouched:
		return plan{Outcome: refused("agents can put messages into quarantine, too, and may not submit: look at it, and say --submissions if your own people sent it")}, nil
	case l.Source == eventsQueue || l.Source == submissionsQueue:
		return again(l), nil
	default:
		return plan{Outcome: refused("it came from no queue of this deployment")}, nil
	}
}

// again sends an event or a submission to its queue once more, if it decodes now.
func again(l Message) plan {
	in, err := wire.DecodeIncoming(l.Body)
	switch {
	case errors.Is(err, wire.ErrNewer):
		return plan{Outcome: refused("only a newer release understands it: deploy that, and replay it then (%v)", err)}
	case err != nil:
		return plan{Outcome: refused("it would not be understood: %v", err)}
	case l.Source == submissionsQueue && in.Submit == nil:
		return plan{Outcome: refused("a %s is no submission, and that queue takes no other message", l.Type)}
	}
	return plan{Outcome{Result: Sent, Why: "to " + l.Source}, l.Source, queue.Message{Body: l.Body, Group: in.Job}}
}

// task asks the Scheduler to send the current attempt, if it is that of the task. The task itself never goes out again.
func (r replayer) task(ctx context.Context, l Message) (plan, error) {
	task, err := wire.DecodeTask(l.Body)
	if err != nil {
		return plan{Outcome: refused("it is no task that can be read (%v): its job sends another, or drop it", err)}, nil
	}
	j, err := r.job(ctx, task.Job)
	if errors.Is(err, ErrNoJob) {
		return plan{Outcome: Outcome{Result: Over, Why: "there is no job " + task.Job + " any more"}}, nil
	}
	if err != nil {
		return plan{}, fmt.Errorf("look at job %s: %w", task.Job, err)
	}
	if why, over := isOver(j, task); over {
		return plan{Outcome: Outcome{Result: Over, Why: why}}, nil
	}
	body, err := wire.EncodeEvent(j.ID, job.DeadlinePassed{Key: *j.CompleteBy})
	if err != nil {
		return plan{}, err
	}
	why := fmt.Sprintf("attempt %d of step %s is out: its Scheduler looks at it at %s", task.Attempt, task.Step, j.CompleteBy.UTC().Format(time.RFC3339))
	return plan{Outcome{Result: Asked, Why: why}, eventsQueue, queue.Message{Body: body, Group: j.ID}}, nil
}

// isOver says why a task has no work left.
func isOver(j makegood.Job, task makegood.Task) (why string, over bool) {
	for _, s := range j.Steps {
		if s.Name != task.Step {
			continue
		}
		state, attempt := s.State, s.Attempt
		if task.Undo != nil {
			if s.Undo == nil {
				break
			}
			state, attempt = s.Undo.State, s.Undo.Attempt
		}
		if attempt == task.Attempt && state == makegood.StepDispatched && j.Round == task.Round && j.CompleteBy != nil {
			return "", false
		}
	}
	return fmt.Sprintf("attempt %d of step %s is over, and job %s is %s", task.Attempt, task.Step, j.ID, j.ProcessState), true
}
