// Package schedule knows when a schedule fires: it reads its cron or rate and its time zone, and computes the times.
// It stores no state, fires no schedule, and reads no clock.
//
// # Wall clocks
//
// A cron is compared with the clock on the wall of its zone, which is put forward and back. If the hour is fixed (3,
// 9-17, 0,12), the time on the wall counts: one that is left out fires once, at the first moment that comes after it;
// one that comes twice fires the first time. If the hour is a wildcard (*, */2), instants count: every moment that
// shows such a time on the wall fires, so */15 fires four times in every hour that passes. A rate knows no wall at all.
package schedule

import (
	"errors"
	"fmt"
	"slices"
	"time"
	_ "time/tzdata" // A function's image, or a container of only the command, brings no time zones.

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/limits"
)

// Rule says when a schedule fires.
type Rule struct {
	every time.Duration
	cron  *cron
	zone  *time.Location
}

// New returns the rule of a schedule, or the fault of its cron, every and zone. It checks no other field.
func New(s makegood.Schedule) (Rule, error) {
	zone, err := loadZone(s.Zone)
	if err != nil {
		return Rule{}, err
	}
	switch {
	case s.Cron == "" && s.Every == 0:
		return Rule{}, errors.New("neither cron nor every is given: set one")
	case s.Cron != "" && s.Every != 0:
		return Rule{}, errors.New("both cron and every are given: set one")
	case s.Cron == "":
		if s.Zone != "" {
			return Rule{}, errors.New("zone is given beside every: a rate counts from 1970-01-01T00:00:00Z, wherever that is")
		}
		return newRate(time.Duration(s.Every))
	}
	c, err := parseCron(s.Cron)
	if err != nil {
		return Rule{}, fmt.Errorf("cron %.40q: %w", s.Cron, err)
	}
	if _, ever := c.nextWall(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)); !ever {
		return Rule{}, fmt.Errorf("cron %q: there is no such day", s.Cron)
	}
	return Rule{cron: c, zone: zone}, nil
}

// loadZone returns the zone of this name; none is UTC. What "Local" is would depend on the computer.
func loadZone(name string) (*time.Location, error) {
	zone, err := time.LoadLocation(name)
	if err != nil || name == "Local" {
		return nil, fmt.Errorf("zone %q is not known: want a name of the time zone database, such as Europe/Berlin", name)
	}
	return zone, nil
}

func newRate(every time.Duration) (Rule, error) {
	switch {
	case every < limits.MinScheduleEvery || every > limits.MaxScheduleEvery:
		return Rule{}, fmt.Errorf("every is %s: want %s to %s", every, limits.MinScheduleEvery, limits.MaxScheduleEvery)
	case every%time.Second != 0:
		return Rule{}, fmt.Errorf("every is %s: want whole seconds", every)
	}
	return Rule{every: every}, nil
}

// Next returns the first fire after a time, in UTC; the zero time if there is none within searchYears.
func (r Rule) Next(after time.Time) time.Time {
	switch {
	case r.every > 0:
		seconds := int64(r.every / time.Second)
		passed := after.Unix() / seconds
		if after.Unix() < 0 && after.Unix()%seconds != 0 {
			passed--
		}
		return time.Unix((passed+1)*seconds, 0).UTC()
	case r.cron.everyHour:
		return r.nextMoment(after)
	default:
		return r.nextOnTheWall(after)
	}
}

// Latest returns the fires from from to to, both included, in their order, and of many the last limit ones.
func (r Rule) Latest(from, to time.Time, limit int) []time.Time {
	for span := time.Hour; ; span *= 4 {
		begin := to.Add(-span)
		all := begin.Before(from)
		if all {
			begin = from
		}
		fires := r.between(begin, to)
		if len(fires) >= limit {
			return fires[len(fires)-limit:]
		}
		if all {
			return fires
		}
	}
}

// between returns all fires from from to to, both included.
func (r Rule) between(from, to time.Time) []time.Time {
	var fires []time.Time
	for t := r.Next(from.Add(-1)); !t.IsZero() && !t.After(to); t = r.Next(t) {
		fires = append(fires, t)
	}
	return slices.Clip(fires)
}

// nextOnTheWall finds the next time on the wall, wherever clocks are put.
func (r Rule) nextOnTheWall(after time.Time) time.Time {
	from := wallAt(after.In(r.zone)).Truncate(time.Minute).Add(time.Minute)
	for wall, ever := r.cron.nextWall(from); ever; wall, ever = r.cron.nextWall(wall.Add(time.Minute)) {
		// One that has been is the second showing of an hour that comes twice.
		if t := firstShown(wall, r.zone); t.After(after) {
			return t.UTC()
		}
	}
	return time.Time{}
}

// nextMoment finds the next moment at which the wall shows a time that fits. Between two changes of the clocks the wall
// goes as time does.
func (r Rule) nextMoment(after time.Time) time.Time {
	at := after.Add(1).In(r.zone)
	for {
		wall, ever := r.cron.nextWall(roundUp(wallAt(at)))
		if !ever {
			return time.Time{}
		}
		_, change := at.ZoneBounds()
		if t := wall.Add(-offsetAt(at)); change.IsZero() || t.Before(change) {
			return t.UTC()
		}
		at = change.In(r.zone)
	}
}

// widestOffset is further from UTC than any zone has ever been.
const widestOffset = 24 * time.Hour

// firstShown returns the first moment at which the wall of a zone shows this time, or, where that is left out, the
// first moment after it. A time on a wall is written as if it were UTC.
func firstShown(wall time.Time, zone *time.Location) time.Time {
	at := wall.Add(-widestOffset).In(zone)
	for {
		begin, change := at.ZoneBounds()
		t := wall.Add(-offsetAt(at))
		if t.Before(begin) {
			return begin
		}
		if change.IsZero() || t.Before(change) {
			return t
		}
		at = change.In(zone)
	}
}

// wallAt is what the wall shows at a moment in its zone.
func wallAt(t time.Time) time.Time { return t.UTC().Add(offsetAt(t)) }

// roundUp returns the first whole minute that is not before a time.
func roundUp(t time.Time) time.Time {
	whole := t.Truncate(time.Minute)
	if whole.Before(t) {
		whole = whole.Add(time.Minute)
	}
	return whole
}

func offsetAt(t time.Time) time.Duration {
	_, seconds := t.Zone()
	return time.Duration(seconds) * time.Second
}
