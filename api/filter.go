package api

import (
	"time"

	"github.com/makegood-dev/makegood"
)

// JobWaiting is a State of a Filter, and of no job: the job has not ended or stopped, and an approval in it waits for
// an answer.
const JobWaiting makegood.ProcessState = "waiting"

// Filter narrows a list: a job must match every field. Empty fields match every job.
type Filter struct {
	// State is the ProcessState, or JobWaiting; Workflow the name of the workflow; Definition the hash of the definition
	// that the job keeps.
	State      makegood.ProcessState
	Workflow   string
	Definition string
	// Paused: only paused jobs, whatever the state under the pause; with no State.
	Paused bool
	// Tenant is the tenant of the submission. The job has every label in Labels, with its value.
	Tenant string
	Labels map[string]string
	// Step is a step at which the job stands: in Error the step that failed first, otherwise one that is sent, waits, or
	// is due to be tried again, or has such an undo. Agent is the agent of such a step, or of its undo.
	Step, Agent string
	// ReasonPrefix is a prefix of the job's Reason. ReasonKind is the kind of the error (makegood.StepError.Kind) that
	// stopped a job in Error.
	ReasonPrefix, ReasonKind string
	// IDPrefix is a prefix of the job's id.
	IDPrefix string
	// Roots: only jobs that do no step of another job.
	Roots bool
	// Words are all in the job's Reason, in any case and order; separated by spaces. At most 1,024 bytes.
	Words string
	// Since and Until bound the time of the job's creation: not before Since, and before Until.
	Since, Until time.Time
	// Late: the job is unfinished, and the Supervisor should have looked at it (CompleteBy) two minutes ago, or the job
	// goes forward, is not paused, and has passed its own timeout, or the time by which its workflow expects it
	// (makegood.Job.ExpectBy). LateWithin: the timeout or that time passes within this duration, or has passed. DueWithin:
	// some part of the job begins or is due within this duration.
	Late                  bool
	LateWithin, DueWithin time.Duration
}
