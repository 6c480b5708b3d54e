package makegood

import (
	"encoding/json"
)

// Schedule starts jobs of a workflow again and again. Each fire makes the job NAME:TIME, with TIME in UTC (RFC 3339,
// whole seconds), so a fire that comes twice is the same job.
type Schedule struct {
	// Name is [a-z][a-z0-9-]{0,62} and unique in its deployment.
	Name string `json:"name"`
	// Workflow is the name of a workflow known to that deployment.
	Workflow string `json:"workflow"`
	// Cron is five fields (minute, hour, day of the month, month, day of the week), or @hourly, @daily, @weekly,
	// @monthly or @yearly.
	Cron string `json:"cron,omitempty"`
	// Every is a rate, in the place of Cron: 10 seconds to 365 days, counted from 1970-01-01T00:00:00Z.
	Every Duration `json:"every,omitzero"`
	// Zone is the time zone of Cron, as Europe/Berlin; empty: UTC.
	Zone string `json:"zone,omitempty"`
	// Input is the input of the jobs: JSON with strings that may hold expressions "${ ... }" over .time, the time of the
	// fire in UTC, and .schedule, the name. Empty: {"time": "${ .time }"}.
	Input json.RawMessage `json:"input,omitempty"`
	// Missed is the rule for missed fires: those that are more than 5 minutes late, and all but the latest where several
	// are due at once. Default: MissedOne.
	Missed Missed `json:"missed,omitempty"`
	// AtMost limits the fires that MissedAll makes up for, the latest ones: 1 to 100. Default: 100.
	AtMost int `json:"atMost,omitempty"`
	// Overlap is the rule for a fire while the job of the fire before it is unfinished. Default: OverlapAllow.
	Overlap Overlap `json:"overlap,omitempty"`
	// Priority is that of the jobs; empty: PriorityNormal.
	Priority Priority `json:"priority,omitempty"`
}

// Missed is one of skip, one and all.
type Missed string

// The rules for missed fires.
const (
	MissedSkip Missed = "skip" // none is made up for
	MissedOne  Missed = "one"  // the latest is
	MissedAll  Missed = "all"  // the latest AtMost are
)

// Overlap is one of allow, skip and queue.
type Overlap string

// The rules for a fire while the job of the fire before it is unfinished. A job in Error is unfinished, too.
const (
	OverlapAllow Overlap = "allow" // it begins beside it
	OverlapSkip  Overlap = "skip"  // it is left out
	OverlapQueue Overlap = "queue" // it waits for its end; fires that come due meanwhile are missed
)
