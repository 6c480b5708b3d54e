package machine

import (
	"slices"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

// announce notes that people must be told of the job's present state.
func (t *turn) announce(operator, listener bool) {
	t.job.Seq++
	t.job.Untold = append(t.job.Untold, job.Announcement{
		Seq: t.job.Seq, ProcessState: t.job.ProcessState, Reason: t.job.Reason, At: t.now,
		Operator: operator, Listener: listener,
	})
	t.giveUpOldest()
}

// giveUpOldest bounds the undelivered announcements: those for the listener alone go first, oldest first.
func (t *turn) giveUpOldest() {
	if len(t.job.Untold) <= job.MaxUntold {
		return
	}
	oldest := max(0, slices.IndexFunc(t.job.Untold, func(a job.Announcement) bool { return !a.Operator }))
	if t.job.Untold[oldest].Listener {
		t.job.Unheard++
	}
	t.job.Untold = slices.Delete(t.job.Untold, oldest, oldest+1)
}

// tell notes that the listener must be told, if the state has changed. stop has already noted an Error.
func (t *turn) tell(was makegood.ProcessState) {
	is := t.job.ProcessState
	if is != was && is != makegood.JobError && t.job.ReplyTo != "" {
		t.announce(false, true)
	}
}

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
