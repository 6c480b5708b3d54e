package timetable

import (
	"context"
	"errors"
	"fmt"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/store"
)

// MayAdopt says why Adopt could not take over these schedules of a workflow's file now: scheduler.ErrInvalid,
// ErrExists. It changes nothing, so that the loader of the file can refuse the whole file.
func (t *Timetable) MayAdopt(ctx context.Context, workflow string, schedules []makegood.Schedule) error {
	all, err := t.config.Schedules.ListSchedules(ctx)
	if err != nil {
		return err
	}
	others := map[string]store.Scheduled{}
	for _, have := range all {
		if have.From != workflow {
			others[have.Name] = have
		}
	}
	var problems []error
	for _, s := range schedules {
		s.Workflow = workflow
		if _, _, err := complete(s); err != nil {
			problems = append(problems, err)
		}
		if have, ok := others[s.Name]; ok {
			problems = append(problems, taken(s, have))
		}
	}
	return errors.Join(append(problems, fits(len(others), len(schedules)))...)
}

// Adopt makes, changes and removes schedules so that those from a workflow's file equal these. A schedule that a person
// paused stays paused. A schedule of another file, or of a person, is left alone, and is an ErrExists. Changes made
// before an error stay; adopting again goes on.
func (t *Timetable) Adopt(ctx context.Context, workflow string, schedules []makegood.Schedule) error {
	all, err := t.config.Schedules.ListSchedules(ctx)
	if err != nil {
		return err
	}
	said := map[string]bool{}
	var problems []error
	for _, s := range schedules {
		s.Workflow = workflow
		said[s.Name] = true
		problems = append(problems, t.adopt(ctx, s))
	}
	for _, have := range all {
		if have.From == workflow && !said[have.Name] {
			problems = append(problems, t.Remove(ctx, have.Name, 0))
		}
	}
	return errors.Join(problems...)
}

// adopt makes or changes one schedule of a file.
func (t *Timetable) adopt(ctx context.Context, s makegood.Schedule) error {
	s, rule, err := complete(s)
	if err != nil {
		return err
	}
	_, err = t.change(ctx, s.Name, func(stored *store.Scheduled) (bool, error) {
		if stored.From != s.Workflow {
			return false, taken(s, *stored)
		}
		if equal(stored.Schedule, s) {
			return t.setRight(stored, rule), nil
		}
		stored.ChangedBy = ""
		return true, t.says(ctx, stored, s, rule)
	})
	if !errors.Is(err, store.ErrNotFound) {
		return err
	}
	if err := t.room(ctx); err != nil {
		return err
	}
	fresh := t.fresh(s, rule, "")
	fresh.From = s.Workflow
	if _, err = t.put(ctx, fresh); errors.Is(err, store.ErrConflict) {
		return nil // Another process has just loaded the same file.
	}
	return err
}

// taken says that the name of a schedule of a file is another's.
func taken(s makegood.Schedule, have store.Scheduled) error {
	return fmt.Errorf("schedule %s of workflow %s: %w: %s has it", s.Name, s.Workflow, ErrExists, owner(have))
}

// owner names the owner of a schedule.
func owner(s store.Scheduled) string {
	if s.From == "" {
		return "a person who made it by hand"
	}
	return "the file of workflow " + s.From
}
