package machine_test

import (
	"fmt"
	"math/bits"
	"slices"
	"strconv"

	"pgregory.net/rapid"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
)

// drawPart makes some workflows the part of a map: its steps are items, side by side, of which some may fail.
func drawPart(t *rapid.T, w *makegood.Workflow) {
	if rapid.IntRange(0, 5).Draw(t, "part") > 0 {
		return
	}
	w.Part = &makegood.Part{Of: "m", Items: len(w.Steps), Concurrency: rapid.IntRange(1, 3).Draw(t, "concurrency")}
	switch rapid.IntRange(0, 3).Draw(t, "tolerate") {
	case 0:
		w.Part.Tolerate.Items = rapid.IntRange(1, 3).Draw(t, "items")
	case 1, 2:
		w.Part.Tolerate.Share, w.Part.Tolerate.After = 0.5, rapid.IntRange(2, 4).Draw(t, "after")
	}
	for i := range w.Steps {
		s := &w.Steps[i]
		s.Needs, s.Any, s.Only, s.OnError, s.OnAnswer = []string{}, false, "", nil, nil
	}
	if w.OnFailure.Action == makegood.FailureRestart {
		w.OnFailure = makegood.OnFailure{} // The rounds are those of the job that has the map.
	}
	child := slices.ContainsFunc(w.Steps, func(s makegood.Step) bool { return s.Agent == makegood.AgentWorkflow })
	if child || !rapid.Bool().Draw(t, "batches") {
		return
	}
	w.Part.Batch = rapid.IntRange(2, 3).Draw(t, "batch")
	w.Part.Items = len(w.Steps)*w.Part.Batch - rapid.IntRange(0, 1).Draw(t, "short")
	for i := range w.Steps {
		w.Steps[i].Repeat = nil
	}
}

// drawIndexes lets a redrive of a part name some of its items.
func (x *world) drawIndexes(e *job.Requested) {
	if x.w.Part == nil || rapid.Bool().Draw(x.t, "all items") {
		return
	}
	e.Indexes = job.IndexesOf(rapid.SliceOfN(rapid.IntRange(0, x.w.Part.Items-1), 1, 4).Draw(x.t, "indexes"))
}

// namedOf are the items of a step that a redrive is for, counted from its first one.
func (x *world) namedOf(i int, r job.Requested) job.Indexes {
	size := max(1, domain.BatchSize(x.w, 0))
	if r.Indexes == "" {
		return job.Indexes("0-99").Within(0, size)
	}
	return r.Indexes.Within(i*size, size)
}

// drawAnswers adds answers for the items of a batch to a failure. An attempt without an effect has done no item.
func (x *world) drawAnswers(task makegood.Task, idle bool, e *job.StepFailed) {
	i := slices.IndexFunc(x.job.Steps, func(s job.StepState) bool { return s.Name == task.Step })
	size := domain.BatchSize(x.w, i)
	if size == 0 || !rapid.Bool().Draw(x.t, "answers") {
		return
	}
	a := x.job.Steps[i].Forward
	if task.Undo != nil {
		a = x.job.Steps[i].Undo
	}
	b := job.BatchAnswers{Done: a.Answered, Refused: rapid.IntRange(0, 1<<size-1).Draw(x.t, "refused")}
	if !idle {
		b.Done = rapid.IntRange(a.Answered, max(a.Answered, size-1)).Draw(x.t, "done")
	}
	if b.Done > 0 {
		e.Error.Applied = makegood.AppliedUnknown
		b.Output = job.Payload{Inline: []byte(strconv.Itoa(b.Done)), Bytes: 1}
	}
	e.Batch = &b
}

// checkBatches: what was done of a batch stays done until the step ends, or a person says that it has no effect, and is
// undone.
func (x *world) checkBatches(before job.Job, e job.Event) {
	if _, settled := e.(job.Settled); settled || x.w.Part == nil || before.Round != x.job.Round {
		return
	}
	for _, s := range x.job.Steps {
		was, _ := before.Step(s.Name)
		f := s.Forward
		if f.Answered < was.Forward.Answered && f.State != job.Done {
			x.t.Fatalf("of step %s %d items were done, now %d are", s.Name, was.Forward.Answered, f.Answered)
		}
		if f.Answered > 0 && (!f.Unknown || string(f.Output.Inline) != strconv.Itoa(f.Answered)) {
			x.t.Fatalf("step %s has %d items done, output %s, unknown %v", s.Name, f.Answered, f.Output.Inline, f.Unknown)
		}
	}
}

// drawEdit hands an edit of its map down to a part: the next one, one that was overtaken, or one that comes again.
func (x *world) drawEdit() job.Event {
	e := job.MapEdit{N: rapid.IntRange(1, x.job.EditOf("").N+2).Draw(x.t, "number"), Concurrency: rapid.IntRange(0, 400).Draw(x.t, "concurrency")}
	if e.Concurrency > 100 {
		e.Concurrency = 1 + e.Concurrency%5
	}
	if rapid.Bool().Draw(x.t, "tolerance") {
		e.Tolerate = &makegood.Tolerance{Items: rapid.IntRange(0, 3).Draw(x.t, "items")}
		if e.Tolerate.Items == 0 && rapid.Bool().Draw(x.t, "a share") {
			e.Tolerate.Share, e.Tolerate.After = 0.5, rapid.IntRange(2, 4).Draw(x.t, "after")
		}
	}
	return job.Requested{Verb: makegood.VerbEdit, Request: fmt.Sprintf("r%d", x.requests), Edit: &e}
}

// checkEdit: a part has the figures with the highest number that it was asked for, and no others.
func (x *world) checkEdit(before job.Job, e job.Event) {
	want, got := before.EditOf(""), x.job.EditOf("")
	if r, asked := e.(job.Requested); asked && r.Edit != nil && r.Edit.N > want.N && !before.ProcessState.Finished() {
		want = *r.Edit
	}
	if got.N != want.N || !got.Same(want) {
		x.t.Fatalf("the part has edit %d, %s, want %d, %s", got.N, figures(got.Concurrency, got.Tolerate), want.N, figures(want.Concurrency, want.Tolerate))
	}
}

// checkPart: so many items are under way at most, forward and back; a part that is done has no more failures than it
// may, and a redrive leaves no item that has failed. What an edit says of that stands over the definition.
func (x *world) checkPart(before job.Job, e job.Event) {
	part := x.w.Part
	if part == nil {
		return
	}
	under, failed, ended := underWay(x.job), 0, 0
	for i, s := range x.job.Steps {
		if s.Forward.State == job.Done || s.Forward.State == job.Skipped {
			ended += max(1, domain.BatchSize(x.w, i))
		}
		if !itemFailed(x.job, s) {
			continue
		}
		failed += max(1, domain.BatchSize(x.w, i)) - s.Forward.Answered
	}
	if r, ok := e.(job.Requested); ok && r.Verb == makegood.VerbRedrive && len(x.bad) == 0 && before.Rev+1 == x.job.Rev {
		x.checkRedriven(before, r)
	}
	x.checkEdit(before, e)
	edit, atOnce, may := x.job.EditOf(""), part.Concurrency, part.Tolerate
	if edit.Concurrency > 0 {
		atOnce = max(1, edit.Concurrency/max(1, part.Batch))
	}
	if edit.Tolerate != nil {
		may = *edit.Tolerate
	}
	if under > max(atOnce, underWay(before)) {
		x.t.Fatalf("%d items are under way, %d were, %d may be", under, underWay(before), atOnce)
	}
	if x.job.ProcessState != makegood.JobProcessed {
		return
	}
	if may.Items > 0 && failed > may.Items || may == (makegood.Tolerance{}) && failed > 0 || may.Share > 0 && ended >= may.After && 2*failed > ended {
		x.t.Fatalf("%d of %d items have failed, and the part is done: %+v", failed, ended, may)
	}
}

// underWay is how many steps of a part are under way, forward and back.
func underWay(j job.Job) (n int) {
	for _, s := range j.Steps {
		for _, a := range []job.Activity{s.Forward, s.Undo} {
			if a.State == job.Dispatched || a.State == job.Backoff || a.State == job.Waiting {
				n++
			}
		}
	}
	return n
}

// checkRedriven: a redrive leaves no item that it is for as it failed, and does no other.
func (x *world) checkRedriven(before job.Job, r job.Requested) {
	for i, s := range x.job.Steps {
		was, _ := before.Step(s.Name)
		named := x.namedOf(i, r)
		if !itemFailed(before, was) || before.Round != x.job.Round {
			continue
		}
		if left := itemFailed(x.job, s); left != (named == "") {
			x.t.Fatalf("item %s had failed; a redrive of %q has left it so: %v", s.Name, r.Indexes, left)
		}
		for _, item := range named.List() {
			if s.Forward.Refused&(1<<item) != 0 {
				x.t.Fatalf("item %d of batch %s is not tried by a redrive of %q", item, s.Name, r.Indexes)
			}
		}
		if size := domain.BatchSize(x.w, i); size > 0 && r.Indexes != "" && named != "" && bits.OnesCount(uint(s.Forward.Refused)) != size-len(named.Within(0, size).List()) {
			x.t.Fatalf("a redrive of %q tries other items of batch %s: refused %b", r.Indexes, s.Name, s.Forward.Refused)
		}
	}
}

// itemFailed reports whether an item was given up and passed by.
func itemFailed(j job.Job, s job.StepState) bool {
	return s.Forward.State == job.Skipped && s.Forward.Error != nil && j.Settled(s.Forward) == nil
}
