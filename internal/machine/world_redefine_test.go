package machine_test

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"pgregory.net/rapid"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
)

// drawMending makes what leads to a job that is changed: a failure, a restart, a verb, and most often a resubmit.
func (x *world) drawMending() (job.Event, bool) {
	switch rapid.IntRange(0, 9).Draw(x.t, "mending") {
	case 0, 1:
		x.claim()
		return x.reply(saysFailed)
	case 2, 3:
		x.claim()
		return x.reply(saysDone)
	case 6:
		if rapid.Bool().Draw(x.t, "undone") {
			x.requests++
			return job.Requested{Verb: makegood.VerbUndo, Request: fmt.Sprintf("r%d", x.requests)}, true
		}
		return x.drawOwn(), true
	case 4:
		return job.DeadlinePassed{Key: x.job.CompleteBy}, !x.job.CompleteBy.IsZero()
	case 5:
		return x.drawRequest(), true
	default:
		x.requests++
		e := job.Requested{Verb: makegood.VerbResubmit, Request: fmt.Sprintf("r%d", x.requests)}
		x.drawRedefinition(&e)
		return e, true
	}
}

// drawRequest asks for a verb.
func (x *world) drawRequest() job.Event {
	x.requests++
	if x.w.Part != nil && rapid.IntRange(0, 2).Draw(x.t, "edits") == 0 {
		return x.drawEdit()
	}
	verb := rapid.SampledFrom(domain.Verbs()).Draw(x.t, "verb")
	e := job.Requested{Verb: verb, Request: fmt.Sprintf("r%d", x.requests)}
	switch verb {
	case makegood.VerbReschedule:
		e.StartAt = x.now.Add(time.Duration(rapid.IntRange(-60, 60).Draw(x.t, "startAt")) * time.Second)
	case makegood.VerbResubmit:
		x.drawRedefinition(&e)
	case makegood.VerbRedrive:
		x.drawIndexes(&e)
	case makegood.VerbEdit:
		e.Timeout = makegood.Duration(rapid.IntRange(-1, 100).Draw(x.t, "timeout")) * makegood.Second
	}
	return e
}

// drawRedefinition lets a resubmit move the job to another definition, or give it another input. The definition is
// a changed copy of the job's own; the core decides whether the job may move to it.
func (x *world) drawRedefinition(e *job.Requested) {
	if rapid.IntRange(0, 3).Draw(x.t, "input") == 0 {
		input := strconv.Itoa(x.requests)
		e.Input = &job.Payload{Inline: []byte(input), Bytes: len(input)}
	}
	if x.w.Part != nil || rapid.Bool().Draw(x.t, "same definition") { // The definition of a part follows from that of its job.
		return
	}
	w := x.w
	w.Steps = slices.Clone(w.Steps)
	for i := range w.Steps {
		x.drawChange(&w.Steps[i])
	}
	switch gone := rapid.IntRange(0, 2*len(w.Steps)).Draw(x.t, "gone"); {
	case gone < len(w.Steps) && len(w.Steps) > 1:
		name := w.Steps[gone].Name
		w.Steps = slices.Delete(w.Steps, gone, gone+1)
		for i := range w.Steps {
			w.Steps[i].Needs = slices.DeleteFunc(slices.Clone(w.Steps[i].Needs), func(n string) bool { return n == name })
		}
	case len(w.Steps) < 8:
		fresh := makegood.Step{Name: fmt.Sprintf("n%d", len(x.definitions)), Agent: "a", Needs: []string{w.Steps[0].Name}, Undo: &makegood.Undo{Action: "u"}}
		w.Steps = append(w.Steps, fresh)
	}
	if rapid.Bool().Draw(x.t, "another order") {
		slices.Reverse(w.Steps)
	}
	e.Definition = fmt.Sprintf("d%d", len(x.definitions)+1)
	x.definitions[e.Definition] = domain.WithDefaults(w)
}

// of is the definition that a job has.
func (x *world) of(j job.Job) makegood.Workflow {
	if w, ok := x.definitions[j.Definition]; ok {
		return w
	}
	return x.first
}

// noteNotDone notes that nothing stands of a step, and holds that nothing else has come of that.
func (x *world) noteNotDone(before job.Job, e job.Event) {
	said, is := e.(job.Settled)
	was, now := activityOf(before, said.Step, false), activityOf(x.job, said.Step, false)
	if !is || !said.NotDone || before.Rev+1 != x.job.Rev || !was.Unknown || now.Unknown {
		return
	}
	if now.State != was.State && x.job.Incarnation == before.Incarnation || now.Silent != nil {
		x.t.Fatalf("step %s was settled as not done: it was %+v, and is %+v", said.Step, was, now)
	}
	x.nothingStands(said.Step)
	x.notDone[said.Step] = now.Attempt
}

// drawChange changes something of a step, or nothing.
func (x *world) drawChange(s *makegood.Step) {
	if s.Agent == makegood.AgentWorkflow {
		x.drawChildChange(s)
		return
	}
	switch rapid.IntRange(0, 6).Draw(x.t, "change") {
	case 0:
		s.Timeout += makegood.Second
	case 1:
		if s.Agent == "a" {
			s.Agent = rapid.SampledFrom([]string{"b", outside}).Draw(x.t, "another agent")
		}
	case 4:
		s.Action = "another"
	case 2:
		if domain.CanUndo(*s) {
			undo := *s.Undo
			undo.Action, s.Undo = "v", &undo
		}
	case 3:
		s.Undo = nil
	}
}

// redefined: what was begun is there, and as it was.
func (x *world) redefined(before, after job.Job) {
	to := x.definitions[after.Definition]
	old := x.w
	x.w = to
	for _, s := range before.Steps {
		if _, stays := after.Step(s.Name); !stays {
			// Should a step of this name come back, it is another.
			delete(x.replay.sides, named(s.Name, false))
			delete(x.replay.sides, named(s.Name, true))
		}
	}
	if after.Round > before.Round {
		return
	}
	for i, s := range before.Steps {
		at := slices.IndexFunc(to.Steps, func(d makegood.Step) bool { return d.Name == s.Name })
		begun := s.Forward.State != job.NotStarted && s.Forward.State != job.Failed && s.Forward.State != job.Withdrawn
		switch {
		case at < 0 && (begun || x.mayStand(s.Name)):
			x.t.Fatalf("step %s is gone, and was %+v", s.Name, s.Forward)
		case at < 0:
		case begun && (to.Steps[at].Agent != old.Steps[i].Agent || to.Steps[at].Timeout != old.Steps[i].Timeout):
			x.t.Fatalf("step %s is %q, and is described as %+v now, as %+v before", s.Name, s.Forward.State, to.Steps[at], old.Steps[i])
		case s.Undo.State == job.Done && domain.CanUndo(old.Steps[i]) && (!domain.CanUndo(to.Steps[at]) || to.Steps[at].Undo.Action != old.Steps[i].Undo.Action):
			x.t.Fatalf("the undo of step %s is done, and is described as %+v now, as %+v before", s.Name, to.Steps[at].Undo, old.Steps[i].Undo)
		}
	}
}
