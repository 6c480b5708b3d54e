package modelcheck

import "github.com/makegood-dev/makegood"

// smallChildren are small jobs with a step that is done by a job of its own.
func smallChildren() []Config {
	return []Config{
		{
			Name: "a child", Period: sweep, Workflow: shape{steps: 1, children: []int{0}}.workflow(),
			Final: true, Fails: true, Wipe: true, Late: true,
		},
		{
			Name: "a child, cancelled", Period: sweep, Workflow: shape{steps: 1, children: []int{0}}.workflow(), Verbs: verbs(makegood.VerbCancel),
			Final: true, UndoFails: true, Late: true,
		},
		{
			Name: "a child behind a step, cancelled", Period: sweep, Workflow: shape{steps: 2, attempts: 1, undo: 1, children: []int{1}}.workflow(),
			Verbs: verbs(makegood.VerbCancel), Final: true, Late: true, Single: true,
		},
		{
			Name: "a child before a step, undone", Period: sweep, Workflow: shape{steps: 2, attempts: 1, undo: 2, children: []int{0}}.workflow(),
			Final: true, Late: true, Single: true,
		},
		{
			Name: "a child behind a child, undone on request", Period: sweep, Workflow: shape{steps: 2, children: []int{0, 1}}.workflow(),
			Verbs: verbs(makegood.VerbUndo), Final: true, UndoFails: true, Late: true, Single: true,
		},
		{
			Name: "a child, paused and cancelled", Period: sweep, Workflow: shape{steps: 1, children: []int{0}}.workflow(),
			Verbs: verbs(makegood.VerbPause, makegood.VerbResume, makegood.VerbCancel), Final: true, Late: true, Single: true,
		},
		{
			Name: "a child beside a step, undone and forward", Period: sweep, Workflow: shape{steps: 2, attempts: 1, undo: 1, parallel: true, children: []int{1}}.workflow(),
			Verbs: verbs(makegood.VerbForward), Final: true, Late: true, Single: true,
		},
		{
			Name: "a child, of which people ask", Period: sweep, Workflow: shape{steps: 1, children: []int{0}}.workflow(), Verbs: verbs(makegood.VerbUndo),
			ChildVerbs: verbs(makegood.VerbCancel, makegood.VerbUndo, makegood.VerbRedo, makegood.VerbForward), Fails: true, UndoFails: true, Late: true, Single: true,
		},
		{
			Name: "a child that cannot be undone", Period: sweep, Workflow: shape{steps: 1, children: []int{0}}.workflow(), Verbs: verbs(makegood.VerbUndo),
			ChildVerbs: verbs(makegood.VerbCancel), OneWay: true, Final: true, Late: true, Refusals: true, Single: true,
		},
		{
			Name: "a child, restarts", Workflow: shape{steps: 1, children: []int{0}}.workflow(), Verbs: verbs(makegood.VerbUndo),
			Restarts: 2, Late: true, Single: true,
		},
		{
			Name: "a child, weeks", Period: sweep, Workflow: shape{steps: 1, children: []int{0}}.workflow(), Verbs: verbs(makegood.VerbUndo),
			Final: true, Weeks: 2, Late: true, Single: true,
		},
		{
			Name: "a child, two rounds, a timeout", Period: sweep, Workflow: shape{steps: 1, rounds: 2, timeout: 3 * tick, children: []int{0}}.workflow(),
			Final: true, Wipe: true, Late: true, Single: true,
		},
	}
}

func largeChildren() []Config {
	return []Config{
		{
			Name: "a child beside a step, stopped and resubmitted", Period: sweep, Workflow: shape{steps: 2, attempts: 1, undo: 1, parallel: true, stop: true, children: []int{1}}.workflow(),
			Verbs: verbs(makegood.VerbResubmit), Final: true, Single: true,
		},
		{
			Name: "a child, refused", Period: sweep, Workflow: shape{steps: 2, attempts: 1, undo: 1, children: []int{1}}.workflow(), Verbs: verbs(makegood.VerbResubmit),
			Refusals: true, Single: true,
		},
		{
			Name: "a child, slow, cancelled", Period: sweep, Workflow: shape{steps: 1, children: []int{0}}.workflow(), Verbs: verbs(makegood.VerbPause, makegood.VerbResume, makegood.VerbCancel),
			Final: true, Slow: true, Late: true, Single: true,
		},
		{
			Name: "a child, batches", Period: sweep, Workflow: shape{steps: 2, attempts: 1, undo: 1, parallel: true, stop: true, children: []int{1}}.workflow(), Verbs: verbs(makegood.VerbCancel),
			Final: true, Folds: true, Single: true,
		},
	}
}

// smallMaps are small jobs with a step that is done by jobs for each of a list.
func smallMaps() []Config {
	mapped := func(s shape) makegood.Workflow {
		w := s.workflow()
		w.Steps[s.children[0]].Map = &makegood.Map{Count: 2, Item: &makegood.Step{Name: "item", Agent: "a"}}
		return w
	}
	return []Config{
		{
			Name: "a map, redriven", Period: sweep, Workflow: mapped(shape{steps: 1, children: []int{0}}), Verbs: verbs(makegood.VerbRedrive, makegood.VerbRedrive),
			Final: true, Late: true,
		},
		{
			Name: "a map, redriven and cancelled", Period: sweep, Workflow: mapped(shape{steps: 1, children: []int{0}}), Verbs: verbs(makegood.VerbRedrive, makegood.VerbUndo),
			Final: true, Late: true, Wipe: true,
		},
		{
			Name: "a map, redriven, paused and cancelled", Period: sweep, Workflow: mapped(shape{steps: 1, children: []int{0}}),
			Verbs: verbs(makegood.VerbRedrive, makegood.VerbPause, makegood.VerbResume, makegood.VerbCancel), Late: true, Single: true,
		},
		{
			Name: "a map, paused and redriven", Period: sweep, Workflow: mapped(shape{steps: 1, children: []int{0}}),
			Verbs: verbs(makegood.VerbPause, makegood.VerbResume, makegood.VerbRedrive),
		},
		{
			Name: "a map before a step, redriven and cancelled", Period: sweep, Workflow: mapped(shape{steps: 2, attempts: 1, undo: 2, children: []int{0}}),
			Verbs: verbs(makegood.VerbRedrive, makegood.VerbCancel), Single: true,
		},
		{
			Name: "a map, stopped, resubmitted and redriven", Period: sweep, Workflow: mapped(shape{steps: 1, stop: true, children: []int{0}}),
			Verbs: verbs(makegood.VerbRedrive, makegood.VerbResubmit, makegood.VerbRedrive), Final: true, Late: true, Single: true,
		},
	}
}
