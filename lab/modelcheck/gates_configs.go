package modelcheck

import "github.com/makegood-dev/makegood"

// smallGates are small jobs whose agent may do one attempt at once, and does another job's at first.
func smallGates() []Config {
	return []Config{
		{
			Name: "a gate", Period: sweep, Workflow: shape{steps: 1, attempts: 2}.workflow(),
			Fails: true, Wipe: true, Single: true, Gate: true,
		},
		{
			Name: "a gate, side by side", Period: sweep, Workflow: shape{steps: 2, attempts: 1, parallel: true}.workflow(),
			Single: true, Gate: true,
		},
		{
			Name: "a gate, paused", Period: sweep, Workflow: shape{steps: 1, attempts: 1}.workflow(), Verbs: verbs(makegood.VerbPause, makegood.VerbResume),
			Single: true, Gate: true,
		},
		{
			Name: "a gate, two Schedulers", Period: sweep, Workflow: shape{steps: 1, attempts: 1}.workflow(), Gate: true,
		},
		{
			Name: "a gate, stopped and resubmitted", Period: sweep, Workflow: shape{steps: 1, attempts: 1}.workflow(), Verbs: verbs(makegood.VerbResubmit),
			Final: true, Single: true, Gate: true,
		},
	}
}

// largeGates are those with more orders.
func largeGates() []Config {
	return []Config{
		{
			Name: "a gate, cancelled", Period: sweep, Workflow: shape{steps: 1, attempts: 1, undo: 1}.workflow(), Verbs: verbs(makegood.VerbCancel),
			Final: true, Single: true, Gate: true,
		},
		{
			Name: "a gate, restarts", Workflow: shape{steps: 1, attempts: 1, undo: 1}.workflow(), Verbs: verbs(makegood.VerbUndo),
			Restarts: 1, Single: true, Gate: true,
		},
		{
			Name: "a gate, undone on request", Period: sweep, Workflow: shape{steps: 1, attempts: 1, undo: 1}.workflow(), Verbs: verbs(makegood.VerbUndo),
			Single: true, Gate: true,
		},
		{
			Name: "a gate, slow, two Schedulers", Period: sweep, Workflow: shape{steps: 1, attempts: 1}.workflow(), Verbs: verbs(makegood.VerbCancel),
			Slow: true, Gate: true,
		},
		{
			Name: "a gate, side by side, undone", Period: sweep, Workflow: shape{steps: 2, attempts: 1, undo: 1, parallel: true}.workflow(),
			Final: true, Single: true, Gate: true,
		},
		{
			Name: "a gate, in batches", Period: sweep, Workflow: shape{steps: 1, attempts: 2}.workflow(),
			Fails: true, Folds: true, Single: true, Gate: true,
		},
	}
}
