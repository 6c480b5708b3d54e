package job

import (
	"fmt"
	"hash/fnv"
	"io"
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
	// Priority and Tenant are those of the job.
	Priority makegood.Priority `json:"priority,omitempty"`
	Tenant   string            `json:"tenant,omitempty"`
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

// Rank sorts the tickets that wait: undos come first, by their arrival, then the others by class, tenant and arrival.
// It is printable, and each ticket has its own.
func (t Ticket) Rank() string {
	name := fmt.Sprintf("%015d/%s/%s/%d", t.Since.UnixMilli(), t.Job, t.Step, t.Attempt)
	if t.Undo {
		return "0/" + name
	}
	return RankOf(t.Class(), t.Crowd()) + name
}

// RankOf begins the ranks of the steps of a class and a crowd; an empty crowd: before those of the class.
func RankOf(class int, crowd string) string { return fmt.Sprintf("%d/%s/", class+1, crowd) }

// Class is 0 for urgent, 1 for normal and 2 for idle: less goes first.
func (t Ticket) Class() int {
	switch t.Priority {
	case makegood.PriorityUrgent:
		return 0
	case makegood.PriorityIdle:
		return 2
	default:
		return 1
	}
}

// ClassAt is the class to which the ticket has risen; by a clock that is far behind, its own.
func (t Ticket) ClassAt(now time.Time) int {
	return max(0, t.Class()-max(0, int(now.Sub(t.Since)/limits.RiseEvery)))
}

// Crowd distinguishes the tenant of the job from others. Jobs without a tenant are one crowd. Crowds take turns in the
// order of their hashes, so that no choice of names puts a tenant before another for ever.
func (t Ticket) Crowd() string {
	h := fnv.New64a()
	_, _ = io.WriteString(h, t.Tenant) // A hash never fails.
	return fmt.Sprintf("%016x", h.Sum64())
}

// Turns has the last turns of a gate.
type Turns struct {
	// Given counts the permits that were handed to tickets, until the one with this.
	Given int64 `json:"given,omitempty"`
	// Last has, for each class, the crowd that was let in last, and At the number of the permit that it got. Risen has the
	// crowd that was let in last of those that had risen to a class, or were of it.
	Last  [3]string `json:"last,omitzero"`
	At    [3]int64  `json:"at,omitzero"`
	Risen [3]string `json:"risen,omitzero"`
}

// FirstToken is the number of a gate's first token.
const FirstToken = 1000

// Permit is one of those that a gate gives out, from 0 on, with the ticket of the attempt that has it. A permit without
// a ticket is free, and is not stored. One from FirstToken on is a token: an attempt that begins takes it and does not
// give it back, and it may be taken again when it has cooled.
type Permit struct {
	N      int    `json:"n"`
	Ticket Ticket `json:"ticket"`
	// At is when it was given.
	At time.Time `json:"at"`
	// Turns has the turns until it was given.
	Turns Turns `json:"turns,omitzero"`
	// Told: the attempt was told of its token by a hint, which may be lost or slow.
	Told bool `json:"told,omitempty"`
}

// Free reports whether no attempt has the permit.
func (p Permit) Free() bool { return p.Ticket == Ticket{} }

// Token reports whether it is a token.
func (p Permit) Token() bool { return p.N >= FirstToken }
