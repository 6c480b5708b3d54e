// Package onqueue runs an agent of a deployed stack anywhere: on ECS, on EC2, on a laptop, for work that takes longer
// than a Lambda function may, or that needs a machine of its own.
//
//	err := onqueue.Run(ctx, trips.Render, onqueue.Options{Stack: "trips-prod"})
//
// It polls the agent's tasks queue, claims attempts, works on them, and replies: the same code that runs in a
// function. The stack's own function of that agent must not poll the queue (docs/long-steps.md says how that is
// switched off).
//
// # When the process dies
//
// The message of a task is deleted once its attempt is claimed, so no visibility timeout of SQS bounds the work, and
// no message has to come back: the claim's CompleteBy passes, and the job makes the next attempt. A process that is
// killed therefore costs as much time as its step may be silent (heartbeat, in the workflow), and one look. A message
// that was received and not claimed comes back by itself.
package onqueue

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/agentrun"
	"github.com/makegood-dev/makegood/internal/deployed"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/stack"
)

// Options are the options of Run. Only Stack must be set, and not even that where the environment names the table and
// the queues.
type Options struct {
	// Stack is the name of the stack; CloudFormation is asked where its table and queues are. MAKEGOOD_TABLE and
	// MAKEGOOD_QUEUE_PREFIX, where they are set, stand instead, and CloudFormation is not asked.
	Stack string
	// Concurrency is how many attempts run at once. 1 to 1,000. Default: 64. No
	// message is received without a free slot.
	Concurrency int
	// Grace is how long work may go on after ctx has ended. At most 30 days. Default: 30 seconds.
	Grace time.Duration
	// Health is the address, HOST:PORT, at which GET /health answers 200 while tasks are taken, and 503 when the queue
	// could not be reached for a minute or the process is stopping; empty: nowhere.
	Health string
	// Logger hears of decisions, and never of payloads. Default: slog.Default().
	Logger *slog.Logger
	// Secrets gives ${ secret("name") } its values. Default: the environment, MAKEGOOD_SECRET_NAME; or what
	// MAKEGOOD_SECRETS says, as in a function.
	Secrets agent.Secrets
}

func (o Options) complete() (Options, error) {
	o.Concurrency = cmp.Or(o.Concurrency, limits.DefaultAgentConcurrency)
	o.Grace = cmp.Or(o.Grace, limits.DefaultGrace)
	o.Logger = cmp.Or(o.Logger, slog.Default())
	if err := agentrun.CheckRun(o.Concurrency, o.Grace); err != nil {
		return o, fmt.Errorf("%w: %w", agent.ErrOptions, err)
	}
	return o, nil
}

// Run takes tasks of an agent until ctx ends. Then it takes no more, hands back messages that were received and not
// begun, lets running attempts go on for Grace, and returns nil; or tells the rest to stop, and returns
// agent.ErrCutOff. An error that is agent.ErrOptions means that no task was begun: the options, the credentials, the
// stack or its queue cannot be. While it runs, requests that AWS refuses are repeated, at most every half minute, and
// logged.
func Run(ctx context.Context, a agent.Handler, o Options) error {
	o, err := o.complete()
	if err != nil {
		return err
	}
	if err := agentrun.Check([]agent.Handler{a}); err != nil {
		return fmt.Errorf("%w: %w", agent.ErrOptions, err)
	}
	parts, err := stack.FindParts(ctx, o.Stack, os.Getenv)
	if err != nil {
		return fmt.Errorf("%w: %w", agent.ErrOptions, err)
	}
	at, err := deployed.Outside(ctx, os.Getenv, deployed.OutsideConfig{
		AWS: parts.AWS, Table: parts.Table, Index: parts.Index, QueuePrefix: parts.QueuePrefix, Payloads: parts.Payloads, Agent: a.Name(),
	})
	if err != nil {
		return fmt.Errorf("%w: %w", agent.ErrOptions, err)
	}
	p := newPoller(at.Queues, deployed.TasksQueue(a.Name()), o)
	secrets := o.Secrets
	if secrets == nil {
		secrets = at.Secrets
	}
	runner := agentrun.New(agentrun.Config{
		Handlers: []agent.Handler{a}, Claims: at.Claims, ClaimsIn: makegood.TaskClaim{Table: parts.Table}, Queue: at.Queues, Tasks: p.queue, Quarantine: deployed.QuarantineQueue,
		Held: at.Held, Begun: p.begun, Others: o.Concurrency - 1, Instance: at.Instance, Secrets: secrets, Large: at.Large, Logger: o.Logger,
		Counts: true,
	})
	p.handler = runner.HandleSQS
	if o.Health != "" {
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", o.Health)
		if err != nil {
			return fmt.Errorf("%w: health: %w", agent.ErrOptions, err)
		}
		defer serveHealth(listener, a.Name(), p, runner, o.Logger)()
	}
	o.Logger.InfoContext(ctx, "taking tasks", "agent", a.Name(), "queue", p.queue, "instance", at.Instance, "concurrency", o.Concurrency)
	err = p.run(ctx)
	o.Logger.InfoContext(ctx, "stopped", "agent", a.Name(), "cut", err != nil)
	return err
}
