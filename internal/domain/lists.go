package domain

import (
	"fmt"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/limits"
)

// HoldKinds returns all kinds of things that can be paused as a whole.
func HoldKinds() []makegood.HoldKind {
	return []makegood.HoldKind{makegood.HoldAgent, makegood.HoldWorkflow}
}

// CheckHold returns the reason why a thing of this kind and name cannot be paused; nil: it can, if it exists.
func CheckHold(k makegood.HoldKind, name string) error {
	switch k {
	case makegood.HoldAgent:
		if WaitsByItself(name) {
			return fmt.Errorf("agent %s cannot be paused: no task is ever sent to it; pause the workflow", name)
		}
		return limits.AgentName.Check(name)
	case makegood.HoldWorkflow:
		return limits.WorkflowName.Check(name)
	default:
		return fmt.Errorf("%.40q cannot be paused: want one of %v", string(k), HoldKinds())
	}
}

// ProcessStates returns all states of a job, in the order in which a reader meets them.
func ProcessStates() []makegood.ProcessState {
	return []makegood.ProcessState{
		makegood.JobPending, makegood.JobProcessing, makegood.JobProcessed, makegood.JobError, makegood.JobUndoing,
		makegood.JobUndone, makegood.JobCancelled,
	}
}

// Verbs returns all verbs.
func Verbs() []makegood.Verb {
	return []makegood.Verb{
		makegood.VerbCancel, makegood.VerbUndo, makegood.VerbResubmit, makegood.VerbPause, makegood.VerbResume,
		makegood.VerbReschedule, makegood.VerbEdit, makegood.VerbRedo, makegood.VerbForward,
	}
}

// SettledAs returns the states that a step can be settled as.
func SettledAs() []makegood.StepState {
	return []makegood.StepState{makegood.StepDone, makegood.StepSkipped, makegood.StepNotDone}
}

// StepStates returns all states of a step, in the order in which a reader meets them.
func StepStates() []makegood.StepState {
	return []makegood.StepState{
		makegood.StepNotStarted, makegood.StepDispatched, makegood.StepClaimed, makegood.StepWaiting, makegood.StepBackoff,
		makegood.StepDone, makegood.StepSkipped, makegood.StepFailed, makegood.StepWithdrawn, makegood.StepIrreversible,
	}
}
