// Package jobformat writes a job as both stores keep it, and reads it again: protobuf, as job.proto describes it, by
// hand. It keeps what it does not know, so that the releases before and after this one work on one store (law 12).
//
// It knows no store: where the bytes lie, what of a job is kept apart from it, and under which names, is theirs to say.
package jobformat

import (
	"fmt"
	"slices"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/store"
)

const (
	// Level is the highest Job.Needs about which this release may decide.
	Level = 1
	// format counts the layouts that a release before cannot read at all.
	format = 1
)

// Place is where an activity is in a job.
type Place struct {
	Step int
	Undo bool
}

// At gives the activity of a place.
func (p Place) At(steps []makegood.StepState) *makegood.Activity {
	if p.Undo {
		return &steps[p.Step].Undo
	}
	return &steps[p.Step].Forward
}

// number is the place in one number.
func (p Place) number() uint64 {
	n := uint64(p.Step) << 1
	if p.Undo {
		n |= 1
	}
	return n
}

// Apart says what of a job is not in its data. The zero value: nothing.
type Apart struct {
	// Names is the hash under which the names of the steps are kept.
	Names []byte
	// Details are the hashes under which the details of the activities in Held are kept.
	Details [][]byte
	Held    map[Place]bool
}

// Newer says why this release must leave a job alone: store.ErrNewer, or nil if it may decide about it.
func Newer(job makegood.Job) error {
	switch {
	case job.Needs > Level:
		return fmt.Errorf("%w: it needs level %d, this release knows level %d", store.ErrNewer, job.Needs, Level)
	case isNewer(job.ProcessState, processStates()):
		return newerState(job.ProcessState)
	case isNewer(job.Desired, processStates()):
		return newerState(job.Desired)
	}
	for _, a := range job.Untold {
		if isNewer(a.ProcessState, processStates()) {
			return newerState(a.ProcessState)
		}
	}
	known := activityStates()
	for _, s := range job.Steps {
		for _, a := range []*makegood.Activity{&s.Forward, &s.Undo} {
			if isNewer(a.State, known) {
				return newerState(a.State)
			}
		}
	}
	return nil
}

func newerState[S ~string](state S) error {
	return fmt.Errorf("%w: this release does not know the state %q", store.ErrNewer, string(state))
}

func isNewer[S ~string](state S, known []S) bool { return !slices.Contains(known, state) }
