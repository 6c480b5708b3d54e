package machine_test

import (
	"pgregory.net/rapid"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
)

// carryOut notes the closings that an event makes due, and holds Pending to what the job says. Tasks are sent when
// their attempt is out: agents find them in tasks.
func (x *world) carryOut(e job.Event) {
	for _, c := range machine.Pending(x.w, x.job, e, x.now) {
		switch c := c.(type) {
		case job.CloseAttempt:
			x.closings = append(x.closings, closing{c, x.job.Definition})
		case job.Ask:
			x.checkAsk(c)
		case job.Dispatch:
			if a := activityOf(x.job, c.Step, c.Undo); a.State != job.Dispatched || a.Held() || a.Queued {
				x.t.Fatalf("task %s is sent, and the step is %+v", id(c.Step, c.Attempt), a)
			}
			task := machine.TaskOf(x.w, x.job, c)
			if first := x.tasks[id(c.Step, c.Attempt)]; !task.ClaimUntil.Equal(first.ClaimUntil) || task.Token != first.Token || task.Token == "" {
				x.t.Fatalf("task %s is sent as %+v, and was as %+v", id(c.Step, c.Attempt), task, first)
			}
			if x.isChild(c.Step, c.Undo) {
				x.noteBirth(c)
			}
		}
	}
}

// closing is one that was derived, and the definition that the job had then.
type closing struct {
	job.CloseAttempt
	definition string
}

// close carries out a closing that was derived some time ago.
func (x *world) close() {
	if len(x.closings) == 0 {
		return
	}
	drawn := rapid.SampledFrom(x.closings).Draw(x.t, "close")
	c := drawn.CloseAttempt
	if drawn.definition != x.job.Definition {
		return // Who derived it knew another agent of its step: that claim has ended, or the job would not have been moved.
	}
	if _, there := x.job.Step(c.Step); !there {
		return // Its step is gone, and so its attempt has ended.
	}
	found, err := x.ask(machine.Ask{Kind: machine.AskClose, Step: c.Step, Attempt: c.Attempt, Undo: c.Undo, Mark: c.Mark})
	if err == nil {
		x.answers = append(x.answers, job.AttemptClosed{Step: c.Step, Attempt: c.Attempt, Found: found, Asked: c.Asked})
	}
}
