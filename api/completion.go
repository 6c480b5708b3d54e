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
	// Undo: its undo is meant.
	Undo bool
	// Round must be the job's round, or 0 for any: an answer to a round that is over completes no step of a later one.
	Round int
	// Early: an answer that comes before the step waits is kept for when it does. Else it is refused.
	Early bool
	// Why is the reason that a person gives for an answer: at most 1,024 bytes. A workflow may require it.
	Why string
}

// SettleOptions is what a person says of a step, or of its undo, that they have dealt with outside the job.
type SettleOptions struct {
	// Skipped: it counts as skipped. With neither this nor NotDone it counts as done, with Output; nil is null.
	Skipped bool
	Output  json.RawMessage
	// NotDone: nothing stands of what the attempts of a step may have done. So it is not undone, and may be tried again, also as
	// another step by another definition. An undo cannot be settled so.
	NotDone bool
	// Attempt, if it is not 0, must be the latest of the step, or of its undo: whoever looked at one settles no later one.
	Attempt int
	// Reason is why, at most 1,024 bytes. Of what does not count as done it must be given.
	Reason string
	// Name is that of the asking, at most 128 of [A-Za-z0-9._:-]: the same name again is the same.
	// Empty: one is made.
	Name string
}

// Completion is what whoever holds the completion token of a step may do, and all that they may: complete it, say that
// it has failed, have it wait longer. What Jobs says of these verbs holds, and beside its errors there is
// ErrCompletionToken. A token is an agent's Task.Completion, or that of a question that somebody was asked.
type Completion interface {
	Complete(ctx context.Context, output json.RawMessage) (Standing, error)
	Fail(ctx context.Context, why makegood.StepError) (Standing, error)
	Heartbeat(ctx context.Context, until time.Time) (Standing, error)
}

// Standing is how a step stands after whoever holds its completion token has said something of it.
type Standing struct {
	State makegood.StepState `json:"state"`
	// CompleteBy is until when it waits; nil: it does not wait.
	CompleteBy *time.Time `json:"completeBy"`
	// Existed: the same was said before, and nothing has changed.
	Existed bool `json:"existed"`
}
