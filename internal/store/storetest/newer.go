package storetest

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/jobformat"
)

func newerRules() []rule {
	return []rule{
		{"what a later release has stored survives, at every level", unknownSurvives},
		{"a job that needs a later release is shown, and neither saved nor parked", newerIsLeft},
		{"a job in a state of a later release is shown, and not saved", newerStateIsLeft},
	}
}

// unknown returns a field that no release has, as it is stored: a number from 1000 on, and text.
func unknown(number int, text string) string {
	tag := uint64(1000+number)<<3 | 2
	return string(binary.AppendUvarint(binary.AppendUvarint(nil, tag), uint64(len(text)))) + text
}

// later returns a job with a field of a later release in each of its parts.
func (w *world) later(name string) job.Job {
	j := w.job(name)
	j.Untold = []job.Announcement{{Seq: 1, ProcessState: makegood.JobError, At: w.base, Operator: true, Kept: unknown(1, "told")}}
	j.Kept, j.Steps[1].Kept = unknown(2, "job"), unknown(3, "step")
	for i := range j.Steps[:2] {
		s := &j.Steps[i]
		s.Attempt = 2
		s.Forward = job.Activity{State: job.Done, Attempt: 1, Tries: 1, At: w.base, Kept: unknown(4, "forward")}
		s.Undo = job.Activity{
			State: job.Failed, Attempt: 2, Tries: 1, At: w.base, Kept: unknown(5, "undo"),
			Error: &job.StepError{Message: "no", Kept: unknown(6, "error")},
		}
	}
	return j
}

func unknownSurvives(w *world) {
	want := w.later("a")
	got := w.create(want)
	want.Rev = 1
	w.same("what was created", got, want)
	for i := range got.Steps {
		got.Steps[i].Undo.FailureCount++
	}
	want = got.Clone()
	want.Rev = 2
	w.same("what was saved", w.mustSave(got), want)
}

// newerIsLeft: a caller that has seen a job as damaged may come to park it after a later release has mended it.
func newerIsLeft(w *world) {
	want := w.overwritten(func(j *job.Job) { j.Needs = jobformat.Level + 1 })
	w.want("park", w.store.Park(w.ctx, want.ID, want.CompleteBy, "why", w.at(time.Hour)), store.ErrNewer)
	w.stays(want)
}

func newerStateIsLeft(w *world) {
	w.stays(w.overwritten(func(j *job.Job) { j.Steps[0].Forward.State = "newer-9" }))
	w.stays(w.overwritten(func(j *job.Job) { j.Desired = "newer-31" }))
}

// overwritten returns a job as a later release has stored it.
func (w *world) overwritten(change func(j *job.Job)) job.Job {
	if w.harness.Overwrite == nil {
		w.Skip("this store keeps no bytes that another release could have written")
	}
	j := w.create(w.later(fmt.Sprint("newer-", len(w.made))))
	change(&j)
	w.harness.Overwrite(j)
	return j
}

// stays fails the test unless the job is shown, and a save is refused and leaves it unchanged.
func (w *world) stays(want job.Job) {
	w.Helper()
	for range 2 {
		got, err := w.store.Load(w.ctx, want.ID)
		w.want("load", err, store.ErrNewer)
		w.same("the job of a later release", got, want)
		got.Reason = "decided by one that does not know it"
		w.want("save", w.save(got), store.ErrNewer)
	}
}
