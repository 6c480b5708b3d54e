package api

import (
	"context"

	"github.com/makegood-dev/makegood"
)

// Holds pauses and resumes whole agents and workflows, wherever they are. After *RefusedError and *InvalidError no
// state has changed. After *UnreachableError, or another error, the fate of the request is unknown: every request may
// be made again without harm.
type Holds interface {
	// PauseAll pauses an agent or a workflow: no new task goes to the agent, or out for a job of the workflow, and the
	// affected jobs stand still. The pause holds everywhere five seconds after the answer. An agent or workflow that is
	// paused already keeps its pause and its reason.
	PauseAll(ctx context.Context, kind makegood.HoldKind, name, reason string) (makegood.Hold, error)
	// ResumeAll ends the pause: new work flows at once, and the jobs that stood still resume gradually. A *RefusedError
	// says that there is no such pause.
	ResumeAll(ctx context.Context, kind makegood.HoldKind, name string) (makegood.Hold, error)
	// ListHolds returns the pauses, and the releases that have not yet reached all their jobs.
	ListHolds(ctx context.Context) ([]makegood.Hold, error)
}
