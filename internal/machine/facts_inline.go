package machine

import (
	"slices"

	"github.com/makegood-dev/makegood/internal/job"
)

// An inline attempt runs in the process that decides. The save that opens it is its claim as well: its holder and its
// end are in the job. So questions about it are answered from the job, no command names it, and an event that comes
// twice runs it once. Silence ends it as it ends any claimed attempt: its outcome is unknown.

// lane returns who runs the next attempt of a side, if it is to be inline; empty: it goes to the queue of its agent.
func (t *turn) lane(at side) string {
	l, p := t.facts.Lane, t.plan(at)
	agent := agentOf(t.w.Steps[at.step], at.undo)
	switch {
	case !t.w.Steps[at.step].Inline || !slices.Contains(l.Agents, agent):
		return ""
	case p.heartbeat > 0 || slices.Contains(l.Queued, t.name(at)) || t.activity(at).Alone:
		return ""
	case !l.Until.IsZero() && t.now.Add(p.timeout.Std()).After(l.Until):
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
	// Others may run beside it, and end its process.
	found.Claim = job.Claim{Attempt: a.Attempt, LockedBy: a.Inline, StartedAt: a.At, CompleteBy: a.LookAt, Beside: 1}
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

// Inlined returns the attempts that the save of this LockedBy has opened, which its process is to run.
func Inlined(j job.Job, lockedBy string) (opened []job.Dispatch) {
	for i := range j.Steps {
		if a, undo, ok := dispatched(&j.Steps[i]); ok && a.Inline != "" && a.Inline == lockedBy {
			opened = append(opened, job.Dispatch{Step: j.Steps[i].Name, Attempt: a.Attempt, Undo: undo})
		}
	}
	return opened
}

// ClaimInline returns the claim of the inline attempt of a step that is out. ok is false if it has none.
func ClaimInline(s *job.StepState) (claim job.Claim, ok bool) {
	a, _, out := dispatched(s)
	if !out || a.Inline == "" {
		return job.Claim{}, false
	}
	return job.Claim{Attempt: a.Attempt, LockedBy: a.Inline, StartedAt: a.At, CompleteBy: a.LookAt}, true
}
