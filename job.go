package makegood

import (
	"encoding/json"
	"time"
)

// Job is a job as its users see it: in the engine, the clients and the API. In JSON every field is always there; null
// means "not yet" or "none". Times are in UTC, RFC 3339.
type Job struct {
	ID       string `json:"id"`
	Workflow string `json:"workflow"`
	// Definition is the hash of the definition that the job keeps.
	Definition string `json:"definition"`
	// Parent is the job with the step that this job does; empty: it was submitted.
	Parent string `json:"parent"`
	// Round counts the runs from the start; the first is 1.
	Round int `json:"round"`
	// ProcessState is the present state; Desired the wanted end: Processed, Undone or Cancelled.
	ProcessState ProcessState `json:"processState"`
	Desired      ProcessState `json:"desired"`
	// Paused: no new attempt starts until the job is resumed.
	Paused bool `json:"paused"`
	// PausedAt is when the job was paused; nil: it is not paused.
	PausedAt *time.Time `json:"pausedAt"`
	// HeldBy is the pause of a whole agent or workflow that keeps the job still ("agent payments", "workflow order"), and
	// HeldReason its author and reason. Empty: there is none, or a person has paused the job itself.
	HeldBy     string `json:"heldBy"`
	HeldReason string `json:"heldReason"`
	// Reason says why the job stopped, is undone or was cancelled; empty otherwise.
	Reason string `json:"reason"`
	// FirstReason is why the job first stopped, or was turned round, in this round, where that is not the last reason: the
	// origin of the trouble. Empty: it is the last reason.
	FirstReason string `json:"firstReason"`
	// FailureCount counts the started attempts that failed or ran out of time, over all steps and undos.
	FailureCount int `json:"failureCount"`
	// Tenant is the tenant of the job; empty: none. Labels are the labels of the submission; null: none.
	Tenant string            `json:"tenant"`
	Labels map[string]string `json:"labels"`
	// Priority is that of the submission; empty: PriorityNormal.
	Priority Priority `json:"priority,omitempty"`
	// LockedBy is the instance that saved the job last; nil until the first save after its birth.
	LockedBy *string `json:"lockedBy"`
	// CompleteBy is when the Supervisor looks at the job, at the latest; nil when no work is left.
	CompleteBy *time.Time `json:"completeBy"`
	// StartAt is when the job may start; nil: at once.
	StartAt    *time.Time `json:"startAt"`
	CreatedAt  time.Time  `json:"createdAt"`
	FinishedAt *time.Time `json:"finishedAt"`
	// Deadline is when the job's own timeout passes, while it goes forward; nil: it has none, or goes forward no more.
	Deadline *time.Time `json:"deadline"`
	// ExpectBy is when its workflow expects the job to be done (Workflow.Expect); nil: never. Warned: the operator was
	// told, or is about to be, that it will not be.
	ExpectBy *time.Time `json:"expectBy"`
	Warned   bool       `json:"warned"`
	// NextRoundAt is when a job that is undone is tried again from the start (onFailure: restart); nil: it is not, or some
	// step is still to be undone.
	NextRoundAt *time.Time `json:"nextRoundAt"`
	// RequestedBy is the author of the verb that was granted last: on AWS the ARN of the caller; nil: no verb was granted.
	RequestedBy *string `json:"requestedBy"`
	// HistoryCount counts the entries of the job's history: a job that goes well has none.
	HistoryCount int `json:"historyCount"`
	// History has the events that did not simply go well, and the requests, oldest first; empty, too, where payloads were
	// not asked for. HistoryGaps are the ranges of entries that are not shown: a long history keeps its first and last
	// hundred.
	History     []Entry      `json:"history"`
	HistoryGaps []HistoryGap `json:"historyGaps"`
	// Input is the input of the submission; null where payloads were not asked for. InputBytes is its size, wherever it is
	// stored.
	Input      json.RawMessage `json:"input"`
	InputBytes int             `json:"inputBytes"`
	// Spent is the job's cost on AWS so far; nil: not known. The cost is not counted for a job of an engine in a process,
	// nor for a job that was born before its stack counted, or in a transaction of its submitter's own.
	Spent *Spent `json:"spent"`
	// Steps are in the order of the workflow.
	Steps []JobStep `json:"steps"`
	// Existed is set by Submit where the job was there already, with the same content; and after a verb where its state
	// held already, or that very request was granted before.
	Existed bool `json:"-"`
}

// JobStep is the state of a step of a job. Its description is in the workflow (Step).
type JobStep struct {
	Name string `json:"name"`
	Activity
	// Child is the job that does the last attempt of the step, or did it (AgentWorkflow); empty: there is none, or this is
	// the answer to a verb.
	Child string `json:"child"`
	// Items counts the items of a step with a map; null where it has no map or has not begun, and where payloads were not
	// asked for.
	Items *Items `json:"items"`
	// Edited has the figures of its map that were edited; null where none was.
	Edited *MapEdit `json:"edited"`
	// Undo is the step's compensation; nil until it has a state.
	Undo *Activity `json:"undo"`
}

// Activity is a step going forward, or its undo.
type Activity struct {
	State StepState `json:"state"`
	// Attempt is the number of the latest attempt; 0 before the first.
	Attempt      int `json:"attempt"`
	FailureCount int `json:"failureCount"`
	// LockedBy and CompleteBy are those of the claim, while an attempt is claimed. While the step waits, CompleteBy is its
	// deadline.
	LockedBy   *string    `json:"lockedBy"`
	CompleteBy *time.Time `json:"completeBy"`
	// Inline: the claimed attempt is inline, and LockedBy the process that decides about the job. False once it has ended.
	Inline bool `json:"inline"`
	// CompletedBy is the author of the completion from outside, as known to the receiver; nil: none, or unknown.
	CompletedBy *string `json:"completedBy"`
	// CompletedWhy is the author's reason; nil: none.
	CompletedWhy *string    `json:"completedWhy"`
	StartedAt    *time.Time `json:"startedAt"`
	FinishedAt   *time.Time `json:"finishedAt"`
	// SentAt is when the latest attempt was last sent to its agent, or when the step began to wait. LastStartedAt is when
	// the last attempt with a known claim was claimed; StartedAt is that of the first. NextAt is when the next is made;
	// nil: none is due.
	SentAt        *time.Time `json:"sentAt"`
	LastStartedAt *time.Time `json:"lastStartedAt"`
	NextAt        *time.Time `json:"nextAt"`
	// Progress is the last report on the claimed attempt; nil: none.
	Progress *Progress `json:"progress"`
	// Output is the step's output; null where there is none or payloads were not asked for. OutputBytes is its size,
	// wherever it is stored.
	Output      json.RawMessage `json:"output"`
	OutputBytes int             `json:"outputBytes"`
	// Error is why the last failed attempt failed; null again when a later one succeeds.
	Error *StepError `json:"error"`
	// Settled is set where a person has dealt with the step outside the job, and settled it by hand; nil: not settled.
	Settled *Settlement `json:"settled"`
}

// Settlement records that a person has dealt with a step, or its undo, outside the job. It counts as done or skipped
// since.
type Settlement struct {
	// By is the author, as known to the receiver; nil: unknown.
	By *string `json:"by"`
	// Reason is why; empty: no reason was given.
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

// Progress is an agent's report of how far its work has come.
type Progress struct {
	// Value is the report: JSON of at most MaxProgressBytes.
	Value json.RawMessage `json:"value"`
	At    time.Time       `json:"at"`
}

// StepError is why an attempt failed.
type StepError struct {
	Message   string `json:"message"`
	Retryable bool   `json:"retryable"`
	// Kind is the kind of error, [a-z][a-z0-9_]{0,62}, as the agent gave it, or one of the engine's (KindTimeout and its
	// like); empty: none was given.
	Kind string `json:"kind"`
	// Applied is "no" where it is known that the attempt had no effect, and "unknown" otherwise.
	Applied Applied `json:"applied"`
	// RetryAfter is the pause that the remote service asked for; it is kept, up to the step's retry.max. Jobs do not show
	// it.
	RetryAfter Duration `json:"-"`
	// SlowDown: RetryAfter holds for all attempts of the agent, and this attempt is not counted. Jobs do not show it.
	SlowDown bool `json:"-"`
}

// The kinds of error that the engine sets itself. Agents may use them, too.
const (
	// KindAnswer: a person's answer to an approval has fail or stop in the step's onAnswer.
	KindAnswer = "answer"
	// KindTimeout: no report came by CompleteBy, or the agent ran out of time.
	KindTimeout = "timeout"
	// KindExpression: an expression of the step had no value. That is a mistake in the workflow, so the job stops where no
	// route of the step handles it.
	KindExpression = "expression"
	// KindPanic: the agent's program, written in Go, has panicked. An agent in another language may use it for an
	// exception that is a mistake in its program. The job stops where no route of the step handles it.
	KindPanic = "panic"
	// KindNotReady: a step was repeated, and was not ready in time.
	KindNotReady = "not_ready"
	// KindDispatch: the task could not be sent, and never can be.
	KindDispatch = "dispatch"
	// KindChild: the job that does the step has ended otherwise than Processed, so no effect of it stands.
	KindChild = "child"
)

// AtEnd reports whether the job cannot move on by itself: it is finished, or in Error.
func (j Job) AtEnd() bool { return j.ProcessState.Finished() || j.ProcessState == JobError }
