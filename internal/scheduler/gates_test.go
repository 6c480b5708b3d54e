package scheduler_test

import (
	"context"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/scheduler"
)

// gated is agent a with a limit, and its gate, which lets all in or none and notes what it is told.
type gated struct {
	admits bool
	ended  []job.Ticket
}

func (l *gated) Now(context.Context) (job.Holds, error) {
	return job.Holds{{Kind: makegood.HoldLimit, Name: "a", Limit: job.Limit{Most: 1}}}, nil
}

func (l *gated) Surely(ctx context.Context) (job.Holds, error) { return l.Now(ctx) }

func (l *gated) Take(context.Context, string, job.Limit, job.Ticket, bool) (bool, error) {
	return l.admits, nil
}

func (l *gated) Left(_ context.Context, _ string, _ job.Limit, ended, _ []job.Ticket) error {
	l.ended = append(l.ended, ended...)
	return nil
}

// A hint that comes late must not cost another process the permit of the attempt that it is about to open, over the same
// state of the job.
func TestALateHintGivesUpWhatWasTakenBeforeItsJobWasSaved(t *testing.T) {
	w, gate := newWorld(t), &gated{}
	w.use(func(c *scheduler.Config) { c.Held, c.Gate = gate, gate })
	w.submit(w.define(twoAgents), "j")
	w.handle(w.record("j", job.Admitted{Step: "first", Attempt: 2}))
	if rev := w.job("j").Rev; len(gate.ended) != 1 || gate.ended[0].Attempt != 2 || gate.ended[0].Rev != rev {
		t.Errorf("got the tickets %+v, want one of attempt 2 at revision %d", gate.ended, rev)
	}
}
