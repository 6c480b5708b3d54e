package makegood

import "time"

// EntryKind is the kind of a line in a job's history.
type EntryKind string

// The kinds of entries. Later releases may have others.
const (
	// EntryFailed: an attempt failed, as its agent said; or a step failed without an attempt.
	EntryFailed EntryKind = "failed"
	// EntrySilent: an attempt was claimed, and sent no report by its CompleteBy.
	EntrySilent EntryKind = "silent"
	// EntryWithdrawn: an attempt, or a wait, was given up before it had ended.
	EntryWithdrawn EntryKind = "withdrawn"
	// EntryInterrupted: an attempt was cut off by the death of the engine.
	EntryInterrupted EntryKind = "interrupted"
	// EntryRefused: a task could not be sent, and never can be.
	EntryRefused EntryKind = "refused"
	// EntryRequest: a verb was asked for, and granted.
	EntryRequest EntryKind = "request"
	// EntryCompleted: the end of a step was reported from outside.
	EntryCompleted EntryKind = "completed"
	// EntrySettled: a person said that a step was dealt with.
	EntrySettled EntryKind = "settled"
	// EntryTurned: the job was going forward, and is to be undone.
	EntryTurned EntryKind = "turned"
	// EntryStopped: the job waits for a person.
	EntryStopped EntryKind = "stopped"
	// EntryRound: the job begins again.
	EntryRound EntryKind = "round"
	// EntryHeld: the job's agent or workflow was paused, or goes on.
	EntryHeld EntryKind = "held"
	// EntryLate: the job will not be done when its workflow expects it.
	EntryLate EntryKind = "late"
)

// Entry is a line of a job's history: an event that did not simply go well, or a request. In JSON the fields that do
// not belong to its kind are left out.
type Entry struct {
	// N is the number of the entry; the first of a job is 1.
	N    int       `json:"n"`
	At   time.Time `json:"at"`
	Kind EntryKind `json:"kind"`
	// Step, Undo and Attempt name the subject of the entry; the whole job, where Step is empty.
	Step    string `json:"step,omitempty"`
	Undo    bool   `json:"undo,omitempty"`
	Attempt int    `json:"attempt,omitempty"`
	// StartedAt is when the attempt was claimed, LockedBy the worker that claimed it.
	StartedAt *time.Time `json:"startedAt,omitempty"`
	LockedBy  string     `json:"lockedBy,omitempty"`
	Error     *StepError `json:"error,omitempty"`
	// Failure is set where the entry counts as a failure of the job, and is its number; the first is 1.
	Failure int `json:"failure,omitempty"`
	// By is the author of the request or the answer: on a stack the ARN of the signature, elsewhere the name that the
	// caller gave.
	By     string `json:"by,omitempty"`
	Verb   Verb   `json:"verb,omitempty"`
	Reason string `json:"reason,omitempty"`
	// State is the desired end of a job that turned, Round the round that begins.
	State ProcessState `json:"state,omitempty"`
	Round int          `json:"round,omitempty"`
	// StartAt is the new start of a job that was rescheduled.
	StartAt *time.Time `json:"startAt,omitempty"`
	// Definition is the hash of the definition that a resubmit moved the job to; Input: the job got another input.
	Definition string `json:"definition,omitempty"`
	Input      bool   `json:"input,omitempty"`
	// Timeout is the new timeout of a job that was edited: a duration, or "none".
	Timeout string `json:"timeout,omitempty"`
	// Concurrency and Tolerate are the new figures of the map of Step, where a map was edited.
	Concurrency int        `json:"concurrency,omitempty"`
	Tolerate    *Tolerance `json:"tolerate,omitempty"`
	// As is the state that a step was settled as: StepDone, StepSkipped or StepNotDone.
	As StepState `json:"as,omitempty"`
	// Items is how many failed items of maps a redrive does again. Indexes names them, such as 3,17-20, and Step their map,
	// where it was for some.
	Items   int    `json:"items,omitempty"`
	Indexes string `json:"indexes,omitempty"`
}

// HistoryGap is a range of entries that a history leaves out: From to To, both included.
type HistoryGap struct {
	From int `json:"from"`
	To   int `json:"to"`
	// Why is "not kept" for entries between the first and the last of a long history, "missing" or "damaged" for entries
	// that could not be read.
	Why string `json:"why"`
}
