package machine

import (
	"fmt"
	"slices"

	"github.com/makegood-dev/makegood"
)

// transitions is the law: which ProcessState may follow which in one event. A state may always follow
// itself. docs/states.md is generated from it, Apply asserts it, random tests try to break it.
var transitions = map[makegood.ProcessState][]makegood.ProcessState{
	makegood.Pending: {
		makegood.Processing, makegood.Processed, makegood.Error, makegood.Undoing, makegood.Undone, makegood.Cancelled,
	},
	makegood.Processing: {
		makegood.Processed, makegood.Error, makegood.Undoing, makegood.Undone, makegood.Cancelled,
	},
	makegood.Processed: {makegood.Undoing, makegood.Error, makegood.Undone},
	makegood.Error: {
		makegood.Processing, makegood.Processed, makegood.Undoing, makegood.Undone, makegood.Cancelled,
	},
	// Where onFailure is restart a job that is being undone goes forward again, by itself.
	makegood.Undoing:   {makegood.Processing, makegood.Processed, makegood.Error, makegood.Undone, makegood.Cancelled},
	makegood.Undone:    {makegood.Processing, makegood.Processed, makegood.Error, makegood.Undoing},
	makegood.Cancelled: {},
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
