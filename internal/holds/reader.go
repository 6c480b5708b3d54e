// Package holds keeps what is paused as a whole: agents and workflows. It pauses, resumes, and lets the jobs that stood
// still go on little by little, by telling the Scheduler of them. It decides nothing about a job, and writes to none.
//
// # Who reads what
//
// Whoever works (the Scheduler, an agent) asks a Reader, which reads the one item of all holds when it is asked and knows
// nothing newer than limits.HoldsFresh: so an idle process reads nothing, and a pause is known everywhere that long after it
// was answered. What rests on it that something is held is read surely.
//
// # A release
//
// Resumed, a hold holds nothing any more: new work flows at once. The jobs that it kept still are told, oldest first:
// limits.ResumeFirst of them, and each limits.ResumeEvery twice as many. Each step is written down before its jobs are
// told, so that two never do the same one, and a process that dies over it leaves the next step to others: the jobs that
// were not told are found again. When none is left, the hold is removed. What was held since by who knew an older state of
// things goes on by the key of its job, a day later.
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

// Source is what a Reader reads; store.Holds says what it returns.
type Source interface {
	Holds(ctx context.Context, sure bool) (store.Held, error)
}

// Reader knows what is held, and reads it again when what it knows is old. Its methods may be called by many goroutines at
// once.
type Reader struct {
	source Source
	now    func() time.Time

	mu    sync.Mutex
	known job.Holds
	// until is how long what is known counts as fresh; zero: nothing is known.
	until time.Time
}

// NewReader makes a Reader. now says what time it is; nil: time.Now.
func NewReader(source Source, now func() time.Time) *Reader {
	if now == nil {
		now = time.Now
	}
	return &Reader{source: source, now: now}
}

// Now returns what is held, as it was at most limits.HoldsFresh ago. An error leaves what is known as it is.
func (r *Reader) Now(ctx context.Context) (job.Holds, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := r.now(); now.Before(r.until) && r.until.Sub(now) <= limits.HoldsFresh {
		return r.known, nil
	}
	return r.read(ctx, false)
}

// Surely returns what is held now.
func (r *Reader) Surely(ctx context.Context) (job.Holds, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.read(ctx, true)
}

// Forget has the next Now read again: something was changed in this process.
func (r *Reader) Forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.until = time.Time{}
}

// read reads. The lock is held meanwhile, so that of many who ask at once one reads for all.
func (r *Reader) read(ctx context.Context, sure bool) (job.Holds, error) {
	from := r.now()
	held, err := r.source.Holds(ctx, sure)
	if err != nil {
		return nil, fmt.Errorf("what is paused: %w", err)
	}
	r.known, r.until = held.Holds, from.Add(limits.HoldsFresh)
	return r.known, nil
}

// Holds reports whether an agent must not begin a task: it is paused, or the workflow of the task is. That it is rests on a
// sure read; that it is not, on what is known.
func (r *Reader) Holds(ctx context.Context, agent, workflow string) (bool, error) {
	all, err := r.Now(ctx)
	if err != nil || !holds(all, agent, workflow) {
		return false, err
	}
	all, err = r.Surely(ctx)
	return holds(all, agent, workflow), err
}

func holds(all job.Holds, agent, workflow string) bool {
	_, agentOn := all.On(job.HoldName(makegood.HoldAgent, agent))
	_, workflowOn := all.On(job.HoldName(makegood.HoldWorkflow, workflow))
	return agentOn || workflowOn
}
