package scheduler_test

import (
	"encoding/json"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/store/faultstore"
	"github.com/makegood-dev/makegood/internal/wire"
)

const editedMap = `name: order
steps:
  - {name: reserve, map: {over: "${ [range(.input.n)] }", concurrency: 1}, agent: a, undo: {action: release}}`

// submitMap submits the job j, with a map of so many items.
func (w *world) submitMap(n string) {
	w.t.Helper()
	w.define(editedMap)
	body, err := wire.EncodeSubmit(wire.Submit{Workflow: "order", ID: "j", Input: json.RawMessage(`{"n":` + n + `}`)})
	if err != nil {
		w.t.Fatal(err)
	}
	w.handle(w.raw(body))
}

func (w *world) editMap(concurrency int) {
	w.t.Helper()
	e := job.Requested{Verb: makegood.VerbEdit, Edit: &job.MapEdit{Step: "reserve", Concurrency: concurrency}}
	if _, v, err := w.s.Request(w.t.Context(), "j", e); err != nil || v.Kind != machine.Applied {
		w.t.Fatalf("edit: %v, %+v", err, v)
	}
}

// hasEdit fails the test unless a part has an edit, and so many items under way.
func (w *world) hasEdit(id string, want job.MapEdit, underWay int) {
	w.t.Helper()
	j, n := w.job(id), 0
	for _, s := range j.Steps {
		if s.Forward.State == job.Dispatched {
			n++
		}
	}
	if got := j.EditOf(""); got.N != want.N || !got.Same(want) || n != underWay {
		w.t.Errorf("part %s has edit %d, concurrency %d, with %d under way, want edit %d, concurrency %d and %d", id, got.N, got.Concurrency, n, want.N, want.Concurrency, underWay)
	}
}

// A part whose birth is held up while its map is edited has the edit, whichever of the two births is first.
func TestAnEditIsNotLostOnAPartThatIsBornMeanwhile(t *testing.T) {
	w := newWorld(t)
	w.strike = func(op, id string) faultstore.Effect {
		if op == "Create" && domain.IsChild(id) {
			return faultstore.FailBefore
		}
		return faultstore.None
	}
	w.submitMap("9")
	w.strike = nil
	part := w.childOf("j", "reserve")
	w.editMap(4)
	w.hasEdit(part, job.MapEdit{N: 1, Concurrency: 4}, 4)
	w.editMap(6)
	w.hasEdit(part, job.MapEdit{N: 2, Concurrency: 6}, 6)
}

// An edit that a part never got is handed to it by the next look, on every level. One that was overtaken changes
// nothing.
func TestAnEditThatWasLostIsMadeUpByALook(t *testing.T) {
	w := newWorld(t)
	w.submitMap("150")
	top := w.childOf("j", "reserve")
	part := w.childOf(top, "part_0")
	w.hasEdit(part, job.MapEdit{}, 1)
	w.strike = func(op, id string) faultstore.Effect {
		if op == "Load" && id == part {
			return faultstore.FailBefore
		}
		return faultstore.None
	}
	w.editMap(7)
	w.strike = nil
	w.hasEdit(part, job.MapEdit{}, 1)
	w.handle(w.deadline(top))
	w.hasEdit(part, job.MapEdit{N: 1, Concurrency: 7}, 7)
	old := job.Requested{Verb: makegood.VerbEdit, Edit: &job.MapEdit{N: 1, Concurrency: 50}}
	if _, v, err := w.s.Request(t.Context(), part, old); err != nil || v.Kind != machine.Duplicate {
		t.Errorf("an edit that was overtaken: %v, %+v", err, v)
	}
	w.hasEdit(part, job.MapEdit{N: 1, Concurrency: 7}, 7)
}
