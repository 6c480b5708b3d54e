package batch

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
)

// work is the open work of a job.
type work struct {
	// children are the ids of the jobs that do steps under way. No job has the id for a step that an agent does.
	children []string
	// beside: another step is due at a time, or waits.
	beside bool
}

func workOf(j job.Job) (w work) {
	for i := range j.Steps {
		s := &j.Steps[i]
		for _, a := range []*job.Activity{&s.Forward, &s.Undo} {
			switch a.State {
			case job.Dispatched:
				w.children = append(w.children, domain.ChildID(j.ID, j.Birth, s.Name, s.Forward.Attempt))
			case job.Backoff, job.Waiting:
				w.beside = true
			}
		}
	}
	return w
}

// end returns the state of a job as the run counts it: a job whose open work is all done by jobs in Error is in Error,
// too, since no person can mend these while the run lasts.
func (r *Run) end(t *tracked) (makegood.ProcessState, string) {
	if atEnd(t.own) || t.work.beside || len(t.work.children) == 0 {
		return t.own, t.ownReason
	}
	var why string
	for _, id := range t.work.children {
		child := r.below[id]
		if child == nil {
			return t.own, t.ownReason
		}
		state, reason := r.end(child)
		if state != makegood.JobError {
			return t.own, t.ownReason
		}
		if why == "" && child.own == makegood.JobError {
			reason = "it waits for job " + id + ": " + reason
		}
		why = cmp.Or(why, reason)
	}
	return makegood.JobError, why
}

// rootOf returns the id of the job at the top of a job's tree; a job without a parent is its own top.
func rootOf(id string) string {
	for {
		child, is := domain.ChildOf(id)
		if !is {
			return id
		}
		id = child.Parent
	}
}

// trackedBelow returns the entry of a job below one of the file. The caller holds mu.
func (r *Run) trackedBelow(id string) *tracked {
	if r.below[id] == nil {
		r.below[id] = &tracked{}
	}
	return r.below[id]
}

// seeBelow tracks the jobs below a job that an earlier run has left under way.
func (r *Run) seeBelow(ctx context.Context, e *embedded.Engine, j job.Job) error {
	for _, id := range workOf(j).children {
		child, err := e.Job(ctx, id)
		switch {
		case errors.Is(err, store.ErrNotFound):
			continue
		case err != nil && !errors.Is(err, store.ErrDamaged):
			return fmt.Errorf("look up job %s: %w", id, err)
		}
		r.Saved(child)
		if err := r.seeBelow(ctx, e, child); err != nil {
			return err
		}
	}
	return nil
}
