package agentdoor

import (
	"container/list"
	"context"
	"sync"
	"time"
)

const (
	// maxRecent and maxRecentBytes bound the remembered requests of an agent; the oldest are forgotten first.
	maxRecent      = 1024
	maxRecentBytes = 16 << 20
)

// recent remembers the tasks given to each request, so that a lost answer can be asked for again. It is a help, and no
// promise: a claim with a forgotten task ends at its CompleteBy.
type recent struct {
	mu    sync.Mutex
	given map[string]*list.Element
	order *list.List // of *gift, the oldest first
	bytes int
}

// gift has the tasks that a request was given, or is about to get.
type gift struct {
	request string
	// done is closed when tasks is set.
	done  chan struct{}
	tasks []Task
	bytes int
}

// once returns the tasks that the same request got before and that are still out; waits while the same request is being
// served; and else calls take, and remembers the result.
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

// still are the tasks that may still run, and have no answer.
func still(out func(Task) bool, tasks []Task) []Task {
	var all []Task
	for _, t := range tasks {
		if time.Until(t.expires) > 0 && out(t) {
			all = append(all, t)
		}
	}
	return all
}
