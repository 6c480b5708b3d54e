package agentdoor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/wire"
)

// ErrNoReply: the message is no reply of an agent.
var ErrNoReply = errors.New("want the reply of an agent: StepSucceeded, StepFailed or StepWaiting, as docs/messages.md has it")

// Reply takes an agent's reply, as it would be on a queue, and returns after it is saved. That a reply changes nothing,
// because it came before, or too late, or does not carry the task's token, is in the verdict, and no error.
// wire.ErrPoison and wire.ErrNewer, ErrNoReply; store.ErrNewer for a job that a newer release must decide about.
func (d *Door) Reply(ctx context.Context, body string) (machine.Verdict, error) {
	id, event, err := wire.DecodeEvent(body)
	if err != nil {
		return machine.Verdict{}, err
	}
	if _, is := event.(interface{ Said() job.Reply }); !is {
		return machine.Verdict{}, ErrNoReply
	}
	verdict, err := d.config.Scheduler.Reply(ctx, id, event)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return machine.Verdict{Kind: machine.Stale, Reason: fmt.Sprintf("there is no job %s", id)}, nil
	case err == nil && verdict.Kind == machine.Newer:
		return verdict, fmt.Errorf("reply of job %s: %w", id, store.ErrNewer)
	}
	return verdict, err
}

// Held is the answer to a heartbeat.
type Held string

// The answers to a heartbeat.
const (
	// Mine: the attempt goes on.
	Mine Held = "held"
	// Withdrawn: the result is not wanted; there is time to stop tidily, and a reply is still taken.
	Withdrawn Held = "withdrawn"
	// Over: the attempt has ended. Heartbeats and replies are ignored.
	Over Held = "over"
)

// Standing is the result of a heartbeat.
type Standing struct {
	Held Held
	// CompleteBy is when silence becomes failure now, and Left how long that was when it was asked; zero with Over.
	CompleteBy time.Time
	Left       time.Duration
}

// Heartbeat moves the CompleteBy of an attempt to its heartbeat, or its timeout, from now, for the holder of its claim
// and token. progress, if given, is kept beside the claim, for people to see. Heartbeat returns after a flush. An error
// leaves it open whether CompleteBy has moved.
func (d *Door) Heartbeat(ctx context.Context, id string, r job.Reply, progress json.RawMessage) (Standing, error) {
	over, now := Standing{Held: Over}, d.config.Now()
	task, out, err := d.taskOut(ctx, id, r)
	if err != nil || !out {
		return over, err
	}
	claim, held, err := d.claimOf(ctx, task, r.LockedBy, now)
	if err != nil || !held {
		return over, err
	}
	claim.CompleteBy = store.Lasting(task, claim.StartedAt, now)                    // If the clock was set back, the store leaves it as it is.
	claim.Progress = job.Progress{Value: string(progress), At: domain.Instant(now)} // A heartbeat without progress keeps the last one.
	completeBy, err := d.config.Store.Heartbeat(ctx, slotOf(task), claim, task.ClaimUntil)
	stands := Standing{Held: Mine, CompleteBy: completeBy, Left: max(0, completeBy.Sub(now))}
	switch {
	case errors.Is(err, store.ErrTaken):
		return over, nil
	case errors.Is(err, store.ErrWithdrawn):
		stands.Held = Withdrawn
	case err != nil:
		return Standing{}, err
	}
	return stands, nil
}

// taskOut returns the task of the attempt that r speaks of. out is false if that is not out, or r has not its token.
func (d *Door) taskOut(ctx context.Context, id string, r job.Reply) (task makegood.Task, out bool, err error) {
	task, out, err = d.config.Scheduler.TaskOut(ctx, id, r)
	if errors.Is(err, store.ErrNotFound) {
		return task, false, nil
	}
	return task, out && err == nil, err
}

// claimOf returns the claim of an attempt. held is false if it is not that of lockedBy, an outside agent. Shared ones
// have none.
func (d *Door) claimOf(ctx context.Context, task makegood.Task, lockedBy string, now time.Time) (claim job.Claim, held bool, err error) {
	if task.Shared {
		return job.Claim{}, false, nil
	}
	found, err := d.config.Store.Look(ctx, slotOf(task), task.Attempt, task.ClaimUntil, now)
	if err != nil {
		return job.Claim{}, false, err
	}
	return found.Claim, found.Finding == job.FoundHeld && found.Claim.LockedBy == lockedBy && found.Claim.Outside(), nil
}
