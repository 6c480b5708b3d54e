package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/protocol"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/timetable"
	"github.com/makegood-dev/makegood/internal/view"
)

var _ api.Schedules = (*Engine)(nil)

// CreateSchedule stores a new schedule; see api.Schedules. It fires while Run works; what comes due meanwhile is missed, and
// the next Run does what the schedule says of that.
func (e *Engine) CreateSchedule(ctx context.Context, s makegood.Schedule) (api.Scheduled, error) {
	stored, created, err := e.inner.Timetable().Create(ctx, s, caller)
	if err != nil {
		return api.Scheduled{}, fmt.Errorf("create schedule %s: %w", s.Name, plainSchedule(s.Name, err))
	}
	v := view.Schedule(stored)
	v.Existed = !created
	return v, nil
}

// ChangeSchedule puts a schedule in the place of the one of its name; see api.Schedules.
func (e *Engine) ChangeSchedule(ctx context.Context, s makegood.Schedule, rev int64) (api.Scheduled, error) {
	stored, err := e.inner.Timetable().Change(ctx, s, rev, caller)
	return shown("change", s.Name, stored, err)
}

// GetSchedule reads a schedule.
func (e *Engine) GetSchedule(ctx context.Context, name string) (api.Scheduled, error) {
	stored, err := e.inner.Timetable().Get(ctx, name)
	return shown("get", name, stored, err)
}

// ListSchedules returns all schedules by their names.
func (e *Engine) ListSchedules(ctx context.Context) ([]api.Scheduled, error) {
	all, err := e.inner.Timetable().List(ctx)
	if err != nil {
		return nil, fmt.Errorf("list schedules: %w", err)
	}
	return view.Schedules(all), nil
}

// NextFires returns the next count fires of a schedule, as if it were not paused.
func (e *Engine) NextFires(ctx context.Context, name string, count int) ([]time.Time, error) {
	s, err := e.inner.Timetable().Get(ctx, name)
	if err == nil {
		var fires []time.Time
		if fires, err = e.inner.Timetable().Next(s.Schedule, count); err == nil {
			return fires, nil
		}
	}
	return nil, fmt.Errorf("next fires of schedule %s: %w", name, plainSchedule(name, err))
}

// PauseSchedule keeps a schedule from firing until it is resumed.
func (e *Engine) PauseSchedule(ctx context.Context, name string) (api.Scheduled, error) {
	stored, err := e.inner.Timetable().Pause(ctx, name, caller)
	return shown("pause", name, stored, err)
}

// ResumeSchedule lets a schedule fire again, from now on.
func (e *Engine) ResumeSchedule(ctx context.Context, name string) (api.Scheduled, error) {
	stored, err := e.inner.Timetable().Resume(ctx, name, caller)
	return shown("resume", name, stored, err)
}

// RunSchedule makes a job of a schedule now, beside its fires, and returns its id.
func (e *Engine) RunSchedule(ctx context.Context, name string) (job string, err error) {
	if job, err = e.inner.Timetable().Run(ctx, name, protocol.NewJobID(time.Now())); err != nil {
		return "", fmt.Errorf("run schedule %s: %w", name, plainSchedule(name, err))
	}
	return job, nil
}

// RemoveSchedule removes a schedule; see api.Schedules.
func (e *Engine) RemoveSchedule(ctx context.Context, name string, rev int64) error {
	if err := e.inner.Timetable().Remove(ctx, name, rev); err != nil {
		return fmt.Errorf("remove schedule %s: %w", name, plainSchedule(name, err))
	}
	return nil
}

// caller is who asks the engine itself, for what is kept of it.
const caller = "engine"

// shown is what was asked of a schedule and came to, in the words of package client.
func shown(what, name string, stored store.Scheduled, err error) (api.Scheduled, error) {
	if err != nil {
		return api.Scheduled{}, fmt.Errorf("%s schedule %s: %w", what, name, plainSchedule(name, err))
	}
	return view.Schedule(stored), nil
}

// plainSchedule returns an error about a schedule in the words of package client.
func plainSchedule(name string, err error) error {
	switch {
	case errors.Is(err, store.ErrNotFound):
		return api.ErrNoSchedule
	case errors.Is(err, store.ErrConflict):
		return &api.RefusedError{Schedule: name, Reason: "it was changed meanwhile: look at it again"}
	case errors.Is(err, timetable.ErrExists):
		return &api.RefusedError{Schedule: name, Reason: err.Error()}
	default:
		return plain(name, err)
	}
}
