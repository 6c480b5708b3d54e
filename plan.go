package makegood

// Plan is the effect that a resubmit with another definition, or another input, would have on a job. Making a plan
// changes no state.
type Plan struct {
	// Job is the job's id, Workflow the name of its workflow.
	Job      string `json:"job"`
	Workflow string `json:"workflow"`
	// From is the hash of the job's present definition, To that of the new one; they may be the same.
	From string `json:"from"`
	To   string `json:"to"`
	// Input: the job would have another input.
	Input bool `json:"input"`
	// Effect is the effect of the resubmit, with the direction: "goes on from what failed, forwards", "goes on undoing,
	// from what failed, and will end Undone" (or Cancelled; or "and then begins another round"), or "starts again in a new
	// round".
	Effect string `json:"effect"`
	// Existed: this very request was granted before, and would have no effect.
	Existed bool `json:"existed"`
	// Steps are those of the new definition, in its order, and behind them those that it lacks.
	Steps []PlannedStep `json:"steps"`
}

// PlannedStep is the fate of a step of a job.
type PlannedStep struct {
	Name string `json:"name"`
	// State is the state of the step, and Undo that of its undo; empty: there is none yet.
	State StepState `json:"state"`
	Undo  StepState `json:"undo,omitempty"`
	// Fate is the fate of the step.
	Fate StepFate `json:"fate"`
	// Differs names the fields in which the definitions differ; those of the undo with "undo." before them.
	Differs []string `json:"differs,omitempty"`
	// SameKey: the step would run again under an idempotency key that it had before in this round, for different work: its
	// action or with is another, or the input that it is made of.
	SameKey bool `json:"sameKey,omitempty"`
	// FormerInput: the undo has the input that the step was done with, and not the new input of the job.
	FormerInput bool `json:"formerInput,omitempty"`
}

// StepFate is the fate of a step of a job that is resubmitted.
type StepFate string

// The fates of a step.
const (
	FateStays StepFate = "stays" // as it is: done, skipped, or under way
	FateAgain StepFate = "again" // tried again: it, or its undo, has failed
	FateAhead StepFate = "ahead" // it has not begun, and will when it is its turn
	FateNew   StepFate = "new"   // the job has no such step yet
	FateGone  StepFate = "gone"  // the job would not have it any more
)
