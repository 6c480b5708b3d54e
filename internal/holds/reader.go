// Package holds keeps the pauses of whole agents and workflows. It pauses, resumes, and lets the held jobs go on little
// by little, by telling the Scheduler of these. It decides nothing about a job, and writes to none.
//
// # Reads
//
// Workers (the Scheduler, an agent) ask a Reader, which reads the one item of all holds on request and keeps it for
// limits.HoldsFresh: so an idle process reads nothing, and a pause is known everywhere that long after it was answered.
// Decisions to hold a job need a strongly consistent read.
//
// # A release
//
// A resumed hold no longer holds: new work flows at once. The jobs that it held are told, oldest first:
// limits.ResumeFirst, and each limits.ResumeEvery twice as many. Each step is stored before its jobs are told, so that
// no two processes make the same one, and if a process dies in between, another makes the next step and finds the jobs
// that were not told. When none is left, the hold is removed. A job held since, by a process with an older state, goes
// on by its own key, a day later.
package holds

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/store"
)

// Source is the source of a Reader; store.Holds documents its results.
type Source interface {
	Holds(ctx context.Context, sure bool) (store.Held, error)
}

// Reader caches the holds, and reads them again when the cache is old. Its methods are safe for concurrent use.
type Reader struct {
	source Source
	now    func() time.Time

	mu    sync.Mutex
	known job.Holds
	// until is how long the cache is fresh; zero: it is empty.
	until time.Time
}

// NewReader makes a Reader. now returns the time; nil: time.Now.
func NewReader(source Source, now func() time.Time) *Reader {
	if now == nil {
		now = time.Now
	}
	return &Reader{source: source, now: now}
}

// Now returns the holds, as they were at most limits.HoldsFresh ago. An error leaves the cache as it is.
func (r *Reader) Now(ctx context.Context) (job.Holds, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := r.now(); now.Before(r.until) && r.until.Sub(now) <= limits.HoldsFresh {
		return r.known, nil
	}
	return r.read(ctx, false)
}

// Surely returns the holds now, by a strongly consistent read.
func (r *Reader) Surely(ctx context.Context) (job.Holds, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.read(ctx, true)
}

// Forget makes the next Now read again: this process changed a hold.
func (r *Reader) Forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.until = time.Time{}
}

// read reads the holds. The lock is held meanwhile, so that one of many concurrent callers reads for all.
func (r *Reader) read(ctx context.Context, sure bool) (job.Holds, error) {
	from := r.now()
	held, err := r.source.Holds(ctx, sure)
	if err != nil {
		return nil, fmt.Errorf("read the pauses: %w", err)
	}
	r.known, r.until = held.Holds, from.Add(limits.HoldsFresh)
	return r.known, nil
}

// Holds reports whether an agent must not begin a task: it is paused, or the workflow of the task is. A yes rests on a
// strongly consistent read, a no on the cache.
func (r *Reader) Holds(ctx context.Context, t makegood.Task) (bool, error) {
	all, err := r.Now(ctx)
	if err != nil || !holds(all, t) {
		return false, err
	}
	all, err = r.Surely(ctx)
	return holds(all, t), err
}

func holds(all job.Holds, t makegood.Task) bool {
	_, agentOn := all.OnFor(job.HoldName(makegood.HoldAgent, t.Agent), t.Job)
	_, workflowOn := all.OnFor(job.HoldName(makegood.HoldWorkflow, t.Workflow), t.Job)
	return agentOn || workflowOn
}
