package machine_test

import (
	"cmp"

	"pgregory.net/rapid"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

// replay is what somebody knows of a job who hears of every change, and of nothing else.
type replay struct {
	seen, known int
	state       makegood.ProcessState
	paused      bool
	round       int
	sides       map[string]replayed
}

// replayed is a step, or its undo, as its last change has it.
type replayed struct {
	state   makegood.StepState
	attempt int
}

// checkChanges plays what is new of the changes of a job, and holds what comes of it to what the job is.
func (x *world) checkChanges() {
	r := &x.replay
	if !x.publishes {
		if x.job.Changes.Seq != 0 || len(x.job.Changes.Pending) != 0 {
			x.t.Fatalf("nobody hears of changes, and the job keeps %+v", x.job.Changes)
		}
		return
	}
	if len(x.job.Changes.Pending) > limits.MaxUnpublished {
		x.t.Fatalf("%d changes are pending", len(x.job.Changes.Pending))
	}
	for _, c := range x.job.After(r.seen).Changes {
		x.playChange(c)
	}
	if x.job.Changes.Seq != r.seen && x.job.CompleteBy.IsZero() {
		x.t.Fatalf("changes up to %d of %d were ever pending", r.seen, x.job.Changes.Seq)
	}
	if x.job.Changes.Seq > 0 {
		x.checkReplay()
	}
	if rapid.IntRange(0, 2).Draw(x.t, "published") == 0 {
		r.known = r.seen
	}
}

func (x *world) playChange(c makegood.Change) {
	r := &x.replay
	if c.Number != r.seen+max(1, c.Lost) {
		x.t.Fatalf("change %d follows %d: %+v", c.Number, r.seen, c)
	}
	r.seen = c.Number
	switch {
	case c.Lost > 0:
		x.t.Fatalf("changes were lost, and nobody was ever away for long: %+v", c)
	case c.Step == "":
		if c.From != string(r.state) {
			x.t.Fatalf("%+v, and the job was %q", c, r.state)
		}
		r.state, r.paused, r.round = makegood.ProcessState(c.To), c.Paused, c.Round
	default:
		name := named(c.Step, c.Undo)
		if was := cmp.Or(r.sides[name].state, makegood.StepNotStarted); c.From != string(was) {
			x.t.Fatalf("%+v, and it was %q", c, was)
		}
		if r.sides == nil {
			r.sides = map[string]replayed{}
		}
		r.sides[name] = replayed{makegood.StepState(c.To), c.Attempt}
	}
}

func (x *world) checkReplay() {
	r, j := x.replay, x.job
	if r.state != j.ProcessState || r.paused != j.Paused() || r.round != j.Round {
		x.t.Fatalf("the job is %s, paused %v, in round %d; its changes say %+v", j.ProcessState, j.Paused(), j.Round, r)
	}
	for _, s := range j.Steps {
		for _, undo := range []bool{false, true} {
			a := activityOf(j, s.Name, undo)
			got := r.sides[named(s.Name, undo)]
			if string(got.state) == string(makegood.StepNotStarted) {
				got.state = ""
			}
			if (got != replayed{makegood.StepState(a.ChangeState()), a.Attempt}) {
				x.t.Fatalf("%s is %s in attempt %d; its changes say %+v", named(s.Name, undo), a.ChangeState(), a.Attempt, got)
			}
		}
	}
}

// drawPublished says that changes were published, or could not be.
func (x *world) drawPublished() job.Event {
	if rapid.Bool().Draw(x.t, "could be published") {
		return job.Published{Seq: x.job.Changes.Seq}
	}
	return job.NotPublished{Seq: x.job.Changes.Seq}
}
