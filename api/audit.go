package api

import (
	"time"

	"github.com/makegood-dev/makegood"
)

// AuditPage is the result of an audit of one page of all jobs.
type AuditPage struct {
	// Audited counts the jobs that were looked at.
	Audited int     `json:"audited"`
	Strays  []Stray `json:"strays"`
	// Cursor is that of the next page; empty at the end.
	Cursor string `json:"cursor"`
}

// Stray is a job with a wrong index entry. Its ProcessState is empty where its item is damaged, or is not a job.
type Stray struct {
	Job          string                `json:"job"`
	ProcessState makegood.ProcessState `json:"processState,omitempty"`
	CompleteBy   *time.Time            `json:"completeBy"`
	// Why is the reason, for people.
	Why string `json:"why"`
}
