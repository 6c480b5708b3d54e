package job

import (
	"slices"

	"github.com/makegood-dev/makegood"
)

// MapEdit has the figures of a map that stand over those of its definition: a person has edited them. A job with a map
// keeps one for each step that was edited. A part of a map keeps the one that its parent has handed down, and no Step.
type MapEdit struct {
	Step string
	// N counts the edits of the step; the first is 1. A part keeps the edit with the highest. Zero: there is none, or a
	// person asks for it.
	N int
	// Concurrency replaces that of the map; 0: it does not. Tolerate replaces that of the map; nil: it does not. It is
	// never changed in place.
	Concurrency int
	Tolerate    *makegood.Tolerance
	// Kept is what a later release has stored here; see Job.
	Kept string
}

// Same reports whether two edits have the same figures.
func (e MapEdit) Same(other MapEdit) bool {
	same := e.Tolerate == other.Tolerate || e.Tolerate != nil && other.Tolerate != nil && *e.Tolerate == *other.Tolerate
	return same && e.Concurrency == other.Concurrency
}

// EditOf returns the edit of a step; the zero value: there is none. The edit of a part is that of each of its steps.
func (j *Job) EditOf(step string) MapEdit {
	for _, e := range j.Edits {
		if e.Step == step || e.Step == "" {
			return e
		}
	}
	return MapEdit{}
}

// SetEdit keeps the edit of a step in the place of an earlier one. Copies of the job keep theirs.
func (j *Job) SetEdit(e MapEdit) {
	others := slices.DeleteFunc(slices.Clone(j.Edits), func(was MapEdit) bool { return was.Step == e.Step })
	j.Edits = append(others, e)
}
