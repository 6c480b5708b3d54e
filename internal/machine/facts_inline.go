package machine

import (
	"slices"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

// An inline attempt runs in the process that decides. The save that opens it is its claim as well: its holder and its
// end are in the job. So questions about it are answered from the job, no command names it, and an event that comes
// twice runs it once. Silence ends it as it ends any claimed attempt: its outcome is unknown.
//
// The save that opens an inline attempt may open a chain: attempts of the steps behind it, which the process runs one
// after the other, with one save for all. Until the step before it is done, an attempt of a chain is ahead of its turn.
// No reply to it counts then; its silence lets its step wait for its turn, with an unknown outcome.

// lane returns who runs the next attempt of a side, if it is to be inline; empty: it goes to the queue of its agent.
func (t *turn) lane(at side) string {
	l := t.facts.Lane
	agent := agentOf(t.w.Steps[at.step], at.undo)
	switch {
	case !t.w.Steps[at.step].Inline || !slices.Contains(l.Agents, agent):
		return ""
	case t.plan(at).heartbeat > 0 || slices.Contains(l.Queued, t.name(at)) || t.activity(at).Alone:
		return ""
	case t.limited(at):
		return ""
	case !l.Until.IsZero() && t.inlineEnd(at, t.now).After(l.Until):
		return ""
	}
	return l.LockedBy
}

// unsaved reports whether an inline attempt was opened for the coming save: no process runs it yet.
func (t *turn) unsaved(a *job.Activity) bool {
	return a.State == job.Dispatched && a.Inline != "" && a.Inline == t.facts.Lane.LockedBy
}

// askInline answers a question about the inline attempt that is out, from the job.
func (t *turn) askInline(ask Ask) (found job.Found, known bool) {
	i, ok := t.indexOf(ask.Step)
	if !ok {
		return found, false
	}
	a := t.activity(side{i, ask.Undo})
	if a.State != job.Dispatched || a.Inline == "" || a.Attempt != ask.Attempt {
		return found, false
	}
	found.Claim = inlineClaim(a)
	switch {
	case t.unsaved(a) && ask.Kind == AskLook:
		found = job.Found{Finding: job.FoundOpen}
	case t.unsaved(a):
		found = job.Found{Finding: job.FoundNobody}
	case ask.Kind == AskClose && ask.LockedBy == a.Inline:
		found.Finding = job.FoundReplied
	case ask.Kind == AskClose && !t.now.Before(a.LookAt):
		found.Finding = job.FoundSilent
	default:
		found.Finding = job.FoundHeld
	}
	return found, true
}

// inlineEnd is when an inline attempt is over that is opened at a time. In a chain it begins some time later.
func (t *turn) inlineEnd(at side, opened time.Time) time.Time {
	end := opened.Add(t.plan(at).timeout.Std())
	if !t.onTurn(at) {
		end = end.Add(limits.ChainTime)
	}
	return end
}

// onTurn reports whether the steps before a side let it begin.
func (t *turn) onTurn(at side) bool {
	s := t.w.Steps[at.step]
	return at.undo || s.Any || !slices.ContainsFunc(domain.Before(t.w, s), func(name string) bool {
		before, _ := t.job.Step(name)
		return !through(before.Forward.State)
	})
}

// ahead reports whether the attempt of a side is out in a chain, and its turn has not come.
func (t *turn) ahead(at side) bool {
	a := t.activity(at)
	return a.State == job.Dispatched && a.Inline != "" && !t.onTurn(at)
}

// behind returns the side whose attempt is out in a chain, right behind the attempt of another.
func (t *turn) behind(at side) (next side, ok bool) {
	for _, i := range t.graph.followers[at.step] {
		next = side{i, false}
		if !at.undo && t.ahead(next) && t.activity(next).Inline == t.activity(at).Inline {
			return next, true
		}
	}
	return next, false
}

// inlineClaim is the claim of an attempt that is out and inline: none, if it is not. Others may run beside it, and end
// its process.
func inlineClaim(a *job.Activity) job.Claim {
	if a.Inline == "" {
		return job.Claim{}
	}
	return job.Claim{Attempt: a.Attempt, LockedBy: a.Inline, StartedAt: a.At, CompleteBy: a.LookAt, Beside: 1}
}

// Inlined returns the attempts that the save of this LockedBy has opened, which its process is to run: each with those
// behind it in its chain.
func Inlined(w makegood.Workflow, j job.Job, lockedBy string) (opened [][]job.Dispatch) {
	var t turn
	for i := range j.Steps {
		a, undo, ok := dispatched(&j.Steps[i])
		if mine := ok && a.Inline != "" && a.Inline == lockedBy; !mine {
			continue
		}
		if t.graph == nil {
			t = newTurn(w, j, Facts{}, "", time.Time{})
		}
		at := side{i, undo}
		if t.ahead(at) {
			continue
		}
		var chain []job.Dispatch
		for ok := true; ok; at, ok = t.behind(at) {
			chain = append(chain, job.Dispatch{Step: t.name(at), Attempt: t.activity(at).Attempt, Undo: at.undo})
		}
		opened = append(opened, chain)
	}
	return opened
}

// ClaimWithin returns the claim of the attempt of a step that is out, where it needs no item: an inline attempt has
// its claim in the job, and the holder of one that is done by a child is that job, named when it is over, too. ok is
// false for any other.
func ClaimWithin(w makegood.Workflow, j job.Job, step int) (claim job.Claim, ok bool) {
	s := &j.Steps[step]
	a, _, out := dispatched(s)
	switch {
	case w.Steps[step].Agent == makegood.AgentWorkflow && s.Forward.Attempt > 0:
		t := turn{job: j}
		claim.LockedBy = domain.HolderOf(t.childOf(side{step: step}))
		if out {
			claim.Attempt, claim.StartedAt = a.Attempt, a.Opened()
		}
		return claim, true
	case !out || a.Inline == "":
		return job.Claim{}, false
	}
	claim = inlineClaim(a)
	claim.Beside = 0 // It is not known.
	return claim, true
}
