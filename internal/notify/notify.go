// Package notify tells people and programs about the states of jobs. It holds the port and the adapter that writes to
// a log. It makes no decisions: the core chooses the announcements, and keeps them until delivery.
package notify

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
)

// ErrElsewhere is the error of a notifier that leaves the delivery to another process. It is no failure: the
// announcement stays undelivered in the job until that process comes to it.
var ErrElsewhere = errors.New("another process tells it")

// Notifier delivers announcements. After an error, or a crash, one is delivered again: at least once, in any order.
// The receiver recognises a repeat by job and Seq.
type Notifier interface {
	// Announce delivers a change of ProcessState, or a notice that a job will be late. The latter, and a change to Error,
	// are alerts to an operator.
	Announce(ctx context.Context, notice Notice) error
	// AgentAlert alerts an operator that the breaker has paused an agent, and why; or, with no reason, that tasks of the
	// agent wait unclaimed.
	AgentAlert(ctx context.Context, agent, paused string) error
}

// Notice is an announcement about a job. It carries no payload.
type Notice struct {
	Job      string
	Workflow string
	// ReplyTo is the registered name of the job's listener; empty: only operators, for an Error.
	ReplyTo string
	// Step and ErrorKind say at which step a job stands that an operator hears of, and with which kind of error it stopped
	// there, if it stands as it did when that was announced; Since is since when it has stopped. Empty: not known.
	Step, ErrorKind string
	Since           time.Time
	job.Announcement
}

// Late reports whether it tells that a job will not be done when its workflow expects it, rather than of a change.
func (n Notice) Late() bool { return !n.ExpectBy.IsZero() }

// ForOperator reports whether it is an alert to an operator: of an Error, or of a job that will be late.
func (n Notice) ForOperator() bool { return n.Late() || n.ProcessState == makegood.JobError }

// Asker tells the people that are asked to complete a waiting step. After an error they are told again; they
// recognise a repeat by job, step, round, direction and N.
type Asker interface {
	// Ask tells the people registered under a name.
	Ask(ctx context.Context, name string, q Question) error
}

// Question is the message to the people that are asked. It has the step's completion token: every reader may answer.
// It must not be written to a log.
type Question struct {
	Job, Workflow, Step string
	// Undo: it is the step's undo that waits. Round is that of the job, N counts the askings.
	Undo     bool
	Round, N int
	// Since is when the step began to wait, Deadline when it ends without an answer.
	Since, Deadline time.Time
	// Text is an approval's question, Choices its answers; none: any output.
	Text    string
	Choices []string
	// Completion is the completion token, Link where a person can answer with it; empty: nowhere.
	Completion, Link string
}

// Log writes to a log.
type Log struct{ Logger *slog.Logger }

var _ Notifier = Log{}

// Announce writes a warning for an alert, and an information for all else. The reason is not written: it
// may quote a payload, as the error of an expression or of a remote service does. The job keeps it.
func (l Log) Announce(ctx context.Context, n Notice) error {
	level, message := slog.LevelInfo, "job changed"
	args := []any{"job", n.Job, "workflow", n.Workflow, "seq", n.Seq, "status", n.ProcessState}
	if n.ForOperator() {
		level = slog.LevelWarn
		if n.Step != "" {
			args = append(args, "step", n.Step)
		}
		if n.ErrorKind != "" {
			args = append(args, "kind", n.ErrorKind)
		}
	}
	if n.Late() {
		message, args = "job will be late", append(args, "expectBy", n.ExpectBy)
	}
	l.Logger.Log(ctx, level, message, args...)
	return nil
}

// AgentAlert writes a warning. The reason is not written: it quotes the error of a remote service.
func (l Log) AgentAlert(ctx context.Context, agent, paused string) error {
	why := "no process claims the tasks of this agent"
	if paused != "" {
		why = "the breaker has paused this agent, since its attempts fail"
	}
	l.Logger.WarnContext(ctx, why, "agent", agent)
	return nil
}
