package modelcheck

import (
	"slices"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
)

// shape builds a workflow of steps whose times are a tick or two.
type shape struct {
	steps, attempts int
	parallel        bool
	undo            int // how many of the steps have an undo, from the first
	stop            bool
	timeout         makegood.Duration // of the job
	uneven          bool              // the first step is slower than the others
	other           bool              // another agent undoes
	rounds          int               // onFailure is restart, with so many; 0: it is not
	skips           bool              // the first step is passed by when it is given up
	elsewhere       bool              // the first step goes to the last when it is given up, and to it alone
	anyOf           bool              // the last step begins by any of the others
	expect          makegood.Duration // of the job
	inline          bool              // the Schedulers run all steps themselves
	chained         bool              // they run them in a chain
	children        []int             // these steps are done by jobs of their own
}

func (s shape) workflow() makegood.Workflow {
	w := makegood.Workflow{Name: "model", Timeout: s.timeout, Expect: s.expect}
	for i := range s.steps {
		step := makegood.Step{Name: stepName(i), Agent: "a", StartBy: 2 * tick, Timeout: tick, Retry: makegood.Retry{Attempts: s.attempts, Backoff: tick, Max: tick}}
		step.Inline, step.Shared = s.inline || s.chained, s.chained
		if s.parallel {
			step.Needs = []string{}
		}
		if s.uneven {
			step.StartBy = 3 * tick
		}
		if s.uneven && i == 0 {
			step.Timeout, step.Retry.Max = 3*tick, 2*tick
		}
		if i < s.undo {
			step.Undo = &makegood.Undo{Action: "undo"}
			if s.other {
				step.Undo.Agent = "b"
			}
		}
		w.Steps = append(w.Steps, step)
	}
	for _, i := range s.children {
		w.Steps[i] = makegood.Step{Name: stepName(i), Agent: makegood.AgentWorkflow, Action: "child", Needs: w.Steps[i].Needs}
	}
	s.ways(w.Steps)
	if s.stop {
		w.OnFailure.Action = makegood.FailureStop
	}
	if s.rounds > 0 {
		w.OnFailure = makegood.OnFailure{Action: makegood.FailureRestart, Rounds: s.rounds, Wait: tick}
	}
	return domain.WithDefaults(w)
}

// ways are how steps are passed by, and begin otherwise than behind the one above.
func (s shape) ways(steps []makegood.Step) {
	first, last := &steps[0], &steps[len(steps)-1]
	route := makegood.ErrorRoute{Kind: makegood.AnyKind, Do: makegood.ErrorDo{Action: makegood.RouteSkip}}
	if s.elsewhere {
		route.Do = makegood.ErrorDo{Action: makegood.RouteGoto, Step: last.Name}
		last.Only = makegood.OnlyOnError
	}
	if s.skips || s.elsewhere {
		first.OnError = []makegood.ErrorRoute{route}
	}
	if s.anyOf {
		last.Any, last.Needs = true, nil
		for _, other := range steps[:len(steps)-1] {
			last.Needs = append(last.Needs, other.Name)
		}
	}
}

// sweep is a Supervisor's period that is longer than any StartBy here: nothing is looked at before that.
const sweep = makegood.Second

// Small are the configurations that every test run checks.
func Small() []Config {
	return slices.Concat(smallJobs(), smallWays(), smallInline(), smallChains(), smallChildren(), smallMaps(), smallWorlds(), smallSettlements(), smallExpected(), smallGates())
}

// Large are those that only make modelcheck checks.
func Large() []Config {
	return slices.Concat(largeJobs(), largeInline(), largeChains(), largeExpected(), largeChildren(), largeWorlds(), largeSettlements(), largeGates())
}

func verbs(v ...makegood.Verb) []makegood.Verb { return v }

func smallJobs() []Config {
	one, two := shape{steps: 1, attempts: 1}, shape{steps: 2, attempts: 1}
	return []Config{
		{
			Name: "two attempts", Period: sweep, Workflow: shape{steps: 1, attempts: 2}.workflow(),
			Fails: true, Unknown: true, Wipe: true, Resends: 1,
		},
		{
			Name: "two attempts, slow", Period: sweep, Workflow: shape{steps: 1, attempts: 2}.workflow(),
			Unknown: true, Heartbeats: true, Slow: true, Single: true, Resends: 1,
		},
		{
			Name: "two attempts, looked at", Workflow: shape{steps: 1, attempts: 2}.workflow(),
			Heartbeats: true, Single: true, Resends: 1,
		},
		{
			Name: "cancel", Period: sweep, Workflow: shape{steps: 1, attempts: 1, undo: 1}.workflow(), Verbs: verbs(makegood.VerbCancel),
			Fails: true, Single: true, Wipe: true,
		},
		{
			Name: "two attempts and an undo", Period: sweep, Workflow: shape{steps: 1, attempts: 2, undo: 1}.workflow(),
			Fails: true, Single: true,
		},
		{
			Name: "stop and resubmit", Period: sweep, Workflow: one.workflow(), Verbs: verbs(makegood.VerbResubmit),
			Final: true, Refusals: true, Single: true,
		},
		{
			Name: "stop, side by side", Period: sweep, Workflow: shape{steps: 2, attempts: 1, parallel: true}.workflow(),
			Single: true,
		},
		{
			Name: "rounds", Period: sweep, Workflow: shape{steps: 1, attempts: 1, undo: 1}.workflow(), Verbs: verbs(makegood.VerbResubmit),
			Unknown: true, Single: true,
		},
		{
			Name: "two rounds", Period: sweep, Workflow: shape{steps: 1, attempts: 1, undo: 1, rounds: 2}.workflow(),
			Fails: true, Single: true,
		},
		{
			Name: "two rounds and a timeout", Period: sweep, Workflow: shape{steps: 1, attempts: 1, undo: 1, rounds: 2, timeout: 3 * tick}.workflow(),
			Fails: true, Wipe: true, Single: true,
		},
		{
			Name: "two in a chain", Period: sweep, Workflow: shape{steps: 2, attempts: 1, undo: 2, other: true}.workflow(),
			Final: true, Unknown: true, Wipe: true, Single: true,
		},
		{
			Name: "two side by side", Period: sweep, Workflow: shape{steps: 2, attempts: 1, undo: 1, parallel: true}.workflow(),
			Final: true, Single: true,
		},
		{
			Name: "slow and fast side by side", Period: sweep, Workflow: shape{steps: 2, attempts: 1, undo: 1, parallel: true, uneven: true}.workflow(),
			Final: true, Single: true,
		},
		{
			Name: "pause", Period: sweep, Workflow: two.workflow(), Verbs: verbs(makegood.VerbPause, makegood.VerbResume), Wipe: true, Single: true,
		},
		{
			Name: "the job's timeout", Period: sweep, Workflow: shape{steps: 1, attempts: 2, undo: 1, timeout: 2 * tick}.workflow(),
			Fails: true, Wipe: true, Single: true,
		},
	}
}

// smallWays are small jobs that go another way than from step to step.
func smallWays() []Config {
	return []Config{
		{
			Name: "one is passed by", Period: sweep, Workflow: shape{steps: 2, attempts: 1, undo: 2, skips: true}.workflow(),
			Final: true, Unknown: true, Wipe: true, Single: true,
		},
		{
			Name: "one goes elsewhere", Period: sweep, Workflow: shape{steps: 3, attempts: 1, undo: 1, elsewhere: true}.workflow(),
			Final: true, Single: true,
		},
		{
			Name: "any of two", Period: sweep, Workflow: shape{steps: 3, attempts: 1, parallel: true, anyOf: true, stop: true}.workflow(),
			Single: true,
		},
	}
}

// smallInline are small jobs whose steps the Schedulers run themselves, but for those that requests open.
func smallInline() []Config {
	return []Config{
		{
			Name: "inline, with an undo", Period: sweep, Workflow: shape{steps: 1, attempts: 1, undo: 1, inline: true}.workflow(), Single: true,
		},
		{
			Name: "inline, two attempts", Period: sweep, Workflow: shape{steps: 1, attempts: 2, inline: true}.workflow(),
			Fails: true, Unknown: true, Wipe: true, Single: true,
		},
		{
			Name: "inline, two Schedulers", Period: sweep, Workflow: shape{steps: 1, attempts: 1, inline: true}.workflow(),
			Final: true,
		},
		{
			Name: "inline, cancelled", Period: sweep, Workflow: shape{steps: 1, attempts: 1, inline: true}.workflow(), Verbs: verbs(makegood.VerbCancel),
			Final: true, Single: true,
		},
		{
			Name: "inline, in batches", Period: sweep, Workflow: shape{steps: 1, attempts: 2, inline: true}.workflow(),
			Fails: true, Folds: true, Single: true,
		},
		{
			Name: "inline, restarts", Workflow: shape{steps: 1, attempts: 1, inline: true}.workflow(), Restarts: 1, Power: true, Single: true,
		},
	}
}

// smallChains are jobs of two steps in a chain. An attempt that goes through a queue is never taken: it falls silent.
func smallChains() []Config {
	return []Config{
		{
			Name: "a chain, two Schedulers", Period: sweep, Workflow: shape{steps: 2, attempts: 1, undo: 1, chained: true}.workflow(),
			Fails: true,
		},
		{
			Name: "a chain, restarts", Workflow: shape{steps: 2, attempts: 1, undo: 2, chained: true}.workflow(), Restarts: 1, Single: true,
		},
	}
}

// largeInline is two steps side by side: one may open, and the other stop the job, in one batch.
func largeInline() []Config {
	return []Config{{
		Name: "inline, side by side, in batches", Period: sweep, Workflow: shape{steps: 2, attempts: 1, parallel: true, stop: true, inline: true}.workflow(),
		Final: true, Folds: true, Single: true,
	}}
}

// largeChains are jobs of two steps in a chain, with their replies in one batch, or with a cancel.
func largeChains() []Config {
	return []Config{
		{
			Name: "a chain, in batches", Period: sweep, Workflow: shape{steps: 2, attempts: 1, undo: 2, chained: true}.workflow(),
			Final: true, Folds: true, Single: true,
		},
		{
			Name: "a chain, cancelled", Period: sweep, Workflow: shape{steps: 2, attempts: 1, undo: 2, chained: true}.workflow(),
			Verbs: verbs(makegood.VerbCancel), Single: true,
		},
	}
}

// smallExpected are small jobs that are expected within a time, of which some are late.
func smallExpected() []Config {
	return []Config{
		{
			Name: "expected", Period: sweep, Workflow: shape{steps: 1, attempts: 1, undo: 1, expect: 5 * tick}.workflow(),
			Fails: true, Single: true,
		},
		{
			Name: "expected, paused", Period: sweep, Workflow: shape{steps: 1, attempts: 1, expect: 5 * tick}.workflow(), Verbs: verbs(makegood.VerbPause, makegood.VerbResume),
			Fails: true, Single: true,
		},
	}
}

func largeExpected() []Config {
	return []Config{
		{
			Name: "expected, two attempts", Period: sweep, Workflow: shape{steps: 1, attempts: 2, undo: 1, expect: 5 * tick}.workflow(),
			Fails: true, Single: true,
		},
		{
			Name: "expected, two rounds", Period: sweep, Workflow: shape{steps: 1, attempts: 1, undo: 1, rounds: 2, expect: 10 * tick}.workflow(),
			Final: true, Single: true,
		},
		{
			Name: "expected, resubmitted", Period: sweep, Workflow: shape{steps: 1, attempts: 1, stop: true, expect: 5 * tick}.workflow(), Verbs: verbs(makegood.VerbResubmit),
			Final: true, Single: true,
		},
	}
}

// smallWorlds are small jobs to which more happens than messages, crashes and requests.
func smallWorlds() []Config {
	return []Config{
		{
			Name: "weeks", Period: sweep, Workflow: shape{steps: 1, attempts: 2}.workflow(),
			Fails: true, Weeks: 2, Single: true,
		},
		{
			Name: "restarts", Period: sweep, Workflow: shape{steps: 1, attempts: 1, undo: 1}.workflow(), Verbs: verbs(makegood.VerbUndo),
			Restarts: 1, Power: true, Single: true,
		},
		{
			Name: "lies", Period: sweep, Workflow: shape{steps: 1, attempts: 2}.workflow(),
			Fails: true, Lies: 2, Single: true,
		},
		{
			Name: "batches", Period: sweep, Workflow: shape{steps: 2, attempts: 1, undo: 1, parallel: true}.workflow(),
			Folds: true, Single: true,
		},
		{
			Name: "batches, three attempts", Period: sweep, Workflow: shape{steps: 1, attempts: 3}.workflow(),
			Folds: true, Single: true,
		},
		{
			Name: "cancel, slow", Period: sweep, Workflow: shape{steps: 1, attempts: 1, undo: 1}.workflow(), Verbs: verbs(makegood.VerbCancel),
			Heartbeats: true, Slow: true, Single: true,
		},
		{
			Name: "waits, two answers", Period: sweep, Workflow: shape{steps: 2, attempts: 1, undo: 1}.workflow(),
			Waits: true, Words: []Word{{}, {}}, Single: true,
		},
		{
			Name: "waits, an answer by address, cancelled", Period: sweep, Workflow: shape{steps: 1, attempts: 1, undo: 1}.workflow(), Verbs: verbs(makegood.VerbCancel),
			Waits: true, Words: []Word{{}, {Address: true}}, Single: true,
		},
		{
			Name: "waits, an answer that it failed", Period: sweep, Workflow: shape{steps: 2, attempts: 1, undo: 1}.workflow(),
			Waits: true, Words: []Word{{}, {Fails: true}}, Single: true,
		},
	}
}

func largeJobs() []Config {
	return []Config{
		{
			Name: "cancel, two schedulers", Period: sweep, Workflow: shape{steps: 1, attempts: 1, undo: 1}.workflow(), Verbs: verbs(makegood.VerbCancel),
			Fails: true, Unknown: true,
		},
		{
			Name: "two in a chain, cancelled, two schedulers", Period: sweep, Workflow: shape{steps: 2, attempts: 1, undo: 2}.workflow(), Verbs: verbs(makegood.VerbCancel),
			Final: true,
		},
		{
			Name: "two in a chain, two attempts", Period: sweep, Workflow: shape{steps: 2, attempts: 2, undo: 1}.workflow(),
			Single: true,
		},
		{
			Name: "two side by side, cancelled", Period: sweep, Workflow: shape{steps: 2, attempts: 1, undo: 1, parallel: true}.workflow(), Verbs: verbs(makegood.VerbCancel),
			Single: true,
		},
		{
			Name: "two side by side, two schedulers", Period: sweep, Workflow: shape{steps: 2, attempts: 1, undo: 1, parallel: true}.workflow(),
			Final: true,
		},
		{
			Name: "two rounds, undone on request", Period: sweep, Workflow: shape{steps: 1, attempts: 1, undo: 1, rounds: 2}.workflow(), Verbs: verbs(makegood.VerbUndo),
			Unknown: true, Single: true,
		},
		{
			Name: "three in a chain", Period: sweep, Workflow: shape{steps: 3, attempts: 1, undo: 3}.workflow(), Verbs: verbs(makegood.VerbCancel),
			Final: true, Single: true,
		},
		{
			Name: "three side by side", Period: sweep, Workflow: shape{steps: 3, attempts: 1, parallel: true}.workflow(),
			Final: true, Single: true,
		},
		{
			Name: "undos that fail", Period: sweep, Workflow: shape{steps: 1, attempts: 1, undo: 1}.workflow(), Verbs: verbs(makegood.VerbResubmit, makegood.VerbCancel),
			Final: true, UndoFails: true, Single: true,
		},
		{
			Name: "slow, two schedulers", Period: sweep, Workflow: shape{steps: 1, attempts: 1}.workflow(),
			Fails: true, Slow: true,
		},
		{
			Name: "pause, resume, cancel", Period: sweep, Workflow: shape{steps: 1, attempts: 1, undo: 1}.workflow(), Verbs: verbs(makegood.VerbPause, makegood.VerbResume, makegood.VerbCancel),
			Single: true,
		},
		{
			Name: "the job's timeout, resubmitted", Period: sweep, Workflow: shape{steps: 1, attempts: 1, timeout: 2 * tick}.workflow(), Verbs: verbs(makegood.VerbResubmit),
			Fails: true,
		},
		{
			Name: "stopped, undone on request, refusals", Period: sweep, Workflow: shape{steps: 1, attempts: 1, undo: 1, stop: true}.workflow(),
			Verbs: verbs(makegood.VerbUndo), Refusals: true, Single: true,
		},
		{
			Name: "stop and resubmit, side by side", Period: sweep, Workflow: shape{steps: 2, attempts: 1, parallel: true}.workflow(), Verbs: verbs(makegood.VerbResubmit),
			Single: true,
		},
	}
}

func largeWorlds() []Config {
	return []Config{
		{
			Name: "waits, two schedulers", Period: sweep, Workflow: shape{steps: 1, attempts: 1}.workflow(),
			Waits: true, Words: []Word{{}, {}},
		},
		{
			Name: "waits, tried again", Period: sweep, Workflow: shape{steps: 1, attempts: 2, undo: 1}.workflow(),
			Unknown: true, Waits: true, Words: []Word{{}}, Single: true,
		},
		{
			Name: "waits, paused and cancelled", Period: sweep, Workflow: shape{steps: 1, attempts: 1, undo: 1}.workflow(),
			Verbs: verbs(makegood.VerbPause, makegood.VerbResume, makegood.VerbCancel), Waits: true, Words: []Word{{}}, Single: true,
		},
		{
			Name: "waits, restarts", Period: sweep, Workflow: shape{steps: 1, attempts: 1, undo: 1}.workflow(), Verbs: verbs(makegood.VerbUndo),
			Waits: true, Words: []Word{{}}, Restarts: 1, Power: true, Single: true,
		},
		{
			Name: "weeks, undone", Period: sweep, Workflow: shape{steps: 1, attempts: 1, undo: 1}.workflow(), Verbs: verbs(makegood.VerbCancel),
			Weeks: 2, Single: true,
		},
		{
			Name: "lies, undone, slow", Period: sweep, Workflow: shape{steps: 1, attempts: 1, undo: 1}.workflow(), Verbs: verbs(makegood.VerbCancel),
			Fails: true, Lies: 1, Slow: true, Single: true,
		},
		{
			Name: "restarts, undone on request", Period: sweep, Workflow: shape{steps: 1, attempts: 1, undo: 1}.workflow(), Verbs: verbs(makegood.VerbUndo),
			Restarts: 2, Power: true, Single: true,
		},
		{
			Name: "batches, side by side", Period: sweep, Workflow: shape{steps: 2, attempts: 1, undo: 2, parallel: true}.workflow(),
			Final: true, Folds: true, Single: true,
		},
		{
			Name: "restarts of two in a chain", Period: sweep, Workflow: shape{steps: 2, attempts: 1, undo: 2}.workflow(),
			Unknown: true, Restarts: 2, Power: true, Single: true,
		},
		{
			Name: "batches, two attempts and an undo", Period: sweep, Workflow: shape{steps: 1, attempts: 2, undo: 1}.workflow(),
			Unknown: true, Folds: true, Single: true,
		},
	}
}

// smallSettlements are small jobs of which a person settles steps and undos.
func smallSettlements() []Config {
	return []Config{
		{
			Name: "settled before a person", Period: sweep, Workflow: shape{steps: 2, attempts: 1, stop: true}.workflow(),
			Final: true, Settlements: []Settlement{{}, {Skip: true}}, Single: true,
		},
		{
			Name: "settled, resubmitted", Period: sweep, Workflow: shape{steps: 1, attempts: 1, stop: true}.workflow(), Verbs: verbs(makegood.VerbResubmit),
			Final: true, Settlements: []Settlement{{}, {Skip: true}}, Single: true,
		},
		{
			Name: "settled, undone on request", Period: sweep, Workflow: shape{steps: 1, attempts: 1, undo: 1}.workflow(), Verbs: verbs(makegood.VerbUndo),
			Settlements: []Settlement{{Skip: true}, {Undo: true}}, Single: true,
		},
		{
			Name: "settled, slow", Period: sweep, Workflow: shape{steps: 1, attempts: 2}.workflow(),
			Unknown: true, Slow: true, Settlements: []Settlement{{}}, Single: true,
		},
		{
			Name: "settled, and a new round", Period: sweep, Workflow: shape{steps: 1, attempts: 1, undo: 1}.workflow(), Verbs: verbs(makegood.VerbResubmit),
			Settlements: []Settlement{{}}, Single: true,
		},
		{
			Name: "settled as not done", Period: sweep, Workflow: shape{steps: 1, attempts: 1, stop: true}.workflow(), Verbs: verbs(makegood.VerbResubmit),
			Unknown: true, Settlements: []Settlement{{NotDone: true, Attempt: 1}}, Single: true,
		},
	}
}

func largeSettlements() []Config {
	return []Config{
		{
			Name: "settled, two schedulers", Period: sweep, Workflow: shape{steps: 1, attempts: 2}.workflow(),
			Fails: true, Settlements: []Settlement{{}},
		},
		{
			Name: "settled as not done, resubmitted", Period: sweep, Workflow: shape{steps: 1, attempts: 1, undo: 1, stop: true}.workflow(),
			Verbs: verbs(makegood.VerbResubmit, makegood.VerbCancel), Unknown: true, Settlements: []Settlement{{NotDone: true, Attempt: 1}}, Single: true,
		},
		{
			Name: "settled, undos that fail", Period: sweep, Workflow: shape{steps: 1, attempts: 1, undo: 1}.workflow(), Verbs: verbs(makegood.VerbCancel),
			Fails: true, UndoFails: true, Settlements: []Settlement{{Skip: true}, {Undo: true}}, Single: true,
		},
		{
			Name: "settled in a chain, not undone", Period: sweep, Workflow: shape{steps: 2, attempts: 1, undo: 1}.workflow(),
			Final: true, Settlements: []Settlement{{}, {Undo: true, Skip: true}, {Step: 1, Undo: true}}, Single: true,
		},
		{
			Name: "settled, waits", Period: sweep, Workflow: shape{steps: 1, attempts: 1, undo: 1}.workflow(),
			Waits: true, Words: []Word{{}}, Settlements: []Settlement{{}, {Skip: true}}, Single: true,
		},
		{
			Name: "settled, restarts", Period: sweep, Workflow: shape{steps: 1, attempts: 1, undo: 1}.workflow(), Verbs: verbs(makegood.VerbCancel),
			Restarts: 1, Power: true, Settlements: []Settlement{{Skip: true}, {Undo: true}}, Single: true,
		},
		{
			Name: "settled, lies", Period: sweep, Workflow: shape{steps: 1, attempts: 2}.workflow(),
			Fails: true, Lies: 2, Settlements: []Settlement{{}}, Single: true,
		},
	}
}
