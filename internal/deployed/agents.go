package deployed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// depthsAtOnce is how many queues are asked for their depth at once.
const depthsAtOnce = 8

// Agents returns the state of a stack's agents, by name, without pauses. The age of the oldest task is in CloudWatch
// only, where SQS puts it, and the results of attempts are in the stack's metrics.
func (o *operator) Agents(ctx context.Context) ([]api.Agent, error) {
	asks, err := o.asks(ctx)
	if err != nil {
		return nil, err
	}
	names := slices.Clone(o.agents)
	for name := range asks {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	all := make([]api.Agent, len(names))
	var asked sync.WaitGroup
	turn := make(chan struct{}, depthsAtOnce)
	for i, name := range names {
		asked.Go(func() {
			turn <- struct{}{}
			defer func() { <-turn }()
			all[i] = o.agent(ctx, name)
			all[i].Workflows = append([]string{}, asks[name]...)
		})
	}
	asked.Wait()
	return all, context.Cause(ctx)
}

func (o *operator) agent(ctx context.Context, name string) api.Agent {
	a := api.Agent{Name: name, Place: api.AgentQueue}
	depth, err := o.queues.Depth(ctx, TasksQueue(name))
	if err != nil {
		a.Problem = err.Error()
		return a
	}
	a.Waiting, a.InFlight = &depth.Waiting, &depth.InFlight
	return a
}

// asks returns the workflows with a current definition that uses an agent, by agent, sorted.
func (o *operator) asks(ctx context.Context) (map[string][]string, error) {
	current, err := o.Workflows(ctx)
	if err != nil {
		return nil, err
	}
	by := map[string][]string{}
	for name, hash := range current {
		c, err := o.compiled(ctx, name, hash)
		if err != nil {
			return nil, fmt.Errorf("definition %s of workflow %s: %w", hash, name, err)
		}
		for _, agent := range c.Agents() {
			if domain.GetsTasks(agent) {
				by[agent] = append(by[agent], name)
			}
		}
	}
	for _, workflows := range by {
		slices.Sort(workflows)
	}
	return by, nil
}

// compiled returns a definition: the linked one, or else the stored one. A definition that cannot be read any more uses
// no agents.
func (o *operator) compiled(ctx context.Context, name, hash string) (*workflowfile.Compiled, error) {
	if linked := o.published.byName[name]; linked != nil && linked.Hash == hash {
		return linked, nil
	}
	definition, err := o.Definition(ctx, hash)
	if errors.Is(err, store.ErrNotFound) {
		return &workflowfile.Compiled{}, nil
	}
	if err != nil {
		return nil, err
	}
	return workflowfile.Load(definition)
}
