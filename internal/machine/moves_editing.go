package machine

import (
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

// editMap takes new figures for a map: from a person, or, for a part, from its parent.
func (t *turn) editMap(e job.MapEdit) Verdict {
	if handed := t.w.Part != nil && e.N > 0; handed && t.takeEdit(e) {
		return Verdict{Kind: Applied}
	} else if handed {
		return Verdict{Kind: Duplicate, Reason: "it has this edit, or a later one"}
	}
	if why := t.notToEdit(e); why != "" {
		return Verdict{Kind: Refused, Reason: why}
	}
	was := t.job.EditOf(e.Step)
	if e.Concurrency == 0 {
		e.Concurrency = was.Concurrency
	}
	if e.Tolerate == nil {
		e.Tolerate = was.Tolerate
	}
	if was.N > 0 && was.Same(e) {
		return Verdict{Kind: Duplicate, Reason: "it has these figures"}
	}
	e.N = was.N + 1
	t.takeEdit(e)
	return Verdict{Kind: Applied}
}

// takeEdit keeps an edit, if it is the latest, and reports whether it is. The children that are to have it are
// looked at soon.
func (t *turn) takeEdit(e job.MapEdit) bool {
	if e.N <= t.job.EditOf(e.Step).N {
		return false
	}
	t.job.SetEdit(e)
	for i := range t.job.Steps {
		if at, out := t.out(i); out && passes(t.w, &t.job, i, e) {
			a := t.activity(at)
			a.LookAt = earlier(a.LookAt, t.now.Add(limits.ChildLook))
		}
	}
	return true
}
