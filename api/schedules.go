package api

import (
	"context"
	"errors"
	"time"

	"github.com/makegood-dev/makegood"
)

// ErrNoSchedule: there is no such schedule.
var ErrNoSchedule = errors.New("there is no such schedule")

// Scheduled is a stored schedule and its state.
type Scheduled struct {
	makegood.Schedule
	// Rev counts its writes, fires too.
	Rev int64 `json:"rev"`
	// From is the workflow with the schedule in its file; empty: a person made the schedule.
	From string `json:"from"`
	// PausedAt is when the schedule was paused; nil: it is not paused.
	PausedAt  *time.Time `json:"pausedAt"`
	CreatedAt time.Time  `json:"createdAt"`
	// NextFire is the next fire; nil: there is none.
	NextFire *time.Time `json:"nextFire"`
	// LastFire is the last fire that made a job, and LastJob that job.
	LastFire *time.Time `json:"lastFire"`
	LastJob  string     `json:"lastJob"`
	// Skipped counts the fires that were left out by the schedule's rules for missed fires and for overlaps.
	Skipped int64 `json:"skipped"`
	// Problem is why the last fire made no job; empty: it made one.
	Problem string `json:"problem"`
	// ChangedBy is the caller that made, changed, paused or resumed the schedule last, where known.
	ChangedBy string `json:"changedBy"`
	// Existed: the same schedule was there already. Only CreateSchedule sets it.
	Existed bool `json:"-"`
}

// Schedules works with schedules, wherever they are, as Jobs does with jobs. After ErrNoSchedule, *RefusedError and
// *InvalidError no state has changed. After *UnreachableError, or another error, the fate of the request is unknown:
// every request may be made again without harm.
type Schedules interface {
	// CreateSchedule stores a new schedule; its first fire is the next one from now on. The same schedule again succeeds,
	// and Existed is set; another schedule of this name is a *RefusedError.
	CreateSchedule(ctx context.Context, s makegood.Schedule) (Scheduled, error)
	// ChangeSchedule replaces the schedule of this name, if rev is its Rev, or 0. A paused schedule stays paused. A
	// *RefusedError says that it was changed meanwhile, or comes from a workflow file.
	ChangeSchedule(ctx context.Context, s makegood.Schedule, rev int64) (Scheduled, error)
	GetSchedule(ctx context.Context, name string) (Scheduled, error)
	// ListSchedules returns all schedules by their names.
	ListSchedules(ctx context.Context) ([]Scheduled, error)
	// NextFires returns the next count fires of a schedule, as if it were not paused.
	NextFires(ctx context.Context, name string, count int) ([]time.Time, error)
	// PauseSchedule keeps a schedule from firing until ResumeSchedule. The fires that come due meanwhile are not made up
	// for.
	PauseSchedule(ctx context.Context, name string) (Scheduled, error)
	ResumeSchedule(ctx context.Context, name string) (Scheduled, error)
	// RunSchedule makes a job of a schedule now, beside its fires, and returns the job's id.
	RunSchedule(ctx context.Context, name string) (job string, err error)
	// RemoveSchedule removes a schedule, if rev is its Rev, or 0. A schedule that was just firing may fire once more.
	RemoveSchedule(ctx context.Context, name string, rev int64) error
}
