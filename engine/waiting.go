package engine

import (
	"sync"

	"github.com/makegood-dev/makegood/internal/job"
)

// waiting has a channel for each wait for a job's next save.
type waiting struct {
	mu   *sync.Mutex
	jobs map[string]map[chan struct{}]bool
}

func newWaiting() waiting {
	return waiting{mu: new(sync.Mutex), jobs: map[string]map[chan struct{}]bool{}}
}

// register returns a channel that receives after each save of a job from now on, and a function that ends that.
func (w *waiting) register(id string) (saved <-chan struct{}, forget func()) {
	c := make(chan struct{}, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.jobs[id] == nil {
		w.jobs[id] = map[chan struct{}]bool{}
	}
	w.jobs[id][c] = true
	return c, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if delete(w.jobs[id], c); len(w.jobs[id]) == 0 {
			delete(w.jobs, id)
		}
	}
}

// saved wakes the waits for a job.
func (w *waiting) saved(j job.Job) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.jobs[j.ID] {
		select {
		case c <- struct{}{}:
		default: // It was woken already, and has not looked yet.
		}
	}
}
