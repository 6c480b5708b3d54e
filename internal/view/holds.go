package view

import (
	"slices"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/holds"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

// Hold turns a hold as it is kept into one as people see it.
func Hold(h holds.Counted) makegood.Hold {
	if h.Kind == makegood.HoldLimit {
		h.Next = time.Time{} // When a gate is looked at.
	}
	return makegood.Hold{
		Kind: h.Kind, Name: h.Name, Since: h.Since.UTC(), By: h.By, Reason: h.Reason, Limit: h.Most, UnderWay: len(h.Permits), Permits: permits(h.Permits), Rate: h.RateText(), Burst: h.Burst, Key: h.Key, Jobs: h.Jobs, AtLeast: h.AtLeast,
		ReleasedAt: moment(h.ReleasedAt), ReleasedBy: h.ReleasedBy, Resumed: h.Resumed, NextAt: moment(h.Next),
		Tripped: h.Tripped, Probes: h.Probes,
	}
}

// permits converts the permits of a gate: the oldest permit comes first, and at most limits.MaxPermits are returned.
func permits(all []job.Permit) []makegood.Permit {
	slices.SortStableFunc(all, func(a, b job.Permit) int { return a.At.Compare(b.At) })
	list := make([]makegood.Permit, min(len(all), limits.MaxPermits))
	for i := range list {
		t := all[i].Ticket
		list[i] = makegood.Permit{Job: t.Job, Step: t.Step, Attempt: t.Attempt, Undo: t.Undo, Since: all[i].At.UTC()}
	}
	return list
}

// Holds converts a list of holds.
func Holds(all []holds.Counted) []makegood.Hold {
	list := make([]makegood.Hold, len(all))
	for i, h := range all {
		list[i] = Hold(h)
	}
	return list
}
