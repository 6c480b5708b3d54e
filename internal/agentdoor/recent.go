package agentdoor

import (
	"container/list"
	"context"
	"sync"
	"time"
)

const (
	// maxRecent and maxRecentBytes bound what is remembered of the requests of an agent; what is older is forgotten first.
	maxRecent      = 1024
	maxRecentBytes = 16 << 20
)

// recent remembers what was given to whom under the name of a request, so that an answer that was lost on its way can be
// asked for again. It is a help, and no promise: a claim whose task is forgotten ends at its CompleteBy.
type recent struct {
	mu    sync.Mutex
	given map[string]*list.Element
	order *list.List // of *gift, the oldest first
	bytes int
}

// gift is what a request was given, or is about to be.
type gift struct {
	request string
	// done is closed when tasks is set.
	done  chan struct{}
	tasks []Task
	bytes int
}

func newRecent() recent { return recent{given: map[string]*list.Element{}, order: list.New()} }

// once returns what the same request was given before, of that what is out still; waits while it is about to be given
// something; and else calls take, and remembers what that gave.
func (r *recent) once(ctx context.Context, request string, out func(Task) bool, take func() ([]Task, error)) ([]Task, error) {
	for {
		g, mine := r.begin(request)
		if mine {
			tasks, err := take()
			r.end(g, tasks)
			return tasks, err
		}
		select {
		case <-g.done:
		case <-ctx.Done():
			return nil, nil
		}
		if tasks := still(out, g.tasks); len(tasks) > 0 {
			return tasks, nil
		}
		r.forget(g)
	}
}

// begin returns the gift of a request, and whether the caller is the one to fill it.
func (r *recent) begin(request string) (g *gift, mine bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.given[request]; e != nil {
		return e.Value.(*gift), false
	}
	g = &gift{request: request, done: make(chan struct{})}
	r.given[request] = r.order.PushBack(g)
	return g, true
}

// end fills a gift, and forgets the oldest where that is too much. One that is empty is forgotten at once.
func (r *recent) end(g *gift, tasks []Task) {
	r.mu.Lock()
	defer r.mu.Unlock()
	g.tasks = tasks
	for _, t := range tasks {
		g.bytes += len(t.Body)
	}
	close(g.done)
	if len(tasks) == 0 {
		r.drop(g)
		return
	}
	r.bytes += g.bytes
	for e := r.order.Front(); e != nil && (r.order.Len() > maxRecent || r.bytes > maxRecentBytes); {
		next := e.Next()
		if oldest := e.Value.(*gift); len(oldest.tasks) > 0 {
			r.drop(oldest)
		}
		e = next
	}
}

func (r *recent) forget(g *gift) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop(g)
}

// drop forgets a gift, if it is remembered. r.mu is held.
func (r *recent) drop(g *gift) {
	e := r.given[g.request]
	if e == nil || e.Value.(*gift) != g {
		return
	}
	delete(r.given, g.request)
	r.order.Remove(e)
	if len(g.tasks) > 0 {
		r.bytes -= g.bytes
	}
}

// still are the tasks that may still run, and that nobody has answered.
func still(out func(Task) bool, tasks []Task) []Task {
	var all []Task
	for _, t := range tasks {
		if time.Until(t.expires) > 0 && out(t) {
			all = append(all, t)
		}
	}
	return all
}
