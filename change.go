package makegood

import "time"

// Changes is what has changed of a job: a run of changes in the order of their numbers, with none left out between them.
// It is published at least once, so that a run may begin with what was published before: whoever takes each number of a job
// once, in order, has them all. It has no payloads.
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
	// Step is whose transition it is; empty: it is the job's. Undo: of the step's undo.
	Step string `json:"step,omitempty"`
	Undo bool   `json:"undo,omitempty"`
	// From and To are states: a StepState of a step, a ProcessState of a job. A job may keep its state, and be paused
	// or go on, or begin another round. From is empty in the first change of a job, which was not there before.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Attempt is the step's latest.
	Attempt int `json:"attempt,omitempty"`
	// Round is that of the job, Paused whether it is paused.
	Round  int  `json:"round,omitempty"`
	Paused bool `json:"paused,omitempty"`
	// Outcome says how the attempt, or the wait, ended that ended by this, where it did not simply go well: failed, silent,
	// withdrawn, interrupted, refused, completed, settled. ErrorKind and Reason say why; Reason at most 160 bytes.
	Outcome   EntryKind `json:"outcome,omitempty"`
	ErrorKind string    `json:"errorKind,omitempty"`
	Reason    string    `json:"reason,omitempty"`
	// Lost is how many changes were not kept, the last of which had this number: nobody could be told for so long that there
	// were more than 64, or the job was changed by who publishes nothing. What the job is now, the job says. All
	// but Number and At is empty then.
	Lost int `json:"lost,omitempty"`
}
