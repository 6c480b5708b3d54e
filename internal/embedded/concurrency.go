package embedded

import (
	"cmp"
	"sync/atomic"

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
	// inlineConcurrency is how many inline attempts of an agent without a limit of its own there are at once. Their places
	// are taken before the save that opens them, so most of the time they wait for a flush.
	inlineConcurrency = 1024
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

// slots returns the semaphore for all agents; none: unlimited.
func (c Concurrency) slots() []chan struct{} {
	if c.All == 0 {
		return nil
	}
	return []chan struct{}{make(chan struct{}, c.All)}
}

// worker takes the tasks of a queue, so many at once.
type worker struct {
	*agentrun.Runner
	queue string
	most  int
	// inline is how many inline attempts run, beside the tasks of the queue.
	inline *atomic.Int64
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
		name, most := a.Name(), e.config.Concurrency.of(a.Name())
		own := cmp.Or(e.config.Concurrency.Agents[name], inlineConcurrency)
		for _, of := range []struct {
			queue string
			all   []chan struct{}
		}{{tasksPrefix + name, forward}, {undosPrefix + name, undos}} {
			runner := agentrun.New(agentrun.Config{
				Handlers: []agent.Handler{a}, Claims: e.store, ClaimsIn: makegood.TaskClaim{File: pathIn(e.config.Dir)}, Queue: e.queues,
				Tasks: of.queue, Quarantine: quarantineQueue, Held: held.Holds, Room: room,
				Slots: append([]chan struct{}{make(chan struct{}, own)}, of.all...), Others: all - 1,
				Instance: instance, Secrets: e.config.Secrets, Large: e.large, Memory: e.memory, Logger: e.config.Logger,
			})
			e.workers[name] = append(e.workers[name], worker{runner, of.queue, most, new(atomic.Int64)})
		}
	}
}
