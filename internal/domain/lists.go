package domain

import (
	"fmt"
	"slices"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/limits"
)

// HoldKinds returns all kinds of things that can be paused as a whole.
func HoldKinds() []makegood.HoldKind {
	return []makegood.HoldKind{makegood.HoldAgent, makegood.HoldWorkflow}
}

// CheckLimit returns the reason why an agent cannot have a limit; nil: it can, if it exists.
func CheckLimit(agent string) error {
	if !GetsTasks(agent) {
		return fmt.Errorf("agent %s cannot have a limit: no task is ever sent to it", agent)
	}
	return limits.AgentName.Check(agent)
}

// LimitOf returns the limit that an agent has by a hold.
func LimitOf(h makegood.Hold) makegood.Limit {
	return makegood.Limit{Concurrency: h.Limit, Rate: h.Rate, Burst: h.Burst, Key: h.Key}
}

// Priorities returns all priorities, the first one first.
func Priorities() []makegood.Priority {
	return []makegood.Priority{makegood.PriorityUrgent, makegood.PriorityNormal, makegood.PriorityIdle}
}

// CheckPriority returns the reason why a job cannot have such a priority; nil: it can.
func CheckPriority(p makegood.Priority) error {
	if p != "" && !slices.Contains(Priorities(), p) {
		return fmt.Errorf("priority %.40q: want urgent, normal or idle", string(p))
	}
	return nil
}

// StoredPriority returns a priority as a job has it: empty for normal.
func StoredPriority(p makegood.Priority) makegood.Priority {
	if p == makegood.PriorityNormal {
		return ""
	}
	return p
}

// CheckHold returns the reason why a thing of this kind and name cannot be paused; nil: it can, if it exists.
func CheckHold(k makegood.HoldKind, name string) error {
	switch k {
	case makegood.HoldAgent:
		if !GetsTasks(name) {
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
		makegood.VerbReschedule, makegood.VerbEdit, makegood.VerbRedo, makegood.VerbForward, makegood.VerbRedrive,
	}
}

// Verb describes a verb to people: Label is the text of its button, and Says its effect.
type Verb struct {
	Label, Says string
	// Turns: it turns the job round. AtOnce: one click is enough, since it can be reverted, or would be done anyhow.
	Turns, AtOnce bool
	// Flag is an example of the flag that it needs; empty: it needs none, and the page asks it of many jobs.
	Flag string
}

var verbs = map[makegood.Verb]Verb{
	makegood.VerbCancel:     {Label: "Cancel", Says: "Undo what was done, and end Cancelled", Turns: true},
	makegood.VerbUndo:       {Label: "Undo", Says: "Undo what was done, and end Undone", Turns: true},
	makegood.VerbResubmit:   {Label: "Resubmit", Says: "Go on from what failed, or start an undone job again"},
	makegood.VerbPause:      {Label: "Pause", Says: "Start nothing new; what runs runs on", AtOnce: true},
	makegood.VerbResume:     {Label: "Resume", Says: "Take a pause back", AtOnce: true},
	makegood.VerbReschedule: {Label: "Reschedule", Says: "Move the start of a job that has not begun", Flag: "--at 2026-01-31T09:00:00Z"},
	makegood.VerbEdit:       {Label: "Edit timeout", Says: "Give a job another timeout, or a map other figures", Flag: "--timeout 2h"},
	makegood.VerbRedo:       {Label: "Undo and begin again", Says: "Undo what was done, and then begin again in a new round", Turns: true},
	makegood.VerbRedrive:    {Label: "Redrive", Says: "Do the failed items of its maps again, under their keys"},
	makegood.VerbForward:    {Label: "Go forward again", Says: "Go forward again, where nothing was undone yet"},
	AskWake:                 {Label: "Wake", AtOnce: true},
	AskSettleDone:           {Label: "Settle as done"},
	AskSettleSkipped:        {Label: "Settle as skipped"},
}

// VerbOf returns the description of a verb, or of a request of the page; that of another ask is empty.
func VerbOf(ask string) Verb { return verbs[makegood.Verb(ask)] }

// SettledAs returns the states that a step can be settled as.
func SettledAs() []makegood.StepState {
	return []makegood.StepState{makegood.StepDone, makegood.StepSkipped, makegood.StepNotDone}
}

// StepStates returns all states of a step, in the order in which a reader meets them.
func StepStates() []makegood.StepState {
	return []makegood.StepState{
		makegood.StepNotStarted, makegood.StepQueued, makegood.StepDispatched, makegood.StepClaimed, makegood.StepWaiting, makegood.StepBackoff,
		makegood.StepDone, makegood.StepSkipped, makegood.StepFailed, makegood.StepWithdrawn, makegood.StepIrreversible,
	}
}
