package view

import (
	"time"

	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/store"
)

// Schedule turns a schedule as it is stored into one as people see it.
func Schedule(s store.Scheduled) api.Scheduled {
	return api.Scheduled{
		Schedule: s.Schedule, Rev: s.Rev, From: s.From, PausedAt: timeOrNone(s.PausedAt), CreatedAt: s.CreatedAt, NextFire: nextFire(s),
		LastFire: timeOrNone(s.LastFire), LastJob: s.LastJob, Skipped: s.Skipped, Problem: s.Problem, ChangedBy: s.ChangedBy,
	}
}

// nextFire is none of a schedule that is paused.
func nextFire(s store.Scheduled) *time.Time {
	if s.Paused() {
		return nil
	}
	return timeOrNone(s.Turn())
}

// timeOrNone returns nil for the zero time.
func timeOrNone(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// Schedules turns a list of schedules into one as people see it.
func Schedules(all []store.Scheduled) []api.Scheduled {
	list := make([]api.Scheduled, len(all))
	for i, s := range all {
		list[i] = Schedule(s)
	}
	return list
}
