package job

import (
	"fmt"
	"time"
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

// Rank sorts the tickets that wait: undos come first, then by their arrival. It is printable, and each ticket has its
// own.
func (t Ticket) Rank() string {
	class := 1
	if t.Undo {
		class = 0
	}
	return fmt.Sprintf("%d/%015d/%s/%s/%d", class, t.Since.UnixMilli(), t.Job, t.Step, t.Attempt)
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
