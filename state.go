package makegood

// ProcessState is the state of a job. Each says who moves the job on from it.
type ProcessState string

const (
	// Pending: the intent is stored, with its first attempts; no reply has come yet. An agent's
	// reply, or the Supervisor when none comes, moves it on.
	JobPending ProcessState = "Pending"
	// Processing: steps are being done. Replies move it on, and the Supervisor when they fail to come.
	JobProcessing ProcessState = "Processing"
	// Processed: every step is done or skipped. Final, unless an operator wants it undone.
	JobProcessed ProcessState = "Processed"
	// Error: the job waits for a person, who was told why. Resubmit goes on in the direction that
	// stopped; cancel and undo turn it round.
	JobError ProcessState = "Error"
	// Undoing: what was done, or may have been, is being undone. Replies and the Supervisor move it on.
	JobUndoing ProcessState = "Undoing"
	// Undone: everything that can be undone is. A resubmit starts a new round.
	JobUndone ProcessState = "Undone"
	// Cancelled: undone because somebody asked for it. Final.
	JobCancelled ProcessState = "Cancelled"
)

// Finished reports whether a job in this state is at its end. Error is not: it waits for a person.
func (s ProcessState) Finished() bool {
	return s == JobProcessed || s == JobUndone || s == JobCancelled
}

// Verb is something that an operator or submitter may ask of a job.
type Verb string

// The verbs. What each does in each ProcessState is a table in internal/machine (docs/states.md).
const (
	VerbCancel   Verb = "cancel"   // undo what was done, and end Cancelled
	VerbUndo     Verb = "undo"     // undo what was done, and end Undone
	VerbResubmit Verb = "resubmit" // go on from what failed, in the direction that stopped
	VerbPause    Verb = "pause"    // start nothing new; what runs runs on
	VerbResume   Verb = "resume"   // take a pause back
	// Reschedule moves the start of a job of which nothing has begun. It needs a time, so it is asked for by a method of its own.
	VerbReschedule Verb = "reschedule"
	// Edit gives a job another timeout. It needs one, so it is asked for by a method of its own.
	VerbEdit    Verb = "edit"
	VerbRedo    Verb = "redo"    // undo what was done, and then begin again in a new round
	VerbForward Verb = "forward" // go forward again, where nothing was undone yet
)

// Applied says whether a failed attempt had its effect.
type Applied string

// Only AppliedNo spares a step its undo.
const (
	AppliedUnknown Applied = "unknown"
	AppliedNo      Applied = "no"
)

// StepState says where a step is, or its undo.
type StepState string

// The states of a step.
const (
	// NotStarted: it waits for the steps that it needs, or, an undo, for being wanted.
	StepNotStarted StepState = "notStarted"
	// Dispatched: an attempt is with its agent. Nobody is known to have claimed it.
	StepDispatched StepState = "dispatched"
	// Claimed: an agent is at work on it.
	StepClaimed StepState = "claimed"
	// Waiting: somebody or something outside will complete it, or its deadline ends it. Nobody works on it.
	StepWaiting StepState = "waiting"
	// Backoff: the next attempt is made when its time has come.
	StepBackoff StepState = "backoff"
	// Done: it succeeded. Of an undo: it was undone.
	StepDone StepState = "done"
	// Skipped: a step whose when is false; an undo that had nothing to undo.
	StepSkipped StepState = "skipped"
	// Failed: given up.
	StepFailed StepState = "failed"
	// Withdrawn: taken back because the job is to be undone. It may have had its effect; then it is undone, too.
	StepWithdrawn StepState = "withdrawn"
	// Irreversible: an undo that does not exist, of a step that was done or may have been.
	StepIrreversible StepState = "irreversible"
)

// NotDone is no state: what a step is settled as of which nothing stands, whatever its attempts may have done. It stays where it is.
const StepNotDone StepState = "notDone"
