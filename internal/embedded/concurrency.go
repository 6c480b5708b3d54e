package embedded

import (
	"cmp"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/agentrun"
	"github.com/makegood-dev/makegood/internal/holds"
)

const (
	// DefaultConcurrency is how many attempts of an agent run at once by default.
	DefaultConcurrency = 64
	// MaxConcurrency is how many may.
	MaxConcurrency = 10_000
)

// Concurrency is how many attempts run here at once. It counts forward attempts and undos apart: steps that run for
// days leave room for as many undos.
type Concurrency struct {
	// All is how many of all agents may run; zero: as many as those of each.
	All int
	// Agents is how many of an agent may run, by its name. One that is not there: DefaultConcurrency.
	Agents map[string]int
}

func (c Concurrency) of(agent string) int { return cmp.Or(c.Agents[agent], DefaultConcurrency) }

// slots returns the semaphore for all agents; nil: unlimited.
func (c Concurrency) slots() chan struct{} {
	if c.All == 0 {
		return nil
	}
	return make(chan struct{}, c.All)
}

// worker takes the tasks of a queue, so many at once.
type worker struct {
	*agentrun.Runner
	queue string
	most  int
}

// makeWorkers makes two workers an agent: one for its undos, which no step can keep waiting.
func (e *Engine) makeWorkers(instance string, held *holds.Reader) {
	all, forward, undos := 0, e.config.Concurrency.slots(), e.config.Concurrency.slots()
	for _, a := range e.config.Agents {
		all += 2 * e.config.Concurrency.of(a.Name())
	}
	room := new(agentrun.Room)
	e.workers = make(map[string][]worker)
	for _, a := range e.config.Agents {
		for queue, slots := range map[string]chan struct{}{tasksPrefix + a.Name(): forward, undosPrefix + a.Name(): undos} {
			runner := agentrun.New(agentrun.Config{
				Handlers: []agent.Handler{a}, Claims: e.store, ClaimsIn: makegood.TaskClaim{File: pathIn(e.config.Dir)}, Queue: e.queues,
				Tasks: queue, Quarantine: quarantineQueue, Held: held.Holds, Room: room, Slots: slots, Others: all - 1,
				Instance: instance, Secrets: e.config.Secrets, Large: e.large, Logger: e.config.Logger,
			})
			e.workers[a.Name()] = append(e.workers[a.Name()], worker{runner, queue, e.config.Concurrency.of(a.Name())})
		}
	}
}
