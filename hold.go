package makegood

import (
	"time"
)

// HoldKind is a kind of thing that can be paused as a whole.
type HoldKind string

// The kinds of Hold.
const (
	HoldAgent    HoldKind = "agent"
	HoldWorkflow HoldKind = "workflow"
	// HoldLimit is no pause: a limit of how many attempts of an agent are with it at once.
	HoldLimit HoldKind = "limit"
)

// Hold is the pause of a whole agent or workflow, as people see it. In JSON every field is always there; null means
// "not yet". Times are in UTC, RFC 3339.
type Hold struct {
	Kind HoldKind `json:"kind"`
	Name string   `json:"name"`
	// Since is when the pause began, By its author ("" where unknown), and Reason why, in the author's words.
	Since  time.Time `json:"since"`
	By     string    `json:"by"`
	Reason string    `json:"reason"`
	// Limit is how many attempts of the agent may be with it at once, and UnderWay how many are; both 0 of a pause.
	Limit    int `json:"limit"`
	UnderWay int `json:"underWay"`
	// Jobs counts the jobs that stand still because of the pause, or the attempts that wait for the limit. AtLeast: there
	// may be more, the count ended here.
	Jobs    int  `json:"jobs"`
	AtLeast bool `json:"atLeast"`
	// Rate is how many attempts of the agent are admitted in a time ("100/s"), and Burst how many of them at one moment; ""
	// and 0: any number.
	Rate  string `json:"rate"`
	Burst int    `json:"burst"`
	// Key is an expression over the input of a job: the limit is one for each of its values. "": one for all.
	Key string `json:"key"`
	// ReleasedAt is when the pause was lifted, and ReleasedBy the author of that: it holds no job from then on, and the
	// jobs that it held resume gradually. nil: it was not lifted.
	ReleasedAt *time.Time `json:"releasedAt"`
	ReleasedBy string     `json:"releasedBy"`
	// Tripped: the breaker has paused the agent, since its attempts failed, and Probes counts the jobs that were let
	// through since, one at a time, to see whether it is well again.
	Tripped bool `json:"tripped"`
	Probes  int  `json:"probes"`
	// Resumed counts the jobs that were told to go on so far, and NextAt is when the next ones are: before it was lifted
	// the next probe, or all, where the agent has asked for a pause of some length.
	Resumed int        `json:"resumed"`
	NextAt  *time.Time `json:"nextAt"`
	// Permits has the attempts under way of a limit of concurrency, at most 100: those that are so for longest come first.
	Permits []Permit `json:"permits"`
}

// Permit is what an attempt has that is under way, where its agent has a limit.
type Permit struct {
	Job     string `json:"job"`
	Step    string `json:"step"`
	Attempt int    `json:"attempt"`
	// Undo: it is of the step's undo.
	Undo bool `json:"undo"`
	// Since is when it was let in.
	Since time.Time `json:"since"`
}

// Limit is what LimitAgent sets. The zero value takes a limit away.
type Limit struct {
	// Concurrency is how many attempts of the agent may be under way at once, 1 to 100; 0: any number.
	Concurrency int `json:"concurrency,omitempty"`
	// Rate is how many attempts are admitted in a second or a minute, as "100/s" or "300/m", up to 1,000; "": any number.
	Rate string `json:"rate,omitempty"`
	// Burst is how many of these at one moment, 1 to 100; 0: as many as in a second.
	Burst int `json:"burst,omitempty"`
	// Key makes it a limit for each of its values: an expression over the input of the job, as "${ .input.account }", of
	// up to 1,024 bytes. "": it is one for all.
	Key string `json:"key,omitempty"`
}
