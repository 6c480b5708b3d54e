package store

import (
	"context"
	"slices"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/limits"
)

// Auditor reads all jobs and schedules, one after the other, to find those whose index entry is wrong. The Supervisor
// reads the index only, so it never finds them.
type Auditor interface {
	// AuditPage returns jobs, and schedules that are in the index, and the cursor for the next page; empty at the end. It
	// looks at limit items at most, at one where limit is less, and may return none before the end. Each is as one write
	// left it, perhaps not the last one: state and key are of the same write. An item that exists from the first page to
	// the last is returned at least once. A cursor that no page returned is ErrNotFound.
	AuditPage(ctx context.Context, cursor string, limit int) ([]Audited, string, error)
}

// Audited is a job, or a schedule, as an audit sees it: no payload, no field that has to be decoded.
type Audited struct {
	// Job is the job's id; empty for a schedule, for which Schedule is the name and CompleteBy the key.
	Job, Schedule string

	ProcessState makegood.ProcessState
	// CompleteBy is the key as it is stored; zero: none is.
	CompleteBy time.Time
	// Indexed: a sweep finds the job by its key.
	Indexed bool
	// Told: the store noted that the job has ended and every receiver was told. Untold: it noted that the job has ended,
	// and a receiver was not told. Neither: the store notes neither.
	Told, Untold bool
	// NoJob: it is an item in the index, and no job.
	NoJob bool
	// Standing is how a job that should go on stands still, as found by a reader that can decide about jobs.
	Standing Stray
}

// auditFar is how far ahead a key must be for an audit to ask about it: further than that of a job that waits for a
// person, and so far that the sweep that finds it may be too late to be of use.
const auditFar = limits.FarKey + time.Hour

// scheduleFar is how far ahead the key of a schedule is that an audit asks about: most come sooner than the next audit.
const scheduleFar = time.Hour

// FarOff reports whether no sweep will look at the job for long, so that the audit should check whether it stands
// still: most such jobs wait. Most such schedules fire seldom; others were put off by a clock that was ahead.
func (a Audited) FarOff(now time.Time) bool {
	if a.Schedule != "" {
		return a.CompleteBy.After(now.Add(scheduleFar))
	}
	return a.Indexed && !a.NoJob && !a.ProcessState.Finished() && a.CompleteBy.After(now.Add(auditFar))
}

// Stray is how a job and its index entry disagree, or how the job stands still. Empty: the job is in order.
type Stray string

// The strays.
const (
	// StrayUnfinished: the job has not ended, and no sweep would ever find it.
	StrayUnfinished Stray = "unfinished, and not in the index"
	// StrayUntold: it has ended, a receiver is still to be told, and no sweep would ever find it.
	StrayUntold Stray = "ended and not told, and not in the index"
	// StrayKey: it has ended, every receiver was told, and it is in the index all the same.
	StrayKey Stray = "ended and told, and still in the index"
	// StrayNoJob: the entry of the index leads to no job.
	StrayNoJob Stray = "in the index, and no job"
)

// Stray returns how the job is a stray; empty where it is none.
func (a Audited) Stray() Stray {
	finished := a.ProcessState.Finished()
	switch {
	case a.Schedule != "":
		return ""
	case a.NoJob:
		return StrayNoJob
	case !finished && !a.Indexed:
		return StrayUnfinished
	case finished && a.Untold && !a.Indexed:
		return StrayUntold
	case finished && a.Told && a.Indexed:
		return StrayKey
	default:
		return a.Standing
	}
}

// AuditedJobs returns the jobs of a page of an audit.
func AuditedJobs(page []Audited) []Audited {
	return slices.DeleteFunc(slices.Clone(page), func(a Audited) bool { return a.Schedule != "" })
}

// Places keep how far slow work has come, so that the next worker need not begin anew.
type Places interface {
	// Place returns the place kept under a name, perhaps not the last one; empty: none was kept.
	Place(ctx context.Context, name string) (string, error)
	// KeepPlace keeps place under a name, if seen is the place kept there. ErrConflict: another worker went on.
	KeepPlace(ctx context.Context, name, seen, place string) error
}
