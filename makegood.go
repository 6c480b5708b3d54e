// Package makegood holds the words that users of Makegood say and see: workflows, steps, tasks, submissions and jobs,
// their states and verbs, and the limits. It has data and no behaviour.
//
// A Workflow describes named steps, the agents that do them, how long they may take and how they are undone. A Job is
// one run of a workflow. It ends finished, undone, or in front of a person who was told why: never stuck, never half
// done, never silently lost.
//
// The rules about jobs are in internal/machine, and nowhere else. Everything here is data, made of the standard
// library only; times are in UTC with a resolution of a millisecond.
package makegood

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Duration is a time.Duration that reads and writes itself as text: "30s", "1h30m".
type Duration time.Duration

// The units of a Duration, so that a workflow built in Go can say 30 * makegood.Second.
const (
	Millisecond = Duration(time.Millisecond)
	Second      = Duration(time.Second)
	Minute      = Duration(time.Minute)
	Hour        = Duration(time.Hour)
)

// NoTimeout is the timeout of a job that may take as long as it takes, where zero counts as not set.
const NoTimeout Duration = -1

// Std returns d as the standard library's duration.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// String writes d as ParseDuration reads it.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText writes d as ParseDuration reads it.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads the text that MarshalText writes.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := ParseDuration(string(text))
	if err != nil {
		return err
	}
	*d = parsed
	return nil
}

// ParseDuration reads a duration such as "500ms", "30s", "1h30m", "3d", "1d12h"; a day is 24 hours. It refuses
// negative durations, those without a unit, and those that are not whole milliseconds, which Makegood cannot store.
func ParseDuration(text string) (Duration, error) {
	d, err := parseDays(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q is not a duration: want a number and a unit, such as 500ms, 30s or 1h30m", text)
	case d < 0:
		return 0, fmt.Errorf("%q is negative", text)
	case d%time.Millisecond != 0:
		return 0, fmt.Errorf("%q is finer than a millisecond", text)
	}
	return Duration(d), nil
}

// parseDays reads a duration that may begin with whole days.
func parseDays(text string) (time.Duration, error) {
	days, rest, found := strings.Cut(text, "d")
	if !found {
		return time.ParseDuration(text)
	}
	n, err := strconv.ParseUint(days, 10, 16)
	if err != nil || rest == "" {
		return time.Duration(n) * 24 * time.Hour, err
	}
	d, err := time.ParseDuration(rest)
	if err == nil && (d < 0 || strings.HasPrefix(rest, "+")) {
		err = errors.New("a sign behind the days")
	}
	return time.Duration(n)*24*time.Hour + d, err
}
