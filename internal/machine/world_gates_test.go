package machine_test

import (
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/machine"
)

// drawLimit gives an agent a limit, or takes it away.
func (x *world) drawLimit() {
	limit := job.Hold{Kind: makegood.HoldLimit, Name: rapid.SampledFrom([]string{"a", "b", outside}).Draw(x.t, "limited agent"), Limit: job.Limit{Most: 1}, Since: x.now}
	if _, on := x.holds.Limit(limit.Name); !on {
		x.holds = append(slices.Clone(x.holds), limit)
		return
	}
	x.holds = slices.DeleteFunc(slices.Clone(x.holds), func(h job.Hold) bool { return h.String() == limit.String() })
}

// permit is the answer of a gate, which gives permits when it pleases, and takes none back from an attempt that is out.
func (x *world) permit(a machine.Ask) job.Found {
	which := id(a.Step, a.Attempt)
	if !x.permitted[which] && rapid.Bool().Draw(x.t, "permit") {
		x.permitted[which] = true
	}
	if x.permitted[which] {
		return job.Found{Finding: job.FoundAdmitted}
	}
	return job.Found{Finding: job.FoundQueued}
}

// admitted is the hint of a gate, true or not, about a step that is out.
func (x *world) admitted() (job.Event, bool) {
	for _, s := range x.job.Steps {
		for _, a := range []job.Activity{s.Forward, s.Undo} {
			if a.State == job.Dispatched && rapid.Bool().Draw(x.t, "this one") {
				return job.Admitted{Step: s.Name, Attempt: a.Attempt}, true
			}
		}
	}
	return nil, false
}

// checkQueued: an attempt before a gate was never sent, is looked at soon, and is one that is wanted; a release without
// gates leaves its job alone.
func (x *world) checkQueued(which string, sent bool, a job.Activity) {
	switch {
	case sent:
		x.t.Fatalf("attempt %s stands before a gate, and was sent", which)
	case a.Inline != "":
		x.t.Fatalf("attempt %s stands before a gate, and is inline", which)
	case a.LookAt.After(x.now.Add(limits.MaxChildLook)):
		x.t.Fatalf("attempt %s stands before a gate, and its job looks at %v", which, a.LookAt)
	case !x.live() && !a.Held():
		x.t.Fatalf("attempt %s stands before a gate in a job that is %s, paused %v", which, x.job.ProcessState, x.job.Paused())
	case x.job.Needs < job.LevelGates:
		x.t.Fatalf("attempt %s stands before a gate, and a release of level %d decides about the job", which, x.job.Needs)
	}
}

// checkGates: of an agent with a limit, no attempt is sent without a permit.
func (x *world) checkGates(before job.Job) {
	for i, s := range x.job.Steps {
		for _, undo := range []bool{false, true} {
			was, is := activityOf(before, s.Name, undo), activityOf(x.job, s.Name, undo)
			opened := is.State == job.Dispatched && !is.Queued && (is.Attempt > was.Attempt || was.Queued)
			if !opened || undo && !domain.CanUndo(x.w.Steps[i]) {
				continue
			}
			agent := machine.AgentOf(x.w, s.Name, undo)
			_, limited := x.held.Limit(agent)
			if limited && domain.GetsTasks(agent) && !x.permitted[id(s.Name, is.Attempt)] {
				x.t.Fatalf("attempt %d of step %s is sent without a permit", is.Attempt, s.Name)
			}
			if was.Queued && is.Attempt == was.Attempt && !is.At.Equal(x.now.Truncate(time.Millisecond)) {
				x.t.Fatalf("attempt %d of step %s is sent at %v, and its times begin at %v", is.Attempt, s.Name, x.now, is.At)
			}
		}
	}
}
