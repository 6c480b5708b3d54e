package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/protocol"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/view"
)

// errNoSchedules refuses requests for schedules where there are none.
var errNoSchedules = notHere("there are no schedules here")

// CreateSchedule implements api.Schedules.
func (s *Service) CreateSchedule(ctx context.Context, schedule makegood.Schedule) (api.Scheduled, error) {
	created := false
	v, err := s.schedule(ctx, "create", schedule.Name, func() (stored store.Scheduled, err error) {
		stored, created, err = s.parts.Timetable.Create(ctx, schedule, s.by(ctx))
		return stored, err
	})
	v.Existed = err == nil && !created
	return v, err
}

// ChangeSchedule implements api.Schedules.
func (s *Service) ChangeSchedule(ctx context.Context, schedule makegood.Schedule, rev int64) (api.Scheduled, error) {
	return s.schedule(ctx, "change", schedule.Name, func() (store.Scheduled, error) {
		return s.parts.Timetable.Change(ctx, schedule, rev, s.by(ctx))
	})
}

// PauseSchedule implements api.Schedules.
func (s *Service) PauseSchedule(ctx context.Context, name string) (api.Scheduled, error) {
	return s.schedule(ctx, "pause", name, func() (store.Scheduled, error) { return s.parts.Timetable.Pause(ctx, name, s.by(ctx)) })
}

// ResumeSchedule implements api.Schedules.
func (s *Service) ResumeSchedule(ctx context.Context, name string) (api.Scheduled, error) {
	return s.schedule(ctx, "resume", name, func() (store.Scheduled, error) { return s.parts.Timetable.Resume(ctx, name, s.by(ctx)) })
}

// schedule changes a schedule by do, and returns the stored schedule.
func (s *Service) schedule(ctx context.Context, what, name string, do func() (store.Scheduled, error)) (api.Scheduled, error) {
	err := errNoSchedules
	if s.parts.Timetable != nil {
		var stored store.Scheduled
		if stored, err = do(); err == nil {
			s.logSchedule(ctx, what, name)
			return view.Schedule(stored), nil
		}
	}
	return api.Scheduled{}, scheduleFailed(what, name, err)
}

func (s *Service) logSchedule(ctx context.Context, what, name string, more ...any) {
	s.parts.Logger.InfoContext(ctx, "schedule", append([]any{"request", what, "schedule", name, "by", s.by(ctx)}, more...)...)
}

func scheduleFailed(what, name string, err error) error {
	return fmt.Errorf("%s schedule %s: %w", what, name, aboutSchedule(name, err))
}

// GetSchedule implements api.Schedules. A schedule that a newer release wrote is shown as far as it is known.
func (s *Service) GetSchedule(ctx context.Context, name string) (api.Scheduled, error) {
	stored, err := s.storedSchedule(ctx, name)
	if err != nil {
		return api.Scheduled{}, scheduleFailed("get", name, err)
	}
	return view.Schedule(stored), nil
}

func (s *Service) storedSchedule(ctx context.Context, name string) (store.Scheduled, error) {
	switch {
	case s.parts.Timetable == nil:
		return store.Scheduled{}, errNoSchedules
	case limits.ScheduleName.Check(name) != nil:
		return store.Scheduled{}, api.ErrNoSchedule
	}
	stored, err := s.parts.Timetable.Get(ctx, name)
	if errors.Is(err, store.ErrNewer) {
		err = nil
	}
	return stored, err
}

// ListSchedules implements api.Schedules.
func (s *Service) ListSchedules(ctx context.Context) ([]api.Scheduled, error) {
	if s.parts.Timetable == nil {
		return nil, fmt.Errorf("list schedules: %w", errNoSchedules)
	}
	all, err := s.parts.Timetable.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("list schedules: %w", inWords(err))
	}
	return view.Schedules(all), nil
}

// NextFires implements api.Schedules.
func (s *Service) NextFires(ctx context.Context, name string, count int) ([]time.Time, error) {
	stored, err := s.storedSchedule(ctx, name)
	if err == nil {
		var fires []time.Time
		if fires, err = s.parts.Timetable.Next(stored.Schedule, count); err == nil {
			return fires, nil
		}
	}
	return nil, scheduleFailed("next fires of", name, err)
}

// RunSchedule implements api.Schedules.
func (s *Service) RunSchedule(ctx context.Context, name string) (string, error) {
	return s.RunScheduleOnce(ctx, name, protocol.NewJobID(s.parts.Now()))
}

// maxRun is the maximum length of a run's name, in bytes, so that the id of its job is not too long.
const maxRun = 40

// RunScheduleOnce makes a job of a schedule now, beside its fires, and returns its id; the same request twice is one
// job.
func (s *Service) RunScheduleOnce(ctx context.Context, name, request string) (string, error) {
	id, err := "", errNoSchedules
	switch {
	case s.parts.Timetable == nil:
	case makegood.CheckJobID(request) != nil || len(request) > maxRun:
		err = invalid("request: want 1 to %d of A to Z, a to z, 0 to 9, and . _ : -", maxRun)
	default:
		id, err = s.parts.Timetable.Run(ctx, name, request)
	}
	if err != nil {
		return "", scheduleFailed("run", name, err)
	}
	s.logSchedule(ctx, "run", name, "job", id)
	return id, nil
}

// RemoveSchedule implements api.Schedules.
func (s *Service) RemoveSchedule(ctx context.Context, name string, rev int64) error {
	err := errNoSchedules
	if s.parts.Timetable != nil {
		err = s.parts.Timetable.Remove(ctx, name, rev)
	}
	if err != nil {
		return scheduleFailed("remove", name, err)
	}
	s.logSchedule(ctx, "remove", name)
	return nil
}
