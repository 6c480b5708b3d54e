package makegood

import (
	"encoding/json"
	"time"
)

// Submission asks for a job. The same ID with the same workflow and input is the same job, however often it is
// submitted; with other content it is refused.
type Submission struct {
	// Workflow is the name of a workflow that is known where it is submitted.
	Workflow string
	// ID is the job's id, [A-Za-z0-9._:-]{1,128}, unique over all workflows. Empty: one is made.
	ID string
	// Input is JSON of at most MaxPayloadBytes; nil is null.
	Input json.RawMessage
	// StartAt is when the job may start, at most MaxStartDelay ahead; zero, or past: at once.
	StartAt time.Time
	// ReplyTo is the registered name of who is told of the job's changes; empty: nobody.
	ReplyTo string
}
