package view

import (
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/holds"
)

// Hold turns a hold as it is kept into one as people see it.
func Hold(h holds.Counted) makegood.Hold {
	if h.Kind == makegood.HoldLimit {
		h.Next = time.Time{} // When a gate is looked at.
	}
	return makegood.Hold{
		Kind: h.Kind, Name: h.Name, Since: h.Since.UTC(), By: h.By, Reason: h.Reason, Limit: h.Most, UnderWay: h.UnderWay, Rate: h.RateText(), Burst: h.Burst, Key: h.Key, Jobs: h.Jobs, AtLeast: h.AtLeast,
		ReleasedAt: moment(h.ReleasedAt), ReleasedBy: h.ReleasedBy, Resumed: h.Resumed, NextAt: moment(h.Next),
		Tripped: h.Tripped, Probes: h.Probes,
	}
}

// Holds converts a list of holds.
func Holds(all []holds.Counted) []makegood.Hold {
	list := make([]makegood.Hold, len(all))
	for i, h := range all {
		list[i] = Hold(h)
	}
	return list
}
