package makegood

import (
	"time"
)

// HoldKind is what can be paused as a whole.
type HoldKind string

// What can be paused.
const (
	HoldAgent    HoldKind = "agent"
	HoldWorkflow HoldKind = "workflow"
)

// Hold says that an agent or a workflow is paused as a whole, as people see it. In JSON every field is always there; null
// means "not yet". Times are in UTC, RFC 3339.
type Hold struct {
	Kind HoldKind `json:"kind"`
	Name string   `json:"name"`
	// Since is when it was paused, By who did it ("" where nobody knew), and Reason why, as they said.
	Since  time.Time `json:"since"`
	By     string    `json:"by"`
	Reason string    `json:"reason"`
	// Jobs is how many jobs stand still because of it. AtLeast: there may be more, so many were counted.
	Jobs    int  `json:"jobs"`
	AtLeast bool `json:"atLeast"`
	// ReleasedAt is when it was resumed, and ReleasedBy by whom: it holds nothing from then on, and the jobs that it held go
	// on little by little. nil: it was not.
	ReleasedAt *time.Time `json:"releasedAt"`
	ReleasedBy string     `json:"releasedBy"`
	// Resumed is how many jobs were told to go on so far, and NextAt when the next are.
	Resumed int        `json:"resumed"`
	NextAt  *time.Time `json:"nextAt"`
}
