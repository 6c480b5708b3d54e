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
	asked  []job.Ticket
	ended  []job.Ticket
}

func (l *gated) Now(context.Context) (job.Holds, error) {
	return job.Holds{{Kind: makegood.HoldLimit, Name: "a", Limit: job.Limit{Most: 1}}}, nil
}

func (l *gated) Surely(ctx context.Context) (job.Holds, error) { return l.Now(ctx) }

func (l *gated) Take(_ context.Context, _ string, _ job.Limit, t job.Ticket) (bool, error) {
	l.asked = append(l.asked, t)
	return l.admits, nil
}

func (l *gated) Left(_ context.Context, _ string, _ job.Limit, ended, _ []job.Ticket) error {
	l.ended = append(l.ended, ended...)
	return nil
}

// An attempt before the gate asks as it did before the save that opened it, however often its job is saved meanwhile: so
// its permit need not be written anew.
func TestAnAttemptAsksByTheRevisionOverWhichItWasOpened(t *testing.T) {
	w, gate := newWorld(t), &gated{}
	w.use(func(c *scheduler.Config) { c.Held, c.Gate = gate, gate })
	w.submit(w.define("name: sides\nsteps:\n  - {name: first, agent: b}\n  - {name: gated, agent: a}\n  - {name: free, agent: b, needs: [first]}\n"), "j")
	w.handle(w.done("j", "first"))
	opened := w.job("j").Rev - 1
	w.handle(w.done("j", "free"))
	gate.admits, gate.asked = true, nil
	w.handle(w.record("j", job.Admitted{Step: "gated", Attempt: 1}))
	if j := w.job("j"); len(gate.asked) != 1 || gate.asked[0].Rev != opened || j.Steps[1].Forward.Queued || j.Rev < opened+3 {
		t.Errorf("it asked with %+v for job %+v, want revision %d and that it goes", gate.asked, j, opened)
	}
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

// A submitter that was stopped for minutes after its job was stored sends none of its first tasks when a newer
// release has moved the job meanwhile.
func TestAJobAtAGateThatANewerReleaseHasMovedIsSentNoTasks(t *testing.T) {
	for _, newer := range []bool{false, true} {
		w, gate := newWorld(t), &gated{}
		w.use(func(c *scheduler.Config) { c.Held, c.Gate = gate, gate })
		if newer {
			w.newer()
		}
		w.submit(w.define("name: sides\nsteps:\n  - {name: gated, agent: a, needs: []}\n  - {name: free, agent: b, needs: []}\n"), "j")
		want := 1
		if newer {
			want = 0
		}
		if depth, err := w.local.Depth(t.Context(), "tasks-b"); err != nil || depth.Waiting != want {
			t.Errorf("a newer release has moved it: %t: %d tasks of agent b, which has no gate, %v, want %d", newer, depth.Waiting, err, want)
		}
	}
}
