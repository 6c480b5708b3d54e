package store

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
)

// Schedules keeps schedules, each as one item under its name, changed only by conditional writes on its Rev. The Key of
// each is in the same index as those of the jobs. There are few (limits.MaxSchedules; the maker of a new one counts).
type Schedules interface {
	// PutSchedule stores s as Rev s.Rev+1 in one durable write, if s.Rev is the Rev stored; 0: if there is none of its
	// name. ErrConflict.
	PutSchedule(ctx context.Context, s Scheduled) error
	// Schedule reads a schedule, strongly consistent. ErrNotFound; ErrDamaged; ErrNewer, together with the schedule as far
	// as this release knows it, to be shown.
	Schedule(ctx context.Context, name string) (Scheduled, error)
	// RemoveSchedule removes a schedule in one durable write, if rev is the Rev stored. ErrConflict, ErrNotFound. A
	// schedule that is made under the same name later begins anew.
	RemoveSchedule(ctx context.Context, name string, rev int64) error
	// ListSchedules returns all schedules by their names; one that is damaged has its name alone, and a Problem.
	ListSchedules(ctx context.Context) ([]Scheduled, error)
}

// ScheduleLevel is the highest Needs of a schedule that this release may decide about.
const ScheduleLevel = 0

// Scheduled is a schedule as it is kept: its rule, and where it stands. The zero value of a time means "not yet".
type Scheduled struct {
	makegood.Schedule
	// Rev counts the writes; the first is 1.
	Rev int64 `json:"-"`
	// Key is when the Supervisor must look; zero: never, the schedule is paused, or has no fire any more.
	Key time.Time `json:"-"`
	// From is the workflow that has the schedule in its file; empty: a person made it.
	From string `json:"from,omitempty"`
	// PausedAt is since when it is paused.
	PausedAt  time.Time `json:"pausedAt,omitzero"`
	CreatedAt time.Time `json:"createdAt,omitzero"`
	// Next is the next fire by the rule, or, when its time has come, the fire in turn.
	Next time.Time `json:"next,omitzero"`
	// Due are the fires that came due under a rule that was changed before they could be made, at most
	// limits.MaxMissed, the oldest first: they come before Next.
	Due []time.Time `json:"due,omitempty"`
	// LastFire is the last fire that made a job, and LastJob that job.
	LastFire time.Time `json:"lastFire,omitzero"`
	LastJob  string    `json:"lastJob,omitempty"`
	// Skipped counts the fires that were left out, by missed and overlap.
	Skipped int64 `json:"skipped,omitempty"`
	// Problem is why the last fire made no job; empty: it did.
	Problem string `json:"problem,omitempty"`
	// ChangedBy is the person that made, changed, paused or resumed it last; empty where the name was not known.
	ChangedBy string `json:"changedBy,omitempty"`
	// Needs is the lowest ScheduleLevel that may decide about it.
	Needs int `json:"needs,omitempty"`
	// Kept are the fields that a later release has stored here and this one does not know; they are written back.
	Kept map[string]json.RawMessage `json:"-"`
}

// Paused reports whether the schedule is paused.
func (s Scheduled) Paused() bool { return !s.PausedAt.IsZero() }

// Turn returns the next fire, or, when its time has come, the fire in turn.
func (s Scheduled) Turn() time.Time {
	if len(s.Due) > 0 {
		return s.Due[0]
	}
	return s.Next
}

// PutOver returns what a PutSchedule leaves of stored, which is the zero value where there is none.
func (s Scheduled) PutOver(stored Scheduled) (Scheduled, error) {
	if stored.Rev != s.Rev {
		return stored, ErrConflict
	}
	s.Rev++
	s.Key = domain.Instant(s.Key)
	return s, nil
}

// EncodeSchedule writes a schedule without its name, its Rev and its Key.
func EncodeSchedule(s Scheduled) []byte {
	all := maps.Clone(s.Kept)
	if all == nil {
		all = map[string]json.RawMessage{}
	}
	maps.Copy(all, fieldsOf(s))
	body, err := json.Marshal(all)
	if err != nil {
		panic(err) // A value checked at the door is always JSON.
	}
	return body
}

// fieldsOf returns the fields of a schedule that are not empty.
func fieldsOf(s Scheduled) map[string]json.RawMessage {
	body, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		panic(err)
	}
	return fields
}

// DecodeSchedule reads what EncodeSchedule writes. ErrDamaged; ErrNewer, as Schedule does.
func DecodeSchedule(body []byte) (Scheduled, error) {
	var s Scheduled
	var all map[string]json.RawMessage
	var level struct {
		Needs int `json:"needs"`
	}
	if err := json.Unmarshal(body, &all); err != nil {
		return s, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	err := json.Unmarshal(body, &s)
	if json.Unmarshal(body, &level) == nil && level.Needs > ScheduleLevel {
		s.Needs = level.Needs
		return s, ErrNewer
	}
	if err != nil {
		return s, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	for name := range fieldsOf(everything) {
		delete(all, name)
	}
	if len(all) > 0 {
		s.Kept = all
	}
	return s, nil
}

// everything is a schedule without empty fields.
var everything = Scheduled{
	Schedule: makegood.Schedule{
		Name: "n", Workflow: "w", Cron: "c", Every: 1, Zone: "z", Input: json.RawMessage("0"), Missed: "m", AtMost: 1, Overlap: "o",
	},
	From: "f", PausedAt: time.Unix(1, 0), CreatedAt: time.Unix(1, 0), Next: time.Unix(1, 0), Due: []time.Time{time.Unix(1, 0)}, LastFire: time.Unix(1, 0),
	LastJob: "j", Skipped: 1, Problem: "p", ChangedBy: "b", Needs: 1,
}

// Begins reports whether the key of a job is a time at which work begins (its start, a round, an attempt after a
// backoff, the step after a wait), and not one at which silence has lasted too long.
func Begins(j job.Job) bool {
	if j.CompleteBy.IsZero() || j.ProcessState.Finished() || j.Paused() {
		return false
	}
	if j.CompleteBy.Equal(j.StartAt) || j.CompleteBy.Equal(j.NextRoundAt) {
		return true
	}
	for _, s := range j.Steps {
		for _, a := range []job.Activity{s.Forward, s.Undo} {
			if a.State == job.Backoff && a.At.Equal(j.CompleteBy) || a.State == job.Waiting && a.LookAt.Equal(j.CompleteBy) {
				return true
			}
		}
	}
	return false
}

// Beginnings is an Index that keeps the keys at which work begins in shards of their own, so that they can be looked at
// before they come without looking at all others.
type Beginnings interface {
	// OfBeginnings reports whether the keys of a shard are such.
	OfBeginnings(shard int) bool
}
