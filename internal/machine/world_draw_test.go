package machine_test

import (
	"fmt"

	"pgregory.net/rapid"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

// drawWorkflow draws a workflow of so many steps at most.
func drawWorkflow(t *rapid.T, most int) makegood.Workflow {
	n := rapid.IntRange(1, most).Draw(t, "steps")
	w := makegood.Workflow{Name: "random"}
	chain := rapid.IntRange(0, 3).Draw(t, "chain") == 0
	for i := range n {
		s := makegood.Step{Name: fmt.Sprintf("s%d", i), Agent: "a", Needs: []string{}}
		for j := range i {
			if rapid.Bool().Draw(t, "need") {
				s.Needs = append(s.Needs, fmt.Sprintf("s%d", j))
			}
		}
		s.StartBy = makegood.Duration(rapid.IntRange(1, 40).Draw(t, "startBy")) * makegood.Second
		s.Timeout = makegood.Duration(rapid.IntRange(1, 40).Draw(t, "timeout")) * makegood.Second
		if heartbeat := makegood.Duration(rapid.IntRange(1, 40).Draw(t, "heartbeat")) * makegood.Second; heartbeat < s.Timeout {
			s.Heartbeat = heartbeat
		}
		s.Retry.Attempts = rapid.IntRange(1, 3).Draw(t, "attempts")
		if rapid.Bool().Draw(t, "forATime") {
			s.Retry.Attempts, s.Retry.For = limits.MaxAttempts, makegood.Duration(rapid.IntRange(1, 40).Draw(t, "for"))*makegood.Second
		}
		s.Shared = s.Heartbeat == 0 && rapid.IntRange(0, 3).Draw(t, "shared") == 0
		s.Inline = s.Heartbeat == 0 && rapid.IntRange(0, 2).Draw(t, "inline") == 0
		s.Repeat = drawRepeat(t)
		switch rapid.IntRange(0, 3).Draw(t, "undo") {
		case 0, 1:
			s.Undo = &makegood.Undo{Action: "u"}
		case 2:
			s.Undo = &makegood.Undo{None: true}
		}
		drawWaits(t, &s)
		if chain && s.Agent == "a" && rapid.IntRange(0, 5).Draw(t, "in the chain") > 0 {
			s.Shared, s.Inline, s.Heartbeat, s.Repeat, s.Waiting = true, true, 0, nil, nil
			s.Needs = before(w.Steps)
		}
		drawChild(t, &s)
		w.Steps = append(w.Steps, s)
	}
	if rapid.IntRange(0, 3).Draw(t, "jobTimeout") == 0 {
		w.Timeout = makegood.Duration(rapid.IntRange(5, 100).Draw(t, "timeout")) * makegood.Second
	}
	if rapid.IntRange(0, 2).Draw(t, "expected") == 0 {
		w.Expect = makegood.Duration(rapid.IntRange(1, 100).Draw(t, "expect")) * makegood.Second
	}
	switch rapid.IntRange(0, 4).Draw(t, "onFailure") {
	case 0:
		w.OnFailure.Action = makegood.FailureStop
	case 1:
		w.OnFailure = makegood.OnFailure{Action: makegood.FailureWait, Wait: 20 * makegood.Second}
	case 2:
		if domain.HasUndo(w) {
			wait := makegood.Duration(rapid.IntRange(1, 60).Draw(t, "wait")) * makegood.Second
			w.OnFailure = makegood.OnFailure{Action: makegood.FailureRestart, Rounds: rapid.IntRange(2, 4).Draw(t, "rounds"), Wait: wait}
		}
	}
	drawPart(t, &w)
	return domain.WithDefaults(w)
}

// before are the needs of a step that follows the last of others.
func before(steps []makegood.Step) []string {
	if len(steps) == 0 {
		return []string{}
	}
	return []string{steps[len(steps)-1].Name}
}

// drawOwn makes what the engine says of itself.
func (x *world) drawOwn() job.Event {
	switch rapid.IntRange(0, 6).Draw(x.t, "own") {
	case 6:
		return x.drawPublished()
	case 0:
		return job.Submitted{}
	case 1:
		if !x.nested {
			x.restart()
		}
		return job.Interrupted{Incarnation: x.run}
	case 2, 3:
		return job.NotHeard{Seq: x.job.Seq}
	default:
		return job.Told{Seq: x.job.Seq, Operator: rapid.Bool().Draw(x.t, "operator"), Listener: rapid.Bool().Draw(x.t, "listener")}
	}
}
