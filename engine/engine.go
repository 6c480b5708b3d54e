// Package engine is Makegood in your process: no cloud, no Docker, one folder. Jobs survive the death of the process at
// any moment, and go on with the next engine on the same folder.
//
//	eng, err := engine.Open(ctx, engine.Options{Dir: "data", Workflows: trips.Files, Agents: trips.Agents})
//	go eng.Run(ctx)                                        // until ctx ends; it returns why it stopped
//	job, err := eng.Submit(ctx, makegood.Submission{Workflow: "trip", ID: "t-1", Input: trip})
//	job, err = eng.Wait(ctx, "t-1")                        // its end, or Error
//	mux.Handle("/makegood/", http.StripPrefix("/makegood", eng.Handler()))
//
// An Engine is an api.Jobs. There is no global state: several engines may run in one process, each on a folder of its
// own, and none leaves a goroutine behind after Close, but those of agents that ignore the end of their context: Run waits
// ten seconds for such a one, and then returns without it.
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
	"github.com/makegood-dev/makegood/internal/control"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/httpagent"
	"github.com/makegood-dev/makegood/internal/httpapi"
	"github.com/makegood-dev/makegood/internal/page"
	"github.com/makegood-dev/makegood/internal/repair"
	"github.com/makegood-dev/makegood/internal/workflowfile"
	"github.com/makegood-dev/makegood/telemetry"
)

// Errors of Run.
var (
	// ErrRunning: another Run of the same engine has not returned. It goes on as if nobody had asked.
	ErrRunning = embedded.ErrRunning
	// ErrClosed: the engine was closed, and runs no more.
	ErrClosed = embedded.ErrClosed
)

// Concurrency is how many attempts run at once in an engine; what is beyond that waits, unclaimed. Undos are counted by
// themselves: beside as many steps there may run as many undos, so that no step keeps an undo waiting, however long it takes.
// Agents outside take as many tasks as they say.
type Concurrency struct {
	// All is how many of all agents together, 1 to 10,000. Zero: as many as of each agent.
	All int
	// Agents is how many of an agent, by its name, 1 to 10,000. Of one that is not named: 64.
	Agents map[string]int
}

// Options say what an engine is made of. The zero value keeps nothing, knows no workflow, and has the built-in agent
// http alone.
type Options struct {
	// Dir is the folder that keeps everything, made if it is not there, for its owner alone. One engine at a time holds
	// it. Empty: nothing is kept, and all jobs are gone with the engine.
	Dir string
	// Workflows hold the workflow files, *.yaml and *.yml, also in folders below. Each becomes the current definition of
	// its name; jobs that are in Dir already keep theirs. Nil: none; Define makes them known one by one.
	Workflows fs.FS
	// Agents do the steps, beside the built-in http.
	Agents []agent.Handler
	// Concurrency is how many attempts of Agents run at once. The zero value: 64 of each.
	Concurrency Concurrency
	// Secrets gives what ${ secret("name") } in a workflow asks for, just before an agent of Agents works: never stored, never
	// logged. Nil: the variable MAKEGOOD_SECRET_NAME of the environment.
	Secrets agent.Secrets
	// Outside are agents that do their steps in other processes, in any language: they come to Handler, or AgentHandler, for
	// their tasks.
	Outside []Outside
	// Retention is how long a job is kept after its end, at least 24 hours. Zero: for ever.
	Retention time.Duration
	// Notify says who is told of jobs, of agents, of changes and of questions. The zero value: nobody but Logger.
	Notify Notify
	// Hosts are the names, beside loopback addresses, under which requests may ask Handler: it refuses others with 421,
	// as a page whose own name was made to lead to this machine would send them.
	Hosts []string
	// Caller says who makes a request to Handler, for what is kept of it. It gets requests of others alone: a repair of many jobs,
	// which goes on without a browser and after a restart, asks as who began it. Nil: "local", whoever it is.
	Caller func(*http.Request) string
	// Telemetry is where traces and metrics go, to providers of OpenTelemetry; the zero value: nowhere. A collector that is slow
	// or gone delays nothing. Its Scrape answers GET /metrics of Handler.
	Telemetry telemetry.Telemetry
	// Logger hears of what goes wrong, the same once a minute. It never hears a payload. Nil: slog.Default().
	Logger *slog.Logger
}

// Outside is an agent that runs in other processes. A task that one of them has taken is its own until its time has run
// out: its claim is on the disk before the task is given, and a restart of the engine does not end it.
type Outside struct {
	// Name is the agent's name in workflows, which may ask it for anything.
	Name string
	// Token is what a request must show in order to speak as this agent: "Authorization: Bearer TOKEN". At most
	// 1,024 bytes. Empty: whoever reaches the handler may.
	Token string
}

// Notice is what is told of a job: a change of its ProcessState. It carries no payload. Whoever is told of one twice
// knows it by Job and Seq.
type Notice struct {
	// Job is the job's id, Workflow the name of its workflow.
	Job      string
	Workflow string
	// Seq numbers what is told of a job; the first is 1.
	Seq          int
	ProcessState makegood.ProcessState
	// Reason says why the job stopped, is undone or was cancelled; empty otherwise.
	Reason string
	// At is when it changed.
	At time.Time
	// ReplyTo is the name under which the listener is registered; empty: nobody listens to the job.
	ReplyTo string
	// ExpectBy is set, for the Operator alone, if the job will not be done by then, as its workflow expects
	// (makegood.Workflow.Expect). Nothing has changed then, and Reason says what the job waits for.
	ExpectBy time.Time
}

// Question is what those are told who are asked to complete a step. Whoever has its Completion may answer. Who is asked
// twice knows it by Job, Step, Undo, Round and N.
type Question struct {
	// Job is the job's id, Workflow the name of its workflow, Step the step that waits; Undo: its undo does.
	Job, Workflow, Step string
	Undo                bool
	// Round is that of the job; N counts the askings of a wait, the first is 1.
	Round, N int
	// Since is when it began to wait, Deadline when it ends without an answer.
	Since, Deadline time.Time
	// Text is the question of an approval, Choices are its answers; none: any output.
	Text    string
	Choices []string
	// Completion is the completion token. Link is where a person can answer with it; empty: nowhere.
	Completion, Link string
}

// Engine runs jobs in this process. Make it with Open, let it Run, and Close it. Its methods may be called by many
// goroutines at once, also before Run: a job that is submitted then waits for it.
//
// Package api documents the methods of the interfaces that an Engine has: with them a program works with jobs, schedules, pauses,
// large payloads and agents, in the same words and with the same errors as with a client.Client.
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

// byEngine is the author of what the program asks that runs the engine, where it names none (api.As).
const byEngine = "engine"

// Open takes the folder and reads the workflows. Nothing runs before Run. It fails, and holds nothing, where an option
// cannot be (an agent that is nil, given twice or called http, a listener that is nil or badly named), where another engine
// has the folder (the error names its process), where a workflow file is wrong or names an agent that is not
// there (all that is wrong, FILE:LINE each), or where the folder was written by a release that this one cannot follow.
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
	repairs := repair.New(jobs, o.logger())
	if o.Dir != "" {
		var err error
		if repairs, err = repair.Open(jobs, filepath.Join(o.Dir, repair.Folder), o.logger()); err != nil {
			return nil, err
		}
	}
	return page.New(page.Config{Jobs: jobs, Repairs: repairs, Caller: o.Caller, API: handler, Where: o.where(), Flags: o.flags(), Names: o.hosts(), Logger: o.logger()}), nil
}

// where says in words where the jobs are.
func (o Options) where() string {
	if o.Dir == "" {
		return "in this process, nothing is kept"
	}
	return "in this process, folder " + filepath.Base(o.Dir)
}

func (o Options) config(agents []agent.Handler, w *control.Waiting) embedded.Config {
	c := embedded.Config{
		Concurrency: embedded.Concurrency(o.Concurrency),
		Dir:         o.Dir, Retention: o.Retention, Agents: agents, Secrets: o.Secrets, Logger: o.logger(), Saved: w.Saved, Parked: w.Parked, Telemetry: o.Telemetry,
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
	case o.Notify.Operator != nil || o.Notify.AgentSilent != nil:
		c.Notifier = operator{o}
	}
	return c
}

// Run works until ctx ends or Close is called, and returns when everything has stopped: nil then, and else why it cannot
// go on, such as a store that is lost. Attempts that ran are cut off, and made again by the next engine on the folder. A disk
// that is full for a while is no reason to return. While another Run of the engine works it fails at once with ErrRunning,
// and after Close with ErrClosed. After Run has returned it may be called again: it goes on, and learns of attempts that were
// cut off by their timeouts at the latest.
func (e *Engine) Run(ctx context.Context) error { return e.inner.Run(ctx) }

// Close stops Run, as the end of its ctx does, waits until it has returned, and frees the folder. Every Close waits
// for that, the first or not, and returns what the first returned: an error means that the store could not be closed well;
// what was answered is kept all the same. After it what asks for jobs fails, and Run with ErrClosed. What the engine
// calls (an agent, an Operator, a listener) must not call it, as it would wait for itself.
func (e *Engine) Close() error {
	e.closing.Do(func() {
		if e.handler != nil {
			e.handler.Close()
		}
		if e.inner != nil {
			e.closed = e.inner.Close()
		}
		// Only now does nobody use it any more.
		e.http.Close()
	})
	return e.closed
}

// Define makes a workflow file the current definition of its name; jobs that are there keep theirs. name is what the
// error calls it, which returns all that is wrong, a line each.
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

// Handler answers the page, for browsers, and the HTTP API: what package client and the command ask, described by GET
// /api/openapi.json. It asks nobody who they are: whoever reaches it may do everything, so put it behind what knows your
// callers, and tell Caller who they are. Strip the prefix under which it is mounted. A page that is open keeps a stream: it ends
// with the request's context, and with Close.
func (e *Engine) Handler() http.Handler { return e.handler }

// AgentHandler answers the part of the HTTP API that agents outside need, and no other: each of them is known by its
// Token. Give it to a listener that other machines reach, with TLS before it, and keep Handler to yourself. A request
// for tasks may be held for 20 seconds, so a server's WriteTimeout must be longer.
func (e *Engine) AgentHandler() http.Handler { return e.outside() }

// CompletionHandler answers the part of the HTTP API that whoever holds the completion token of a step needs, and no
// other: the page of a link (Options.Notify.AnswerURL), and POST /api/completions/. The token alone lets them in, and
// only to that step. Give it to a listener that those reach who are asked, with TLS before it, and keep Handler to
// yourself. A log of requests before it has the links: leave their paths out of it.
func (e *Engine) CompletionHandler() http.Handler { return e.answers() }
