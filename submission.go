package makegood

import (
	"encoding/json"
	"time"
)

// Submission asks for a job. The same ID with the same workflow and input is the same job, however often it is
// submitted; with other content it is refused.
type Submission struct {
	// Workflow is the name of a workflow that the receiver knows.
	Workflow string `json:"workflow"`
	// ID is the job's id, [A-Za-z0-9._:-]{1,128}, unique over all workflows. Empty: an id is made.
	ID string `json:"id,omitempty"`
	// Input is JSON of at most MaxPayloadBytes; nil is null.
	Input json.RawMessage `json:"input"`
	// StartAt is when the job may start, at most MaxStartDelay ahead; zero, or past: at once.
	StartAt time.Time `json:"startAt,omitzero"`
	// ReplyTo is the registered name of the listener for the job's changes; empty: none.
	ReplyTo string `json:"replyTo,omitempty"`
	// Tenant is the tenant of the job, [A-Za-z0-9][A-Za-z0-9._:-]{0,62}; empty: none. Labels add further facts: at most
	// 8, each with a name [a-z][a-z0-9_.-]{0,62} and a value of 1 to 128 bytes of text in one line. Both serve only to
	// find jobs: they do not count where two submissions of an ID are compared, and those submitted first stand.
	Tenant string            `json:"tenant,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	// Priority says which attempts go first before the gate of an agent with a limit; empty: PriorityNormal. The jobs that
	// do steps of this one have it, too. It does not count where two submissions of an ID are compared.
	Priority Priority `json:"priority,omitempty"`
	// Traceparent is the span of the submission, in the form of the W3C's header of that name: the job's trace continues
	// from there. Empty: the span of the context, where it has one, or the job has a trace of its own. An invalid
	// traceparent is ignored. It does not count where two submissions of an ID are compared.
	Traceparent string `json:"traceparent,omitempty"`
}

// Priority is one of urgent, normal and idle: a class of jobs. An attempt that has waited before a gate for ten minutes
// rises a class.
type Priority string

// The priorities, the first one first.
const (
	PriorityUrgent Priority = "urgent"
	PriorityNormal Priority = "normal"
	PriorityIdle   Priority = "idle"
)

// Misfit is a place where an input does not fit the schema of its workflow.
type Misfit struct {
	// At is the place as a JSON pointer (RFC 6901), such as /items/0/sku; empty: the input as a whole. A missing value has
	// the place where it should be. A place of more than 256 bytes is cut, and ends with dots.
	At string `json:"at"`
	// Why describes the error and names the limit. It repeats no value of the input; it may repeat the names of its
	// members.
	Why string `json:"why"`
}

// String writes the place and the error.
func (m Misfit) String() string {
	if m.At == "" {
		return "it " + m.Why
	}
	return m.At + " " + m.Why
}
