// Package onhttp runs an agent in a process of its own, for the jobs of an engine elsewhere: in `makegood dev
// --outside NAME`, or in a process that embeds package engine and names the agent in its Options.Outside.
//
//	err := onhttp.Run(ctx, payments, onhttp.Options{URL: "http://127.0.0.1:4777"})
//
// It asks the engine for tasks over HTTP, works on them, sends heartbeats, and replies: the agent is the same code
// that is linked into an engine, and the same that package onqueue runs for a stack on AWS. It reads and writes large
// payloads (agent.OpenPayload, agent.WritePayload) through the engine, by pieces, as long as the attempt is its own.
//
// # When something dies
//
// The engine claims an attempt before it gives its task out, so when this process dies the claim's CompleteBy passes,
// and the job makes the next attempt. When the engine dies, or the connection breaks, the work goes on, and
// heartbeats and replies are repeated for as long as the attempt has time: a restart of the engine costs no attempt.
// A request for tasks with a lost answer is repeated under the same name. A payload is read on where its download
// broke off, and sent again where its source can be read again.
//
// The package makes no decision about jobs, and compares no two clocks: the engine's durations count on the monotonic
// clock, from before the request.
package onhttp

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"time"

	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/agentrun"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/secret"
)

// Options are the options of Run. URL must be set. Those that onqueue.Options has, too, mean the same there.
type Options struct {
	// URL is where the engine's API is, such as http://127.0.0.1:4777, or the address of its engine.AgentHandler.
	URL string
	// Token is the token that the engine asks this agent for; empty: none.
	Token string
	// Concurrency is how many attempts run at once. 1 to 1,000. Default: 64. No task
	// is taken without a free slot.
	Concurrency int
	// Instance names this process in claims: 1 to 128 of A-Z a-z 0-9 . _ : -. Default: "go-" and 128 random bits.
	Instance string
	// Grace is how long work may go on after ctx has ended. At most 30 days. Default: 30 seconds.
	Grace time.Duration
	// Logger hears of decisions, and never of payloads. Default: slog.Default().
	Logger *slog.Logger
	// Secrets gives ${ secret("name") } its values. Default: the environment, MAKEGOOD_SECRET_NAME.
	Secrets agent.Secrets
}

// instances is what an engine takes for the name of a process.
var instances = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,128}$`)

// working are the options of a run, and its agent.
type working struct {
	Options
	Agent agent.Handler
}

func (o working) complete() (working, error) {
	o.Concurrency = cmp.Or(o.Concurrency, limits.DefaultAgentConcurrency)
	o.Grace = cmp.Or(o.Grace, limits.DefaultGrace)
	o.Instance = cmp.Or(o.Instance, "go-"+rand.Text())
	o.Logger = cmp.Or(o.Logger, slog.Default())
	if o.Secrets == nil {
		o.Secrets = secret.Environment(os.LookupEnv)
	}
	if !instances.MatchString(o.Instance) {
		return o, fmt.Errorf("%w: instance %.140q: want %s", agent.ErrOptions, o.Instance, instances)
	}
	if err := cmp.Or(agentrun.CheckRun(o.Concurrency, o.Grace), agentrun.Check([]agent.Handler{o.Agent})); err != nil {
		return o, fmt.Errorf("%w: %w", agent.ErrOptions, err)
	}
	return o, nil
}

// Run takes tasks of an agent until ctx ends. The engine must know the agent's name as that of an agent outside. At
// the end Run takes only the tasks on their way, lets the running work go on for Grace, and returns nil; or tells it
// to stop, and returns agent.ErrCutOff. An error that is agent.ErrOptions means that no work was begun. While it
// runs, a request that the engine refuses, or does not answer, is repeated, at most every 5 seconds, and logged once,
// then once a minute: also a refusal because the engine knows no such agent, or wants another token. Heartbeats and
// replies are repeated for as long as their attempt has time.
func Run(ctx context.Context, a agent.Handler, options Options) error {
	o, err := working{options, a}.complete()
	if err != nil {
		return err
	}
	d, err := newDoor(o)
	if err != nil {
		return fmt.Errorf("%w: %w", agent.ErrOptions, err)
	}
	return d.run(ctx, o)
}

// run takes tasks by this door, and closes it.
func (d *door) run(ctx context.Context, o working) error {
	defer d.close()
	t := newTaker(d, o)
	o.Logger.InfoContext(ctx, "taking tasks", "agent", o.Agent.Name(), "engine", d.base.Redacted(), "instance", o.Instance, "concurrency", o.Concurrency)
	err := t.run(ctx)
	o.Logger.InfoContext(ctx, "stopped", "agent", o.Agent.Name(), "cut", err != nil)
	return err
}
