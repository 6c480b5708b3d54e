package timetable

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/canonical"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/schedule"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// Get reads a schedule. store.ErrNotFound; store.ErrNewer, with the known part of the schedule.
func (t *Timetable) Get(ctx context.Context, name string) (store.Scheduled, error) {
	return t.config.Schedules.Schedule(ctx, name)
}

// List returns all schedules by their names.
func (t *Timetable) List(ctx context.Context) ([]store.Scheduled, error) {
	return t.config.Schedules.ListSchedules(ctx)
}

// Create stores a new schedule, with the next fire from now on. An equal schedule is kept, and created is false then;
// another schedule of its name is ErrExists. scheduler.ErrInvalid describes mistakes.
func (t *Timetable) Create(ctx context.Context, s makegood.Schedule, by string) (stored store.Scheduled, created bool, err error) {
	s, rule, err := t.check(ctx, s)
	if err != nil {
		return store.Scheduled{}, false, err
	}
	have, err := t.config.Schedules.Schedule(ctx, s.Name)
	if err == nil {
		return same(have, s)
	}
	if !errors.Is(err, store.ErrNotFound) {
		return have, false, err
	}
	if err := t.room(ctx); err != nil {
		return store.Scheduled{}, false, err
	}
	stored, err = t.put(ctx, t.fresh(s, rule, by))
	if !errors.Is(err, store.ErrConflict) {
		return stored, err == nil, err
	}
	if have, err = t.config.Schedules.Schedule(ctx, s.Name); err != nil {
		return have, false, err
	}
	return same(have, s)
}

// fresh returns a schedule that is about to be stored for the first time.
func (t *Timetable) fresh(s makegood.Schedule, rule schedule.Rule, by string) store.Scheduled {
	now := t.now()
	next := rule.Next(now)
	return store.Scheduled{Schedule: s, CreatedAt: now, Next: next, Key: next, ChangedBy: by}
}

// same returns a stored schedule, if it equals the requested one.
func same(have store.Scheduled, s makegood.Schedule) (store.Scheduled, bool, error) {
	if !equal(have.Schedule, s) {
		return have, false, ErrExists
	}
	return have, false, nil
}

// equal reports whether two schedules of one name say the same. Their inputs are in canonical form.
func equal(a, b makegood.Schedule) bool {
	inputs := bytes.Equal(a.Input, b.Input)
	a.Input, b.Input = nil, nil
	return inputs && a.Workflow == b.Workflow && a.Cron == b.Cron && a.Every == b.Every && a.Zone == b.Zone &&
		a.Missed == b.Missed && a.AtMost == b.AtMost && a.Overlap == b.Overlap && a.Priority == b.Priority
}

// room refuses one schedule too many.
func (t *Timetable) room(ctx context.Context) error {
	all, err := t.config.Schedules.ListSchedules(ctx)
	if err != nil {
		return err
	}
	return fits(len(all), 1)
}

// fits refuses more schedules beside those that are there than there may be.
func fits(there, more int) error {
	if more == 0 || there+more <= limits.MaxSchedules {
		return nil
	}
	return fmt.Errorf("%w: %d schedules are more than the limit, %d: remove one, or let one job a fire make the others",
		scheduler.ErrInvalid, there+more, limits.MaxSchedules)
}

// check completes a schedule, and reports mistakes in it or a missing workflow: scheduler.ErrInvalid.
func (t *Timetable) check(ctx context.Context, s makegood.Schedule) (makegood.Schedule, schedule.Rule, error) {
	s, rule, err := complete(s)
	if err == nil {
		err = t.config.Knows(ctx, s.Workflow)
	}
	return s, rule, err
}

// complete completes a schedule, and reports mistakes in it: scheduler.ErrInvalid.
func complete(s makegood.Schedule) (makegood.Schedule, schedule.Rule, error) {
	s = domain.ScheduleDefaults(s)
	rule, err := schedule.Check(s)
	if err != nil {
		return s, rule, fmt.Errorf("%w: %w", scheduler.ErrInvalid, err)
	}
	if s.Input, err = canonical.JSON(s.Input); err == nil {
		_, err = workflowfile.CompileInputs(s.Input)
	}
	if err != nil {
		return s, rule, fmt.Errorf("%w: schedule %s: %w", scheduler.ErrInvalid, s.Name, err)
	}
	return s, rule, nil
}

// Change replaces the schedule of this name, if seen is its Rev, or 0. Fires that came due before, and were not made,
// are made, or left out, as the new one says. If its times differ, the next fire is the next one from now on; it stays
// paused if it was. store.ErrConflict: it was changed meanwhile. store.ErrNotFound, scheduler.ErrInvalid. A schedule
// from a workflow file is changed there: ErrExists.
func (t *Timetable) Change(ctx context.Context, s makegood.Schedule, seen int64, by string) (store.Scheduled, error) {
	s, rule, err := t.check(ctx, s)
	if err != nil {
		return store.Scheduled{}, err
	}
	return t.change(ctx, s.Name, func(stored *store.Scheduled) (bool, error) {
		if seen != 0 && seen != stored.Rev {
			return false, store.ErrConflict
		}
		if stored.From != "" {
			return false, fmt.Errorf("schedule %s: %w: it comes from %s, so change it there", s.Name, ErrExists, owner(*stored))
		}
		if equal(stored.Schedule, s) {
			return false, nil
		}
		stored.ChangedBy = by
		return true, t.says(ctx, stored, s, rule)
	})
}

// says puts new content into a stored schedule.
func (t *Timetable) says(ctx context.Context, stored *store.Scheduled, s makegood.Schedule, rule schedule.Rule) error {
	was := stored.Schedule
	stored.Schedule, stored.Problem = s, ""
	switch {
	case stored.Paused():
		if _, err := t.note(ctx, stored); err != nil {
			return err
		}
		stored.Next, stored.Key = rule.Next(t.now()), time.Time{}
	case was.Cron != s.Cron || was.Every != s.Every || was.Zone != s.Zone:
		return t.changesTimes(ctx, stored, was, rule)
	default:
		t.setRight(stored, rule)
	}
	return nil
}

// changesTimes puts new times into a schedule that has its new content already. Fires that came due by the old times
// are made, or left out, as the new content says.
func (t *Timetable) changesTimes(ctx context.Context, stored *store.Scheduled, was makegood.Schedule, rule schedule.Rule) error {
	now := t.now()
	if old, err := schedule.New(was); err == nil {
		due, skip := pending(*stored, old, now)
		if err := t.skip(ctx, stored, due[:skip]); err != nil {
			return err
		}
		stored.Due = due[skip:]
	}
	stored.Next = nextOf(*stored, rule, now)
	stored.Key = stored.Turn()
	return nil
}

// Pause keeps a schedule from firing until it is resumed. A paused schedule stays as it is.
func (t *Timetable) Pause(ctx context.Context, name, by string) (store.Scheduled, error) {
	return t.change(ctx, name, func(s *store.Scheduled) (bool, error) {
		if s.Paused() {
			return false, nil
		}
		s.PausedAt, s.Key, s.ChangedBy = t.now(), time.Time{}, by
		return true, nil
	})
}

// Resume lets a schedule fire again, from now on: fires that came due during the pause are not made. A schedule that is
// not paused stays as it is.
func (t *Timetable) Resume(ctx context.Context, name, by string) (store.Scheduled, error) {
	return t.change(ctx, name, func(s *store.Scheduled) (bool, error) {
		if !s.Paused() {
			return false, nil
		}
		rule, err := schedule.Check(s.Schedule)
		if err != nil {
			return false, fmt.Errorf("%w: %w", scheduler.ErrInvalid, err)
		}
		if _, err := t.note(ctx, s); err != nil {
			return false, err
		}
		s.PausedAt, s.ChangedBy = time.Time{}, by
		s.Next, s.Due = rule.Next(t.now()), nil
		s.Key = s.Next
		return true, nil
	})
}

// Remove removes a schedule, if seen is its Rev, or 0. One that was firing may fire once more. Jobs that it made go on.
// One that comes from a workflow file is there again when that file is loaded again.
// store.ErrConflict, store.ErrNotFound.
func (t *Timetable) Remove(ctx context.Context, name string, seen int64) error {
	for range maxConflicts {
		s, err := t.config.Schedules.Schedule(ctx, name)
		if err != nil && !errors.Is(err, store.ErrNewer) && !errors.Is(err, store.ErrDamaged) {
			return err
		}
		if seen != 0 && seen != s.Rev {
			return fmt.Errorf("schedule %s: %w", name, store.ErrConflict)
		}
		err = t.config.Schedules.RemoveSchedule(ctx, name, s.Rev)
		switch {
		case errors.Is(err, store.ErrNotFound):
			return nil // It was there a moment ago: an earlier try has removed it.
		case !errors.Is(err, store.ErrConflict):
			return err
		}
	}
	return fmt.Errorf("schedule %s: %w, %d times in a row", name, store.ErrConflict, maxConflicts)
}

// Run makes a job of a schedule now, beside its fires: NAME:run:REQUEST. request distinguishes runs, so the same
// request again is the same job. It moves no fire, and ignores pauses and overlaps. It returns the id after the job is
// stored. scheduler.ErrInvalid says why there can be no such job.
func (t *Timetable) Run(ctx context.Context, name, request string) (id string, err error) {
	s, err := t.config.Schedules.Schedule(ctx, name)
	if err != nil {
		return "", err
	}
	id = name + ":run:" + request
	err = t.make(ctx, s, id, t.now())
	if mismatch := new(scheduler.MismatchError); errors.As(err, &mismatch) {
		return id, nil // It was made a moment ago, and its input says when.
	}
	return id, err
}

// Next returns the next count fires of a schedule, at most MaxNext, as if it were not paused.
func (t *Timetable) Next(s makegood.Schedule, count int) ([]time.Time, error) {
	rule, err := schedule.Check(domain.ScheduleDefaults(s))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", scheduler.ErrInvalid, err)
	}
	var fires []time.Time
	for at := t.now(); len(fires) < min(count, MaxNext); {
		if at = rule.Next(at); at.IsZero() {
			break
		}
		fires = append(fires, at)
	}
	return fires, nil
}

// MaxNext is how many of its next fires a schedule tells.
const MaxNext = 1000
