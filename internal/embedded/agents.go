package embedded

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/makegood-dev/makegood/client"
)

// lately is over how long what ended is counted.
const lately = 5 * time.Minute

// Agents returns how the agents stand, but for what is paused: by their names, those here and those outside.
func (e *Engine) Agents(ctx context.Context) ([]client.Agent, error) {
	asks := e.asks()
	var all []client.Agent
	for _, h := range e.config.Agents {
		all = append(all, e.agent(ctx, h.Name(), client.AgentHere))
	}
	for _, o := range e.config.Outside {
		all = append(all, e.agent(ctx, o.Name, client.AgentOutside))
	}
	for i := range all {
		all[i].Workflows = append([]string{}, asks[all[i].Name]...)
	}
	return all, nil
}

func (e *Engine) agent(ctx context.Context, name string, place client.AgentPlace) client.Agent {
	a := client.Agent{Name: name, Place: place}
	tasks := tasksPrefix + name
	depth, err := e.queues.Depth(ctx, tasks)
	if err != nil {
		a.Problem = err.Error()
		return a
	}
	a.Waiting = &depth.Waiting
	if oldest, err := e.local.Oldest(tasks); err == nil && !oldest.IsZero() {
		oldest = oldest.UTC()
		a.OldestAt = &oldest
	}
	if runner := e.runners[name]; runner != nil {
		a.InFlight = &depth.InFlight
		ended, since := runner.Lately(e.countedSince())
		a.Lately = &client.AgentLately{
			Since: since.UTC(), Succeeded: int(ended.Succeeded), Failed: int(ended.Failed), Late: int(ended.Late), Waiting: int(ended.Waiting),
		}
	}
	return a
}

// countedSince is from when on what ended is counted.
func (e *Engine) countedSince() time.Time {
	since := time.Now().Add(-lately)
	if since.Before(e.opened) {
		return e.opened
	}
	return since
}

// asks returns the workflows that ask an agent for something, by the agents' names, sorted.
func (e *Engine) asks() map[string][]string {
	e.mu.Lock()
	defer e.mu.Unlock()
	by := map[string][]string{}
	for _, workflow := range slices.Sorted(maps.Keys(e.agentsOf)) {
		for _, agent := range e.agentsOf[workflow] {
			by[agent] = append(by[agent], workflow)
		}
	}
	return by
}
