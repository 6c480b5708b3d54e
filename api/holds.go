package api

import (
	"context"

	"github.com/makegood-dev/makegood"
)

// Holds is how a program pauses agents and workflows as a whole, wherever they are, as Jobs is for jobs. After *RefusedError
// and *InvalidError nothing has changed. After *UnreachableError, or another, it is unknown what became of the request: every
// one may be made again without harm.
type Holds interface {
	// PauseAll pauses an agent or a workflow: nothing new is sent to the agent, or for a job of the workflow, and the jobs that
	// would have to do with it stand still. It is known everywhere five seconds after the answer. One that is paused
	// already stays so, for the reason that it is.
	PauseAll(ctx context.Context, kind makegood.HoldKind, name, reason string) (makegood.Hold, error)
	// ResumeAll resumes it: new work flows at once, and the jobs that stood still go on little by little. One that is not
	// paused is a *RefusedError.
	ResumeAll(ctx context.Context, kind makegood.HoldKind, name string) (makegood.Hold, error)
	// ListHolds returns what is paused, and what is resumed and whose jobs have not all gone on.
	ListHolds(ctx context.Context) ([]makegood.Hold, error)
}
