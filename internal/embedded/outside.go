package embedded

import (
	"github.com/makegood-dev/makegood/internal/agentdoor"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/holds"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// Outside is an agent that runs in other processes, and comes for its tasks.
type Outside struct {
	// Name is the agent's name in workflows.
	Name string
	// Token is the secret that a caller must show to speak as the agent; empty: none.
	Token string
}

// Named are all agents that workflows may name: what those outside can be asked for is not known here.
func (c Config) Named() []workflowfile.Named {
	var all []workflowfile.Named
	for _, a := range c.Agents {
		all = append(all, a)
	}
	for _, o := range c.Outside {
		all = append(all, workflowfile.Anything(o.Name))
	}
	return all
}

// checkBreakers refuses the name of an agent that can have no breaker.
func (c Config) checkBreakers() error {
	var names []string
	for _, a := range c.Named() {
		names = append(names, a.Name())
	}
	return domain.CheckBreakers(c.Breakers, names)
}

// tasksOf names the queue for an agent's tasks. A local agent has its name ready.
func (e *Engine) tasksOf(agent string) string {
	if workers := e.workers[agent]; workers != nil {
		return workers[0].queue
	}
	return tasksPrefix + agent
}

// undosOf names the queue for an agent's undos: a local agent has its own, an outside one uses that for all its
// tasks, and takes as many as it has room for.
func (e *Engine) undosOf(agent string) string {
	for _, o := range e.config.Outside {
		if o.Name == agent {
			return tasksPrefix + agent
		}
	}
	return undosPrefix + agent
}

func (c Config) door(e *Engine, held *holds.Reader) *agentdoor.Door {
	d := agentdoor.Config{
		Tokens: map[string]string{}, Tasks: e.tasksOf,
		Receiver: e.queues, Store: e.store, Scheduler: e.scheduler, Large: e.large, Held: held.Holds, Logger: c.Logger,
	}
	for _, o := range c.Outside {
		d.Agents = append(d.Agents, o.Name)
		d.Tokens[o.Name] = o.Token
	}
	return agentdoor.New(d)
}

// Door is where agents that run in other processes get their tasks, and reply. It works as long as the engine is not
// closed, also while it does not run.
func (e *Engine) Door() *agentdoor.Door { return e.door }
