package api

import (
	"context"

	"github.com/makegood-dev/makegood"
)

// Holds pauses and resumes whole agents and workflows, and limits agents, wherever they are. After *RefusedError and
// *InvalidError no state has changed. After *UnreachableError, or another error, the fate of the request is unknown:
// every request may be made again without harm.
type Holds interface {
	// PauseAll pauses an agent or a workflow: no new task goes to the agent, or out for a job of the workflow, and the
	// affected jobs stand still. The pause holds everywhere five seconds after the answer. An agent or workflow that is
	// paused already keeps its pause and its reason.
	PauseAll(ctx context.Context, kind makegood.HoldKind, name, reason string) (makegood.Hold, error)
	// ResumeAll ends the pause: new work flows at once, and the jobs that stood still resume gradually. A *RefusedError
	// says that there is no such pause.
	ResumeAll(ctx context.Context, kind makegood.HoldKind, name string) (makegood.Hold, error)
	// ProbeAgent brings the next probe of an agent that the breaker has paused forward to now: a job that stands
	// still is let through, and if its attempt succeeds, the agent is resumed. It is resumed, too, if no job stands
	// still. A *RefusedError says that the breaker has not paused it.
	ProbeAgent(ctx context.Context, agent string) (makegood.Hold, error)
	// LimitAgent sets how many attempts of an agent may be under way at once, or be admitted in a time, in the place of
	// any limit that it has; the zero value takes the limit away, and a *RefusedError says that there is none. The same
	// limit again, with the same reason or none, keeps the one that stands. An attempt counts from before its task is sent
	// until it is over, and for the rate when it is admitted; one that finds no room stands before the agent's gate
	// (StepQueued). With a key there is a gate for each of its values. The limit holds everywhere five seconds after the
	// answer, and is exact for the attempts opened since: earlier ones are not counted.
	LimitAgent(ctx context.Context, agent string, limit makegood.Limit, reason string) (makegood.Hold, error)
	// ListHolds returns the pauses, the releases that have not yet reached all their jobs, and the limits of agents.
	ListHolds(ctx context.Context) ([]makegood.Hold, error)
}
