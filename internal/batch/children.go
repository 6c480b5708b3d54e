package batch

import (
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
	// children are the jobs that do it; a step that an agent does has the id of a job that there is not.
	children []string
	// beside: something of it is due at a time, or waits.
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
		if why == "" {
			why = reason
		}
	}
	return makegood.JobError, why
}

// rootOf is the job at the top of the tree in which a job stands; of a job without a parent, the job itself.
func rootOf(id string) string {
	for {
		child, is := domain.ChildOf(id)
		if !is {
			return id
		}
		id = child.Parent
	}
}

// trackedBelow is a job below one of the file. The caller holds mu.
func (r *Run) trackedBelow(id string) *tracked {
	if r.below[id] == nil {
		r.below[id] = &tracked{}
	}
	return r.below[id]
}

// seeBelow sees the jobs below a job that an earlier run has left.
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
