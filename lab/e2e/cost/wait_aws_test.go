//go:build aws

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/deployed"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/workflowfile"
	"github.com/makegood-dev/makegood/lab/costmeter"
)

// waitLasts is how long the job of a wait stands still.
const waitLasts = 365 * 24 * time.Hour

// waiting is a job of two steps; with a wait between them, it has a year between them.
func waiting(wait bool) []byte {
	between := ""
	if wait {
		between = "  - {name: pause, agent: wait, with: {for: 365d}}\n"
	}
	return []byte("name: waiting\nsteps:\n  - {name: first, agent: " + agentName + ", action: work}\n" + between +
		"  - {name: last, agent: " + agentName + ", action: work}\n")
}

// runWaiting runs one job of two steps, and sweeps when its wait is over.
func (w *world) runWaiting(ctx context.Context, id string, wait bool) (costmeter.Totals, error) {
	compiled, err := workflowfile.Parse("waiting.yaml", waiting(wait))
	if err != nil {
		return costmeter.Totals{}, err
	}
	if err := w.store.PutDefinition(ctx, compiled.Workflow.Name, compiled.Hash, compiled.Definition); err != nil {
		return costmeter.Totals{}, err
	}
	w.meter.Take()
	w.counted = nil
	if _, _, err := w.scheduler.Submit(ctx, scheduler.Submission{ID: id, Definition: compiled.Hash, Input: w.load.input(0)}); err != nil {
		return costmeter.Totals{}, err
	}
	step := func() error {
		if err := w.feed(ctx, deployed.TasksQueue(agentName), 1, w.work); err != nil {
			return err
		}
		return w.feed(ctx, deployed.EventsQueue, 1, w.scheduler.HandleSQS)
	}
	if err := step(); err != nil {
		return costmeter.Totals{}, err
	}
	if wait {
		if err := w.waitOver(ctx); err != nil {
			return costmeter.Totals{}, err
		}
	}
	if err := step(); err != nil {
		return costmeter.Totals{}, err
	}
	cost := costmeter.Sum(append(w.counted, w.meter.Take()...))
	j, err := w.store.Load(ctx, id)
	if err == nil && j.ProcessState != makegood.JobProcessed {
		err = fmt.Errorf("job %s is %s, want Processed", id, j.ProcessState)
	}
	return cost, err
}

// waitOver lets the year pass, and a sweep find the job. What a sweep costs is the stack's, whatever it finds.
func (w *world) waitOver(ctx context.Context) error {
	w.clock.pass(waitLasts)
	w.counted = append(w.counted, w.meter.Take()...)
	result, err := w.supervisor.Sweep(ctx)
	if err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	if result.Sent != 1 {
		return fmt.Errorf("a sweep told of %d jobs whose wait is over, want 1", result.Sent)
	}
	w.meter.Take()
	return w.feed(ctx, deployed.EventsQueue, 1, w.scheduler.HandleSQS)
}
