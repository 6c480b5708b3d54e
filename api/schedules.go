package api

import (
	"context"
	"errors"
	"time"

	"github.com/makegood-dev/makegood"
)

// ErrNoSchedule: there is no such schedule.
var ErrNoSchedule = errors.New("there is no such schedule")

// Scheduled is a schedule as it is kept: what it says, and where it stands.
type Scheduled struct {
	makegood.Schedule
	// Rev counts its writes, fires too.
	Rev int64 `json:"rev"`
	// From is the workflow whose file says it; empty: a person made it.
	From string `json:"from"`
	// PausedAt is since when it is paused; nil: it is not.
	PausedAt  *time.Time `json:"pausedAt"`
	CreatedAt time.Time  `json:"createdAt"`
	// NextFire is the fire that comes next; nil: none does.
	NextFire *time.Time `json:"nextFire"`
	// LastFire is the last fire that made a job, and LastJob that job.
	LastFire *time.Time `json:"lastFire"`
	LastJob  string     `json:"lastJob"`
	// Skipped counts the fires that were left out, by what it says of missed ones and of overlaps.
	Skipped int64 `json:"skipped"`
	// Problem is why the last fire made no job; empty: it did.
	Problem string `json:"problem"`
	// ChangedBy is who made, changed, paused or resumed it last, where that is known.
	ChangedBy string `json:"changedBy"`
	// Existed: the same schedule was there already. Only CreateSchedule sets it.
	Existed bool `json:"-"`
}

// Schedules is how a program works with schedules, wherever they are, as Jobs is for jobs. After ErrNoSchedule,
// *RefusedError and *InvalidError nothing has changed. After *UnreachableError, or another, it is unknown what became of the
// request: every one may be made again without harm.
type Schedules interface {
	// CreateSchedule stores a new schedule, whose first fire is the next one from now on. The same again is the same schedule,
	// and Existed is set; another of its name is a *RefusedError.
	CreateSchedule(ctx context.Context, s makegood.Schedule) (Scheduled, error)
	// ChangeSchedule puts a schedule in the place of the one of its name, if rev is its Rev, or 0. It stays paused if it was.
	// A *RefusedError says that it was changed meanwhile, or comes from a workflow file.
	ChangeSchedule(ctx context.Context, s makegood.Schedule, rev int64) (Scheduled, error)
	GetSchedule(ctx context.Context, name string) (Scheduled, error)
	// ListSchedules returns all schedules by their names.
	ListSchedules(ctx context.Context) ([]Scheduled, error)
	// NextFires returns the next count fires of a schedule, as if it were not paused.
	NextFires(ctx context.Context, name string, count int) ([]time.Time, error)
	// PauseSchedule keeps a schedule from firing until ResumeSchedule. What comes due meanwhile is not made up for.
	PauseSchedule(ctx context.Context, name string) (Scheduled, error)
	ResumeSchedule(ctx context.Context, name string) (Scheduled, error)
	// RunSchedule makes a job of a schedule now, beside its fires, and returns its id.
	RunSchedule(ctx context.Context, name string) (job string, err error)
	// RemoveSchedule removes a schedule, if rev is its Rev, or 0. One that was just firing may fire once more.
	RemoveSchedule(ctx context.Context, name string, rev int64) error
}
