package embedded

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// ErrHalfDefined: a workflow is current, but its schedules do not yet match its file. Defining it again goes on.
var ErrHalfDefined = errors.New("the workflow is current, and its schedules are not all as its file says")

// Define stores a workflow and its schedules, and makes it the current one of its name. It refuses, with
// workflowfile.ErrInvalid, an agent that this engine does not have, an action that its agent does not have, and
// schedules that cannot be kept. An error other than ErrHalfDefined leaves the current workflow.
func (e *Engine) Define(ctx context.Context, c *workflowfile.Compiled) error {
	if err := c.Check(workflowfile.WithExactly(e.config.Named()...)); err != nil {
		return err
	}
	if err := e.timetable.MayAdopt(ctx, c.Workflow.Name, c.Schedules); err != nil {
		return err
	}
	if mended, err := e.file.MendDefinition(ctx, c.Hash, c.Definition); err != nil {
		return err
	} else if mended {
		e.config.Logger.WarnContext(ctx, "a definition that was damaged in the store is mended by the text that was given here", "workflow", c.Workflow.Name, "definition", c.Hash)
	}
	if err := e.store.PutDefinition(ctx, c.Workflow.Name, c.Hash, c.Definition); err != nil {
		return err
	}
	e.mu.Lock()
	e.defined[c.Workflow.Name], e.agentsOf[c.Workflow.Name] = c.Hash, c.Agents()
	e.mu.Unlock()
	if err := e.timetable.Adopt(ctx, c.Workflow.Name, c.Schedules); err != nil {
		return fmt.Errorf("%w: %w", ErrHalfDefined, err)
	}
	return nil
}

// workflows returns what Define made known since Open: the hashes by the names. What an earlier engine
// on the same folder knew is not among them, because its agents may not be here.
func (e *Engine) workflows() map[string]string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return maps.Clone(e.defined)
}

// SubmitCurrent submits to the workflow of this name, as it was defined since Open. A name that is not
// known is scheduler.ErrInvalid; see scheduler.Scheduler.Submit for all else.
func (e *Engine) SubmitCurrent(ctx context.Context, workflow string, s scheduler.Submission) (job.Job, bool, error) {
	hash, err := e.current(workflow)
	if err != nil {
		return job.Job{}, false, err
	}
	s.Definition = hash
	return e.scheduler.Submit(ctx, s)
}

// knows says why there is no workflow of a name; nil: there is one.
func (e *Engine) knows(_ context.Context, workflow string) error {
	_, err := e.current(workflow)
	return err
}

// mayFire returns the reason why a schedule can make no job of a workflow; nil: it can.
func (e *Engine) mayFire(ctx context.Context, workflow string) error {
	if err := e.knows(ctx, workflow); err != nil {
		return err
	}
	return e.scheduler.CheckWorkflow(ctx, workflow)
}

// current returns the hash of a workflow, as it was defined since Open.
func (e *Engine) current(workflow string) (hash string, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	hash, ok := e.defined[workflow]
	if !ok {
		return "", fmt.Errorf("%w: there is no workflow %q; there are %v", scheduler.ErrInvalid, workflow, slices.Sorted(maps.Keys(e.defined)))
	}
	return hash, nil
}
