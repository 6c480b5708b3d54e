package agentrun

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/agentctx"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
)

var errShared = errors.New("the step is not exclusive, so its attempts are not claimed, and their CompleteBy cannot move")

// lease is the right of one attempt to run, and the context in which it does: unlike any context of
// the standard library its deadline moves, with every heartbeat.
type lease struct {
	// Context carries the end. It has a cause: context.DeadlineExceeded, agent.ErrWithdrawn,
	// agent.ErrOver, or that of the batch.
	context.Context
	end context.CancelCauseFunc
	// move moves CompleteBy where the claim is kept, and returns the one that stands there now, and the same moment on the
	// monotonic clock, counted from began. Errors are those of store.Claims.Heartbeat. heartbeat is held. Nil: moveStored.
	move   func(ctx context.Context, began time.Time) (completeBy, expires time.Time, err error)
	claims store.Claims
	now    func() time.Time
	task   *makegood.Task
	slot   store.Slot
	claim  job.Claim
	margin time.Duration
	// lapses is when the attempt must end however it heartbeats, on the monotonic clock; zero: only the store says so.
	lapses time.Time
	// stop is when work must stop, and silence when the attempt must be silent, because the invocation ends; zero: it does
	// not.
	stop, silence time.Time

	// heartbeat admits one heartbeat at a time, so that the last one stored is the last one kept here.
	heartbeat sync.Mutex
	// extended is when the claim was last moved, on the monotonic clock. heartbeat is held.
	extended time.Time
	// progress was reported and is not written yet. heartbeat is held.
	progress job.Progress

	mu sync.Mutex
	// completeBy is the time as stored, expires the same moment on the monotonic clock.
	completeBy, expires time.Time
	replaced            bool
	timer               *time.Timer
}

var (
	_ context.Context = (*lease)(nil)
	_ agentctx.Lease  = (*lease)(nil)
)

// lockedBy names a claim: the instance, and a nonce. A shared task is not claimed.
func (r *Runner) lockedBy(task makegood.Task) string {
	if task.Shared {
		return ""
	}
	return r.config.Instance + ":" + r.config.Nonce(task)
}

// begin starts the clock of an attempt, which keeps the task: it must not change. The time that the claim takes counts,
// since the claim that is written says when it began.
func (l *lease) begin(batch context.Context, claims store.Claims, now func() time.Time, task *makegood.Task, lockedBy string) {
	started, wall := time.Now(), now()
	budget := domain.Silence(*task).Std()
	if !task.CompleteBy.IsZero() {
		// Both the moment that the Scheduler waits for, and no longer than an attempt may take by
		// our own clock, in case theirs and ours disagree.
		budget = min(budget, task.CompleteBy.Sub(wall))
	}
	completeBy := domain.Instant(wall.Add(budget))
	*l = lease{
		claims: claims, now: now, task: task,
		slot:   store.Slot{Agent: task.Agent, Job: task.Job, Birth: task.Birth, Step: task.Step},
		margin: min(maxMargin, domain.Silence(*task).Std()/10),
		claim: job.Claim{
			Attempt: task.Attempt, LockedBy: lockedBy, StartedAt: domain.Instant(wall), CompleteBy: completeBy,
		},
		completeBy: completeBy, expires: started.Add(budget), extended: started,
	}
	l.start(batch)
}

// start begins to watch the clock.
func (l *lease) start(batch context.Context) {
	if l.task.Heartbeat > 0 {
		l.lapses = l.extended.Add(l.task.Timeout.Std())
	}
	l.Context, l.end = context.WithCancelCause(batch)
	if deadline, ok := batch.Deadline(); ok {
		l.stop, l.silence = deadline.Add(-reserve), deadline.Add(-reserve/2)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer = time.AfterFunc(time.Until(l.deadline()), l.expire)
}

// close ends the context, and with it everything that waits for it.
func (l *lease) close() {
	l.timer.Stop()
	l.end(context.Canceled)
}

// expire ends the context, unless its deadline has moved since the timer was set.
func (l *lease) expire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if left := time.Until(l.deadline()); left > 0 {
		l.timer.Reset(left)
		return
	}
	l.end(context.DeadlineExceeded)
}

// deadline is when the work must stop. l.mu is held.
func (l *lease) deadline() time.Time { return earlier(l.expires.Add(-l.margin), l.stop) }

// Deadline is when the work must stop as it stands now.
func (l *lease) Deadline() (time.Time, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.deadline(), true
}

// Err returns DeadlineExceeded at the end of the time; a context that is ended by hand would not.
func (l *lease) Err() error {
	if errors.Is(context.Cause(l.Context), context.DeadlineExceeded) {
		return context.DeadlineExceeded
	}
	return l.Context.Err()
}

// CompleteBy is the one that is stored in the claim.
func (l *lease) CompleteBy() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.completeBy
}

// outOfInvocation reports whether the invocation has no time for work any more.
func (l *lease) outOfInvocation() bool {
	return !l.stop.IsZero() && !time.Now().Before(l.stop)
}

// lastWord is until when the attempt may speak, on the monotonic clock.
func (l *lease) lastWord() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return earlier(l.expires, l.silence)
}

// silent reports whether the attempt must be silent. It also asks the wall clock: the monotonic one may stand still
// while a machine sleeps.
func (l *lease) silent() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.replaced || !time.Now().Before(earlier(l.expires, l.silence)) || !l.now().Before(l.completeBy)
}

// Heartbeat implements agent.Heartbeat.
func (l *lease) Heartbeat(ctx context.Context) error {
	l.heartbeat.Lock()
	defer l.heartbeat.Unlock()
	return l.extendAfter(ctx, rest(l.task.Heartbeat))
}

// Progress implements agent.Progress.
func (l *lease) Progress(ctx context.Context, value json.RawMessage) error {
	l.heartbeat.Lock()
	defer l.heartbeat.Unlock()
	l.progress = job.Progress{Value: string(value), At: domain.Instant(l.now())}
	return l.extendAfter(ctx, rest(domain.Silence(*l.task)))
}

// lost reports whether the attempt is over, by asking the store of its claim: an agent that says so may be wrong, and
// then its error is sent like any other.
func (l *lease) lost() bool {
	if l.task.Shared {
		return false
	}
	l.heartbeat.Lock()
	defer l.heartbeat.Unlock()
	_ = l.extendAfter(l, 0) // the result is kept in the lease, and an error is no reason to be silent
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.replaced
}

// extendAfter writes a heartbeat, unless the last one was less than pause ago. l.heartbeat is held.
func (l *lease) extendAfter(ctx context.Context, pause time.Duration) error {
	if l.task.Shared {
		return agent.Final(errShared)
	}
	if err := l.ended(); err != nil {
		return err
	}
	began := time.Now()
	if began.Sub(l.extended) < pause {
		return nil
	}
	move := l.move
	if move == nil {
		move = l.moveStored
	}
	completeBy, expires, err := move(ctx, began)
	switch {
	case err == nil:
		l.extended, l.progress = began, job.Progress{}
		l.extend(completeBy, expires)
	case errors.Is(err, store.ErrWithdrawn):
		l.extend(completeBy, expires)
		l.end(agent.ErrWithdrawn)
	case errors.Is(err, store.ErrTaken):
		l.lose()
	case l.ended() == nil:
		return fmt.Errorf("heartbeat of job %s, step %s, attempt %d: %w", l.task.Job, l.task.Step, l.task.Attempt, err)
	}
	// The time may have run out while the store was asked.
	return l.ended()
}

// joined has the claim say that others have come beside the attempt: tried until it does, or the attempt has ended.
func (l *lease) joined(beside int, pauses backoff.BackOff) {
	claim := l.claim
	claim.Beside = beside
	_, _ = backoff.Retry(l, func() (struct{}, error) {
		// It asks for no more time than the attempt has.
		_, err := l.claims.Heartbeat(l, l.slot, claim, l.task.ClaimUntil)
		if errors.Is(err, store.ErrTaken) || errors.Is(err, store.ErrWithdrawn) {
			err = backoff.Permanent(err)
		}
		return struct{}{}, err
	}, backoff.WithMaxElapsedTime(0), backoff.WithBackOff(pauses))
}

// moveStored moves CompleteBy in the store.
func (l *lease) moveStored(ctx context.Context, began time.Time) (completeBy, expires time.Time, err error) {
	claim := l.claim
	claim.Beside = 0 // The claim has it already.
	expires = earlier(began.Add(domain.Silence(*l.task).Std()), l.lapses)
	claim.CompleteBy = store.Lasting(*l.task, claim.StartedAt, l.now())
	claim.Progress = l.progress
	if stored := l.CompleteBy(); claim.CompleteBy.Before(stored) {
		// The clock was set back.
		claim.CompleteBy = stored
	}
	completeBy, err = l.claims.Heartbeat(ctx, l.slot, claim, l.task.ClaimUntil)
	// It may have moved less far than it was asked to.
	return completeBy, expires.Add(completeBy.Sub(claim.CompleteBy)), err
}

// rest is how long after a heartbeat the next is not worth a write, for an attempt that may be silent so long: an agent
// may heartbeat in a loop. Where the workflow sets no heartbeat, each is written.
func rest(silence makegood.Duration) time.Duration {
	return min(maxRest, silence.Std()/4)
}

// ended returns the reason for the end of the context, as an error of the agent kit; nil: it has not ended.
func (l *lease) ended() error {
	switch cause := context.Cause(l.Context); {
	case cause == nil:
		return nil
	case errors.Is(cause, agent.ErrWithdrawn), errors.Is(cause, agent.ErrOver):
		return cause
	default:
		return fmt.Errorf("%w: %w", agent.ErrOver, cause)
	}
}

// extend moves the deadline. The timer finds out when it fires.
func (l *lease) extend(completeBy, expires time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.completeBy, l.expires = completeBy, expires
}

// lose ends an attempt that another one has replaced.
func (l *lease) lose() {
	l.mu.Lock()
	l.replaced = true
	l.mu.Unlock()
	l.end(agent.ErrOver)
}

// earlier returns the earlier of a time and a limit, which may be zero: none.
func earlier(t, limit time.Time) time.Time {
	if limit.IsZero() || t.Before(limit) {
		return t
	}
	return limit
}
