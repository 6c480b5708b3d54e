package agentrun_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/agentrun"
	"github.com/makegood-dev/makegood/internal/job"
)

// A write of the agent's own that rests on its claim was refused: the agent knows before anybody has told it.
func TestAnAgentThatFindsOutThatItsAttemptIsOverSaysNothing(t *testing.T) {
	var w *world
	w = newWorld(t, func(context.Context, makegood.Task) (json.RawMessage, error) {
		w.table.heldBy("j/pay", "i-2:x", 4)
		return nil, agent.NotApplied(fmt.Errorf("the write was refused: %w", agent.ErrOver))
	})
	w.wantFailed(w.handle(t.Context(), w.task("pay")))
	w.wantCounters(1, 0, 0, 0, 0, 1, 0)
	w.wantSilence()
}

// An agent whose fence looks into the wrong table would else be silent for ever, and nobody could say why.
func TestAnAgentThatIsWrongAboutItsAttemptIsToldOf(t *testing.T) {
	for name, change := range map[string]func(*makegood.Task){"claimed": func(*makegood.Task) {}, "shared": shared} {
		w := newWorld(t, func(context.Context, makegood.Task) (json.RawMessage, error) {
			return nil, agent.NotApplied(fmt.Errorf("the write was refused: %w", agent.ErrOver))
		})
		w.wantFailed(w.handle(t.Context(), w.task("pay", change)))
		w.wantFailure("pay", job.StepError{Message: "the write was refused: the attempt is over", Retryable: true, Applied: makegood.AppliedNo})
		if t.Failed() {
			t.Errorf("%s", name)
		}
	}
}

func TestATaskSaysByWhatItsAttemptIsHeld(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*makegood.Task)
		held   bool
	}{"claimed": {func(*makegood.Task) {}, true}, "shared": {shared, false}} {
		var got, asked makegood.TaskClaim
		w := newWorld(t, nil)
		runner := agentrun.New(agentrun.Config{
			Claims: w.table, ClaimsIn: makegood.TaskClaim{Table: "jobs"}, Queue: w.outbox, Tasks: "tasks-shop", Quarantine: "quarantine", Instance: "i-1",
			Handlers: []agent.Handler{handler(func(ctx context.Context, task makegood.Task) (json.RawMessage, error) {
				got, asked = task.Claim, agent.TaskOf(ctx).Claim
				return nil, nil
			})},
		})
		w.runner = runner
		w.wantFailed(w.handle(t.Context(), w.task("pay", c.change)))
		want := makegood.TaskClaim{}
		if c.held {
			want = makegood.TaskClaim{LockedBy: w.table.slot("j/pay").LockedBy, Table: "jobs"}
		}
		if got != want || asked != want || c.held && want.LockedBy == "" {
			t.Errorf("%s: got %+v and %+v, want %+v", name, got, asked, want)
		}
	}
}
