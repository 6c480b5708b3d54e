package machine

import (
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
)

// Submission is what a job is born from.
type Submission struct {
	ID         string
	Definition string
	Input      job.Payload
	InputHash  string
	// Birth is a nonce: see job.Job.
	Birth string
	// StartAt is when the job may start; zero: at once. ReplyTo is the listener for its changes.
	StartAt time.Time
	ReplyTo string
	// Tenant is the customer of the job, Labels describe it further. Priority is empty for normal.
	Tenant   string
	Labels   map[string]string
	Priority makegood.Priority
	// Trace is the trace context that the submission brought: see job.Job.
	Trace []byte
	// Edit is the edit of the map that the job is a part of; nil: none.
	Edit *job.MapEdit
	// Later: the job is to be stored without its first attempts, because the process that stores it does not send their
	// tasks. Submitted, or the Supervisor, makes them.
	Later bool
}

// Submit returns the job as it is to be stored: Pending, with its first attempts open. It may want facts, as Apply
// does, and then returns the job as far as it is decided. Gates let in attempts of stored jobs alone: those of agents
// with a limit stand before their gates until Submitted has them looked at.
func Submit(w makegood.Workflow, s Submission, facts Facts, now time.Time) (job.Job, Verdict) {
	j := job.Job{
		ID: s.ID, Workflow: w.Name, Definition: s.Definition, Round: 1,
		ProcessState: makegood.JobPending, Desired: makegood.JobProcessed,
		CreatedAt: now, StartAt: s.StartAt, ReplyTo: s.ReplyTo, Tenant: s.Tenant, Labels: s.Labels, Priority: s.Priority, Trace: s.Trace,
		Input: s.Input, InputHash: s.InputHash, Birth: s.Birth,
		Steps: stepsIn(facts.Room, len(w.Steps)),
	}
	for i, s := range w.Steps {
		j.Steps[i].Name = s.Name
	}
	if s.Edit != nil {
		j.SetEdit(*s.Edit)
	}
	t := newTurn(w, j, facts, job.Submitted{}.Cause(), now)
	t.unstored = true
	t.renewDeadline()
	t.expect()
	if t.job.ReplyTo != "" {
		t.announce(false, true)
	}
	if s.Later {
		t.job.CompleteBy = t.now
		t.job.Needs = t.needs()
		return t.job, Verdict{Kind: Applied}
	}
	t.advance()
	t.hold(false)
	if len(t.wants) > 0 {
		return t.job, Verdict{Kind: Wanting, Wants: t.wants}
	}
	t.foresee()
	t.touch()
	t.tell(makegood.JobPending)
	t.noteChanges(job.Job{})
	t.setKey(time.Time{}, false)
	mustAllow(makegood.JobPending, t.job.ProcessState)
	return t.job, Verdict{Kind: Applied, Entries: t.entries}
}

// stepsIn returns n empty steps, in room where that is large enough.
func stepsIn(room []job.StepState, n int) []job.StepState {
	if n > cap(room) {
		return make([]job.StepState, n)
	}
	room = room[:n]
	clear(room)
	return room
}

// submitted makes the first attempts of a job that was stored without them, and sends those that a gate lets in.
func (t *turn) submitted() Verdict {
	if t.admitAll() {
		return Verdict{Kind: Applied}
	}
	if t.begun() {
		return Verdict{Kind: Duplicate, Reason: "the job was stored with its first attempts"}
	}
	if t.job.ProcessState != makegood.JobPending || t.job.Paused() || t.early() {
		return Verdict{Kind: Duplicate, Reason: "no step is to be started"}
	}
	return Verdict{Kind: Applied}
}
