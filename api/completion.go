package api

import (
	"context"
	"encoding/json"
	"time"

	"github.com/makegood-dev/makegood"
)

// StepRef names the step of a job that a completion is for.
type StepRef struct {
	Step string
	// Undo: the completion is for the step's undo.
	Undo bool
	// Round must be the job's round, or 0 for any: an answer to an earlier round completes no step of a later one.
	Round int
	// Early: an answer that comes before the step waits is kept until it does. Otherwise it is refused.
	Early bool
	// Why is the reason that a person gives for an answer: at most 1,024 bytes. A workflow may require it.
	Why string
}

// SettleOptions is a person's statement about a step, or its undo, that they have dealt with outside the job.
type SettleOptions struct {
	// Skipped: the step counts as skipped. With neither Skipped nor NotDone it counts as done, with Output; nil is null.
	Skipped bool
	Output  json.RawMessage
	// NotDone: no effect of the step's attempts remains. The step is not undone, and may be tried again, also as another
	// step by another definition. An undo cannot be settled so.
	NotDone bool
	// Attempt, if it is not 0, must be the latest of the step, or of its undo: a caller that looked at one attempt settles
	// no later one.
	Attempt int
	// Reason is why, at most 1,024 bytes. It is required where the step does not count as done.
	Reason string
	// Name names this request, at most 128 of [A-Za-z0-9._:-]: a request of the same name is the same request. Empty: a
	// name is made.
	Name string
}

// Completion has all that the holder of a step's completion token may do: complete the step, report that it has
// failed, extend its wait. The methods behave like those of Jobs; they may return ErrCompletionToken besides their
// errors. An agent has the token in Task.Completion; the receiver of a question gets it with the question.
type Completion interface {
	Complete(ctx context.Context, output json.RawMessage) (Standing, error)
	Fail(ctx context.Context, why makegood.StepError) (Standing, error)
	Heartbeat(ctx context.Context, until time.Time) (Standing, error)
}

// Standing is the state of a step after a request by the holder of its completion token.
type Standing struct {
	State makegood.StepState `json:"state"`
	// CompleteBy is the end of the step's wait; nil: it does not wait.
	CompleteBy *time.Time `json:"completeBy"`
	// Existed: the same request came before, and this one has changed no state.
	Existed bool `json:"existed"`
}
