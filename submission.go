package makegood

import (
	"encoding/json"
	"time"
)

// Submission asks for a job. The same ID with the same workflow and input is the same job, however often it is
// submitted; with other content it is refused.
type Submission struct {
	// Workflow is the name of a workflow that is known where it is submitted.
	Workflow string
	// ID is the job's id, [A-Za-z0-9._:-]{1,128}, unique over all workflows. Empty: one is made.
	ID string
	// Input is JSON of at most MaxPayloadBytes; nil is null.
	Input json.RawMessage
	// StartAt is when the job may start, at most MaxStartDelay ahead; zero, or past: at once.
	StartAt time.Time
	// ReplyTo is the registered name of who is told of the job's changes; empty: nobody.
	ReplyTo string
	// Tenant is whom the job is for, [A-Za-z0-9][A-Za-z0-9._:-]{0,62}; empty: nobody in particular. Labels say more
	// about it: at most 8, each with a name [a-z][a-z0-9_.-]{0,62} and a value of 1 to 128 bytes of text in one line.
	// Jobs are found by them, and nothing else comes of them: they are no part of what distinguishes the content of two
	// submissions, and those that were submitted first stand.
	Tenant string
	Labels map[string]string
	// Traceparent is the span under which the job is submitted, as the W3C's header of that name has it: the job's trace goes on
	// from there. Empty: that of the context, where it has one, or the job has a trace of its own. What is no traceparent is
	// passed over. It is no part of what distinguishes the content of two submissions.
	Traceparent string
}

// Misfit is a place of an input that does not fit what its workflow says of it.
type Misfit struct {
	// At is the place as a JSON pointer (RFC 6901), such as /items/0/sku; empty: the input as a whole. What is missing has the
	// place where it should be. A place of more than 256 bytes is cut, and ends with dots.
	At string `json:"at"`
	// Why says what is wrong and what the limit is. It repeats no value of the input, whose members' names it may name.
	Why string `json:"why"`
}

// String writes the place and what is wrong with it.
func (m Misfit) String() string {
	if m.At == "" {
		return "it " + m.Why
	}
	return m.At + " " + m.Why
}
