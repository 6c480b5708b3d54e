package machine_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/machine"
)

// Whatever lay in the room that a decision is given, it decides the same, and the job that it was given stays as it is.
func TestARoomDecidesNothing(t *testing.T) {
	w := makegood.Workflow{Name: "two", Steps: []makegood.Step{{Name: "a", Agent: "x", Action: "do"}, {Name: "b", Agent: "x", Action: "do", Needs: []string{"a"}}}}
	now := time.UnixMilli(1_700_000_000_000).UTC()
	facts := machine.Facts{Secret: make([]byte, limits.SecretBytes), Values: map[machine.Want]machine.Fact{{Step: "a"}: {Run: true}}}
	litter := func(n int) []job.StepState {
		room := make([]job.StepState, n)
		for i := range room {
			room[i] = job.StepState{Name: "litter", Attempt: 7, Forward: job.Activity{State: job.Failed, Cause: "litter"}, Kept: "litter"}
		}
		return room
	}
	for _, n := range []int{1, 2, 3} {
		with := facts
		with.Room = litter(n)
		born, v := machine.Submit(w, machine.Submission{ID: "j"}, facts, now)
		again, _ := machine.Submit(w, machine.Submission{ID: "j"}, with, now)
		if v.Kind != machine.Applied || !reflect.DeepEqual(again, born) {
			t.Fatalf("room of %d: born %+v, want %+v", n, again, born)
		}
		said := job.StepSucceeded{Reply: job.Reply{Step: "a", Attempt: 1, Token: machine.Token(born, "a", 1)}}
		for _, known := range []bool{false, true} {
			facts.Values[machine.Want{Step: "b"}] = machine.Fact{Run: true}
			if !known {
				delete(facts.Values, machine.Want{Step: "b"})
			}
			with.Room = litter(n)
			was := born.Clone()
			want, v := machine.Apply(w, born, said, facts, now)
			got, v2 := machine.Apply(w, born, said, with, now)
			if !reflect.DeepEqual(got, want) || !reflect.DeepEqual(v, v2) || !reflect.DeepEqual(born, was) {
				t.Errorf("room of %d, fact known: %t: got %+v, %+v, want %+v, %+v", n, known, got, v2, want, v)
			}
			if (v.Kind == machine.Applied) != known {
				t.Errorf("fact known: %t: got %s", known, v.Kind)
			}
			if within := n >= 2; within != (&got.Steps[0] == &with.Room[:1][0]) {
				t.Errorf("room of %d for two steps: used %t", n, !within)
			}
		}
	}
}
