package sim

import (
	"sync"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/wire"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// reading remembers what messages and definitions say: the rules look at each message many times, and every process
// reads every definition.
type reading struct {
	mu          sync.Mutex
	incoming    map[string]readAs[wire.Incoming]
	tasks       map[string]readAs[makegood.Task]
	definitions map[string]readAs[*workflowfile.Compiled]
}

// readAs is what was read, or why not.
type readAs[T any] struct {
	value T
	err   error
}

// remember returns what was read of a text before, or reads it.
func remember[T any](r *reading, all *map[string]readAs[T], text string, read func(string) (T, error)) (T, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known, ok := (*all)[text]
	if !ok {
		if *all == nil {
			*all = map[string]readAs[T]{}
		}
		known.value, known.err = read(text)
		(*all)[text] = known
	}
	return known.value, known.err
}

// event reads a message of the events queue.
func (r *reading) event(body string) (wire.Incoming, error) {
	return remember(r, &r.incoming, body, wire.DecodeIncoming)
}

// task reads a message of a tasks queue.
func (r *reading) task(body string) (makegood.Task, error) {
	return remember(r, &r.tasks, body, wire.DecodeTask)
}

// definition reads a stored definition.
func (r *reading) definition(body []byte) (*workflowfile.Compiled, error) {
	return remember(r, &r.definitions, string(body), func(text string) (*workflowfile.Compiled, error) { return workflowfile.Load([]byte(text)) })
}
