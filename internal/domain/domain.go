// Package domain has the consequences of the words of package makegood that no user's program calls: the defaults of a
// workflow, lists of all states and verbs, the routes of a step, and readings of offers, payloads and schedules. It
// decides no question about jobs, and is pure as the root package is: no I/O, clock, chance or goroutine. Every
// package but the root package may import it.
package domain

import (
	"errors"
	"fmt"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/limits"
)

// ChangesVersion is the version of Changes as JSON. New fields do not raise it.
const ChangesVersion = 1

// Instant returns t as Makegood stores it: in UTC, without a monotonic reading, in whole milliseconds.
func Instant(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return time.UnixMilli(t.UnixMilli()).UTC()
}

// noTimeout is the text of NoTimeout.
const noTimeout = "none"

// TimeoutText writes the timeout of a job: a duration, or "none" for NoTimeout.
func TimeoutText(d makegood.Duration) string {
	if d < 0 {
		return noTimeout
	}
	return d.String()
}

// ParseTimeout reads the timeout of a job: a duration from MinTimeout to MaxJobTimeout, or "none", which is NoTimeout.
func ParseTimeout(text string) (makegood.Duration, error) {
	if text == noTimeout {
		return makegood.NoTimeout, nil
	}
	d, err := makegood.ParseDuration(text)
	switch {
	case err != nil:
		return 0, err
	case d.Std() < limits.MinTimeout || d.Std() > limits.MaxJobTimeout:
		return 0, fmt.Errorf("it is %s: want from %s to %s, or %s", d, limits.MinTimeout, limits.MaxJobTimeout, noTimeout)
	}
	return d, nil
}

// FireID returns the id of the job that a schedule makes at a time.
func FireID(schedule string, fire time.Time) string {
	return schedule + ":" + fire.UTC().Format(time.RFC3339)
}

// CheckPrices refuses prices without a region or a date, and negative prices.
func CheckPrices(p makegood.Prices) error {
	if p.Region == "" || p.Date == "" {
		return errors.New("prices must say their region and date")
	}
	for _, of := range []struct {
		name  string
		price float64
	}{
		{"millionWrites", p.MillionWrites},
		{"millionReads", p.MillionReads},
		{"millionRequests", p.MillionRequests},
		{"millionInvocations", p.MillionInvocations},
		{"gbSecond", p.GBSecond},
	} {
		if !(of.price >= 0) { // NaN is none, either.
			return fmt.Errorf("%s is %v, want a price in dollars, 0 or more", of.name, of.price)
		}
	}
	return nil
}

// Silence is how long the attempt may be silent before that counts as failure: its claim, and each heartbeat, sets
// CompleteBy to that long from then.
func Silence(t makegood.Task) makegood.Duration { return or(t.Heartbeat, t.Timeout) }
