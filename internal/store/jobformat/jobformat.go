// Package jobformat writes a job as both stores keep it, and reads it again: protobuf, as job.proto describes it, by
// hand. It keeps fields that it does not know, so that the releases before and after this one work on one store (law
// 12). fields.go names each field once, for the writer and the reader; a codec is one of the two. A record packs steps
// into fields side by side, and unpacks them.
//
// It knows no store: where the bytes lie, what of a job is kept apart from it, and under which names, is theirs to say.
package jobformat

import (
	"fmt"
	"slices"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
)

const (
	// Level is the highest Job.Needs about which this release may decide.
	Level = job.LevelGates
	// format counts the layouts that a release before cannot read at all.
	format = 1
)

// Place is where an activity is in a job.
type Place struct {
	Step int
	Undo bool
}

// At returns the activity of a place.
func (p Place) At(steps []job.StepState) *job.Activity {
	if p.Undo {
		return &steps[p.Step].Undo
	}
	return &steps[p.Step].Forward
}

// number is the place in one number.
func (p Place) number() int {
	n := p.Step << 1
	if p.Undo {
		n |= 1
	}
	return n
}

// Apart says which parts of a job are not in its data. The zero value: none.
type Apart struct {
	// Names is the hash under which the names of the steps are kept.
	Names []byte
	// Details are the hashes under which the details of the activities in Held are kept. Chained: some of these details
	// name others before them.
	Details [][]byte
	Held    map[Place]bool
	Chained bool
}

// Newer says why this release must leave a job alone: store.ErrNewer, or nil if it may decide about it.
func Newer(j job.Job) error {
	switch {
	case j.Needs > Level:
		return fmt.Errorf("%w: it needs level %d, this release knows level %d", store.ErrNewer, j.Needs, Level)
	case isNewer(j.ProcessState, processStates()):
		return newerState(j.ProcessState)
	case isNewer(j.Desired, processStates()):
		return newerState(j.Desired)
	}
	for _, a := range j.Untold {
		if isNewer(a.ProcessState, processStates()) {
			return newerState(a.ProcessState)
		}
	}
	known := activityStates()
	for i := range j.Steps {
		for _, a := range []*job.Activity{&j.Steps[i].Forward, &j.Steps[i].Undo} {
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
