package api

import (
	"time"

	"github.com/makegood-dev/makegood"
)

// AuditPage is what an audit found on a page of all jobs.
type AuditPage struct {
	// Audited is how many jobs were looked at.
	Audited int     `json:"audited"`
	Strays  []Stray `json:"strays"`
	// Cursor is that of the next page; empty at the end.
	Cursor string `json:"cursor"`
}

// Stray is a job of which the index does not say what it should. Empty ProcessState: its item is damaged, or no job.
type Stray struct {
	Job          string                `json:"job"`
	ProcessState makegood.ProcessState `json:"processState,omitempty"`
	CompleteBy   *time.Time            `json:"completeBy"`
	// Why says what is wrong.
	Why string `json:"why"`
}
