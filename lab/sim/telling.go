package sim

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/notify"
)

// The rules here are about who is told of what, and when.

// announced notes whom a save owes an announcement, and that a person is not told of one Error all day.
func (c change) announced() {
	for _, a := range c.after.Untold {
		if a.Seq <= c.before.Seq {
			continue
		}
		if !c.world.late && !c.notesTold() {
			c.hanging.madeBy(c.writer, c.after.ID, a.Seq)
		}
		c.lateness(a)
		c.owed[c.after.ID+"/"+strconv.Itoa(a.Seq)] = map[string]bool{"operator": a.Operator, "listener": a.Listener}
		again := c.before.ProcessState == makegood.JobError && c.after.ProcessState == makegood.JobError && a.Operator
		if again && c.writer != nil && !c.writer.asks && c.writer.looked.Before(c.before.RemindAt) {
			c.wrong("NTF-5: the operator is told of an Error again, %s before its time", c.before.RemindAt.Sub(c.writer.looked))
		}
	}
}

// notesTold reports whether a save notes that receivers were told. The next event tells what it announces besides, since
// it is late by then.
func (c change) notesTold() bool {
	return c.before.TellTries != c.after.TellTries || slices.ContainsFunc(c.before.Untold, func(a job.Announcement) bool {
		return !slices.ContainsFunc(c.after.Untold, func(b job.Announcement) bool {
			return a.Seq == b.Seq && a.Operator == b.Operator && a.Listener == b.Listener
		})
	})
}

// lateness: that a job will be late is told to the operator alone, once a round, in words.
func (c change) lateness(a job.Announcement) {
	if a.ExpectBy.IsZero() {
		return
	}
	told := !c.before.ExpectBy.IsZero() && c.before.WarnAt.IsZero() && c.before.Round == c.after.Round
	// A save may take several events: the first tells that the round is late, and the next begins a round that somebody has
	// asked for, which has its own ExpectBy.
	formerRound := c.before.Round < c.after.Round && !c.before.WarnAt.IsZero() && a.ExpectBy.Equal(c.before.ExpectBy)
	switch {
	case told:
		c.wrong("NTF-7: the operator is told again in round %d that it will be late", c.after.Round)
	case !a.Operator || a.Listener || a.Reason == "":
		c.wrong("NTF-7: that it will be late is told to whom it should not be, or says nothing: %+v", a)
	case c.w.Expect == 0 || !formerRound && (!c.after.WarnAt.IsZero() || !a.ExpectBy.Equal(c.after.ExpectBy)):
		c.wrong("NTF-7: it is expected by %v, and told to be late by %v", c.after.ExpectBy, a.ExpectBy)
	}
}

// mayTell looks at an announcement before it is made. A parked job has none of its own.
func (w *world) mayTell(l *life, who string, n notify.Notice) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hanging.reaches(who, n.Job+"/"+strconv.Itoa(n.Seq))
	j := l.seen[n.Job]
	if _, child := domain.ChildOf(n.Job); child {
		return // The same process may have moved it on, for its parent.
	}
	if l.gone() || n.Seq == 0 || l.submitted[n.Job] {
		return
	}
	owed := false
	for _, a := range j.Untold {
		owed = owed || a.Seq == n.Seq && (who == "operator" && a.Operator || who == "listener" && a.Listener)
	}
	if !owed && !l.troubled {
		w.violate(n.Job, "NTF-2: the %s is told of announcement %d of job %s, and %s knows that it was made", who, n.Seq, n.Job, l.name)
	}
	// A process that could not save what it found out tells over the job as it was before.
	if early := time.Until(j.TellAt); w.exact && who == "listener" && early > 0 && !l.troubled {
		w.violate(n.Job, "NTF-6: it is tried %s early to tell the listener of job %s", early, n.Job)
	}
	for _, e := range l.batch[n.Job] {
		if untrue(j, e) {
			continue // It makes nothing due, though the true one of the same name does.
		}
		if name := w.untried(j, e.Cause()); name != "" && !l.troubled {
			w.violate(n.Job, "NTF-6: the %s is told of job %s before the task of %s is sent", who, n.Job, name)
		}
	}
}

// maxTold is how often somebody hears the same, at most: once, and again whenever that could not be noted. As long as
// another cannot be told is much oftener.
const maxTold = 30

// hears notes that somebody was told. w.mu is held.
func (w *world) hears(who string, n notify.Notice) {
	name := who + " " + n.Job + "/" + strconv.Itoa(n.Seq)
	w.told[name]++
	if n.Seq > 0 && w.told[name] > maxTold {
		w.violate(n.Job, "NTF-5: the %s hears announcement %d of job %s for the %dth time", who, n.Seq, n.Job, w.told[name])
	}
}

// untried returns an attempt that an event made due, and whose task nobody tried to send; empty: there is none.
func (w *world) untried(j job.Job, cause string) string {
	if j.Paused() || j.ProcessState.Finished() || j.ProcessState == makegood.JobError {
		return ""
	}
	of := w.workflowOf(j.ID)
	for _, s := range j.Steps {
		if defOf(of, s.Name).Agent == makegood.AgentWorkflow {
			continue // There is no task to send.
		}
		a := activity(s, j.Desired != makegood.JobProcessed)
		name := on(j.ID, s.Name, a.Attempt)
		if a.State == job.Dispatched && !a.Closing && !a.Queued && a.Cause == cause && w.claimed[name] == 0 && !w.tried[name] {
			return name
		}
	}
	return ""
}

// deaf reports whether nobody can be told of this now.
func (w *world) deaf(who string) bool {
	return strings.HasPrefix(who, "listener") && (w.deafForGood || !w.faults.over && w.deafness.holds(time.Now()))
}

// Announce is what notify.Notifier says, in a world: to the operator.
func (l *life) Announce(ctx context.Context, n notify.Notice) error {
	return l.announce(ctx, "operator", n)
}

func (l *life) announce(ctx context.Context, who string, n notify.Notice) error {
	if ctx.Err() == nil {
		l.w.mayTell(l, who, n)
	}
	if l.w.hangsNow(who) {
		l.hung(who)
		return errNoAnswer
	}
	return l.call(ctx, "announce", who+" "+n.Job+"/"+strconv.Itoa(n.Seq), func() error {
		if l.w.deaf(who) {
			return errNoAnswer
		}
		l.w.hears(who, n)
		return nil
	})
}

// listener is whoever listens to jobs, as a process reaches them.
type listener struct{ *life }

// Announce is what notify.Notifier says, in a world: to whoever listens.
func (l listener) Announce(ctx context.Context, n notify.Notice) error {
	return l.announce(ctx, "listener", n)
}

// AgentAlert is what notify.Notifier says, in a world.
func (l *life) AgentAlert(ctx context.Context, agent, paused string) error {
	return l.call(ctx, "agent-silent", agent, func() error { return nil })
}
