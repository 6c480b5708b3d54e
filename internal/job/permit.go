package job

import (
	"fmt"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/limits"
)

// Ticket names an attempt that stands before the gate of its agent, or that was admitted: the gate lets so many
// attempts of the agent be with it at once.
type Ticket struct {
	Job   string `json:"job"`
	Birth string `json:"birth"`
	Step  string `json:"step"`
	// Attempt is a number that the step gives once: a ticket names one attempt for ever.
	Attempt int  `json:"attempt"`
	Undo    bool `json:"undo,omitempty"`
	// Priority is that of the job.
	Priority makegood.Priority `json:"priority,omitempty"`
	// Since is when the attempt came to the gate, in whole milliseconds.
	Since time.Time `json:"since"`
	// Rev is that of the job when the ticket was written: the save that opens the attempt may still follow while the job
	// has it.
	Rev int64 `json:"rev"`
}

// Same reports whether two tickets are of the same attempt.
func (t Ticket) Same(as Ticket) bool {
	return t.Job == as.Job && t.Birth == as.Birth && t.Step == as.Step && t.Attempt == as.Attempt
}

// Rank sorts the tickets that wait: undos come first, by their arrival, then the others by the time at which they are
// urgent. It is printable, and each ticket has its own.
func (t Ticket) Rank() string {
	if t.Undo {
		return fmt.Sprintf("0/%015d/%s/%s/%d", t.Since.UnixMilli(), t.Job, t.Step, t.Attempt)
	}
	return fmt.Sprintf("1/%015d/%s/%s/%d", t.urgent().UnixMilli(), t.Job, t.Step, t.Attempt)
}

// urgent is when the ticket is as urgent as any: what waits rises a class every limits.RiseEvery. So a ticket goes
// before one of a lower class, unless that one has risen before this one came.
func (t Ticket) urgent() time.Time {
	switch t.Priority {
	case makegood.PriorityUrgent:
		return t.Since
	case makegood.PriorityIdle:
		return t.Since.Add(2 * limits.RiseEvery)
	default:
		return t.Since.Add(limits.RiseEvery)
	}
}

// Permit is one of those that a gate gives out, from 0 on, with the ticket of the attempt that has it. A permit without
// a ticket is free, and is not stored.
type Permit struct {
	N      int    `json:"n"`
	Ticket Ticket `json:"ticket"`
	// At is when it was given.
	At time.Time `json:"at"`
}

// Free reports whether no attempt has the permit.
func (p Permit) Free() bool { return p.Ticket == Ticket{} }
