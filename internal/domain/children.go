package domain

import (
	"fmt"
	"strings"

	"github.com/makegood-dev/makegood"
)

// The id of a child says which job began it, and for what: PARENT~STEP~ATTEMPT~BIRTH. No id that people give holds a ~.
// The birth is that of the parent, so a child is never taken for one of an earlier job of the same id; the attempt is
// new in each round, and each time the step is done again.
const betweenChild = "~"

// ChildMark is in the id of every child, and in no other.
const ChildMark = betweenChild

// birthBytes is how much of the nonce of a parent stands in the ids of its children.
const birthBytes = 8

// MaxNesting is how many jobs may stand above a child.
const MaxNesting = 3

// ChildID is the id of the child of an attempt. parent and birth are those of the job that has the step.
func ChildID(parent, birth, step string, attempt int) string {
	return strings.Join([]string{parent, step, fmt.Sprint(attempt), birth[:min(birthBytes, len(birth))]}, betweenChild)
}

// HolderOf is the name under which a child holds the attempt of its parent.
func HolderOf(id string) string { return "job " + id }

// A Child is what the id of a child says.
type Child struct {
	Parent, Step string
	Attempt      int
}

// ChildOf reads the id of a child. ok is false of the id of a job that has no parent.
func ChildOf(id string) (c Child, ok bool) {
	if !IsChild(id) { // It is asked of every job.
		return Child{}, false
	}
	parts := strings.Split(id, betweenChild)
	n := len(parts)
	if n < 4 {
		return Child{}, false
	}
	var attempt int
	if _, err := fmt.Sscan(parts[n-2], &attempt); err != nil || fmt.Sprint(attempt) != parts[n-2] {
		return Child{}, false
	}
	return Child{Parent: strings.Join(parts[:n-3], betweenChild), Step: parts[n-3], Attempt: attempt}, true
}

// IsChild reports whether an id is that of a child.
func IsChild(id string) bool { return strings.Contains(id, ChildMark) }

// Nesting is the number of jobs above the job of an id. A part of a map is no further level.
func Nesting(id string) (above int) {
	for c, ok := ChildOf(id); ok; c, ok = ChildOf(c.Parent) {
		if !strings.HasPrefix(c.Step, partStep) {
			above++
		}
	}
	return above
}

// CheckJobID refuses a text that is the id of no job: neither one that people give, nor that of a child.
func CheckJobID(id string) error {
	if makegood.CheckJobID(strings.ReplaceAll(id, betweenChild, "-")) == nil {
		return nil
	}
	return makegood.CheckJobID(id)
}

// RoomForChildren refuses an id of a job that leaves no room for the ids of its children.
func RoomForChildren(id string, w makegood.Workflow) error {
	const birth, attempts, few = "00000000", 999_999, 99
	for _, s := range w.Steps {
		if s.Agent != makegood.AgentWorkflow {
			continue
		}
		longest := ChildID(id, birth, s.Name, attempts)
		if s.Map != nil && s.Map.Count == 0 { // It may have parts of parts.
			longest = ChildID(ChildID(longest, birth, partStep+"99", few), birth, partStep+"99", few)
		}
		if over := len(longest) - makegood.MaxJobIDBytes; over > 0 {
			return fmt.Errorf("has %d bytes, and step %s of workflow %s is a job of its own, whose id begins with it: the limit is %d",
				len(id), s.Name, w.Name, len(id)-over)
		}
	}
	return nil
}
