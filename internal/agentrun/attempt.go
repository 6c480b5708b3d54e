package agentrun

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math"
	"runtime/debug"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"
	"github.com/cenkalti/backoff/v5"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/agentctx"
	"github.com/makegood-dev/makegood/internal/canonical"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/payload"
	"github.com/makegood-dev/makegood/internal/secret"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/telemetry"
	"github.com/makegood-dev/makegood/internal/wire"
)

// StopPatience is how long an agent may go on after its batch was told to stop. One that does not look at
// its context is given up then: a process must be able to end.
const StopPatience = 10 * time.Second

// claimTries is how often a claim is tried if the store answers with an error.
const claimTries = 3

var (
	// errExited: the agent's goroutine ended without returning, by runtime.Goexit.
	errExited = errors.New("the agent ended its goroutine")
	// errNotBegun: when the claim was settled, it was too late to begin.
	errNotBegun = errors.New("it took too long to get the attempt")
	// errNoTime: the invocation is about to end, or was ended.
	errNoTime = errors.New("no time left in this invocation")
)

// attempt is one attempt being run.
type attempt struct {
	*Runner
	batch   context.Context
	record  events.SQSMessage
	task    makegood.Task
	handler agent.Handler
	lease   lease
	to      speaker
	// worked is the result of the agent, once it has returned.
	worked result
	// inline: the claim stands in the job, and there is no item.
	inline bool
	// with is the company of the attempt.
	with company
	// large is where it writes and reads large payloads; nil: nowhere.
	large payload.Bytes
}

// note logs a decision about the attempt.
func (a *attempt) note(level slog.Level, message, status string, args ...any) {
	if !a.config.Logger.Enabled(a.batch, level) {
		return
	}
	args = append([]any{
		"job", a.task.Job, "workflow", a.task.Workflow, "step", a.task.Step,
		"attempt", a.task.Attempt, "status", status,
	}, args...)
	a.config.Logger.Log(telemetry.Continue(a.batch, a.task.Traceparent), level, message, args...)
}

// result is the result of an agent.
type result struct {
	output json.RawMessage
	err    error
}

// run begins the attempt, works, and replies. An error means that the record should be delivered again.
func (a *attempt) run() error {
	if a.held() {
		return a.letGo()
	}
	mine, err := a.begin()
	if err != nil || !mine {
		return err
	}
	if a.config.Begun != nil {
		a.config.Begun(a.batch, a.record, a.task)
	}
	defer a.letIn()()
	return a.do()
}

// letIn lets others in beside an attempt that runs alone, aloneFor after it began, and not before its claim says so:
// the attempt need not be the cause of a later end of the process.
func (a *attempt) letIn() (stop func()) {
	if a.with.open == nil {
		return func() {}
	}
	timer := time.AfterFunc(aloneFor, func() {
		if a.with.later > a.with.beside {
			a.lease.joined(a.with.later, a.soon())
		}
		a.with.open()
	})
	return func() { timer.Stop() }
}

// held reports whether the attempt must not begin, because its agent or its workflow is paused.
func (a *attempt) held() bool {
	if a.config.Held == nil {
		return false
	}
	held, err := a.config.Held(a.batch, a.task)
	if err != nil {
		a.note(slog.LevelWarn, "begun without knowing whether it is paused", "unknown", "agent", a.task.Agent, "error", err)
	}
	return held
}

// letGo tells the Scheduler that the attempt was not begun, which then holds its job, or sends the task again. After an
// error the Scheduler was not told, and the record should be delivered again.
func (a *attempt) letGo() error {
	deadline, _ := a.lease.Deadline()
	switch {
	case a.batch.Err() != nil || a.lease.outOfInvocation():
		return errNoTime
	case !time.Now().Before(deadline):
		a.tell(func(t *Stats) { t.Late++ })
		return nil
	}
	held := job.StepHeld{Reply: job.Reply{Step: a.task.Step, Attempt: a.task.Attempt, Token: a.task.Token}}
	if err := a.to.say(a.batch, a, held, deadline); err != nil {
		a.note(slog.LevelWarn, "the Scheduler could not be told that a task was let go", "untold", "error", err)
		return err
	}
	a.tell(func(t *Stats) { t.Held++ })
	a.note(slog.LevelInfo, "let go, because it is paused", "held", "agent", a.task.Agent)
	return nil
}

// do works on an attempt with our claim, and replies. After an error no reply was sent.
func (a *attempt) do() error {
	worked, returned := a.work()
	switch {
	case !returned && a.batch.Err() != nil:
		// As if the process had died under it: the attempt is interrupted at the next start, or ends at its CompleteBy.
		a.note(slog.LevelError, "the agent did not stop, and was given up", "stuck", "agent", a.task.Agent, "patience", StopPatience)
		return context.Cause(a.batch)
	case !returned || a.lease.silent():
		// Law 8: not even an error. The Supervisor has seen the silence, or will.
		a.tell(func(t *Stats) { t.Late++ })
		a.note(slog.LevelWarn, "sent no reply past CompleteBy", "late", "returned", returned)
		return nil
	case errors.Is(worked.err, agent.ErrOver) && a.lease.lost():
		// The agent was the first to find out: a write of its own that rests on the claim was refused.
		a.tell(func(t *Stats) { t.Late++ })
		a.note(slog.LevelInfo, "sent no reply for an attempt that is over", "over")
		return nil
	case worked.err != nil && a.batch.Err() != nil && stopped(worked.err):
		// We were told to stop, which is no failure of the step. The embedded engine ends the attempt
		// as interrupted when it starts again, the Supervisor at CompleteBy.
		a.note(slog.LevelInfo, "stopped at the end of the process", "stopped")
		return context.Cause(a.batch)
	}
	return a.reply(a.outcome(worked))
}

// begin settles whether the attempt is ours to run.
func (a *attempt) begin() (mine bool, err error) {
	deadline, _ := a.lease.Deadline()
	switch {
	case a.batch.Err() != nil || a.lease.outOfInvocation():
		// Claimed now, the attempt would be lost; left alone, another invocation can have it at once.
		return false, errNoTime
	case !a.task.Shared:
		return a.settle(a.claim())
	case time.Now().Before(deadline):
		return true, nil
	default:
		a.tell(func(t *Stats) { t.Late++ })
		a.note(slog.LevelInfo, "too late to begin", "late")
		return false, nil
	}
}

// settle reads the answer to the claim.
func (a *attempt) settle(err error) (mine bool, again error) {
	switch {
	case err == nil:
		a.tell(func(t *Stats) { t.Claimed++ })
		return true, nil
	case errors.Is(err, store.ErrTaken):
		a.tell(func(t *Stats) { t.Taken++ })
		a.note(slog.LevelInfo, "another holds the attempt", "taken")
		return false, nil
	case errors.Is(err, store.ErrWithdrawn):
		a.tell(func(t *Stats) { t.Withdrawn++ })
		a.note(slog.LevelInfo, "the attempt is not wanted any more", "withdrawn")
		return false, nil
	case errors.Is(a.batch.Err(), context.Canceled):
		// The process is being stopped. The claim may have been written all the same, as below.
		a.note(slog.LevelInfo, "stopped before the attempt was known to be claimed", "unclaimed", "error", err)
		return false, err
	default:
		// The claim may have been written all the same. Then the redelivered task finds it taken, no agent works under it, and
		// the Supervisor ends it at its CompleteBy.
		a.note(slog.LevelError, "the attempt could not be claimed", "unclaimed", "error", err)
		return false, err
	}
}

// claim writes the claim. Every try carries the same LockedBy, so that the next recognises a claim with a lost answer
// as our own.
func (a *attempt) claim() error {
	try := func() error { return a.config.Claims.Claim(&a.lease, a.lease.slot, a.lease.claim, a.task.ClaimUntil) }
	err := try()
	if err != nil {
		settled := func(err error) bool { return errors.Is(err, store.ErrTaken) || errors.Is(err, store.ErrWithdrawn) }
		err = a.tryAgain(&a.lease, err, try, settled, backoff.WithMaxTries(claimTries))
	}
	if err != nil {
		return fmt.Errorf("claim job %s, step %s, attempt %d: %w", a.task.Job, a.task.Step, a.task.Attempt, err)
	}
	return nil
}

// tryAgain goes on with a first try that has failed, until one succeeds or its error is settled. It is made for that
// alone: the first try is nearly always the only one.
func (a *attempt) tryAgain(ctx context.Context, failed error, try func() error, settled func(error) bool, limit backoff.RetryOption) error {
	first := true
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		err := failed
		if !first {
			err = try()
		}
		first = false
		if settled(err) {
			err = backoff.Permanent(err)
		}
		return struct{}{}, err
	}, limit, backoff.WithBackOff(a.soon()))
	return err
}

// soon returns the waits between tries that must be over within an attempt.
func (a *attempt) soon() backoff.BackOff {
	return &scattered{of: a.config.Instance + a.task.Job + a.task.Step + a.lease.claim.LockedBy, BackOff: &backoff.ExponentialBackOff{
		InitialInterval: 30 * time.Millisecond, Multiplier: 4, MaxInterval: time.Second,
	}}
}

// scattered shortens each wait to between a third and the whole, so that attempts that failed together do not come back
// together. The fraction comes from the claim's nonce, which is random enough.
type scattered struct {
	backoff.BackOff
	of  string
	try byte
}

func (s *scattered) NextBackOff() time.Duration {
	wait := s.BackOff.NextBackOff()
	if wait == backoff.Stop {
		return wait
	}
	s.try++
	hash := fnv.New32a()
	_, _ = hash.Write(append([]byte(s.of), s.try)) // never fails, says its documentation
	return wait/3 + time.Duration(float64(wait)*2/3*float64(hash.Sum32())/math.MaxUint32)
}

// work lets the agent work until it returns, until it must be silent, or until it ignored an order to stop.
func (a *attempt) work() (worked result, returned bool) {
	if deadline, _ := a.lease.Deadline(); a.lease.Err() != nil || !time.Now().Before(deadline) {
		return result{err: agent.NotApplied(errNotBegun)}, true
	}
	done := make(chan struct{})
	// Only this goroutine may outlive the batch: an agent that ignores its context cannot be stopped. No other work gets
	// it afterwards: an agent may have locked its thread.
	go func() {
		a.worked.err = errExited
		defer close(done) // After runtime.Goexit too.
		a.worked = a.spill(a.call())
	}()
	select {
	case <-done: // Nearly always, and then no timer was made.
		return a.worked, true
	case <-a.lease.Done(): // The last word is later.
	}
	told, stuck := a.batch.Done(), (<-chan time.Time)(nil)
	for {
		patience := time.NewTimer(time.Until(a.lease.lastWord()))
		select {
		case <-done:
			patience.Stop()
			return a.worked, true
		case <-told:
			patience.Stop()
			told, stuck = nil, time.After(StopPatience)
		case <-stuck:
			patience.Stop()
			a.zombies.add(fmt.Sprintf("agent %s, attempt %d of step %s of job %s", a.task.Agent, a.task.Attempt, a.task.Step, a.task.Job), a.lease.lastWord(), done)
			return result{}, false
		case <-patience.C:
			// Look again: a heartbeat may have moved it.
			if !time.Now().Before(a.lease.lastWord()) {
				return result{}, false
			}
		}
	}
}

// call calls the agent, with its secrets. A panic is the failure of this attempt alone.
func (a *attempt) call() (worked result) {
	var hider secret.Hider
	defer func() {
		if value := recover(); value != nil {
			worked = result{err: panicked(value)}
			a.note(slog.LevelError, "the agent panicked", "panicked", "stack", string(debug.Stack()))
		}
		// What an agent says of its secrets is neither told nor kept.
		worked = result{hider.Output(worked.output), readable(worked.err, hider)}
	}()
	task, h, err := secret.Fill(&a.lease, &a.task, a.config.Secrets)
	if err != nil {
		return result{err: err}
	}
	hider = h
	task.Claim = a.claimed()
	ctx := agentctx.With(telemetry.Continue(&a.lease, task.Traceparent), agentctx.Attempt{
		Task: task, Lease: discreet{&a.lease, hider}, Payloads: a.payloadsOf(),
	})
	worked.output, worked.err = a.handler.Handle(ctx, *task)
	return worked
}

// claimed names the claim or token that holds the attempt.
func (a *attempt) claimed() makegood.TaskClaim {
	if a.task.Shared || a.inline {
		return makegood.TaskClaim{}
	}
	claim := a.config.ClaimsIn
	claim.LockedBy = a.lease.claim.LockedBy
	return claim
}

// discreet is a lease that reports and keeps progress without the secrets of its task.
type discreet struct {
	*lease
	hider secret.Hider
}

// Progress reports a value without secrets; if the names of secrets make it too long, it reports none.
func (d discreet) Progress(ctx context.Context, value json.RawMessage) error {
	value = d.hider.Output(value)
	if len(value) > makegood.MaxProgressBytes {
		return d.Heartbeat(ctx)
	}
	return d.lease.Progress(ctx, value)
}

// stopped reports whether an error means only that the agent was told to stop.
func stopped(err error) bool {
	_, waits := agentctx.Waits(err)
	return !waits && agent.Failure(err).Retryable
}

// outcome makes a reply from the agent's result.
func (a *attempt) outcome(worked result) job.Event {
	err := worked.err
	if err == nil {
		err = checkOutput(worked.output)
	} else if deadline, waits := agentctx.Waits(err); waits {
		deadline = domain.Instant(deadline)
		if _, wrong := deadline.MarshalJSON(); wrong != nil { // Neither a reply nor a job could be written with it.
			return a.failed(agent.Final(fmt.Errorf("it would wait until a time that cannot be told: %w", wrong)))
		}
		return job.StepWaiting{Reply: a.replies(), Deadline: deadline}
	} else if errors.Is(a.lease.Err(), context.DeadlineExceeded) {
		err = outOfTime(err)
	}
	if err != nil {
		return a.failed(err)
	}
	return job.StepSucceeded{
		Reply: a.replies(), Output: wire.Inline(worked.output),
	}
}

// replies names the attempt of an outcome, and its author.
func (a *attempt) replies() job.Reply {
	return job.Reply{
		Step: a.task.Step, Attempt: a.task.Attempt, Token: a.task.Token,
		LockedBy: a.lease.claim.LockedBy, StartedAt: a.lease.claim.StartedAt,
	}
}

func (a *attempt) failed(err error) job.StepFailed {
	return job.StepFailed{Reply: a.replies(), Error: failure(err)}
}

// checkOutput returns why an output is refused. That is final, but the effect has happened.
func checkOutput(output json.RawMessage) error {
	switch {
	case len(output) > makegood.MaxPayloadBytes:
		return agent.Final(fmt.Errorf("the output has %d bytes, the limit is %d", len(output), makegood.MaxPayloadBytes))
	case len(output) > 0 && !(json.Valid(output) && utf8.Valid(output)):
		return agent.Final(errors.New("the output is not JSON in UTF-8"))
	}
	if err := canonical.CheckDepth(output); err != nil {
		return agent.Final(fmt.Errorf("the output is %w", err))
	}
	return nil
}

// failure converts an error to the engine's StepError.
func failure(err error) job.StepError {
	f := agent.Failure(err)
	return job.StepError{Message: f.Message, Retryable: f.Retryable, Kind: f.Kind, Applied: f.Applied, RetryAfter: f.RetryAfter, SlowDown: f.SlowDown}
}

// outOfTime says that an error came when time was up; that is its kind where it has none.
func outOfTime(err error) error {
	timely := fmt.Errorf("out of time: %w", err)
	if agent.Failure(err).Kind == "" {
		return agent.Kind(makegood.KindTimeout, timely)
	}
	return timely
}
