package machine

import (
	"fmt"
	"slices"

	"github.com/makegood-dev/makegood"
)

// transitions is the law: which ProcessState may follow which in one event. A state may always follow
// itself. docs/states.md is generated from it, Apply asserts it, random tests try to break it.
var transitions = map[makegood.ProcessState][]makegood.ProcessState{
	makegood.JobPending: {
		makegood.JobProcessing, makegood.JobProcessed, makegood.JobError, makegood.JobUndoing, makegood.JobUndone, makegood.JobCancelled,
	},
	makegood.JobProcessing: {
		makegood.JobProcessed, makegood.JobError, makegood.JobUndoing, makegood.JobUndone, makegood.JobCancelled,
	},
	makegood.JobProcessed: {makegood.JobUndoing, makegood.JobError, makegood.JobUndone},
	makegood.JobError: {
		makegood.JobProcessing, makegood.JobProcessed, makegood.JobUndoing, makegood.JobUndone, makegood.JobCancelled,
	},
	// Where onFailure is restart a job that is being undone goes forward again, by itself.
	makegood.JobUndoing:   {makegood.JobProcessing, makegood.JobProcessed, makegood.JobError, makegood.JobUndone, makegood.JobCancelled},
	makegood.JobUndone:    {makegood.JobProcessing, makegood.JobProcessed, makegood.JobError, makegood.JobUndoing},
	makegood.JobCancelled: {},
}

// Transitions returns the states that may follow a state.
func Transitions(from makegood.ProcessState) []makegood.ProcessState {
	return slices.Clone(transitions[from])
}

func mustAllow(from, to makegood.ProcessState) {
	if from != to && !slices.Contains(transitions[from], to) {
		panic(fmt.Sprintf("machine: no transition from %s to %s", from, to))
	}
}
