// Package engine is Makegood in your process: no cloud, no Docker, one folder. Jobs survive the death of the process
// at any moment, and go on with the next engine on the same folder.
//
//	eng, err := engine.Open(ctx, engine.Options{Dir: "data", Workflows: trips.Files, Agents: trips.Agents})
//	go eng.Run(ctx)                                        // until ctx ends; it returns why it stopped
//	job, err := eng.Submit(ctx, makegood.Submission{Workflow: "trip", ID: "t-1", Input: trip})
//	job, err = eng.Wait(ctx, "t-1")                        // its end, or Error
//	mux.Handle("/makegood/", http.StripPrefix("/makegood", eng.Handler()))
//
// An Engine is an api.Jobs. There is no global state: several engines may run in one process, each on a folder of its
// own. After Close an engine leaves no goroutine behind, except those of agents that ignore the end of their context:
// Run waits ten seconds for such an agent, and then returns without it.
package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/bulk"
	"github.com/makegood-dev/makegood/internal/control"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/httpagent"
	"github.com/makegood-dev/makegood/internal/httpapi"
	"github.com/makegood-dev/makegood/internal/page"
	"github.com/makegood-dev/makegood/internal/workflowfile"
	"github.com/makegood-dev/makegood/telemetry"
)

// Errors of Run.
var (
	// ErrRunning: another Run of the same engine has not returned. It goes on undisturbed.
	ErrRunning = embedded.ErrRunning
	// ErrClosed: the engine was closed, and runs no more.
	ErrClosed = embedded.ErrClosed
)

// Concurrency limits the attempts that run at once in an engine; further attempts wait, unclaimed. Undos are counted
// separately: beside the steps the same number of undos may run, so a step never delays an undo, however long it
// takes. Agents outside take as many tasks as they ask for.
type Concurrency struct {
	// All limits the attempts of all agents together, 1 to 10,000. Zero: no limit besides that of each agent.
	All int
	// Agents limits the attempts of each agent, by its name, 1 to 10,000. An agent without an entry: 64.
	Agents map[string]int
}

// Options configure an engine. The zero value stores no job on disk, knows no workflow, and has only the built-in
// agent http.
type Options struct {
	// Dir is the folder of all stored data, made if it is not there, for its owner alone. One engine at a time holds it.
	// Empty: all data is in memory, and all jobs are gone with the engine.
	Dir string
	// Workflows hold the workflow files, *.yaml and *.yml, also in folders below. Each becomes the current definition of
	// its name; jobs that are in Dir already keep theirs. Nil: none; Define adds workflows one by one.
	Workflows fs.FS
	// Agents do the steps, beside the built-in http.
	Agents []agent.Handler
	// Concurrency is how many attempts of Agents run at once. The zero value: 64 of each.
	Concurrency Concurrency
	// Limits are those of LimitAgent. Open sets each that differs from the one in Dir, so a limit that a person sets
	// instead lasts until then. The zero value takes a limit away; an agent that is not here keeps the one that it has.
	Limits map[string]makegood.Limit
	// Breakers are agents that are paused by themselves when their service is down (docs/holds.md); "*": all.
	Breakers []string
	// Secrets returns the values of ${ secret("name") } in workflows, just before an agent of Agents works: never stored,
	// never logged. Nil: the variable MAKEGOOD_SECRET_NAME of the environment.
	Secrets agent.Secrets
	// Outside are agents that do their steps in other processes, in any language: they ask Handler, or AgentHandler, for
	// their tasks.
	Outside []Outside
	// Retention is how long a job is kept after its end, at least 24 hours. Zero: for ever.
	Retention time.Duration
	// Notify names the receivers of news about jobs, agents, changes and questions. The zero value: Logger alone.
	Notify Notify
	// Hosts are the names, beside loopback addresses, under which requests may reach Handler: it refuses others with 421,
	// because a hostile page could make its own name resolve to this machine.
	Hosts []string
	// Caller returns the author of a request to Handler, for the records of that request. It gets only requests from
	// outside the engine: a bulk repair, which goes on without a browser and after a restart, acts as the caller that
	// began it. Nil: "local", for every caller.
	Caller func(*http.Request) string
	// Telemetry sends traces and metrics to providers of OpenTelemetry; the zero value: none are sent. A collector that is
	// slow or gone delays no job. Its Scrape answers GET /metrics of Handler.
	Telemetry telemetry.Telemetry
	// Logger gets the errors, the same error once a minute, and never a payload. Nil: slog.Default().
	Logger *slog.Logger
}

// Outside is an agent that runs in other processes. A process that has taken a task keeps it until the task's time has
// run out: the claim is on the disk before the task is handed out, and a restart of the engine does not end it.
type Outside struct {
	// Name is the agent's name in workflows, which may use it for any step.
	Name string
	// Token authenticates a request as this agent: "Authorization: Bearer TOKEN". At most 1,024 bytes. Empty: every
	// request that reaches the handler is accepted.
	Token string
}

// Notice reports a change of a job's ProcessState. It carries no payload. A receiver recognises a repeated notice by
// Job and Seq.
type Notice struct {
	// Job is the job's id, Workflow the name of its workflow.
	Job      string
	Workflow string
	// Seq numbers the notices of a job; the first is 1.
	Seq          int
	ProcessState makegood.ProcessState
	// Reason says why the job stopped, is undone or was cancelled; empty otherwise.
	Reason string
	// At is the time of the change.
	At time.Time
	// ReplyTo is the name under which the listener is registered; empty: the job has no listener.
	ReplyTo string
	// ExpectBy is set, for the Operator alone, if the job will not be done by this time, by which its workflow expects it
	// (makegood.Workflow.Expect). Such a notice reports no change of state, and its Reason says why the job waits.
	ExpectBy time.Time
}

// Question asks a person or program to complete a step. Any holder of its Completion may answer. A receiver recognises
// a repeated question by Job, Step, Undo, Round and N.
type Question struct {
	// Job is the job's id, Workflow the name of its workflow, Step the step that waits; Undo: its undo waits.
	Job, Workflow, Step string
	Undo                bool
	// Round is the job's round; N counts the questions of one wait, the first is 1.
	Round, N int
	// Since is when the wait began, Deadline when it ends without an answer.
	Since, Deadline time.Time
	// Text is the question of an approval, Choices are its answers; none: any output.
	Text    string
	Choices []string
	// Completion is the completion token. Link is the page where a person can answer with it; empty: there is none.
	Completion, Link string
}

// Engine runs jobs in this process. Make it with Open, let it Run, and Close it. Its methods may be called by many
// goroutines at once, also before Run: a job submitted then waits for Run.
//
// Package api documents the methods of the interfaces that an Engine implements: through them a program works with
// jobs, schedules, pauses, large payloads and agents, in the same words and with the same errors as with a
// client.Client.
type Engine struct {
	api.Jobs
	api.Schedules
	api.Holds
	api.Payloads
	api.Agents

	inner   *embedded.Engine
	http    *httpagent.Agent
	handler *page.Page
	// outside and answers make a door, once.
	outside func() http.Handler
	answers func() http.Handler
	agents  []workflowfile.Named
	waiting *control.Waiting
	closing sync.Once
	closed  error
}

// byEngine is the author of the program's own requests, where it names none (api.As).
const byEngine = "engine"

// Open takes the folder and reads the workflows. No job runs before Run. Open fails, and holds no folder, where an
// option is invalid (an agent that is nil, given twice or called http, a listener that is nil or badly named), where
// another engine has the folder (the error names its process), where a workflow file is wrong or names an unknown
// agent (the error has all mistakes, FILE:LINE each), or where the folder was written by a release that this one
// cannot follow.
func Open(ctx context.Context, o Options) (*Engine, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	http, err := httpagent.New(httpagent.Policy{AllowPrivate: true})
	if err != nil {
		return nil, err
	}
	e := &Engine{http: http, waiting: control.NewWaiting()}
	config := o.config(append([]agent.Handler{http}, o.Agents...), e.waiting)
	e.agents = config.Named()
	files, err := workflowfile.ReadAll(o.Workflows, "", workflowfile.WithAgents(e.agents...))
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	if e.inner, err = embedded.Open(ctx, config); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	for _, f := range files {
		if err := e.inner.Define(ctx, f.Compiled); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", f.Name, err), e.Close())
		}
	}
	parts := e.answer()
	for _, name := range slices.Sorted(maps.Keys(o.Limits)) {
		// An agent without a limit has none to take away.
		if _, err := e.LimitAgent(ctx, name, o.Limits[name], ""); err != nil && !errors.As(err, new(*api.RefusedError)) {
			return nil, errors.Join(fmt.Errorf("Options.Limits: agent %s: %w", name, err), e.Close())
		}
	}
	parts.By, parts.Logger = httpapi.Local, o.logger()
	served := httpapi.Config{
		Jobs: control.New(parts), Changes: e.inner.Hub(), Names: o.hosts(), Logger: o.logger(), Caller: o.Caller, Outside: e.inner.Door(),
		Scrape: o.Telemetry.Scrape,
	}
	if e.handler, err = o.page(first(doorOf(served, "")), served.Jobs); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	e.outside, e.answers = doorOf(served, httpapi.Agents), doorOf(served, httpapi.Complete)
	return e, nil
}

// answer lets the engine answer what the program asks, and returns the parts that do.
func (e *Engine) answer() control.Config {
	parts := e.inner.Parts()
	parts.Waiting, parts.By = e.waiting, byEngine
	own := control.New(parts)
	e.Jobs, e.Schedules, e.Holds, e.Payloads, e.Agents = own, own, own, own, own
	return parts
}

// first is a handler that is made when it is first asked.
func first(handler func() http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler().ServeHTTP(w, r) })
}

// doorOf returns what makes a door when it is first asked for: most engines have none.
func doorOf(served httpapi.Config, only httpapi.Door) func() http.Handler {
	served.Door = only
	return sync.OnceValue(func() http.Handler { return httpapi.New(served) })
}

func (o Options) logger() *slog.Logger {
	if o.Logger == nil {
		return slog.Default()
	}
	return o.Logger
}

// page returns the page of these jobs, with the API beside it.
func (o Options) page(handler http.Handler, jobs *control.Service) (*page.Page, error) {
	repairs := bulk.New(jobs, o.logger())
	if o.Dir != "" {
		var err error
		if repairs, err = bulk.Open(jobs, filepath.Join(o.Dir, bulk.Folder), o.logger()); err != nil {
			return nil, err
		}
	}
	return page.New(page.Config{Jobs: jobs, Repairs: repairs, Caller: o.Caller, API: handler, Where: o.where(), Flags: o.flags(), Names: o.hosts(), Logger: o.logger()}), nil
}

// where describes the place of the jobs, for people.
func (o Options) where() string {
	if o.Dir == "" {
		return "in this process, not stored"
	}
	return "in this process, folder " + filepath.Base(o.Dir)
}

func (o Options) config(agents []agent.Handler, w *control.Waiting) embedded.Config {
	c := embedded.Config{
		Concurrency: embedded.Concurrency(o.Concurrency), Breakers: o.Breakers,
		Dir: o.Dir, Retention: o.Retention, Agents: agents, Secrets: o.Secrets, Logger: o.logger(), Saved: w.Saved, Parked: w.Parked, Telemetry: o.Telemetry,
		Changes: o.Notify.Changes, Live: o.Notify.LiveChanges,
		Replies: slices.Sorted(maps.Keys(o.Notify.Listeners)), Listener: listeners(o.Notify.Listeners),
		Link:  o.link(),
		Asked: slices.Sorted(maps.Keys(o.Notify.Questions)), Asker: askers(o.Notify.Questions),
	}
	for _, a := range o.Outside {
		c.Outside = append(c.Outside, embedded.Outside(a))
	}
	switch {
	case o.Notify.Alerts.Webhook != "":
		c.Notifier = o.alerts()
	case o.Notify.Operator != nil || o.Notify.AgentSilent != nil || o.Notify.AgentPaused != nil:
		c.Notifier = operator{o}
	}
	return c
}

// Run works until ctx ends or Close is called, and returns when all work has stopped: nil then, otherwise the error
// that keeps it from going on, such as the loss of the store. Running attempts are cut off, and made again by the next
// engine on the folder. A disk that is full for a while does not end Run. While another Run of the engine works, Run
// fails at once with ErrRunning, and after Close with ErrClosed. After Run has returned, it may be called again: it
// goes on, and learns of the attempts that were cut off no later than at their timeouts.
func (e *Engine) Run(ctx context.Context) error { return e.inner.Run(ctx) }

// Close stops Run, as the end of its ctx does, waits until it has returned, and frees the folder. Every Close waits
// for that and returns the error of the first: an error means that the store could not be closed well; the changes
// that were answered for are stored all the same. After Close requests for jobs fail, and Run fails with ErrClosed. A
// function that the engine calls (an agent, an Operator, a listener) must not call Close, as it would wait for itself.
func (e *Engine) Close() error {
	e.closing.Do(func() {
		if e.handler != nil {
			e.handler.Close()
		}
		if e.inner != nil {
			e.closed = e.inner.Close()
		}
		// No code uses it any more.
		e.http.Close()
	})
	return e.closed
}

// Define makes a workflow file the current definition of its name; existing jobs keep theirs. name stands for the file
// in the error, which lists all mistakes, a line each.
func (e *Engine) Define(ctx context.Context, name string, source []byte) (api.Workflow, error) {
	compiled, err := workflowfile.Parse(name, source, workflowfile.WithAgents(e.agents...))
	if err != nil {
		return api.Workflow{}, err
	}
	if err := e.inner.Define(ctx, compiled); err != nil {
		return api.Workflow{}, fmt.Errorf("%s: %w", name, err)
	}
	return api.Workflow{Name: compiled.Workflow.Name, Definition: compiled.Hash}, nil
}

// Handler serves the page, for browsers, and the HTTP API for package client and the command, described by GET
// /api/openapi.json. It authenticates no caller: every request that reaches it may do everything, so put it behind
// your own authentication, and let Options.Caller return the caller. Strip the prefix under which it is mounted. An
// open page keeps a stream: it ends with the request's context, and with Close.
func (e *Engine) Handler() http.Handler { return e.handler }

// AgentHandler serves only the part of the HTTP API that agents outside need: each agent shows its Token. Give it to a
// listener that other machines reach, with TLS before it, and keep Handler to yourself. A request for tasks may be
// held for 20 seconds, so a server's WriteTimeout must be longer.
func (e *Engine) AgentHandler() http.Handler { return e.outside() }

// CompletionHandler serves only the part of the HTTP API for the holders of completion tokens: the page of a link
// (Options.Notify.AnswerURL), and POST /api/completions/. The token alone admits a request, and only to its step. Give
// it to a listener that the receivers of questions reach, with TLS before it, and keep Handler to yourself. A log of
// requests before it contains the links: leave their paths out.
func (e *Engine) CompletionHandler() http.Handler { return e.answers() }
