package agentdoor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/wire"
)

const (
	// claimWithin is how long claiming may take, whether or not the agent still listens.
	claimWithin = 10 * time.Second
	// againAfter is the delay before a task comes again if its claim may or may not have been written.
	againAfter = time.Second
	// shortestWait lets a request with no wait see the tasks that are there.
	shortestWait = 10 * time.Millisecond
)

// Ask is a request for tasks.
type Ask struct {
	// Instance names the process that asks, in LockedBy.
	Instance string
	// Max is how many tasks it can take, 1 to limits.MaxBatch, and Wait how long it waits for the first, at most
	// limits.MaxTaskWait.
	Max  int
	Wait time.Duration
	// Request names the request: the same name gets the same tasks, as long as they are out. Empty: it is not remembered.
	Request string
}

// Task is a task that is the asker's, for as long as Left says.
type Task struct {
	// Body is the message as it is on a queue.
	Body string
	// Claim is the claim. LockedBy is empty for a shared task, which has none.
	Claim job.Claim
	// expires is when silence becomes failure, on the monotonic clock.
	expires time.Time
	// job and reply name the attempt, as its answer will.
	job   string
	reply job.Reply
}

// Left is how long the task may still run and be replied to.
func (t Task) Left() time.Duration { return max(0, time.Until(t.expires)) }

// Take waits for tasks of an agent, claims them, and returns them, or none if none came in time. After an error the
// caller has none, though a claim with an unknown outcome may run out in silence. When ctx ends before a task is
// claimed, the task goes to another request.
func (d *Door) Take(ctx context.Context, agent string, ask Ask) ([]Task, error) {
	a := d.agents[agent]
	if a == nil {
		return nil, ErrUnknown
	}
	select {
	case a.polls <- struct{}{}:
		defer func() { <-a.polls }()
	default:
		return nil, ErrBusy
	}
	a.seen.asks(ask.Instance)
	defer func() { a.seen.asks(ask.Instance) }() // One that waited is there until it has stopped waiting.
	ctx, cancel := context.WithTimeout(ctx, max(ask.Wait, shortestWait))
	defer cancel()
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-d.closed:
			cancel()
		case <-stop:
		}
	}()
	if ask.Request == "" {
		return d.wait(ctx, a, ask)
	}
	out := func(t Task) bool { return d.isOut(ctx, t) }
	return a.recent.once(ctx, ask.Instance+" "+ask.Request, out, func() ([]Task, error) { return d.wait(ctx, a, ask) })
}

// isOut reports whether the attempt of a given task is still out, as far as the job can be read: it may have been
// answered, and must not be given again then.
func (d *Door) isOut(ctx context.Context, t Task) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), claimWithin)
	defer cancel()
	_, out, err := d.taskOut(ctx, t.job, t.reply)
	return out || err != nil
}

// wait receives until a task is claimed, or ctx ends.
func (d *Door) wait(ctx context.Context, a *outside, ask Ask) ([]Task, error) {
	name := d.config.Tasks(a.name)
	for {
		records, err := d.config.Receiver.Receive(ctx, name, ask.Max)
		if ctx.Err() != nil {
			d.giveBack(ctx, name, 0, records)
			return nil, d.ended()
		}
		if err != nil {
			return nil, fmt.Errorf("receive tasks of agent %s: %w", a.name, err)
		}
		if tasks := d.claimAll(ctx, name, ask.Instance, records); len(tasks) > 0 {
			return tasks, nil
		}
	}
}

// ended is ErrClosed if the door was closed, and nil after a wait in vain.
func (d *Door) ended() error {
	select {
	case <-d.closed:
		return ErrClosed
	default:
		return nil
	}
}

// claimAll claims the received tasks, all at once, and returns those that the caller got, in the order received.
func (d *Door) claimAll(ctx context.Context, name, instance string, records []events.SQSMessage) []Task {
	// A claim that was begun is completed: the caller may ask again for its tasks.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), claimWithin)
	defer cancel()
	claims := make([]*Task, len(records))
	errs := make([]error, len(records))
	var wg sync.WaitGroup
	for i, record := range records {
		wg.Go(func() { claims[i], errs[i] = d.claim(ctx, instance, record) })
	}
	wg.Wait()
	var mine []Task
	var again, done []events.SQSMessage
	for i, record := range records {
		if errs[i] != nil {
			d.config.Logger.WarnContext(ctx, "a task for an agent outside could not be claimed", "queue", name, "error", errs[i])
			again = append(again, record)
			continue
		}
		done = append(done, record)
		if claims[i] != nil {
			mine = append(mine, *claims[i])
		}
	}
	d.giveBack(ctx, name, againAfter, again)
	if err := d.config.Receiver.Delete(ctx, name, receipts(done)...); err != nil {
		// They come again, and are found claimed.
		d.config.Logger.WarnContext(ctx, "tasks that were given out will come again", "queue", name, "error", err)
	}
	return mine
}

// claim claims the attempt of one task; nil without an error if another has it, or it is not wanted any more.
func (d *Door) claim(ctx context.Context, instance string, record events.SQSMessage) (*Task, error) {
	task, err := wire.DecodeTask(record.Body)
	if err != nil {
		return nil, err
	}
	if held, err := d.letGo(ctx, task); held || err != nil {
		return nil, err
	}
	began, now := time.Now(), d.config.Now()
	budget := domain.Silence(task).Std()
	if task.Shared {
		budget = min(budget, task.CompleteBy.Sub(now))
	}
	t := &Task{
		Body:    record.Body,
		Claim:   job.Claim{Attempt: task.Attempt, StartedAt: domain.Instant(now), CompleteBy: domain.Instant(now.Add(budget))},
		expires: began.Add(budget),
		job:     task.Job,
		reply:   job.Reply{Step: task.Step, Attempt: task.Attempt, Token: task.Token},
	}
	if task.Shared && budget <= 0 {
		return nil, nil
	}
	claim := t.Claim
	if claim.LockedBy = job.OutsidePrefix + instance + ":" + d.config.Nonce(); task.Shared {
		// A shared task has no claim, and may be given away more than once. Its item says that it was: otherwise a restart
		// would take the attempt for dead, and undo it while the agent works on it.
		claim.LockedBy, claim.CompleteBy = job.OutsideShared, task.CompleteBy
	}
	err = d.config.Store.Claim(ctx, slotOf(task), claim, task.ClaimUntil)
	if errors.Is(err, store.ErrTaken) || errors.Is(err, store.ErrWithdrawn) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !task.Shared {
		t.Claim = claim
	}
	return t, nil
}

// letGo reports whether a task must not be given out, because its agent or its workflow is paused. The Scheduler was
// told so then, and its job is held. An error means that the task should come again.
func (d *Door) letGo(ctx context.Context, task makegood.Task) (bool, error) {
	if d.config.Held == nil {
		return false, nil
	}
	held, err := d.config.Held(ctx, task)
	if err != nil {
		d.config.Logger.WarnContext(ctx, "given out without knowing whether it is paused", "job", task.Job, "step", task.Step, "error", err)
	}
	if !held {
		return false, nil
	}
	reply := job.StepHeld{Reply: job.Reply{Step: task.Step, Attempt: task.Attempt, Token: task.Token}}
	if _, err = d.config.Scheduler.Reply(ctx, task.Job, reply); errors.Is(err, store.ErrNotFound) {
		return true, nil
	}
	return true, err
}

// giveBack returns records to their queue. One that could not be returned comes again by itself, later.
func (d *Door) giveBack(ctx context.Context, name string, after time.Duration, records []events.SQSMessage) {
	if len(records) == 0 {
		return
	}
	ctx = context.WithoutCancel(ctx)
	if err := d.config.Receiver.Return(ctx, name, after, receipts(records)...); err != nil {
		d.config.Logger.WarnContext(ctx, "tasks could not be given back", "queue", name, "error", err)
	}
}

func receipts(records []events.SQSMessage) []string {
	all := make([]string, 0, len(records))
	for _, r := range records {
		all = append(all, r.ReceiptHandle)
	}
	return slices.Clip(all)
}
