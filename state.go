package makegood

// ProcessState is the state of a job. Each constant names the part that moves the job on from it.
type ProcessState string

const (
	// JobPending: the intent is stored, with its first attempts; no reply has come yet. An agent's reply, or the
	// Supervisor when none comes, moves it on.
	JobPending ProcessState = "Pending"
	// JobProcessing: steps are being done. Replies move it on, and the Supervisor when they fail to come.
	JobProcessing ProcessState = "Processing"
	// JobProcessed: every step is done or skipped. Final, unless an operator wants it undone.
	JobProcessed ProcessState = "Processed"
	// JobError: the job waits for a person, after telling them why. Resubmit goes on in the direction that stopped; cancel
	// and undo turn it round.
	JobError ProcessState = "Error"
	// JobUndoing: steps that were done, or may have been, are being undone. Replies and the Supervisor move it on.
	JobUndoing ProcessState = "Undoing"
	// JobUndone: every step that can be undone is. A resubmit starts a new round.
	JobUndone ProcessState = "Undone"
	// JobCancelled: undone on request. Final.
	JobCancelled ProcessState = "Cancelled"
)

// Finished reports whether a job in this state is at its end. Error is not: it waits for a person.
func (s ProcessState) Finished() bool {
	return s == JobProcessed || s == JobUndone || s == JobCancelled
}

// Verb is a request that an operator or submitter may make of a job.
type Verb string

// The verbs. What each does in each ProcessState is a table in internal/machine (docs/states.md).
const (
	VerbCancel   Verb = "cancel"   // undo the work done, and end Cancelled
	VerbUndo     Verb = "undo"     // undo the work done, and end Undone
	VerbResubmit Verb = "resubmit" // go on from what failed, in the direction that stopped
	VerbPause    Verb = "pause"    // start no new attempt; running attempts go on
	VerbResume   Verb = "resume"   // take a pause back
	// VerbReschedule moves the start of a job that has not begun. It needs a time, so it has a method of its own.
	VerbReschedule Verb = "reschedule"
	// VerbEdit gives a job another timeout, or the map of a step another concurrency or tolerance.
	VerbEdit    Verb = "edit"
	VerbRedo    Verb = "redo"    // undo the work done, and then begin again in a new round
	VerbForward Verb = "forward" // go forward again, where no step was undone yet
	// VerbRedrive: do the failed items of maps again, under their keys.
	VerbRedrive Verb = "redrive"
)

// Applied says whether a failed attempt had its effect.
type Applied string

// Only AppliedNo spares a step its undo.
const (
	AppliedUnknown Applied = "unknown"
	AppliedNo      Applied = "no"
)

// StepState is the state of a step, or of its undo.
type StepState string

// The states of a step.
const (
	// StepNotStarted: the step waits for the steps that it needs, or, an undo, for being wanted.
	StepNotStarted StepState = "notStarted"
	// StepQueued: an attempt stands before the gate of its agent, which has a limit. Its task is sent once there is room.
	StepQueued StepState = "queued"
	// StepDispatched: an attempt is with its agent, and is not known to be claimed.
	StepDispatched StepState = "dispatched"
	// StepClaimed: an agent is at work on it.
	StepClaimed StepState = "claimed"
	// StepWaiting: a person or a program outside will complete the step, or its deadline ends it. No agent works on it.
	StepWaiting StepState = "waiting"
	// StepBackoff: the next attempt is made when its time has come.
	StepBackoff StepState = "backoff"
	// StepDone: the step succeeded. For an undo: the step was undone.
	StepDone StepState = "done"
	// StepSkipped: a step with a when that is false; an undo that found no effect to undo.
	StepSkipped StepState = "skipped"
	// StepFailed: given up.
	StepFailed StepState = "failed"
	// StepWithdrawn: taken back because the job is to be undone. It may have had its effect; then it is undone, too.
	StepWithdrawn StepState = "withdrawn"
	// StepIrreversible: an undo that does not exist, for a step that was done or may have been.
	StepIrreversible StepState = "irreversible"
)

// StepNotDone is no state of a step: a step is settled as StepNotDone where no effect of its attempts remains. The
// step keeps its state.
const StepNotDone StepState = "notDone"
