package storetest

import (
	"fmt"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/store"
)

func changeRules() []rule {
	return []rule{
		{"changes that wait to be published are kept with the job until a save drops them", changesAreKept},
		{"as many changes as a job keeps, with reasons as long as can be, are kept", manyChangesAreKept},
		{"of two saves of a revision the changes of one are kept", changesOfOneSave},
		{"a job at its end is due as long as its changes wait to be published, and no longer", changesHoldTheKey},
		{"a park leaves changes as they are", parkLeavesChanges},
	}
}

// changed returns a job with changes of all kinds: of the job, of a step, of an undo, of a step that it has lost, and
// one that stands for others.
func (w *world) changed(name string) job.Job {
	j := w.job(name)
	j.Changes = job.Changes{Seq: 14, Rev: 1, Tries: 2, At: w.at(time.Hour), Kept: unknown(7, "changes"), Pending: []job.Change{
		{At: w.at(-time.Second), Lost: 7},
		{To: job.ChangeState(makegood.JobPending), Round: 1, At: w.base},
		{Of: job.PlaceOfChange(0, false), To: job.ChangeState(job.Dispatched), Attempt: 1, Round: 1, At: w.base},
		{
			Of: job.PlaceOfChange(0, false), From: job.ChangeState(job.Dispatched), To: job.ChangeState(job.Backoff), Attempt: 1, Round: 2,
			At: w.at(time.Second), Outcome: makegood.EntryFailed, Kind: "declined", Reason: "kein Geld: ż \"quoted\"\n",
		},
		{Of: job.PlaceOfChange(1, false), From: job.ChangeState(makegood.StepQueued), To: job.ChangeState(job.Dispatched), Attempt: 1, Round: 1, At: w.base},
		{Of: job.PlaceOfChange(1, true), From: job.ChangeState(job.Done), To: job.ChangeState(job.Skipped), Attempt: 4, Round: 1, At: w.at(time.Second)},
		{Of: job.PlaceOfChange(2, false), Gone: "pack", To: job.ChangeState(job.Skipped), Round: 1, At: w.at(-time.Minute), Kept: unknown(8, "change")},
		{
			From: job.ChangeState(makegood.JobPending), To: job.ChangeState(makegood.JobProcessing), Round: 1, Paused: true, At: w.at(time.Minute),
			Reason: "held",
		},
	}}
	return j
}

func changesAreKept(w *world) {
	want := w.changed("a")
	j := w.create(want)
	want.Rev = 1
	w.same("what was created", j, want)
	for _, upTo := range []int{0, 7, 9, 14} {
		j.Changes.Forget(upTo)
		j.Changes.Add(job.Change{Of: job.PlaceOfChange(1, false), To: job.ChangeState(job.Dispatched), Attempt: 1, Round: 1, At: w.at(time.Hour)}, limits.MaxUnpublished)
		j.Changes.Rev++
		want = j.Clone()
		want.Rev++
		j = w.mustSave(j)
		w.same(fmt.Sprint("after a save that drops those up to ", upTo), j, want)
	}
	j.Changes.Forget(j.Changes.Seq)
	want = j.Clone()
	want.Rev++
	w.same("after a save that drops all", w.mustSave(j), want)
}

// manyChangesAreKept: the most that a job carries fits into every item beside a job of many steps.
func manyChangesAreKept(w *world) {
	j := w.job("a")
	for i := range limits.MaxSteps - len(j.Steps) {
		j.Steps = append(j.Steps, job.StepState{Name: fmt.Sprintf("step-%d-%s", i, strings.Repeat("x", 40))})
	}
	j = w.create(j)
	for i := range limits.MaxUnpublished + 3 {
		j.Changes.Add(job.Change{
			Of: job.PlaceOfChange(i, i%2 == 0), From: job.ChangeState(job.Dispatched), To: job.ChangeState(job.Failed), Attempt: i + 1, Round: 1,
			At: w.at(time.Duration(i) * time.Hour), Outcome: makegood.EntryFailed, Kind: strings.Repeat("k", limits.MaxNameBytes),
			Reason: strings.Repeat("ż", limits.MaxChangeReasonBytes/2),
		}, limits.MaxUnpublished)
	}
	want := j.Clone()
	want.Rev++
	w.same("after the save", w.mustSave(j), want)
}

func changesOfOneSave(w *world) {
	j := w.create(w.job("a"))
	mine, yours := j.Clone(), j.Clone()
	for i, one := range []*job.Job{&mine, &yours} {
		one.Changes.Add(job.Change{Of: job.PlaceOfChange(i, false), To: job.ChangeState(job.Dispatched), Attempt: 1, Round: 1, At: w.base}, limits.MaxUnpublished)
		one.Changes.Rev = 2
	}
	w.want("first save", w.save(mine), nil)
	w.want("second save of the same revision", w.save(yours), store.ErrConflict)
	mine.Rev = 2
	w.same("after both", w.load(j.ID), mine)
}

func changesHoldTheKey(w *world) {
	j := w.create(w.changed("a"))
	seen := j.CompleteBy
	j.ProcessState, j.FinishedAt, j.CompleteBy = makegood.JobProcessed, w.at(time.Second), w.at(limits.TellAgain)
	w.want("save that ends it", w.store.Save(w.ctx, store.Change{Job: j, Seen: seen}), nil)
	j = w.load(j.ID)
	w.sees("due while its changes wait", w.at(time.Hour), map[string]time.Time{j.ID: w.at(limits.TellAgain)})
	seen = j.CompleteBy
	j.Changes.Forget(j.Changes.Seq)
	j.CompleteBy = time.Time{}
	w.want("save that knows that they were published", w.store.Save(w.ctx, store.Change{Job: j, Seen: seen}), nil)
	w.sees("due when they were published", w.at(time.Hour), map[string]time.Time{})
	if got := w.load(j.ID).Changes; got.Seq != 14 || len(got.Pending) > 0 {
		w.Fatalf("got %d changes, %d of them waiting, want 14 and none", got.Seq, len(got.Pending))
	}
}

func parkLeavesChanges(w *world) {
	j := w.create(w.changed("a"))
	w.want("park", w.store.Park(w.ctx, j.ID, j.CompleteBy, "cannot be applied", w.at(time.Hour)), nil)
	got := w.load(j.ID)
	w.same("changes of the parked job", got.Changes, j.Changes)
	if got.Changes.Rev == got.Rev {
		w.Fatal("the revision of the park is the one that its changes know: nobody would see that it was parked")
	}
}
