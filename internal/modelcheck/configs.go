package modelcheck

import (
	"github.com/makegood-dev/makegood"
)

// shape builds a workflow of steps whose times are a tick or two.
type shape struct {
	steps, attempts int
	parallel        bool
	undo            int // how many of the steps have an undo, from the first
	stop            bool
	timeout         makegood.Duration // of the job
	uneven          bool              // the first step is slower than the others
}

func (s shape) workflow() makegood.Workflow {
	w := makegood.Workflow{Name: "model", Timeout: s.timeout}
	for i := range s.steps {
		step := makegood.Step{Name: stepName(i), Agent: "a", StartBy: 2 * tick, Timeout: tick, Retry: makegood.Retry{Attempts: s.attempts, Backoff: tick, Max: tick}}
		if s.parallel {
			step.Needs = []string{}
		}
		if s.uneven {
			step.StartBy = 4 * tick
		}
		if s.uneven && i == 0 {
			step.Timeout, step.Retry.Max = 4*tick, 2*tick
		}
		if i < s.undo {
			step.Undo = &makegood.Undo{Action: "undo"}
		}
		w.Steps = append(w.Steps, step)
	}
	if s.stop {
		w.OnFailure.Action = makegood.FailureStop
	}
	return w.WithDefaults()
}

// Small are the configurations that every test run checks.
func Small() []Config {
	one, two := shape{steps: 1, attempts: 1}, shape{steps: 2, attempts: 1}
	verbs := func(v ...makegood.Verb) []makegood.Verb { return v }
	return []Config{
		{
			Name: "two attempts", Workflow: shape{steps: 1, attempts: 2}.workflow(),
			Fails: true, Unknown: true, Wipe: true, Resends: 1,
		},
		{
			Name: "two attempts, slow", Workflow: shape{steps: 1, attempts: 2}.workflow(),
			Unknown: true, Beats: true, Slow: true, Single: true, Resends: 1,
		},
		{
			Name: "cancel", Workflow: shape{steps: 1, attempts: 1, undo: 1}.workflow(), Verbs: verbs(makegood.Cancel),
			Fails: true,
		},
		{
			Name: "two attempts and an undo", Workflow: shape{steps: 1, attempts: 2, undo: 1}.workflow(),
			Fails: true, Unknown: true, Single: true, Wipe: true,
		},
		{
			Name: "stop and resubmit", Workflow: one.workflow(), Verbs: verbs(makegood.Resubmit),
			Final: true, Refusals: true, Wipe: true, Single: true,
		},
		{
			Name: "rounds", Workflow: shape{steps: 1, attempts: 1, undo: 1}.workflow(), Verbs: verbs(makegood.Resubmit),
			Unknown: true, Wipe: true, Single: true,
		},
		{
			Name: "two in a chain", Workflow: shape{steps: 2, attempts: 1, undo: 2}.workflow(),
			Final: true, Unknown: true, Wipe: true, Single: true,
		},
		{
			Name: "two side by side", Workflow: shape{steps: 2, attempts: 1, undo: 1, parallel: true}.workflow(),
			Final: true, Beats: true, Single: true,
		},
		{
			Name: "slow and fast side by side", Workflow: shape{steps: 2, attempts: 2, parallel: true, uneven: true}.workflow(),
			Fails: true, Single: true,
		},
		{
			Name: "pause", Workflow: two.workflow(), Verbs: verbs(makegood.Pause, makegood.Resume), Wipe: true, Single: true,
		},
		{
			Name: "the job's timeout", Workflow: shape{steps: 1, attempts: 2, undo: 1, timeout: 2 * tick}.workflow(),
			Fails: true, Wipe: true, Single: true,
		},
	}
}

// Large are the configurations of make modelcheck.
func Large() []Config {
	verbs := func(v ...makegood.Verb) []makegood.Verb { return v }
	return []Config{
		{
			Name: "two in a chain, cancelled, two schedulers", Workflow: shape{steps: 2, attempts: 1, undo: 2}.workflow(), Verbs: verbs(makegood.Cancel),
			Final: true,
		},
		{
			Name: "two in a chain, two attempts", Workflow: shape{steps: 2, attempts: 2, undo: 2}.workflow(),
			Unknown: true, Single: true,
		},
		{
			Name: "two side by side, two schedulers", Workflow: shape{steps: 2, attempts: 1, undo: 2, parallel: true}.workflow(),
			Unknown: true,
		},
		{
			Name: "three in a chain", Workflow: shape{steps: 3, attempts: 1, undo: 3}.workflow(), Verbs: verbs(makegood.Cancel),
			Final: true, Wipe: true, Single: true,
		},
		{
			Name: "three side by side", Workflow: shape{steps: 3, attempts: 1, undo: 2, parallel: true}.workflow(),
			Final: true, Single: true,
		},
		{
			Name: "undos that fail", Workflow: shape{steps: 1, attempts: 1, undo: 1}.workflow(), Verbs: verbs(makegood.Resubmit, makegood.Cancel),
			Final: true, UndoFails: true, Single: true,
		},
		{
			Name: "two attempts, slow, two schedulers", Workflow: shape{steps: 1, attempts: 2}.workflow(),
			Fails: true, Unknown: true, Beats: true, Wipe: true, Slow: true, Resends: 1,
		},
		{
			Name: "an undo, cancelled, slow", Workflow: shape{steps: 1, attempts: 1, undo: 1}.workflow(), Verbs: verbs(makegood.Cancel),
			Unknown: true, Beats: true, Slow: true, Single: true,
		},
		{
			Name: "pause, resume, cancel", Workflow: shape{steps: 1, attempts: 1, undo: 1}.workflow(), Verbs: verbs(makegood.Pause, makegood.Resume, makegood.Cancel),
			Unknown: true, Single: true,
		},
		{
			Name: "the job's timeout, resubmitted", Workflow: shape{steps: 1, attempts: 1, timeout: 2 * tick}.workflow(), Verbs: verbs(makegood.Resubmit),
			Fails: true,
		},
		{
			Name: "stopped, undone on request, refusals", Workflow: shape{steps: 1, attempts: 1, undo: 1, stop: true}.workflow(),
			Verbs: verbs(makegood.UndoJob, makegood.Resubmit), Unknown: true, Refusals: true, Single: true,
		},
	}
}
