package machine

import (
	"slices"
	"time"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

// told removes the announcements that were delivered to all their receivers.
func (t *turn) told(e job.Told) Verdict {
	news := false
	for i := range t.job.Untold {
		a := &t.job.Untold[i]
		if a.Seq > e.Seq {
			continue
		}
		news = news || e.Operator && a.Operator || e.Listener && a.Listener
		a.Operator, a.Listener = a.Operator && !e.Operator, a.Listener && !e.Listener
	}
	if !news {
		return Verdict{Kind: Duplicate, Reason: "told already"}
	}
	if e.Listener {
		t.job.TellTries, t.job.TellAt = 0, time.Time{}
	}
	t.forgetTold()
	return Verdict{Kind: Applied}
}

// notHeard backs off further each time a listener cannot be told, and gives up announcements that are too old.
func (t *turn) notHeard(e job.NotHeard) Verdict {
	waiting := slices.ContainsFunc(t.job.Untold, func(a job.Announcement) bool { return a.Listener && a.Seq == e.Seq })
	if !waiting || t.now.Before(t.job.TellAt) {
		return Verdict{Kind: Duplicate, Reason: "it is known that the listener did not hear it"}
	}
	for i := range t.job.Untold {
		if a := &t.job.Untold[i]; a.Listener && !t.now.Before(a.At.Add(limits.MaxTell)) {
			a.Listener = false
			t.job.Unheard++
		}
	}
	t.job.TellAt = t.now.Add(doubled[time.Duration](limits.TellAgain, t.job.TellTries, limits.MaxTellAgain))
	t.job.TellTries++
	t.forgetTold()
	return Verdict{Kind: Applied}
}

func (t *turn) forgetTold() {
	t.job.Untold = slices.DeleteFunc(t.job.Untold, func(a job.Announcement) bool { return !a.Operator && !a.Listener })
}

// published takes the changes off that were published.
func (t *turn) published(e job.Published) Verdict {
	if !t.job.Changes.Forget(e.Seq) {
		return Verdict{Kind: Duplicate, Reason: "it is known that they were published"}
	}
	return Verdict{Kind: Applied}
}

// notPublished sets the time of the next try, if no other event is due soon.
func (t *turn) notPublished(e job.NotPublished) Verdict {
	c := &t.job.Changes
	soon := t.now.Add(limits.MaxTellAgain)
	switch {
	case len(c.Pending) == 0 || c.Seq != e.Seq:
		return Verdict{Kind: Duplicate, Reason: "other changes wait to be published"}
	case !c.At.IsZero(), !t.job.CompleteBy.IsZero() && !t.job.CompleteBy.After(soon):
		return Verdict{Kind: Duplicate, Reason: "it is tried again soon"}
	}
	c.At = t.now.Add(limits.TellAgain)
	return Verdict{Kind: Applied}
}

// asked notes that the people to complete a step were told.
func (t *turn) asked(e job.Asked) Verdict {
	at, verdict := t.waitOf(e.Step, e.Attempt)
	if verdict.Kind != Applied {
		return verdict
	}
	a := t.activity(at)
	if e.N <= a.Wait.Heard || e.N > a.Wait.Asked {
		return Verdict{Kind: Duplicate, Reason: "they were told already"}
	}
	wait := *a.Wait
	wait.Heard, wait.Tries, wait.AskAt = e.N, 0, time.Time{}
	a.Wait = &wait
	a.LookAt = t.nextMoment(at)
	return verdict
}

// notAsked backs off further each time the people to complete a step cannot be told.
func (t *turn) notAsked(e job.NotAsked) Verdict {
	at, verdict := t.waitOf(e.Step, e.Attempt)
	if verdict.Kind != Applied {
		return verdict
	}
	a := t.activity(at)
	if e.N <= a.Wait.Heard || e.N != a.Wait.Asked || t.now.Before(a.Wait.AskAt) {
		return Verdict{Kind: Duplicate, Reason: "it is known that they could not be told"}
	}
	wait := *a.Wait
	wait.AskAt = t.now.Add(doubled[time.Duration](limits.TellAgain, wait.Tries, limits.MaxTellAgain))
	wait.Tries++
	a.Wait = &wait
	a.LookAt = t.nextMoment(at)
	return verdict
}
