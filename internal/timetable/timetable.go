// Package timetable keeps schedules and fires them. It is the only writer of schedules, as the Scheduler is of jobs.
//
// # A fire
//
// A fire is two writes, in this order: the job NAME:TIME is submitted, and then the schedule moves on to its next fire,
// on its own Rev. After a crash between them the job is submitted again, and is the same job; an id that is taken, by
// whatever content, counts as fired. So each fire makes one job, however many processes fire it, and however often. A
// schedule that is changed, paused or removed between the two may have fired once more. Where earlier fires are left
// out, that is written first: only the fire that is next in the stored schedule makes its job.
//
// # Hints
//
// A hint, by a message or an alarm, starts a fire: the name of a schedule, and the key that was seen. It proves
// nothing: the schedule is read, and fires if that is still its key, and the key has come.
package timetable

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/tally"
)

// ErrExists: there is another schedule of this name.
var ErrExists = errors.New("there is a schedule of this name already, and it differs")

// Config has the settings and dependencies of a Timetable. Schedules, Jobs and Submit must be set.
type Config struct {
	Schedules store.Schedules
	Jobs      store.Jobs
	// Submit submits to the workflow that is current for a name; see scheduler.Scheduler.SubmitCurrent.
	Submit func(ctx context.Context, workflow string, sub scheduler.Submission) (job.Job, bool, error)
	// Knows says whether there is a workflow of a name, with a reason; default: every one may be made known later.
	Knows func(ctx context.Context, workflow string) error
	// Stored, if set, is called with every key that is stored.
	Stored func(ctx context.Context, name string, key time.Time)
	// Again is how long a fire that waits for the end of the job before it is left alone; default: DefaultAgain.
	Again  time.Duration
	Now    func() time.Time
	Logger *slog.Logger
}

// DefaultAgain is how long a fire that waits for the end of the job before it is left alone between two looks.
const DefaultAgain = time.Minute

// maxFires is the maximum of fires per hint, and maxConflicts how often a write that lost a race is decided again.
const (
	maxFires     = limits.MaxMissed
	maxConflicts = 20
)

// Timetable keeps schedules and fires them. Its methods are safe for use by many goroutines, and many processes, at
// once.
type Timetable struct {
	config Config
	stats  tally.Of[Stats]
}

// Stats are running totals.
type Stats struct {
	// Fired are the fires that made a job, Missed those that were left out, Failed those that can make no job.
	Fired, Missed, Failed int64
}

// Stats returns the counts of fires since the start.
func (t *Timetable) Stats() Stats { return t.stats.Snapshot() }

// New makes a Timetable. It panics on a configuration without a required field.
func New(c Config) *Timetable {
	if c.Schedules == nil || c.Jobs == nil || c.Submit == nil {
		panic("timetable: the configuration must have Schedules, Jobs and Submit")
	}
	if c.Knows == nil {
		c.Knows = func(context.Context, string) error { return nil }
	}
	if c.Stored == nil {
		c.Stored = func(context.Context, string, time.Time) {}
	}
	c.Again = cmp.Or(c.Again, DefaultAgain)
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return &Timetable{config: c}
}

func (t *Timetable) now() time.Time { return domain.Instant(t.config.Now()) }

// put stores a schedule, and returns it as stored.
func (t *Timetable) put(ctx context.Context, s store.Scheduled) (store.Scheduled, error) {
	s.Key = domain.Instant(s.Key)
	if err := t.config.Schedules.PutSchedule(ctx, s); err != nil {
		return s, err
	}
	s.Rev++
	if !s.Key.IsZero() {
		t.config.Stored(ctx, s.Name, s.Key)
	}
	return s, nil
}

// change changes a schedule by f, again and again while others change it too. f returns false to leave it as it is.
func (t *Timetable) change(ctx context.Context, name string, f func(s *store.Scheduled) (bool, error)) (store.Scheduled, error) {
	for range maxConflicts {
		s, err := t.config.Schedules.Schedule(ctx, name)
		if err != nil {
			return s, err
		}
		skipped := s.Skipped
		if changes, err := f(&s); err != nil || !changes {
			return s, err
		}
		if s, err = t.put(ctx, s); err == nil {
			t.stats.Add(func(all *Stats) { all.Missed += s.Skipped - skipped })
		}
		if !errors.Is(err, store.ErrConflict) {
			return s, err
		}
	}
	return store.Scheduled{}, fmt.Errorf("schedule %s: %w, %d times in a row", name, store.ErrConflict, maxConflicts)
}
