package makegood

import (
	"encoding/json"
	"time"
)

// Job is a job as its users see it: as the engine, the clients and the API give it. In JSON every field is always there; null means "not yet" or
// "none". Times are in UTC, RFC 3339.
type Job struct {
	ID       string `json:"id"`
	Workflow string `json:"workflow"`
	// Definition is the hash of the definition that the job keeps.
	Definition string `json:"definition"`
	// Round counts the runs from the start; the first is 1.
	Round int `json:"round"`
	// ProcessState is what is; Desired what is wanted: Processed, Undone or Cancelled.
	ProcessState ProcessState `json:"processState"`
	Desired      ProcessState `json:"desired"`
	// Paused: nothing new starts until it is resumed.
	Paused bool `json:"paused"`
	// PausedAt is since when; nil: it is not.
	PausedAt *time.Time `json:"pausedAt"`
	// HeldBy is what is paused as a whole and keeps the job still ("agent payments", "workflow order"), and HeldReason who
	// paused that, and why. Empty: nothing does, or a person has paused the job itself.
	HeldBy     string `json:"heldBy"`
	HeldReason string `json:"heldReason"`
	// Reason says why the job stopped, is undone or was cancelled; empty otherwise.
	Reason string `json:"reason"`
	// FirstReason is why it first stopped, or was turned round, in this round, where that is another than the last: what began it all.
	// Empty: it is not.
	FirstReason string `json:"firstReason"`
	// FailureCount is how many started attempts failed or ran out of time, over all steps and undos.
	FailureCount int `json:"failureCount"`
	// Tenant is whom the job is for; empty: nobody in particular. Labels are those that it was submitted with; null: none.
	Tenant string            `json:"tenant"`
	Labels map[string]string `json:"labels"`
	// LockedBy is who saved the job last; nil until the first save after its birth.
	LockedBy *string `json:"lockedBy"`
	// CompleteBy is when the Supervisor looks at the job, at the latest; nil when nothing is left to do.
	CompleteBy *time.Time `json:"completeBy"`
	// StartAt is when the job may start; nil: at once.
	StartAt    *time.Time `json:"startAt"`
	CreatedAt  time.Time  `json:"createdAt"`
	FinishedAt *time.Time `json:"finishedAt"`
	// Deadline is when its own timeout passes, while it goes forward; nil: it has none, or goes
	// forward no more.
	Deadline *time.Time `json:"deadline"`
	// ExpectBy is when its workflow expects it to be done (Workflow.Expect); nil: never. Warned: an operator was told, or is
	// about to be, that it will not be.
	ExpectBy *time.Time `json:"expectBy"`
	Warned   bool       `json:"warned"`
	// NextRoundAt is when a job that is undone is tried again from the start (onFailure: restart); nil: it is not, or
	// something is still to be undone.
	NextRoundAt *time.Time `json:"nextRoundAt"`
	// RequestedBy is who asked for the verb that was granted last: on AWS the ARN of the caller; nil if nobody has.
	RequestedBy *string `json:"requestedBy"`
	// HistoryCount is how many entries the job's history has: of a job that goes well, none.
	HistoryCount int `json:"historyCount"`
	// History is what did not simply go well, and what somebody asked for, oldest first; empty, too, where payloads
	// were not asked for. HistoryGaps is where entries are not shown: of a long history the first and the last
	// hundred are kept.
	History     []Entry      `json:"history"`
	HistoryGaps []HistoryGap `json:"historyGaps"`
	// Input is what was submitted; null where payloads were not asked for. InputBytes is how large it is, wherever it is.
	Input      json.RawMessage `json:"input"`
	InputBytes int             `json:"inputBytes"`
	// Spent is what it has cost on AWS so far; nil: that is not known. Nothing is counted of a job of an engine in a process, nor of
	// one that was born before its stack counted, or in a transaction of its submitter's own.
	Spent *Spent `json:"spent"`
	// Steps are in the order of the workflow.
	Steps []JobStep `json:"steps"`
	// Existed is set by Submit where the job was there already, with the same content; and after a verb where it was so
	// already, or that very request was granted before.
	Existed bool `json:"-"`
}

// JobStep is a step of a job: where it is. What it is says its workflow (Step).
type JobStep struct {
	Name string `json:"name"`
	Activity
	// Undo is its compensation; nil as long as nothing has come of that.
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
	// CompletedBy is who completed it from outside, as whoever took that knows; nil: nobody, or nobody who is known.
	CompletedBy *string `json:"completedBy"`
	// CompletedWhy is what they said of it; nil: nothing.
	CompletedWhy *string    `json:"completedWhy"`
	StartedAt    *time.Time `json:"startedAt"`
	FinishedAt   *time.Time `json:"finishedAt"`
	// SentAt is when the latest attempt was last sent to its agent, or when the step began to wait. LastStartedAt is when the last
	// attempt was claimed of which that is known; StartedAt is that of the first. NextAt is when the next is made; nil: none is to be.
	SentAt        *time.Time `json:"sentAt"`
	LastStartedAt *time.Time `json:"lastStartedAt"`
	NextAt        *time.Time `json:"nextAt"`
	// Progress is what the agent has reported last of the attempt that is claimed; nil: nothing.
	Progress *Progress `json:"progress"`
	// Output is what it gave; null where it gave nothing or payloads were not asked for. OutputBytes is how large it is, wherever
	// it is.
	Output      json.RawMessage `json:"output"`
	OutputBytes int             `json:"outputBytes"`
	// Error is why the last failed attempt failed; null again when a later one succeeds.
	Error *StepError `json:"error"`
	// Settled says that a person has dealt with it outside the job, and settled it by hand; nil: nobody has.
	Settled *Settlement `json:"settled"`
}

// Settlement is that a person has dealt with a step, or its undo, outside the job. It counts as done or skipped since.
type Settlement struct {
	// By is who said so, as whoever took that knows; nil: nobody who is known.
	By *string `json:"by"`
	// Reason is why; empty: it was not said.
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

// Progress is how far work has come, as its agent says it.
type Progress struct {
	// Value is what the agent reported: JSON of at most MaxProgressBytes.
	Value json.RawMessage `json:"value"`
	At    time.Time       `json:"at"`
}

// StepError is why an attempt failed.
type StepError struct {
	Message   string `json:"message"`
	Retryable bool   `json:"retryable"`
	// Kind is the kind of error, [a-z][a-z0-9_]{0,62}, as the agent gave it, or one of the engine's (KindTimeout and
	// its like); empty: none was given.
	Kind string `json:"kind"`
	// Applied is "no" where it is known that the attempt had no effect, and "unknown" otherwise.
	Applied Applied `json:"applied"`
	// RetryAfter is how long the remote asked to be left alone; kept to up to the step's retry.max. Jobs that are shown
	// do not say it.
	RetryAfter Duration `json:"-"`
}

// The kinds of error that the engine gives itself. Agents may give them, too.
const (
	// KindAnswer: a person gave an approval an answer of which its onAnswer says fail or stop.
	KindAnswer = "answer"
	// KindTimeout: nothing was said by CompleteBy, or the agent ran out of time.
	KindTimeout = "timeout"
	// KindExpression: an expression of the step gave no value. It is a mistake of whoever wrote the workflow, so the
	// job stops where no route of the step is for it.
	KindExpression = "expression"
	// KindPanic: the agent's program, written in Go, has panicked. An agent in another language may give it for an exception that is
	// a mistake in its program. The job stops where no route of the step is for it.
	KindPanic = "panic"
	// KindNotReady: a step was repeated, and was not ready in time.
	KindNotReady = "not_ready"
	// KindDispatch: the task could not be sent, and never can be.
	KindDispatch = "dispatch"
)

// AtEnd reports whether nothing moves the job on by itself: it is finished, or in Error.
func (j Job) AtEnd() bool { return j.ProcessState.Finished() || j.ProcessState == JobError }
