package makegoodtest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
)

// trip is a job of inline steps; its last fails for good, so all are undone.
func trip(lost int) Case {
	return Case{
		YAML: []byte(`
name: trip
steps:
  - {name: flight, agent: travel, inline: true, retry: {attempts: 20}, undo: {action: refund}}
  - {name: hotel, agent: travel, inline: true, needs: [], retry: {attempts: 20}, undo: {action: refund}}
  - {name: visa, agent: travel, inline: true, needs: [flight, hotel], undo: none}
`),
		Services: func() Services {
			desk := NewFake("desk").LoseAnswers("book", lost)
			return Services{
				Ledger: desk.Ledger,
				Agents: []agent.Handler{agent.New("travel",
					agent.Do("flight", func(ctx context.Context, _ any) (any, error) { return nil, desk.Do(ctx, "book", agent.TaskOf(ctx).Key) }),
					agent.Do("hotel", func(ctx context.Context, _ any) (any, error) { return nil, desk.Do(ctx, "book", agent.TaskOf(ctx).Key) }),
					agent.Do("visa", func(context.Context, any) (any, error) {
						return nil, agent.Final(agent.NotApplied(errors.New("refused")))
					}),
					agent.Do("refund", func(ctx context.Context, _ any) (any, error) {
						return nil, desk.Undo(ctx, "refund", agent.TaskOf(ctx).Undo.ForwardKey)
					}),
				)},
				Check: func(job Job) error {
					if n := desk.Stands("book"); n != 0 || job.ProcessState != makegood.JobUndone {
						return fmt.Errorf("%d bookings stand, and the job is %s", n, job.ProcessState)
					}
					return nil
				},
			}
		},
	}
}

// A workflow of inline steps keeps its promises wherever the engine dies, and on bad days.
func TestInlineStepsAreUndoneWhereverTheEngineDies(t *testing.T) {
	CrashEverywhere(t, trip(1))
	Chaos(t, trip(2), 10)
}

// Time that a test advances by hand ends inline attempts too.
func TestInlineStepsInTimeByHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		job := Start(t, trip(0))
		job.AdvanceTime(time.Hour)
		if got := job.Wait(); got.ProcessState != makegood.JobUndone {
			t.Errorf("got %s: %s", got.ProcessState, got.Order())
		}
	})
}
