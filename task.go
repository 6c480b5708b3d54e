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
	// Input is the value of the step's with. The secrets in it are left out, until the agent's runner has put them in,
	// just before the agent works.
	Input json.RawMessage
	// Batch is set for a task that does items of a map together (Map.Batch). Input is the list of their inputs then, and
	// Batch the place of each among the items of the step, 0 to 49. Items has a task for each item. The output of such a
	// task is a list of Answer, one for each item.
	Batch []int `json:",omitempty"`
	// Secrets are those that belong into Input; at most 50.
	Secrets []TaskSecret `json:",omitempty"`
	// Key is the idempotency key JOB/STEP/ROUND, with "/undo" behind it for an undo: the same over all attempts, to be
	// passed on to the remote service.
	Key string
	// Birth is the job's birth: it is part of the name of the step's claim item.
	Birth string
	// Token is the token that the reply must carry.
	Token string
	// Completion is the step's completion token: its holder may complete, fail or heartbeat this step in this round and
	// direction, whichever attempt is under way, and may do no more. Hand it to the person or program that completes the
	// step when the agent answers that it waits, and log it nowhere.
	Completion string `json:",omitempty"`
	// ClaimUntil is the end of the time in which the attempt can be claimed.
	ClaimUntil time.Time
	// SentAt is when this attempt was sent; StartBy is the end of the time in which it may wait unclaimed.
	SentAt  time.Time
	StartBy time.Time
	// Timeout is how long the attempt may take, counted from the claim. With a Heartbeat, it is how long it may take in
	// all, and silence may last no longer than the Heartbeat.
	Timeout   Duration
	Heartbeat Duration `json:",omitzero"`
	// Alone: an earlier attempt ended in silence with others beside it, or several with the death of the engine, so this
	// attempt must run with no other beside it, and is claimed no sooner. It may have killed the process.
	Alone bool `json:",omitempty"`
	// Shared is the opposite of exclusive in the message: such a task is not claimed, and carries CompleteBy instead.
	Shared     bool
	CompleteBy time.Time
	// Claim identifies the hold on the attempt: a write of the agent's own uses it to succeed only while the agent has the
	// attempt (agent/dynamofence, agent/sqlitefence). The runner of agents sets it; it is in no message. Zero: the attempt
	// is not claimed.
	Claim TaskClaim `json:",omitzero"`
	// Undo is set for an undo.
	Undo *UndoTask
	// Traceparent is the span of the attempt, in the form of the W3C's header of that name: the agent's spans belong under
	// it. Empty: the job is not traced.
	Traceparent string `json:",omitempty"`
	// ReplyTo is the queue for the reply.
	ReplyTo string
}

// TaskClaim is the place and the owner of an attempt's claim.
type TaskClaim struct {
	// LockedBy is the owner of the claim: the agent's instance, and a nonce that no other claim has.
	LockedBy string
	// Table is the DynamoDB table of the claim, under PK = claim#AGENT#JOB and SK = BIRTH#STEP; empty: it is in none.
	Table string `json:",omitempty"`
	// File is the SQLite file of the claim, which belongs to the engine in this process; empty: the claim is in another's,
	// or in none.
	File string `json:",omitempty"`
}

// TaskSecret is a secret and its place in the input of a task. It stands beside the input and never in it, so no text
// of a submitter can be taken for one.
type TaskSecret struct {
	// Path is the place of a text in the input, as a JSON pointer (RFC 6901); empty: the input itself.
	Path string
	// At counts the characters (Unicode code points) of that text, as it came, before the secret.
	At int
	// Name is the name of the secret, [a-z][a-z0-9_]{0,62}.
	Name string
}

// UndoTask tells an undo about the step that it undoes.
type UndoTask struct {
	// ForwardKey is the idempotency key of the step. The remote service is asked to refuse it from now on.
	ForwardKey string
	// Repeats counts how often the step was begun again after a success (Step.Repeat), each time under a key of its own:
	// see Keys.
	Repeats int `json:",omitempty"`
	Outcome Outcome
	// Output is the step's output; null when the outcome is unknown. Of a batch it is a list of Answer, with the outputs
	// of the items that are known to be done.
	Output json.RawMessage
}

// Answer is what an agent says of one item of a batch.
type Answer struct {
	// Item is the place of the item, one of Task.Batch.
	Item int `json:"item"`
	// Output is the output of an item that was done; empty means null.
	Output json.RawMessage `json:"output,omitempty"`
	// Error says why the item failed; nil: it was done.
	Error *AnswerError `json:"error,omitempty"`
}

// AnswerError says why an item of a batch failed.
type AnswerError struct {
	StepError
	// RetryAfterMs is the pause that the remote service asked for, in milliseconds. The longest of a batch counts.
	RetryAfterMs int64 `json:"retryAfterMs,omitempty"`
	// SlowDown: the pause holds for all attempts of the agent, and that of the batch is not counted.
	SlowDown bool `json:"slowDown,omitempty"`
}

// Items returns the task of each item of a batch, in the order of Batch; a task for no batch is returned alone. The Key
// of an item is the Key of the batch, a slash, and the place of the item; the ForwardKey of its undo is made so, too.
// Both are the same over all attempts, whichever items are tried again together.
func (t Task) Items() ([]Task, error) {
	if t.Batch == nil {
		return []Task{t}, nil
	}
	var inputs []json.RawMessage
	if err := json.Unmarshal(t.Input, &inputs); err != nil || len(inputs) != len(t.Batch) {
		return nil, fmt.Errorf("the input of a batch of %d items is no list of so many", len(t.Batch))
	}
	done := map[int]json.RawMessage{}
	if t.Undo != nil {
		var answers []Answer
		if err := json.Unmarshal(t.Undo.Output, &answers); err != nil {
			return nil, fmt.Errorf("the output of a batch that is undone is no list of answers: %w", err)
		}
		for _, a := range answers {
			done[a.Item] = a.Output
		}
	}
	items := make([]Task, len(inputs))
	for i, place := range t.Batch {
		item := t
		item.Batch, item.Input, item.Key = nil, inputs[i], fmt.Sprintf("%s/%d", t.Key, place)
		if t.Undo != nil {
			undo := UndoTask{ForwardKey: fmt.Sprintf("%s/%d", t.Undo.ForwardKey, place), Outcome: OutcomeUnknown}
			if output, known := done[place]; known {
				undo.Outcome, undo.Output = OutcomeDone, output
			}
			item.Undo = &undo
		}
		items[i] = item
	}
	return items, nil
}

// Keys returns the idempotency keys under which the step may have had an effect, the newest first: ForwardKey is the
// last. Each key but the newest is that of a success; Outcome describes the newest.
func (u UndoTask) Keys() []string {
	keys := make([]string, 0, u.Repeats+1)
	for n := u.Repeats + 1; n > 1; n-- {
		keys = append(keys, fmt.Sprintf("%s/%d", u.ForwardKey, n))
	}
	return append(keys, u.ForwardKey)
}

// Outcome is the known outcome of a step that is to be undone.
type Outcome string

// The outcomes of a step that can be undone.
const (
	OutcomeDone    Outcome = "done"
	OutcomeUnknown Outcome = "unknown"
)
