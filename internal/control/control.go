// Package control answers the requests about jobs, in one place. A Service is an api.Jobs and has every other request
// that people and programs make of an engine or of a stack: it checks a request, hands it to the Scheduler, the
// timetable or the pauses, which decide, and returns the stored result. The HTTP API, package engine, the page and the
// test kit reach jobs through it, and have no rules of their own.
//
// Errors are those of package api, wrapped: errors.go has the table.
package control

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/holds"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/timetable"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// Scheduler decides about jobs: a scheduler.Scheduler. Each verb answers after its change is saved.
type Scheduler interface {
	Request(ctx context.Context, id string, r job.Requested) (job.Job, machine.Verdict, error)
	Plan(ctx context.Context, id string, r job.Requested) (makegood.Plan, machine.Verdict, error)
	Complete(ctx context.Context, id string, e job.StepCompleted) (job.Job, machine.Verdict, error)
	Extend(ctx context.Context, id string, e job.WaitExtended) (job.Job, machine.Verdict, error)
	Settle(ctx context.Context, id string, e job.Settled) (job.Job, machine.Verdict, error)
	Wake(ctx context.Context, id string) (job.Job, machine.Verdict, error)
	Asks(ctx context.Context, j job.Job, p job.Place) (scheduler.Asked, error)
	Offers(ctx context.Context, id string) (makegood.Offers, error)
	SentInputs(ctx context.Context, id, step string, changed []time.Time) (makegood.SentInputs, error)
	Held(ctx context.Context, j job.Job) (map[string]job.Claim, error)
	Stands(ctx context.Context, page []store.Audited)
}

var _ Scheduler = (*scheduler.Scheduler)(nil)

// Quarantine is the quarantine of an engine. Its errors are api.ErrNoMessage and *api.InvalidError; after any other
// the outcome is unknown, and the request may be made again.
type Quarantine interface {
	Page(ctx context.Context, cursor string, limit int) (api.QuarantinePage, error)
	Get(ctx context.Context, id string) (api.Quarantined, error)
	// Replay answers after the effects of the message are stored, and Drop after it is gone for good.
	Replay(ctx context.Context, id string) (api.Replayed, error)
	Drop(ctx context.Context, id string) error
}

// Large writes and reads large payloads. Errors are those of payload.Store.
type Large interface {
	WritePayload(ctx context.Context, job, mediaType string, from io.Reader) (makegood.Payload, error)
	OpenPayload(ctx context.Context, job string, p makegood.Payload, offset, n int64) (io.ReadCloser, error)
}

// Agents knows the state of the agents, but for their pauses. An error says that the state is unknown; a queue that
// could not be asked is noted in its agent alone.
type Agents interface {
	Agents(ctx context.Context) ([]api.Agent, error)
}

// Config has the parts of a Service: those of an engine, or of a stack. A nil part is not available there, and the
// requests that need it are refused with an *api.InvalidError of status 404.
type Config struct {
	Reading
	// Scheduler decides, and knows the claims and the jobs that stand still (Reading.Held, Reading.Stands).
	Scheduler Scheduler
	// Submit submits to the current definition of a workflow's name, and answers after the job is stored.
	Submit func(ctx context.Context, workflow string, s scheduler.Submission) (j job.Job, created bool, err error)
	// Publish makes a definition the current one of its name.
	Publish    func(ctx context.Context, c *workflowfile.Compiled) error
	Timetable  *timetable.Timetable
	Holds      *holds.Keeper
	Agents     Agents
	Quarantine Quarantine
	Large      Large
	// By is the author of requests under a context that names none (api.As).
	By string
	// Logger logs every decision: the job, the author, and never a token or a payload. Nil: no log.
	Logger *slog.Logger
	// Now defaults to time.Now.
	Now func() time.Time
}

// Service answers requests about jobs. Its methods may be called by many goroutines at once.
type Service struct {
	Reader
	parts Config
}

var (
	_ api.Jobs      = (*Service)(nil)
	_ api.Schedules = (*Service)(nil)
	_ api.Holds     = (*Service)(nil)
	_ api.Agents    = (*Service)(nil)
	_ api.Payloads  = (*Service)(nil)
)

// New returns a Service of these parts.
func New(c Config) *Service {
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Scheduler != nil {
		c.Reading.Held, c.Reading.Stands = c.Scheduler.Held, c.Scheduler.Stands
	}
	return &Service{Reader: Reader{reading: c.Reading}, parts: c}
}

// by returns the author of a request: the one that the context names (api.As), or Config.By.
func (s *Service) by(ctx context.Context) string {
	return cmp.Or(limits.Clip(api.Who(ctx)), s.parts.By)
}
