package api

import (
	"time"

	"github.com/makegood-dev/makegood"
)

// JobWaiting is a State of a Filter, and of no job: the job has not ended or stopped, and an approval of it waits for an answer.
const JobWaiting makegood.ProcessState = "waiting"

// Filter narrows a list: a job must be all that it says. Empty fields match everything.
type Filter struct {
	// State is the ProcessState, or Waiting; Workflow the name of the workflow, Definition the hash of the definition that the job keeps.
	State      makegood.ProcessState
	Workflow   string
	Definition string
	// Paused: only paused jobs, whatever the state under the pause; with no State.
	Paused bool
	// Tenant is that of the submission; of Labels the job has every one, with this value.
	Tenant string
	Labels map[string]string
	// Step is one at which the job stands: in Error the one that failed first, otherwise one that is sent, waits, or is to be
	// tried again, or whose undo is. Agent is whom such a step, or its undo, is with.
	Step, Agent string
	// ReasonPrefix begins the job's Reason. ReasonKind is the kind of the error by which the step failed at which a job in
	// Error has stopped (makegood.StepError.Kind).
	ReasonPrefix, ReasonKind string
	// IDPrefix begins the job's id.
	IDPrefix string
	// Words are all in the job's Reason, in any case and order; spaces part them. At most 1,024 bytes.
	Words string
	// Since and Until bound when the job was created: not before Since, and before Until.
	Since, Until time.Time
	// Late: it is unfinished, and the Supervisor should have looked at it (CompleteBy) two minutes ago, or, while it goes forward and is not
	// paused, its own timeout has passed, or the time by which its workflow expects it (makegood.Job.ExpectBy). LateWithin: the
	// timeout or that time passes within this time, or has passed. DueWithin: something of it begins or is due within this time.
	Late                  bool
	LateWithin, DueWithin time.Duration
}
