package makegood

import "time"

// Changes is a run of changes of a job, in the order of their numbers, without gaps. It is published at least once, so
// a run may begin with changes that were published before: a reader that takes each number of a job once, in order,
// has them all. It has no payloads.
type Changes struct {
	Version  int    `json:"version"`
	Job      string `json:"job"`
	Workflow string `json:"workflow"`
	Tenant   string `json:"tenant,omitempty"`
	// CreatedAt is the job's birth: it distinguishes two jobs that had the same id one after the other.
	CreatedAt time.Time `json:"createdAt"`
	Changes   []Change  `json:"changes"`
}

// Change is a transition of a job, or of one of its steps.
type Change struct {
	// Number counts the changes of a job; the first is 1.
	Number int       `json:"number"`
	At     time.Time `json:"at"`
	// Step is the step of the transition; empty: the transition is the job's. Undo: it is that of the step's undo.
	Step string `json:"step,omitempty"`
	Undo bool   `json:"undo,omitempty"`
	// From and To are states: a StepState of a step, a ProcessState of a job. A job may keep its state, and be paused or
	// go on, or begin another round. From is empty in the first change of a job, which did not exist before.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Attempt is the step's latest attempt.
	Attempt int `json:"attempt,omitempty"`
	// Round is the job's round, Paused whether the job is paused.
	Round  int  `json:"round,omitempty"`
	Paused bool `json:"paused,omitempty"`
	// Outcome is how the attempt, or the wait, ended with this change, where it did not simply go well: failed, silent,
	// withdrawn, interrupted, refused, completed, settled. ErrorKind and Reason say why; Reason at most 160 bytes.
	Outcome   EntryKind `json:"outcome,omitempty"`
	ErrorKind string    `json:"errorKind,omitempty"`
	Reason    string    `json:"reason,omitempty"`
	// Lost counts the changes that were not kept, ending with this number: the receiver could not be reached for so long
	// that there were more than 64, or a program that publishes no changes changed the job. The job itself has its present
	// state. All fields but Number and At are empty then.
	Lost int `json:"lost,omitempty"`
}
