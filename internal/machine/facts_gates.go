package machine

import (
	"slices"

	"github.com/makegood-dev/makegood/internal/job"
)

// The gate of an agent lets so many attempts be with it at once: each of them has a permit from before its task is sent
// until it is over. Who has one is stored beside the gate, and is a fact here. An attempt without one stands before
// the gate (Activity.Queued): it has its number, and no task of it was sent. So it may be taken back at any time, and
// only the job's own save sends it. The gate tells it by a hint (Admitted) that it may go, and the job looks for
// itself, too, at doubling intervals. That it is over is read from the job.

// limited reports whether a side has a gate before it.
func (t *turn) limited(at side) bool {
	_, limited := t.facts.Held.Limit(agentOf(t.w.Steps[at.step], at.undo))
	return limited && !t.isChild(at) && !t.waitsByItself(at)
}

// unsent answers a question about the claim of an attempt that stands before a gate: no task of it was ever sent.
func unsent(ask Ask) job.Found {
	if ask.Kind == AskLook {
		return job.Found{Finding: job.FoundOpen}
	}
	return job.Found{Finding: job.FoundNobody}
}

// AtGate reports whether an attempt of a job stands before a gate.
func AtGate(j job.Job) bool {
	return slices.ContainsFunc(j.Steps, func(s job.StepState) bool { return s.Forward.Queued || s.Undo.Queued })
}

// Stands reports whether the attempt of a ticket is one that a permit is for: it is out, with its agent or before its
// gate. No other attempt of its step or its undo has its number.
func Stands(j job.Job, of job.Ticket) bool {
	s, ok := j.Step(of.Step)
	if !ok || j.Birth != of.Birth {
		return false
	}
	a, _, out := dispatched(&s)
	return out && a.Attempt == of.Attempt
}

// Queued reports whether the attempt of a ticket stands before its gate.
func Queued(j job.Job, of job.Ticket) bool {
	s, _ := j.Step(of.Step)
	a, _, _ := dispatched(&s)
	return Stands(j, of) && a.Queued
}
