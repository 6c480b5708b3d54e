package makegood

import "time"

// EntryKind says what a line of a job's history tells.
type EntryKind string

// The kinds of entries. Later releases may have others.
const (
	// EntryFailed: an attempt failed, as its agent said; or a step did, of which no attempt was needed to know it.
	EntryFailed EntryKind = "failed"
	// EntrySilent: an attempt was claimed, and nothing was said by its CompleteBy.
	EntrySilent EntryKind = "silent"
	// EntryWithdrawn: an attempt, or a wait, was given up before it had ended.
	EntryWithdrawn EntryKind = "withdrawn"
	// EntryInterrupted: an attempt was cut off by the death of the engine.
	EntryInterrupted EntryKind = "interrupted"
	// EntryRefused: a task could not be sent, and never can be.
	EntryRefused EntryKind = "refused"
	// EntryRequest: somebody asked for a verb, and it was granted.
	EntryRequest EntryKind = "request"
	// EntryCompleted: somebody outside said how a step has ended.
	EntryCompleted EntryKind = "completed"
	// EntrySettled: a person said that a step was dealt with.
	EntrySettled EntryKind = "settled"
	// EntryTurned: the job was going forward, and is to be undone.
	EntryTurned EntryKind = "turned"
	// EntryStopped: the job waits for a person.
	EntryStopped EntryKind = "stopped"
	// EntryRound: the job begins again.
	EntryRound EntryKind = "round"
	// EntryHeld: its agent or its workflow was held, or goes on.
	EntryHeld EntryKind = "held"
	// EntryLate: it will not be done when its workflow expects it.
	EntryLate EntryKind = "late"
)

// Entry is a line of a job's history: something that did not simply go well, or that somebody asked for. In JSON what does
// not belong to its kind is left out.
type Entry struct {
	// N is its number; the first of a job is 1.
	N    int       `json:"n"`
	At   time.Time `json:"at"`
	Kind EntryKind `json:"kind"`
	// Step, Undo and Attempt say of what it is; of the whole job, where Step is empty.
	Step    string `json:"step,omitempty"`
	Undo    bool   `json:"undo,omitempty"`
	Attempt int    `json:"attempt,omitempty"`
	// StartedAt is when the attempt was claimed, LockedBy by whom.
	StartedAt *time.Time `json:"startedAt,omitempty"`
	LockedBy  string     `json:"lockedBy,omitempty"`
	Error     *StepError `json:"error,omitempty"`
	// Failure says that it counts as a failure of the job, and as which; the first is 1.
	Failure int `json:"failure,omitempty"`
	// By is who asked or answered: on a stack the ARN that signed, elsewhere what they said.
	By     string `json:"by,omitempty"`
	Verb   Verb   `json:"verb,omitempty"`
	Reason string `json:"reason,omitempty"`
	// State is the end that a job is wanted to have which turned, Round the one that begins.
	State ProcessState `json:"state,omitempty"`
	Round int          `json:"round,omitempty"`
	// StartAt is the new start of a job that was rescheduled.
	StartAt *time.Time `json:"startAt,omitempty"`
	// Definition is the hash of the one that a job was moved to by its resubmit; Input: it got another input.
	Definition string `json:"definition,omitempty"`
	Input      bool   `json:"input,omitempty"`
	// Timeout is what a job got that was edited: a duration, or "none".
	Timeout string `json:"timeout,omitempty"`
	// As is what a step was settled as: StepDone, StepSkipped or StepNotDone.
	As StepState `json:"as,omitempty"`
}

// HistoryGap is where entries of a history are not shown: From to To, both included.
type HistoryGap struct {
	From int `json:"from"`
	To   int `json:"to"`
	// Why is "not kept" of what lies between the first and the last entries of a long history, "missing" or "damaged" of
	// what could not be read.
	Why string `json:"why"`
}
