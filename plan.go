package makegood

// Plan says what a resubmit with another definition, or another input, would do to a job. Nothing has changed.
type Plan struct {
	// Job is its id, Workflow the name of its workflow.
	Job      string `json:"job"`
	Workflow string `json:"workflow"`
	// From is the hash of the definition that it has, To of the one that it would have; they may be the same.
	From string `json:"from"`
	To   string `json:"to"`
	// Input: it would have another input.
	Input bool `json:"input"`
	// Effect is what the resubmit does, with the direction: "goes on from what failed, forwards", "goes on undoing, from what failed, and
	// will end Undone" (or Cancelled; or "and then begins another round"), or "starts again in a new round".
	Effect string `json:"effect"`
	// Existed: this very request was granted before, and would do nothing.
	Existed bool `json:"existed"`
	// Steps are those of the definition that it would have, in its order, and behind them those that it would not have.
	Steps []PlannedStep `json:"steps"`
}

// PlannedStep is what would become of a step of a job.
type PlannedStep struct {
	Name string `json:"name"`
	// State is where the step is, and Undo its undo; empty: there is nothing of it yet.
	State StepState `json:"state"`
	Undo  StepState `json:"undo,omitempty"`
	// Fate is what becomes of it.
	Fate StepFate `json:"fate"`
	// Differs names the fields in which the definitions differ; those of the undo with "undo." before them.
	Differs []string `json:"differs,omitempty"`
	// SameKey: it would be asked again under the idempotency key that it was asked under before in this round, for something
	// else: its action or with is another, or the input that it is made of.
	SameKey bool `json:"sameKey,omitempty"`
	// FormerInput: its undo has the input that the step was done with, and not the one that the job would have.
	FormerInput bool `json:"formerInput,omitempty"`
}

// StepFate is what becomes of a step of a job that is resubmitted.
type StepFate string

// The fates of a step.
const (
	FateStays StepFate = "stays" // as it is: done, skipped, or under way
	FateAgain StepFate = "again" // tried again: it, or its undo, has failed
	FateAhead StepFate = "ahead" // it has not begun, and will when it is its turn
	FateNew   StepFate = "new"   // the job has no such step yet
	FateGone  StepFate = "gone"  // the job would not have it any more
)
