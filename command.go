package makegood

import (
	"encoding/json"
	"time"
)

// Command is something that must now be done. Commands are derived from the saved job, never
// remembered beside it. The set is closed.
type Command interface{ isCommand() }

// Dispatch: send the task of this attempt to its agent.
type Dispatch struct {
	Step    string
	Attempt int
	Undo    bool
}

// CloseAttempt: end an attempt that is not wanted any more, and say what was found (AttemptClosed, with the same Asked).
type CloseAttempt struct {
	Step    string
	Attempt int
	Undo    bool
	// Mark: who holds it is told, at its next heartbeat, that nobody wants the result.
	Mark bool
	// Asked is the cause of the event that asked for it.
	Asked string
}

// Announce: tell those that the announcement names of a change of ProcessState.
type Announce struct{ Announcement }

// AlertAgent: nobody claims the tasks of this agent. One alert an agent is enough for many jobs.
type AlertAgent struct{ Agent string }

// Remind: something is due at Key, which is the job's CompleteBy; send DeadlinePassed for then. It only
// spares the job the wait for the next sweep.
type Remind struct{ Key time.Time }

func (Remind) isCommand()       {}
func (Dispatch) isCommand()     {}
func (CloseAttempt) isCommand() {}
func (Announce) isCommand()     {}
func (AlertAgent) isCommand()   {}

// Task is one attempt sent to an agent.
type Task struct {
	Job      string
	Workflow string
	Step     string
	Round    int
	Attempt  int
	Agent    string
	Action   string
	// Input is the value of the step's with.
	Input json.RawMessage
	// Key is the idempotency key JOB/STEP/ROUND, with "/undo" behind it for an undo: the same over
	// all attempts, to be passed on to the remote service.
	Key string
	// Birth is the job's: it is part of the name of the step's claim item.
	Birth string
	// Token is what the reply must carry.
	Token string
	// ClaimUntil is until when the attempt can be claimed.
	ClaimUntil time.Time
	// SentAt is when this attempt was sent; StartBy is until when it may wait unclaimed.
	SentAt  time.Time
	StartBy time.Time
	// Timeout counts from the claim. Shared tasks are not claimed, and carry CompleteBy instead.
	Timeout    Duration
	Shared     bool
	CompleteBy time.Time
	// Undo is set for an undo.
	Undo *UndoTask
	// ReplyTo is the queue that waits for the reply.
	ReplyTo string
}

// UndoTask is what an undo is told of the step that it undoes.
type UndoTask struct {
	// ForwardKey is the idempotency key of the step. The remote is asked to refuse it from now on.
	ForwardKey string
	Outcome    Outcome
	// Output is the step's output; null when the outcome is unknown.
	Output json.RawMessage
}

// Outcome says what is known of a step that is to be undone.
type Outcome string

// The outcomes of a step that can be undone.
const (
	OutcomeDone    Outcome = "done"
	OutcomeUnknown Outcome = "unknown"
)
