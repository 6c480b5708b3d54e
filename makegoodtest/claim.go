package makegoodtest

import (
	"context"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/store"
)

// LoseClaim takes away the claim of the attempt of a step, or of its undo, that is under way, as a Scheduler does
// after its CompleteBy, and lets all immediate effects happen. The agent is not told: it is a zombie, which finds out
// by its next heartbeat, or by a write that rests on its claim (agent/sqlitefence). The job makes the next attempt
// when this one's CompleteBy has passed. The test fails where no attempt of the step is claimed.
func (r *Running) LoseClaim(step string) {
	r.t.Helper()
	task, begun := r.w.latest(step)
	if !begun {
		r.t.Fatalf("LoseClaim: no attempt of step %q has begun", step)
	}
	slot := store.Slot{Agent: task.Agent, Job: task.Job, Birth: task.Birth, Step: task.Step}
	found, err := r.w.inner.Close(context.Background(), slot, store.Closing{
		Attempt: task.Attempt, Now: time.Now().Add(limits.MaxClaim), Until: task.ClaimUntil,
	})
	if err != nil {
		r.t.Fatalf("LoseClaim: %v", err)
	}
	if found.Finding != job.FoundSilent {
		r.t.Fatalf("LoseClaim: attempt %d of step %q is not claimed: %s", task.Attempt, step, found.Finding)
	}
	r.w.noteSuffered("the claim of attempt " + attempt(task) + " was lost")
	synctest.Wait()
}

// latest returns the task of the latest attempt of a step that came to an agent.
func (w *world) latest(step string) (task makegood.Task, begun bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range w.attempts {
		if a.Step == step {
			task, begun = a.Task, true
		}
	}
	return task, begun
}
