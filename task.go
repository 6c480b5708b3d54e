package makegood

import (
	"encoding/json"
	"fmt"
	"time"
)

// Task is one attempt sent to an agent.
type Task struct {
	Job      string
	Workflow string
	Step     string
	Round    int
	Attempt  int
	Agent    string
	Action   string
	// Input is the value of the step's with. Where secrets belong they are left out, until the agent's runner has put
	// them in, just before the agent works.
	Input json.RawMessage
	// Secrets are those that belong into Input; at most 50.
	Secrets []TaskSecret `json:",omitempty"`
	// Key is the idempotency key JOB/STEP/ROUND, with "/undo" behind it for an undo: the same over
	// all attempts, to be passed on to the remote service.
	Key string
	// Birth is the job's: it is part of the name of the step's claim item.
	Birth string
	// Token is what the reply must carry.
	Token string
	// Completion is the step's completion token: whoever holds it may complete, fail or heartbeat this step in this round
	// and direction, whichever attempt is under way, and nothing else. It is to be handed to who completes the step
	// when the agent answers that it waits, and to be logged nowhere.
	Completion string `json:",omitempty"`
	// ClaimUntil is until when the attempt can be claimed.
	ClaimUntil time.Time
	// SentAt is when this attempt was sent; StartBy is until when it may wait unclaimed.
	SentAt  time.Time
	StartBy time.Time
	// Timeout is how long the attempt may take, counted from the claim. With a Heartbeat, it is how long it may take in
	// all, and silence may last no longer than the Heartbeat.
	Timeout   Duration
	Heartbeat Duration `json:",omitzero"`
	// Alone: an earlier attempt ended in silence with others beside it, or several with the death of the engine, so this one is
	// to be run with nothing beside it, and claimed no sooner. It may be what killed the process.
	Alone bool `json:",omitempty"`
	// Shared is the opposite of exclusive in the message: such a task is not claimed, and carries CompleteBy instead.
	Shared     bool
	CompleteBy time.Time
	// Claim is by what the attempt is held: what a write of the agent's own needs, to hold only while the attempt is its
	// (agent/dynamofence, agent/sqlitefence). Who runs agents sets it; it is in no message. Zero: nobody claimed it.
	Claim TaskClaim `json:",omitzero"`
	// Undo is set for an undo.
	Undo *UndoTask
	// Traceparent is the span of the attempt, as the W3C's header of that name has it: what the agent begins belongs under
	// it. Empty: nobody traces the job.
	Traceparent string `json:",omitempty"`
	// ReplyTo is the queue that waits for the reply.
	ReplyTo string
}

// TaskClaim says where the claim of an attempt is, and whose it is.
type TaskClaim struct {
	// LockedBy is who holds the attempt: the agent's instance, and a nonce that no other claim has.
	LockedBy string
	// Table is the DynamoDB table that the claim is in, under PK = claim#AGENT#JOB and SK = BIRTH#STEP; empty: it is in none.
	Table string `json:",omitempty"`
	// File is the SQLite file of the engine in this process that the claim is in; empty: it is in another's, or in none.
	File string `json:",omitempty"`
}

// TaskSecret says which secret belongs where into the input of a task. It stands beside the input and never in it, so
// that nothing that a submitter writes can be taken for one.
type TaskSecret struct {
	// Path is the place of a text in the input, as a JSON pointer (RFC 6901); empty: the input itself.
	Path string
	// At is how many characters (Unicode code points) of that text, as it came, stand before the secret.
	At int
	// Name is that of the secret, [a-z][a-z0-9_]{0,62}.
	Name string
}

// UndoTask is what an undo is told of the step that it undoes.
type UndoTask struct {
	// ForwardKey is the idempotency key of the step. The remote is asked to refuse it from now on.
	ForwardKey string
	// Repeats is how often the step was begun again after a success (Step.Repeat), each time under a key of its own: see Keys.
	Repeats int `json:",omitempty"`
	Outcome Outcome
	// Output is the step's output; null when the outcome is unknown.
	Output json.RawMessage
}

// Keys returns the idempotency keys under which the step may have had an effect, the newest first: ForwardKey is the last. Each
// but the newest is that of a success; of the newest Outcome says what is known.
func (u UndoTask) Keys() []string {
	keys := make([]string, 0, u.Repeats+1)
	for n := u.Repeats + 1; n > 1; n-- {
		keys = append(keys, fmt.Sprintf("%s/%d", u.ForwardKey, n))
	}
	return append(keys, u.ForwardKey)
}

// Outcome says what is known of a step that is to be undone.
type Outcome string

// The outcomes of a step that can be undone.
const (
	OutcomeDone    Outcome = "done"
	OutcomeUnknown Outcome = "unknown"
)
