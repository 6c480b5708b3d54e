package notify

import (
	"context"
	"errors"
	"time"
)

const (
	// MaxAlertJobs is how many jobs an alert names; of the others it says how many they are.
	MaxAlertJobs = 5
	// MaxSubjectBytes is how long the subject of an alert may be: SNS takes less than a hundred characters.
	MaxSubjectBytes = 99
	// DefaultRunbook is where the runbook of alerts is, unless an operator has one of their own.
	DefaultRunbook = "https://github.com/makegood-dev/makegood/blob/main/docs/alarms.md"
)

// ErrGathered is what a notifier answers that tells of several at once, when the time for that has not come. Nothing has
// failed: what is to be told stays untold in the job, and is brought again.
var ErrGathered = errors.New("it is told a little later, together with others")

// AlertKind is what an alert is about.
type AlertKind string

// The kinds of alerts. Each is the heading of a section of the runbook.
const (
	AlertStopped AlertKind = "stopped"      // jobs are in Error
	AlertLate    AlertKind = "late"         // jobs will not be done when their workflow expects it
	AlertAgent   AlertKind = "agent-silent" // nobody claims the tasks of an agent
)

// Cause is why somebody is alerted: alerts of one cause are one.
type Cause struct {
	Kind AlertKind
	// Workflow, Step and ErrorKind say of which jobs: those of a workflow that have stopped, or stand, at one step, for one
	// kind of error. Empty: not known.
	Workflow, Step, ErrorKind string
	// Agent is whose tasks nobody claims.
	Agent string
}

// Alert is what an operator is told: of one cause, perhaps of many jobs. It carries no payload, but the reason of a job may
// quote one: it goes to operators, and into no log.
type Alert struct {
	Cause
	// Count is how many jobs it is about that nobody was told of before, at least; none of an agent.
	Count int
	// Jobs are the first of them, at most MaxAlertJobs, and Since is when the first of all was to be told of.
	Jobs  []AlertedJob
	Since time.Time
	// Where says where all that is.
	Where Where
}

// AlertedJob is one of the jobs of an alert.
type AlertedJob struct {
	ID, Reason string
	// ExpectBy is when it should be done; zero, of one that has stopped.
	ExpectBy time.Time
}

// Where says of what an alert speaks: what reader and command need to get there.
type Where struct {
	// Name is that of the stack, the folder or the process, as a person calls it.
	Name string
	// Flags stand behind every command: --stack shop-prod.
	Flags string
	// Page is the URL of the page, without a slash at its end; empty: nobody knows one.
	Page string
	// Runbook is the URL of the runbook, without an anchor; empty: DefaultRunbook.
	Runbook string
}

// Alerter delivers alerts.
type Alerter interface {
	// Alert delivers one. An error means that it may not have been delivered, and is told again.
	Alert(ctx context.Context, a Alert) error
}
