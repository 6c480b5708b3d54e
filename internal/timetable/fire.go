package timetable

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/schedule"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// Fire makes the jobs of a schedule that are due, if key is still its key, and has come. A key that has not come, and
// that no correct clock could have stored, is set right. After an error its progress is unknown: call it again. A
// *scheduler.NewerError, which is a store.ErrNewer, means that a newer release must do it.
func (t *Timetable) Fire(ctx context.Context, name string, key time.Time) error {
	s, err := t.config.Schedules.Schedule(ctx, name)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if !s.Key.Equal(key) {
		return nil
	}
	if t.now().Before(s.Key) {
		_, err := t.change(ctx, name, func(s *store.Scheduled) (bool, error) {
			rule, err := schedule.Check(s.Schedule)
			return err == nil && t.setRight(s, rule), nil // The fire itself reports a mistake in the rule.
		})
		return err
	}
	for range maxFires {
		if !t.due(s) {
			return nil
		}
		s, err = t.counted(ctx, s, t.leaveOut)
		if err == nil && t.due(s) {
			s, err = t.counted(ctx, s, t.takeTurn)
		}
		if errors.Is(err, store.ErrConflict) {
			// Another call fired it, or changed it.
			s, err = t.config.Schedules.Schedule(ctx, name)
		}
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// due reports whether the key of a schedule has come.
func (t *Timetable) due(s store.Scheduled) bool { return !s.Key.IsZero() && !t.now().Before(s.Key) }

// counted counts the effects of a write of a schedule.
func (t *Timetable) counted(ctx context.Context, before store.Scheduled, write func(context.Context, store.Scheduled) (store.Scheduled, error)) (store.Scheduled, error) {
	after, err := write(ctx, before)
	if err != nil {
		return after, err
	}
	t.stats.Add(func(all *Stats) {
		all.Missed += after.Skipped - before.Skipped
		switch {
		case after.LastJob != before.LastJob:
			all.Fired++
		case after.Problem != before.Problem:
			all.Failed++
		}
	})
	return after, nil
}

// leaveOut leaves out the missed fires. It stores that before the fire that is next makes its job: after a crash, that
// job belongs to the schedule's next fire, and not to the missed ones. The key, and with it the hint, stays until that
// fire is dealt with.
func (t *Timetable) leaveOut(ctx context.Context, s store.Scheduled) (store.Scheduled, error) {
	rule, err := schedule.Check(s.Schedule)
	if err != nil {
		// It was checked when it was stored: another release has other rules for schedules, or knows other zones.
		return t.stop(ctx, s, err)
	}
	now := t.now()
	due, skip := pending(s, rule, now)
	if err := t.skip(ctx, &s, due[:skip]); err != nil {
		return s, err
	}
	switch {
	case skip == len(due):
		s.Due = nil
		return t.moveOn(ctx, s, rule, now)
	case skip < len(s.Due):
		s.Due = s.Due[skip:]
	default:
		s.Due, s.Next = nil, due[skip]
	}
	if skip == 0 {
		return s, nil
	}
	if err := t.config.Schedules.PutSchedule(ctx, s); err != nil {
		return s, err
	}
	s.Rev++
	return s, nil
}

// takeTurn deals with the fire that is next, and moves the schedule on.
func (t *Timetable) takeTurn(ctx context.Context, s store.Scheduled) (store.Scheduled, error) {
	rule, err := schedule.Check(s.Schedule)
	if err != nil {
		return t.stop(ctx, s, err)
	}
	turn := s.Turn()
	runs, err := t.previousRuns(ctx, s)
	switch {
	case err != nil:
		return s, err
	case runs && s.Overlap == makegood.OverlapSkip:
		s.Skipped++
		return t.moveOn(ctx, s, rule, turn)
	case runs && s.Overlap == makegood.OverlapQueue:
		s.Key = t.now().Add(t.config.Again)
		return t.put(ctx, s)
	}
	if err := t.submit(ctx, &s, turn); err != nil {
		return s, err
	}
	return t.moveOn(ctx, s, rule, turn)
}

// maxCounted is how many fires that are due at once are looked at: of more than that, those before are not counted.
const maxCounted = 1000

// pending returns the fires that are due, the oldest first, and how many are left out, from the first on: all but the
// latest are missed, and that one too if it is late, and has not waited for its turn.
func pending(s store.Scheduled, rule schedule.Rule, now time.Time) (due []time.Time, skip int) {
	due = slices.Clone(s.Due)
	if !s.Next.IsZero() {
		due = append(due, rule.Latest(s.Next, now, maxCounted)...)
	}
	if len(due) == 0 {
		return nil, 0
	}
	if s.Missed == makegood.MissedSkip && now.Sub(due[len(due)-1]) > limits.MissedAfter {
		return due, len(due)
	}
	keep := 1
	if s.Missed == makegood.MissedAll {
		keep = s.AtMost
	}
	return due, max(0, len(due)-keep)
}

// skip counts fires that are left out. The first does not count if its job is there, which is possible only for the
// fire that is next: no other makes a job before the schedule is stored with its turn.
func (t *Timetable) skip(ctx context.Context, s *store.Scheduled, fires []time.Time) error {
	if len(fires) == 0 {
		return nil
	}
	s.Skipped += int64(len(fires))
	if !fires[0].Equal(s.Turn()) {
		return nil
	}
	made, err := t.note(ctx, s)
	if made {
		s.Skipped--
	}
	return err
}

// note makes the fire that is next the last one, if its job is there: its maker died before the schedule moved on. Call
// it before passing over that fire, so that the next one knows which job may be unfinished.
func (t *Timetable) note(ctx context.Context, s *store.Scheduled) (made bool, err error) {
	fire := s.Turn()
	id := domain.FireID(s.Name, fire)
	if s.LastJob == id {
		return false, nil
	}
	_, there, err := t.state(ctx, id)
	if err == nil && there {
		s.LastFire, s.LastJob, s.Problem = fire, id, ""
	}
	return there, err
}

// previousRuns reports whether the job of the fire before is unfinished, where that matters. If this fire's own job is
// there, an earlier try let it through.
func (t *Timetable) previousRuns(ctx context.Context, s store.Scheduled) (bool, error) {
	if s.Overlap == makegood.OverlapAllow || s.LastJob == "" {
		return false, nil
	}
	if _, there, err := t.state(ctx, domain.FireID(s.Name, s.Turn())); err != nil || there {
		return false, err
	}
	state, there, err := t.state(ctx, s.LastJob)
	return there && !state.Finished(), err
}

// state returns the state of a job; none, of one that is damaged.
func (t *Timetable) state(ctx context.Context, id string) (state makegood.ProcessState, there bool, err error) {
	j, err := t.config.Jobs.Load(ctx, id)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return "", false, nil
	case err == nil, errors.Is(err, store.ErrDamaged), errors.Is(err, store.ErrNewer):
		return j.ProcessState, true, nil
	default:
		return "", false, fmt.Errorf("job %s of a schedule: %w", id, err)
	}
}

// submit makes the job of a fire. If that is impossible for good, the schedule notes the reason, and goes on.
func (t *Timetable) submit(ctx context.Context, s *store.Scheduled, fire time.Time) error {
	id := domain.FireID(s.Name, fire)
	err := t.make(ctx, *s, id, fire)
	mismatch := new(scheduler.MismatchError)
	switch {
	case err == nil:
		s.LastFire, s.LastJob, s.Problem = fire, id, ""
		return nil
	case errors.As(err, &mismatch):
		// Made before the schedule was changed; or the id was taken by another submitter, which must be logged.
		t.config.Logger.WarnContext(ctx, "the job of a fire is there with other content", "schedule", s.Name, "workflow", s.Workflow, "job", id)
		s.LastFire, s.LastJob, s.Problem = fire, id, limits.Clip(id+": a job of this id was there, of another workflow or with another input, and counts as the fire")
		return nil
	case errors.Is(err, scheduler.ErrInvalid):
		t.config.Logger.ErrorContext(ctx, "a fire made no job", "schedule", s.Name, "workflow", s.Workflow, "job", id, "error", err)
		s.Problem = limits.Clip(fmt.Sprintf("%s: %v", id, err))
		return nil
	default:
		return fmt.Errorf("fire %s: %w", id, err)
	}
}

// make submits a job with the input that a fire gives.
func (t *Timetable) make(ctx context.Context, s store.Scheduled, id string, fire time.Time) error {
	inputs, err := workflowfile.CompileInputs(s.Input)
	if err != nil {
		return fmt.Errorf("%w: %w", scheduler.ErrInvalid, err)
	}
	input, err := inputs.At(ctx, s.Name, fire)
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("%w: %w", scheduler.ErrInvalid, err)
	}
	if err != nil {
		return err
	}
	_, _, err = t.config.Submit(ctx, s.Workflow, scheduler.Submission{ID: id, Input: input, Priority: s.Priority})
	return err
}

// moveOn moves a schedule to the fire after a time; all fires due until then must have been dealt with.
func (t *Timetable) moveOn(ctx context.Context, s store.Scheduled, rule schedule.Rule, after time.Time) (store.Scheduled, error) {
	if len(s.Due) > 0 {
		s.Due = s.Due[1:]
	} else {
		s.Next = rule.Next(after)
	}
	s.Key = s.Turn()
	return t.put(ctx, s)
}

// setRight lets a schedule fire again that is missing from the index, or has a key there that no correct clock could
// have stored, but one that was ahead. It reports whether that changed the schedule.
func (t *Timetable) setRight(s *store.Scheduled, rule schedule.Rule) bool {
	if s.Paused() {
		return false
	}
	now := t.now()
	next, soon := nextOf(*s, rule, now), now.Add(t.config.Again+limits.MissedAfter)
	latest := rule.Next(now.Add(limits.MissedAfter))
	if next.IsZero() || !s.Key.IsZero() && !s.Next.After(latest) && (!s.Key.After(latest) || !s.Key.After(soon)) {
		return false
	}
	was, key := s.Next, s.Key
	if s.Next.IsZero() || s.Next.After(next) {
		s.Next = next
	}
	s.Key = s.Turn()
	if s.Next.Equal(was) && s.Key.Equal(key) {
		return false // It was looked at by a clock that is behind.
	}
	t.config.Logger.Warn("a schedule that would not have fired for long is set right", "schedule", s.Name, "key", key, "next", next)
	return true
}

// nextOf returns the next fire of a schedule from now on. It comes after those that came due before, even if a clock is
// behind: else they would come due twice.
func nextOf(s store.Scheduled, rule schedule.Rule, now time.Time) time.Time {
	if n := len(s.Due); n > 0 && s.Due[n-1].After(now) {
		now = s.Due[n-1]
	}
	return rule.Next(now)
}

// stop takes a schedule that this release cannot read out of the index, and notes the reason.
func (t *Timetable) stop(ctx context.Context, s store.Scheduled, why error) (store.Scheduled, error) {
	t.config.Logger.ErrorContext(ctx, "a schedule does not fire any more", "schedule", s.Name, "error", why)
	s.Problem = limits.Clip(fmt.Sprintf("it does not fire any more: %v", why))
	s.Key, s.Next, s.Due = time.Time{}, time.Time{}, nil
	return t.put(ctx, s)
}
