// Package agent is the kit for writing agents: the code that does the steps of jobs by calling a remote service, and
// undoes them.
//
// An agent is a name and a few typed actions. Makegood hands it tasks; the kit reads the input, calls the action, and
// writes the output or the error. Before an action runs, its attempt has been claimed, so one attempt runs at most
// once; a step may take several attempts, so an action must pass Task.Key on to the remote service, which does the
// same thing once for the same key.
//
//	var Inventory = agent.New("inventory",
//		agent.Do("reserve", reserve).Undo("release", release),
//		agent.Do("count", count),
//	)
//
// An action stops when its context ends: its caller does not wait for it after that. The package decides no question
// about jobs, talks to no queue and no store, and needs the standard library only. Other packages run agents, and need
// only Handler.
package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/agentctx"
	"github.com/makegood-dev/makegood/internal/limits"
)

// Handler does tasks. Agent is one; write another for an agent with untyped actions.
type Handler interface {
	// Name is the agent's name in workflows.
	Name() string
	// Handle does one attempt and returns its output, which is JSON of at most makegood.MaxPayloadBytes; empty means null.
	// The error tells the job how to go on, by Final, NotApplied and RetryAfter; a plain error is retryable, and leaves it
	// unknown whether there was an effect. Handle returns soon after ctx ends. It may be called by many goroutines at
	// once.
	Handle(ctx context.Context, task makegood.Task) (json.RawMessage, error)
}

var _ Handler = (*Agent)(nil)

// Agent is a Handler made of typed actions. It never changes.
type Agent struct {
	name   string
	strict bool
	routes map[string]route
}

// Action is an action of an agent. Do and Undo make actions.
type Action interface {
	// declare adds every name of the action, with its function, to the agent.
	declare(add func(name string, r route))
}

// route is one name of an action in tasks.
type route struct {
	// undo: the action compensates, and does no step.
	undo bool
	// together: the action does the items of a batch in one call.
	together bool
	handle   func(ctx context.Context, task makegood.Task, decode decoder) (json.RawMessage, error)
}

// New makes an agent. It panics on a mistake in the program: a name that is given twice, a name that is not
// [A-Za-z][A-Za-z0-9_-]{0,62}, an action without a function, no action at all.
func New(name string, actions ...Action) *Agent {
	checkName("agent.New", limits.AgentName, name)
	a := &Agent{name: name, routes: make(map[string]route)}
	for _, action := range actions {
		action.declare(func(name string, r route) { a.add(name, r) })
	}
	if len(a.routes) == 0 {
		panic(fmt.Sprintf("agent %s: no actions", name))
	}
	return a
}

func (a *Agent) add(name string, r route) {
	checkName("agent "+a.name, limits.ActionName, name)
	if _, taken := a.routes[name]; taken {
		panic(fmt.Sprintf("agent %s: action %q is there twice", a.name, name))
	}
	if r.handle == nil {
		panic(fmt.Sprintf("agent %s: action %q has no function", a.name, name))
	}
	a.routes[name] = r
}

func checkName(of string, rule limits.NameOf, name string) {
	if err := rule.Check(name); err != nil {
		panic(fmt.Sprintf("%s: %v", of, err))
	}
}

// Strict returns a copy of the agent that refuses inputs with fields unknown to its actions.
func (a *Agent) Strict() *Agent {
	return &Agent{name: a.name, strict: true, routes: a.routes}
}

// Name is the agent's name in workflows.
func (a *Agent) Name() string { return a.name }

// Actions returns the names of the actions that tasks may ask for, sorted.
func (a *Agent) Actions() []string { return slices.Sorted(maps.Keys(a.routes)) }

// Undoes reports whether an action only undoes: a step may not name it, its undo may.
func (a *Agent) Undoes(action string) bool { return a.routes[action].undo }

// Handle does one attempt. An unknown action, or an input that the action cannot read, is a final failure, and surely
// had no effect.
func (a *Agent) Handle(ctx context.Context, task makegood.Task) (json.RawMessage, error) {
	r, known := a.routes[task.Action]
	if !known {
		return nil, refuse("agent %s has no action %q, only %s", a.name, task.Action, strings.Join(a.Actions(), ", "))
	}
	if r.undo && task.Undo == nil {
		return nil, refuse("action %q of agent %s undoes; it cannot be a step of its own", task.Action, a.name)
	}
	if _, there := agentctx.Of(ctx); !there {
		// A direct call, as in a test of an action.
		ctx = agentctx.NewContext(ctx, task, nil)
	}
	if task.Batch != nil && !r.together {
		return each(ctx, task, func(ctx context.Context, item makegood.Task) (json.RawMessage, error) {
			return r.handle(ctx, item, a.decode)
		})
	}
	return r.handle(ctx, task, a.decode)
}

func (a *Agent) decode(what string, from json.RawMessage, into any) error {
	return decodeJSON(what, from, into, a.strict)
}

// Doing is an action with an input In and an output Out, both JSON. Undo adds its compensation.
type Doing[In, Out any] struct {
	name string
	do   func(context.Context, In) (Out, error)
	undo Action
}

// Do makes an action. An undo that is a call of its own, and needs no output of its step, may name such an action,
// too; TaskOf names the step that it undoes.
func Do[In, Out any](name string, do func(ctx context.Context, in In) (Out, error)) Doing[In, Out] {
	return Doing[In, Out]{name: name, do: do}
}

// Undo adds the action that compensates this one, for workflows in which the undo has the step's with, or one of the
// same shape. done is the step's output, and nil when the outcome of the step is unknown: the step may or may not have
// happened, and the undo ensures, under the key TaskOf(ctx).Undo.ForwardKey, that it has not happened and will not. An
// undo that finds no effect succeeds.
func (d Doing[In, Out]) Undo(name string, undo func(ctx context.Context, in In, done *Out) error) Doing[In, Out] {
	d.undo = Undo(name, undo)
	return d
}

func (d Doing[In, Out]) declare(add func(string, route)) {
	r := route{}
	if d.do != nil {
		r.handle = d.handle
	}
	add(d.name, r)
	if d.undo != nil {
		d.undo.declare(add)
	}
}

func (d Doing[In, Out]) handle(ctx context.Context, task makegood.Task, decode decoder) (json.RawMessage, error) {
	in, err := inputOf[In](ctx, task, decode)
	if err != nil {
		return nil, err
	}
	out, err := d.do(ctx, in)
	if err != nil {
		return nil, err
	}
	return encodeOutput(out)
}

// inputOf reads the input of a task.
func inputOf[In any](ctx context.Context, task makegood.Task, decode decoder) (in In, err error) {
	input, err := inMemory(ctx, "input", task.Input, &in)
	if err != nil {
		return in, err
	}
	return in, decode("input", input, &in)
}

// undoing is the action that Undo makes.
type undoing[In, Out any] struct {
	name string
	undo func(context.Context, In, *Out) error
}

// Undo makes an action that compensates a step and has an input of its own; done is as in Doing.Undo. A task that is
// no undo cannot ask for it. Where Out is any or json.RawMessage, and the step's output is a payload that is no JSON
// or is too large to be read into memory, done is its reference, so an undo that needs only its key runs.
func Undo[In, Out any](name string, undo func(ctx context.Context, in In, done *Out) error) Action {
	return undoing[In, Out]{name: name, undo: undo}
}

func (u undoing[In, Out]) declare(add func(string, route)) {
	r := route{undo: true}
	if u.undo != nil {
		r.handle = u.handle
	}
	add(u.name, r)
}

func (u undoing[In, Out]) handle(ctx context.Context, task makegood.Task, decode decoder) (json.RawMessage, error) {
	in, err := inputOf[In](ctx, task, decode)
	if err != nil {
		return nil, err
	}
	var done *Out
	if task.Undo.Outcome == makegood.OutcomeDone {
		done = new(Out)
		if err := tell(ctx, task.Undo.Output, done, decode); err != nil {
			return nil, err
		}
	}
	return nil, u.undo(ctx, in, done)
}

// encodeOutput writes an output as the action meant it: json.Marshal would turn each < > & into six bytes.
func encodeOutput(out any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(out); err != nil {
		// Final, but not NotApplied: the action has run.
		return nil, Final(fmt.Errorf("write the output as JSON: %w", err))
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

func refuse(format string, args ...any) error {
	return Final(NotApplied(fmt.Errorf(format, args...)))
}
