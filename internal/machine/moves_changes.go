package machine

import (
	"slices"
	"strings"
	"time"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

// If changes are published, each event that changes a job leaves in the job the transitions that it made: the
// differences between the job before and after. They stay pending until a subscriber has acknowledged them, and are
// saved together with the changes that they describe, so no crash loses them.

// noteChanges notes the transitions since the job before the event. If changes are not published it notes none, and
// drops those pending from a time when they were; the gap shows in their numbers.
func (t *turn) noteChanges(before job.Job) {
	c := &t.job.Changes
	if !t.facts.Publishes {
		if c.Seq > 0 {
			c.Pending, c.Tries, c.At = nil, 0, time.Time{}
		}
		return
	}
	c.Forget(t.facts.Published)
	switch {
	case c.Seq == 0 && before.Rev > 0:
		// The job was born unpublished: in its submitter's transaction, or before publishing was switched on.
		t.addChanges(job.Job{Steps: namesOf(before.Steps)}, before, nil)
	case c.Seq > 0 && c.Rev != before.Rev && c.Rev != before.Rev+1:
		// It was parked, or an older release has moved it. (Rev+1 is an event before this one, of the same save.)
		c.Add(job.Change{At: t.now, Lost: 1}, limits.MaxUnpublished)
	}
	t.addChanges(before, t.job, t.entries)
	c.Rev = before.Rev + 1
}

// namesOf returns steps that have only their names.
func namesOf(steps []job.StepState) []job.StepState {
	names := make([]job.StepState, len(steps))
	for i, s := range steps {
		names[i].Name = s.Name
	}
	return names
}

// addChanges adds the differences between two jobs: first steps that ended or were given up, then the job, then steps
// that begin.
func (t *turn) addChanges(before, after job.Job, entries []job.Entry) {
	var ended, begun []job.Change
	for i, s := range after.Steps {
		was, _ := before.Step(s.Name)
		for _, undo := range []bool{false, true} {
			from, to := was.Forward, s.Forward
			if undo {
				from, to = was.Undo, s.Undo
			}
			one := job.Change{
				Of: job.PlaceOfChange(i, undo), From: from.ChangeState(), To: to.ChangeState(),
				Attempt: to.Attempt, Round: after.Round, At: t.now,
			}
			if one.From == one.To && from.Attempt == to.Attempt {
				continue
			}
			why(&one, s.Name, undo, from.Attempt, entries)
			if from.State == job.NotStarted || to.State == job.Dispatched {
				begun = append(begun, one)
			} else {
				ended = append(ended, one)
			}
		}
	}
	if before.ProcessState != after.ProcessState || before.Round != after.Round || before.Paused() != after.Paused() {
		ended = append(ended, job.Change{
			From: job.ChangeState(before.ProcessState), To: job.ChangeState(after.ProcessState), Round: after.Round,
			Paused: after.Paused(), At: t.now, Reason: clipChange(after.Reason),
		})
	}
	for _, one := range slices.Concat(ended, begun) {
		t.job.Changes.Add(one, limits.MaxUnpublished)
	}
}

// why says how what a change has ended had gone, as the history has it.
func why(one *job.Change, step string, undo bool, attempt int, entries []job.Entry) {
	i := slices.IndexFunc(entries, func(e job.Entry) bool { return e.Step == step && e.Undo == undo && e.Attempt == attempt })
	if i < 0 {
		return
	}
	e := entries[i]
	one.Outcome, one.Reason = e.Kind, clipChange(e.Reason)
	if e.Error != nil {
		one.Kind, one.Reason = e.Error.Kind, clipChange(e.Error.Message)
	}
}

// clipChange shortens a text to what a change may say, at a character's edge.
func clipChange(text string) string {
	if text = limits.Clip(text); len(text) <= limits.MaxChangeReasonBytes {
		return text
	}
	return strings.ToValidUTF8(text[:limits.MaxChangeReasonBytes-len("...")], "") + "..."
}

// movePlaces makes pending changes refer to the steps of another definition.
func movePlaces(pending []job.Change, from, to []job.StepState) []job.Change {
	moved := slices.Clone(pending)
	for k, c := range moved {
		i, undo, ok := c.Of.Step()
		if !ok || c.Gone != "" || i >= len(from) {
			continue
		}
		at := slices.IndexFunc(to, func(s job.StepState) bool { return s.Name == from[i].Name })
		if at < 0 {
			moved[k].Gone = from[i].Name
			continue
		}
		moved[k].Of = job.PlaceOfChange(at, undo)
	}
	return moved
}
