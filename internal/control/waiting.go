package control

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
)

// Wait and Watch read a job again when the engine tells them of a save. A save whose answer was lost is not told, so
// they also read the job at intervals: firstLook is the first pause between two reads, longestLook the longest.
const firstLook, longestLook = time.Second, 30 * time.Second

// Waiting are the callers of Wait and Watch, by the ids of their jobs. The engine tells them of saves.
type Waiting struct {
	mu   sync.Mutex
	jobs map[string][]*waiter
}

// NewWaiting returns a Waiting without callers.
func NewWaiting() *Waiting { return &Waiting{jobs: map[string][]*waiter{}} }

// waiter is a caller that waits for a job to be saved.
type waiter struct {
	// wake gets a value after each save, or, with end, after the save that ends the job.
	wake chan struct{}
	end  bool
	// ended is the job as that save has stored it; it is not changed.
	ended atomic.Pointer[job.Job]
}

// register has a caller hear of the saves of a job from now on, and returns the function that ends that.
func (w *Waiting) register(id string, one *waiter) (forget func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.jobs[id] = append(w.jobs[id], one)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		left := slices.DeleteFunc(w.jobs[id], func(other *waiter) bool { return other == one })
		if w.jobs[id] = left; len(left) == 0 {
			delete(w.jobs, id)
		}
	}
}

// Saved wakes the callers that wait for a job.
func (w *Waiting) Saved(j job.Job) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range w.jobs[j.ID] {
		one.saved(j)
	}
}

// Parked wakes the callers that wait for a job that was parked: it may be one that cannot be read, so they look.
func (w *Waiting) Parked(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range w.jobs[id] {
		one.rouse()
	}
}

func (w *waiter) saved(j job.Job) {
	if w.end {
		if !atEnd(j) {
			return
		}
		ended := j
		w.ended.Store(&ended)
	}
	w.rouse()
}

func (w *waiter) rouse() {
	select {
	case w.wake <- struct{}{}:
	default: // It was woken already, and has not looked yet.
	}
}

// nextLook waits until a job is to be looked at again: a save came, or none for the pause. It returns the next pause.
func nextLook(ctx context.Context, id string, came <-chan struct{}, pause time.Duration) (time.Duration, error) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-came:
		return firstLook, nil
	case <-timer.C:
		return min(2*pause, longestLook), nil
	case <-ctx.Done():
		return pause, fmt.Errorf("watch job %s: %w", id, context.Cause(ctx))
	}
}

// atEnd reports whether a job is finished or in Error, as makegood.Job.AtEnd does.
func atEnd(j job.Job) bool { return j.ProcessState.Finished() || j.ProcessState == makegood.JobError }
