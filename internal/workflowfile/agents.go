package workflowfile

import (
	"fmt"
	"slices"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
)

// Named is an agent that a workflow may name. One that also has the methods
//
//	Actions() []string            // all that it can be asked for
//	Undoes(action string) bool    // whether an action undoes, and so cannot be a step of its own
//
// as agent.Agent does, is asked for no other action; any other agent may be asked for anything.
type Named interface{ Name() string }

// Anything is an agent that is known by name only: it may be asked for any action.
type Anything string

// Name is the agent's name.
func (a Anything) Name() string { return string(a) }

// offering is an agent that lists its actions.
type offering interface {
	Actions() []string
	Undoes(action string) bool
}

// WithAgents refuses a workflow that names an agent which is neither among agents nor "http", or an action that
// its agent does not have.
func WithAgents[A Named](agents ...A) Option {
	return func(c *check) {
		WithExactly(agents...)(c)
		c.agents = append(c.agents, makegood.HTTPAgent)
		slices.Sort(c.agents)
		c.agents = slices.Compact(c.agents)
	}
}

// WithExactly is WithAgents where "http" is known only if it is among agents.
func WithExactly[A Named](agents ...A) Option {
	return func(c *check) {
		WithActionsOf(agents...)(c)
		c.agents = []string{}
		for _, a := range agents {
			c.agents = append(c.agents, a.Name())
		}
		slices.Sort(c.agents)
	}
}

// WithActionsOf refuses a workflow that asks one of these agents for an action that it does not have. Other agents
// may be named, and asked for anything.
func WithActionsOf[A Named](agents ...A) Option {
	return func(c *check) {
		c.offers = map[string]offering{}
		for _, a := range agents {
			if o, ok := any(a).(offering); ok {
				c.offers[a.Name()] = o
			}
		}
	}
}

// Check returns the violations of options by a compiled workflow; nil: none. Errors are of type Errors.
func (c *Compiled) Check(options ...Option) error {
	k := newCheck(options)
	k.linked(c.Workflow)
	if len(k.found) > 0 {
		return k.errors("workflow " + c.Workflow.Name)
	}
	return nil
}

// CheckQueues refuses a workflow with an agent that is not among agents, which have a queue: its tasks would wait for
// an agent that does not exist. Without agents it refuses no workflow.
func (c *Compiled) CheckQueues(agents []string) error {
	if len(agents) == 0 {
		return nil
	}
	for _, s := range c.Workflow.Steps {
		for _, name := range asked(s) {
			if !slices.Contains(agents, name) {
				return fmt.Errorf("workflow %s, step %s: the agent %s has no queue here; those that have one are %v",
					c.Workflow.Name, s.Name, name, agents)
			}
		}
	}
	return nil
}

// Agents names the agents of a workflow, each once, in the order of its steps.
func (c *Compiled) Agents() []string { return c.each(asked) }

// each returns the names that of returns of the steps, each once, in the order of the steps.
func (c *Compiled) each(of func(makegood.Step) []string) (names []string) {
	for _, s := range c.Workflow.Steps {
		for _, name := range of(s) {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// asked are the agents of a step that get tasks: of itself, and of its undo.
func asked(s makegood.Step) (names []string) {
	s = domain.ItemOf(s)
	if domain.GetsTasks(s.Agent) {
		names = append(names, s.Agent)
	}
	if domain.CanUndo(s) && domain.GetsTasks(s.Undo.Agent) {
		names = append(names, s.Undo.Agent)
	}
	return names
}

// linked checks the agents and actions that w names.
func (c *check) linked(w makegood.Workflow) {
	for i, s := range w.Steps {
		path, s := stepPath(i), domain.ItemOf(s)
		c.knownAgent(path+".agent", s.Agent)
		c.knownAction(path+".action", s.Agent, s.Action, false)
		if !domain.CanUndo(s) {
			continue
		}
		if s.Undo.Agent != s.Agent {
			c.knownAgent(path+".undo.agent", s.Undo.Agent)
		}
		c.knownAction(path+".undo.action", s.Undo.Agent, s.Undo.Action, true)
	}
}

func (c *check) knownAgent(path, agent string) {
	if c.agents != nil && agent != "" && domain.GetsTasks(agent) && !c.said(path) && !slices.Contains(c.agents, agent) {
		c.add(path, "no agent %q%s", agent, suggest(agent, c.nameable()))
	}
}

// nameable are the agents that a step may name: the known ones, and those that are sent no tasks.
func (c *check) nameable() []string {
	names := append(slices.Clone(c.agents), makegood.AgentApproval, makegood.AgentWait, makegood.AgentWorkflow)
	slices.Sort(names)
	return slices.Compact(names)
}

func (c *check) knownAction(path, agent, action string, undo bool) {
	offers := c.offers[agent]
	switch {
	case offers == nil || action == "" || c.said(path):
	case !slices.Contains(offers.Actions(), action):
		c.add(path, "agent %s has no action %q%s", agent, action, suggest(action, offers.Actions()))
	case !undo && offers.Undoes(action):
		c.add(path, "action %q of agent %s undoes: it cannot be a step of its own", action, agent)
	}
}

// said reports whether path has an error already.
func (c *check) said(path string) bool {
	return slices.ContainsFunc(c.found, func(f finding) bool { return f.path == path })
}
