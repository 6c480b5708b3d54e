package embedded

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/makegood-dev/makegood/api"
)

// latelyFor is over how long what ended is counted.
const latelyFor = 5 * time.Minute

// Agents returns the status of the agents, without pauses: local and outside agents, by name.
func (e *Engine) Agents(ctx context.Context) ([]api.Agent, error) {
	asks := e.asks()
	var all []api.Agent
	for _, h := range e.config.Agents {
		all = append(all, e.agent(ctx, h.Name(), api.AgentHere))
	}
	for _, o := range e.config.Outside {
		all = append(all, e.agent(ctx, o.Name, api.AgentOutside))
	}
	for i := range all {
		all[i].Workflows = append([]string{}, asks[all[i].Name]...)
	}
	return all, nil
}

func (e *Engine) agent(ctx context.Context, name string, place api.AgentPlace) api.Agent {
	a := api.Agent{Name: name, Place: place}
	waiting, inFlight := 0, 0
	for _, queue := range slices.Compact([]string{tasksPrefix + name, e.undosOf(name)}) {
		depth, err := e.queues.Depth(ctx, queue)
		if err != nil {
			a.Problem = err.Error()
			return a
		}
		waiting, inFlight = waiting+depth.Waiting, inFlight+depth.InFlight
		if oldest, err := e.local.Oldest(queue); err == nil && !oldest.IsZero() && (a.OldestAt == nil || oldest.Before(*a.OldestAt)) {
			oldest = oldest.UTC()
			a.OldestAt = &oldest
		}
	}
	a.Waiting = &waiting
	if workers := e.workers[name]; workers != nil {
		for _, w := range workers {
			inFlight += int(w.inline.Load())
		}
		a.InFlight, a.Lately = &inFlight, lately(workers, e.countedSince())
	}
	if polls, outside := e.door.Polls(name); outside {
		a.Polls = &api.AgentPolls{Waiting: polls.Waiting, Instances: polls.Instances, Since: polls.Since.UTC()}
		if !polls.LastAt.IsZero() {
			last := polls.LastAt.UTC()
			a.Polls.LastAt = &last
		}
	}
	return a
}

// lately returns how what an agent did has ended since a moment.
func lately(workers []worker, moment time.Time) *api.AgentLately {
	var all api.AgentLately
	for _, w := range workers {
		ended, since := w.Lately(moment)
		all.Since = since.UTC()
		all.Succeeded, all.Failed = all.Succeeded+int(ended.Succeeded), all.Failed+int(ended.Failed)
		all.Late, all.Waiting = all.Late+int(ended.Late), all.Waiting+int(ended.Waiting)
	}
	return &all
}

// countedSince is from when on what ended is counted.
func (e *Engine) countedSince() time.Time {
	since := time.Now().Add(-latelyFor)
	if since.Before(e.opened) {
		return e.opened
	}
	return since
}

// asks returns the workflows that use each agent, by the agents' names, sorted.
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
