// Package notify tells people and programs what became of jobs. It holds the port and the adapter
// that writes to a log. It decides nothing: the core says what is to be told, and remembers until it
// was.
package notify

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
)

// ErrElsewhere is what a notifier answers that leaves the telling to another process. Nothing has failed: what is to be
// told stays untold in the job until that one comes to it.
var ErrElsewhere = errors.New("another process tells it")

// Notifier tells. An error, or a crash, means that it is told again: at least once, in any order.
// Whoever is told recognises a second telling by job and Seq.
type Notifier interface {
	// Announce tells of a change of ProcessState, or that a job will be late. The latter, and a change to Error, are alerts to
	// an operator.
	Announce(ctx context.Context, notice Notice) error
	// AgentSilent alerts an operator that tasks of an agent wait and nobody claims them.
	AgentSilent(ctx context.Context, agent string) error
}

// Notice is what is told of a job. It carries no payload.
type Notice struct {
	Job      string
	Workflow string
	// ReplyTo is the registered name of who listens to the job; empty: only operators, of an Error.
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

// Asker tells those who are asked to complete a step that waits. An error means that they are told again; told twice, they
// recognise it by job, step, round, direction and N.
type Asker interface {
	// Ask tells who is registered under a name.
	Ask(ctx context.Context, name string, q Question) error
}

// Question is what those are told who are asked. It has the step's completion token: whoever reads it may answer. It is to be
// written to no log.
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

// AgentSilent writes a warning.
func (l Log) AgentSilent(ctx context.Context, agent string) error {
	l.Logger.WarnContext(ctx, "nobody claims the tasks of this agent", "agent", agent)
	return nil
}
