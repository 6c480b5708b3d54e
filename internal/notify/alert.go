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

// ErrGathered is the error of a notifier that tells of several jobs at once, before the time for that. It is no
// failure: the announcement stays undelivered in the job, and is brought again.
var ErrGathered = errors.New("it is told a little later, together with others")

// AlertKind is what an alert is about.
type AlertKind string

// The kinds of alerts. Each is the heading of a section of the runbook.
const (
	AlertStopped AlertKind = "stopped"      // jobs are in Error
	AlertLate    AlertKind = "late"         // jobs will not be done when their workflow expects it
	AlertAgent   AlertKind = "agent-silent" // the tasks of an agent are not claimed
	AlertPaused  AlertKind = "agent-paused" // the breaker has paused an agent
)

// Cause is the cause of an alert: alerts of one cause are one.
type Cause struct {
	Kind AlertKind
	// Workflow, Step and ErrorKind select the jobs: those of a workflow that have stopped, or stand, at one step, for one
	// kind of error. Empty: not known.
	Workflow, Step, ErrorKind string
	// Agent is the agent with unclaimed tasks, or that is paused.
	Agent string
}

// Alert is a message to an operator about one cause, perhaps of many jobs. It carries no payload, but the reason of a
// job may quote one: it goes to operators, and into no log.
type Alert struct {
	Cause
	// Count is the least number of its jobs that were not in an earlier alert; zero for an agent.
	Count int
	// Jobs are the first jobs, at most MaxAlertJobs, and Since is when the first announcement was due.
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
	// Page is the URL of the page, without a slash at its end; empty: unknown.
	Page string
	// Runbook is the URL of the runbook, without an anchor; empty: DefaultRunbook.
	Runbook string
}

// Alerter delivers alerts.
type Alerter interface {
	// Alert delivers one. An error means that it may not have been delivered, and is told again.
	Alert(ctx context.Context, a Alert) error
}
