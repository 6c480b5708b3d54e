package store

import (
	"context"
	"slices"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/limits"
)

// Auditor reads all jobs and schedules, one after the other, to find those of which the index does not say what it should: they
// are nobody's, for the Supervisor reads the index only.
type Auditor interface {
	// AuditPage returns jobs, and schedules that are in the index, and the cursor for the next page; empty at the end. It
	// looks at limit items at most, at one where limit is less, and returns what of them are such, which may be none before the
	// end. Each is as one write left it, perhaps not the last one: state and key are of the same write. One that is there from
	// the first page to the last is returned once at least. A cursor that no page returned is ErrNotFound.
	AuditPage(ctx context.Context, cursor string, limit int) ([]Audited, string, error)
}

// Audited is a job, or a schedule, as an audit sees it: no payload, nothing that has to be decoded.
type Audited struct {
	// Job is the job's id; empty for a schedule, of which Schedule is the name and CompleteBy the key.
	Job, Schedule string

	ProcessState makegood.ProcessState
	// CompleteBy is the key as it is stored; zero: none is.
	CompleteBy time.Time
	// Indexed: a sweep finds the job by its key.
	Indexed bool
	// Told: the store noted that the job has ended and everybody was told. Untold: that it has ended, and somebody was
	// not. Neither, where it notes nothing.
	Told, Untold bool
	// NoJob: it is an item in the index, and no job.
	NoJob bool
	// Standing is in which way it stands still that should not, where somebody who can decide about jobs has looked.
	Standing Stray
}

// auditFar is how far ahead a key is that an audit asks about: further than that of a job which waits for a person, and so
// far that the sweep that finds it may be too late to be of use.
const auditFar = limits.FarKey + time.Hour

// scheduleFar is how far ahead the key of a schedule is that an audit asks about: most come sooner than the next audit.
const scheduleFar = time.Hour

// FarOff reports whether no sweep will look at the job for long, so that it is worth looking whether it stands still: most such
// jobs wait for something. Most such schedules fire seldom; others a clock has put off that was ahead.
func (a Audited) FarOff(now time.Time) bool {
	if a.Schedule != "" {
		return a.CompleteBy.After(now.Add(scheduleFar))
	}
	return a.Indexed && !a.NoJob && !a.ProcessState.Finished() && a.CompleteBy.After(now.Add(auditFar))
}

// Stray is what is wrong with a job of which the index does not say what it should. Empty: nothing.
type Stray string

// The strays.
const (
	// StrayUnfinished: the job has not ended, and no sweep would ever find it.
	StrayUnfinished Stray = "unfinished, and not in the index"
	// StrayUntold: it has ended, somebody is still to be told, and no sweep would ever find it.
	StrayUntold Stray = "ended and not told, and not in the index"
	// StrayKey: it has ended, everybody was told, and it is in the index all the same.
	StrayKey Stray = "ended and told, and still in the index"
	// StrayNoJob: what is in the index leads to no job.
	StrayNoJob Stray = "in the index, and no job"
)

// Stray says what is wrong with it.
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

// Places keep how far slow work has come, so that whoever goes on with it need not begin anew.
type Places interface {
	// Place returns what was kept under a name, perhaps not the last of it; empty: nothing was.
	Place(ctx context.Context, name string) (string, error)
	// KeepPlace keeps place under a name, if seen is what is kept there. ErrConflict: somebody else went on.
	KeepPlace(ctx context.Context, name, seen, place string) error
}
