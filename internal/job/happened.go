package job

import (
	"time"

	"github.com/makegood-dev/makegood"
)

// Happened is one event that has changed a job, as that was saved.
type Happened struct {
	// Workflow is what the job goes by now.
	Workflow makegood.Workflow
	// Before is the job as it was, which may share only its slices with After; zero where the job was born.
	Before, After Job
	Event         Event
	// Entries are what the event has added to the job's history.
	Entries []Entry
	// At is the moment of the decision.
	At time.Time
}
