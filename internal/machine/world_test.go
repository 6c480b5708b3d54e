package machine_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/machine"
	"pgregory.net/rapid"
)

// world is a job in a store that keeps the contract of package store, with agents that claim behind
// the Scheduler's back.
type world struct {
	t        *rapid.T
	w        makegood.Workflow
	job      makegood.Job
	now      time.Time
	events   []makegood.Event
	requests int
	// used are the attempts ever opened; undecided the steps of this round that may have had an effect.
	used   map[string]bool
	maybe  map[string]bool
	undone map[string]bool
	skip   map[string]bool
	bad    map[machine.Want]string
	// idle are the attempts that had no effect; claimed says by whom each was claimed.
	idle    map[string]bool
	said    map[string]bool
	claimed map[string]string
}

func drawWorkflow(t *rapid.T) makegood.Workflow {
	n := rapid.IntRange(1, 5).Draw(t, "steps")
	w := makegood.Workflow{Name: "random"}
	for i := range n {
		s := makegood.Step{Name: fmt.Sprintf("s%d", i), Agent: "a", Needs: []string{}}
		for j := range i {
			if rapid.Bool().Draw(t, "need") {
				s.Needs = append(s.Needs, fmt.Sprintf("s%d", j))
			}
		}
		s.StartBy = makegood.Duration(rapid.IntRange(1, 40).Draw(t, "startBy")) * makegood.Second
		s.Timeout = makegood.Duration(rapid.IntRange(1, 40).Draw(t, "timeout")) * makegood.Second
		s.Retry.Attempts = rapid.IntRange(1, 3).Draw(t, "attempts")
		s.Shared = rapid.IntRange(0, 5).Draw(t, "shared") == 0
		switch rapid.IntRange(0, 3).Draw(t, "undo") {
		case 0, 1:
			s.Undo = &makegood.Undo{Action: "u"}
		case 2:
			s.Undo = &makegood.Undo{None: true}
		}
		w.Steps = append(w.Steps, s)
	}
	if rapid.IntRange(0, 3).Draw(t, "jobTimeout") == 0 {
		w.Timeout = makegood.Duration(rapid.IntRange(5, 100).Draw(t, "timeout")) * makegood.Second
	}
	switch rapid.IntRange(0, 3).Draw(t, "onFailure") {
	case 0:
		w.OnFailure.Action = makegood.FailureStop
	case 1:
		w.OnFailure = makegood.OnFailure{Action: makegood.FailureWait, Wait: 20 * makegood.Second}
	}
	return w.WithDefaults()
}

func newWorld(t *rapid.T) *world {
	x := &world{
		t: t, w: drawWorkflow(t), now: time.UnixMilli(1_000_000).UTC(),
		used: map[string]bool{}, skip: map[string]bool{}, bad: map[machine.Want]string{}, claimed: map[string]string{}, idle: map[string]bool{}, said: map[string]bool{},
	}
	for _, s := range x.w.Steps {
		x.skip[s.Name] = rapid.IntRange(0, 4).Draw(t, "skip") == 0
		for _, undo := range []bool{false, true} {
			if rapid.IntRange(0, 14).Draw(t, "bad") == 0 {
				x.bad[machine.Want{Step: s.Name, Undo: undo}] = "no such field"
			}
		}
	}
	x.newRound()
	facts := machine.Facts{Random: rapid.Uint64().Draw(t, "random")}
	submission := machine.Submission{ID: "j", Definition: "d", Later: rapid.IntRange(0, 4).Draw(t, "later") == 0}
	if rapid.IntRange(0, 3).Draw(t, "listens") == 0 {
		submission.ReplyTo = "shop"
	}
	if rapid.IntRange(0, 4).Draw(t, "startLater") == 0 {
		submission.StartAt = x.now.Add(time.Duration(rapid.IntRange(0, 60).Draw(t, "startAt")) * time.Second)
	}
	for {
		job, v := machine.Submit(x.w, submission, facts, x.now)
		if v.Kind == machine.Wanting {
			x.answer(&facts, v.Wants)
			continue
		}
		job.Rev = 1
		x.job = job
		break
	}
	x.check(makegood.Job{})
	return x
}

func (x *world) newRound() { x.maybe, x.undone = map[string]bool{}, map[string]bool{} }

func (x *world) answer(facts *machine.Facts, wants []machine.Want) {
	values := maps.Clone(facts.Values)
	if values == nil {
		values = map[machine.Want]machine.Fact{}
	}
	for _, w := range wants {
		if _, ok := values[w]; ok {
			x.t.Fatalf("fact %v was wanted twice", w)
		}
		values[w] = machine.Fact{Run: w.Undo || !x.skip[w.Step], Err: x.bad[w]}
	}
	facts.Values = values
}

// apply brings an event to the job as it was loaded, and saves it as the contract of store.Jobs says.
// It reports whether the save went through.
func (x *world) apply(loaded makegood.Job, e makegood.Event) machine.Kind {
	facts := machine.Facts{Random: rapid.Uint64().Draw(x.t, "random")}
	var next makegood.Job
	var v machine.Verdict
	for {
		before := loaded.Clone()
		next, v = machine.Apply(x.w, loaded, e, facts, x.now)
		if !reflect.DeepEqual(before, loaded) {
			x.t.Fatalf("Apply(%T) changed the job that it was given", e)
		}
		if v.Kind != machine.Wanting {
			break
		}
		x.answer(&facts, v.Wants)
	}
	if v.Kind != machine.Applied {
		if !reflect.DeepEqual(next, loaded) {
			x.t.Fatalf("a %s %T changed the job", v.Kind, e)
		}
		return v.Kind
	}
	if loaded.Rev != x.job.Rev || v.OnClaims && loaded.Claims.Rev != x.job.Claims.Rev ||
		!next.CompleteBy.Equal(loaded.CompleteBy) && !loaded.CompleteBy.Equal(x.job.CompleteBy) {
		return "conflict"
	}
	stored := x.job
	saved := next.Clone()
	saved.Rev = stored.Rev + 1
	if next.CompleteBy.Equal(loaded.CompleteBy) {
		saved.CompleteBy = stored.CompleteBy
	}
	saved.Claims = stored.Clone().Claims
	_, silent := e.(makegood.DeadlinePassed)
	for _, step := range v.Ended {
		if c := saved.Claims.Slots[step]; silent && x.now.Before(c.CompleteBy) {
			x.t.Fatalf("step %s ended in silence at %v, its claim holds until %v", step, x.now, c.CompleteBy)
		}
		delete(saved.Claims.Slots, step)
	}
	x.job = saved
	if e, ok := e.(makegood.Requested); ok && e.Verb == makegood.Resubmit && saved.Round > stored.Round {
		x.newRound()
	}
	if e, ok := e.(makegood.StepSucceeded); ok {
		if s, _ := x.job.Step(e.Step); s.Undo.State == makegood.Done {
			x.undone[e.Step] = true
		}
	}
	x.check(stored)
	x.checkOnce(e, facts)
	return machine.Applied
}

// checkOnce: an event applied twice is applied once.
func (x *world) checkOnce(e makegood.Event, facts machine.Facts) {
	if e, ok := e.(makegood.Requested); ok && e.Request == "" {
		return
	}
	_, v := machine.Apply(x.w, x.job, e, facts, x.now)
	if v.Kind == machine.Applied || v.Kind == machine.Wanting {
		x.t.Fatalf("%#v was applied twice (%s)", e, v.Kind)
	}
}

// check holds what must be true of every job in every state.
func (x *world) check(before makegood.Job) {
	j := x.job
	due := time.Time{}
	note := func(at time.Time) {
		if due.IsZero() || at.Before(due) {
			due = at
		}
	}
	failures := 0
	live := !j.ProcessState.Finished() && j.ProcessState != makegood.Error && !j.Paused()
	for i, s := range j.Steps {
		def := x.w.Steps[i]
		if s.Forward.State == makegood.Dispatched && s.Undo.State == makegood.Dispatched {
			x.t.Fatalf("step %s goes both ways at once", s.Name)
		}
		for _, a := range []makegood.Activity{s.Forward, s.Undo} {
			failures += a.FailureCount
			if a.Tries < 0 {
				x.t.Fatalf("step %s has made %d tries", s.Name, a.Tries)
			}
			switch a.State {
			case makegood.Backoff:
				note(a.At)
			case makegood.Dispatched:
				id := fmt.Sprintf("%s#%d", s.Name, a.Attempt)
				if was, ok := before.Step(s.Name); ok && was.Attempt < a.Attempt && x.used[id] {
					x.t.Fatalf("attempt %s was opened twice", id)
				}
				x.used[id] = true
				startBy, timeout := def.StartBy, def.Timeout
				c, claimed := j.Claims.Slots[s.Name]
				switch {
				case def.Shared:
					note(a.At.Add((startBy + timeout).Std()))
				case claimed && c.Attempt == a.Attempt:
					note(c.CompleteBy)
				default:
					if live && j.Open[s.Name] != a.Attempt {
						x.t.Fatalf("attempt %s is out and cannot be claimed: open is %v", id, j.Open)
					}
					if !live {
						x.t.Fatalf("attempt %s is unclaimed in a job that is %s, paused %v", id, j.ProcessState, j.Paused())
					}
					note(a.At.Add(startBy.Std() << min(a.Resent, 20)))
				}
			}
		}
		if j.ProcessState == makegood.Undone || j.ProcessState == makegood.Cancelled {
			x.checkUndone(def, s)
		}
	}
	if failures != j.FailureCount {
		x.t.Fatalf("the job counts %d failures, its steps %d", j.FailureCount, failures)
	}
	if j.Desired == makegood.Processed && !j.Deadline.IsZero() {
		note(j.Deadline)
	}
	if j.Desired == makegood.Processed && j.StartAt.After(x.now) {
		note(j.StartAt)
	}
	if live && due.IsZero() && j.CompleteBy.After(x.now) {
		x.t.Fatalf("nothing is under way, and nobody looks before %v", j.CompleteBy)
	}
	if j.ProcessState.Finished() && j.Told() {
		if !j.CompleteBy.IsZero() || len(j.Claims.Slots) > 0 || len(j.Open) > 0 {
			x.t.Fatalf("finished, but still in the index (%v), claimed (%v) or open (%v)", j.CompleteBy, j.Claims.Slots, j.Open)
		}
		return
	}
	if j.CompleteBy.IsZero() {
		x.t.Fatalf("a job in %s is invisible", j.ProcessState)
	}
	if live && !due.IsZero() && j.CompleteBy.After(due) {
		x.t.Fatalf("the key is %v, but something is due at %v", j.CompleteBy, due)
	}
}

func (x *world) checkUndone(def makegood.Step, s makegood.StepState) {
	if s.Forward.State == makegood.Dispatched {
		x.t.Fatalf("step %s still runs in an undone job", s.Name)
	}
	switch {
	case !x.maybe[s.Name]:
	case !def.CanUndo():
		if s.Undo.State != makegood.Irreversible {
			x.t.Fatalf("step %s may have been done and cannot be undone, but its undo is %q", s.Name, s.Undo.State)
		}
	case !x.undone[s.Name]:
		x.t.Fatalf("step %s may have had its effect, and was not undone (undo is %q)", s.Name, s.Undo.State)
	}
}

// claim is what an agent does, behind the Scheduler's back.
func (x *world) claim() {
	var open []string
	for name, attempt := range x.job.Open {
		if c, ok := x.job.Claims.Slots[name]; !ok || c.Attempt < attempt {
			open = append(open, name)
		}
	}
	if len(open) == 0 {
		return
	}
	slices.Sort(open)
	name := rapid.SampledFrom(open).Draw(x.t, "claim")
	i := slices.IndexFunc(x.w.Steps, func(s makegood.Step) bool { return s.Name == name })
	j := x.job.Clone()
	c := makegood.Claim{
		Attempt: j.Open[name], LockedBy: fmt.Sprintf("a:%d", len(x.claimed)), StartedAt: x.now,
		CompleteBy: x.now.Add(x.w.Steps[i].Timeout.Std()),
	}
	if j.Claims.Slots == nil {
		j.Claims.Slots = map[string]makegood.Claim{}
	}
	j.Claims.Slots[name] = c
	j.Claims.Rev++
	if c.CompleteBy.Before(j.CompleteBy) {
		j.CompleteBy = c.CompleteBy
	}
	x.claimed[fmt.Sprintf("%s#%d", name, c.Attempt)] = c.LockedBy
	id := fmt.Sprintf("%s#%d", name, c.Attempt)
	if s, _ := j.Step(name); s.Undo.State != makegood.Dispatched {
		x.idle[id] = rapid.Bool().Draw(x.t, "idle")
		x.maybe[name] = x.maybe[name] || !x.idle[id]
		if s.Undo.State == makegood.Done {
			x.t.Fatalf("step %s was claimed forward after its undo", name)
		}
	}
	x.job = j
}

// beat extends a claim by a timeout from now, as a heartbeat does.
func (x *world) beat() {
	j := x.job.Clone()
	for i, s := range x.w.Steps {
		c, ok := j.Claims.Slots[s.Name]
		if !ok || !x.now.Before(c.CompleteBy) {
			continue
		}
		if by := x.now.Add(x.w.Steps[i].Timeout.Std()); by.After(c.CompleteBy) {
			c.CompleteBy = by
			j.Claims.Slots[s.Name] = c
			j.Claims.Rev++
		}
	}
	x.job = j
}

// reply makes a reply of an attempt that was claimed, or of a shared one that is out.
func (x *world) reply(succeed bool) (makegood.Event, bool) {
	var ids []string
	for id := range x.used {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	if len(ids) == 0 {
		return nil, false
	}
	return x.replyOf(rapid.SampledFrom(ids).Draw(x.t, "attempt"), succeed)
}

func (x *world) replyOf(id string, succeed bool) (makegood.Event, bool) {
	var step string
	var attempt int
	fmt.Sscanf(id, "s%1s", &step)
	fmt.Sscanf(id[3:], "%d", &attempt)
	step = "s" + step
	if said, ok := x.said[id]; ok {
		// An agent says one thing of an attempt, however often it is delivered.
		succeed = said
	}
	x.said[id] = succeed
	if succeed {
		x.idle[id] = false
		if s, _ := x.job.Step(step); s.Forward.Attempt == attempt && x.claimed[id] != "" {
			x.maybe[step] = true
		}
		return makegood.StepSucceeded{Step: step, Attempt: attempt, LockedBy: x.claimed[id]}, true
	}
	failure := makegood.StepError{Message: "no", Retryable: rapid.Bool().Draw(x.t, "retryable"), Applied: makegood.AppliedUnknown}
	if x.idle[id] {
		failure.Applied = makegood.AppliedNo
	}
	return makegood.StepFailed{Step: step, Attempt: attempt, LockedBy: x.claimed[id], Error: failure}, true
}

// deliver applies an event, and notes what the remote service knows of it.
func (x *world) deliver(loaded makegood.Job, e makegood.Event) machine.Kind {
	kind := x.apply(loaded, e)
	x.noteShared()
	return kind
}

// noteShared: a shared attempt may run as soon as it is out.
func (x *world) noteShared() {
	for i, s := range x.job.Steps {
		if x.w.Steps[i].Shared && s.Forward.State == makegood.Dispatched {
			x.maybe[s.Name] = true
		}
	}
}

func (x *world) drawEvent() (makegood.Event, bool) {
	switch rapid.IntRange(0, 9).Draw(x.t, "event") {
	case 0, 1, 2:
		return x.reply(true)
	case 3:
		return x.reply(false)
	case 4, 5:
		return makegood.DeadlinePassed{Key: x.job.CompleteBy}, !x.job.CompleteBy.IsZero()
	case 6:
		if len(x.events) == 0 {
			return nil, false
		}
		return rapid.SampledFrom(x.events).Draw(x.t, "again"), true
	case 7:
		if rapid.IntRange(0, 3).Draw(x.t, "submitted") == 0 {
			return makegood.Submitted{}, true
		}
		if rapid.IntRange(0, 3).Draw(x.t, "interrupt") > 0 {
			return makegood.Told{Seq: x.job.Seq}, true
		}
		return makegood.Interrupted{Incarnation: x.job.Incarnation + 1}, true
	case 8:
		x.requests++
		verb := rapid.SampledFrom(makegood.Verbs()).Draw(x.t, "verb")
		return makegood.Requested{Verb: verb, Request: fmt.Sprintf("r%d", x.requests)}, true
	default:
		for i, s := range x.job.Steps {
			// A task that is refused was never sent, so a shared one, too, has not run.
			if s.Forward.State == makegood.Dispatched && !x.w.Steps[i].Shared {
				return makegood.DispatchRefused{Step: s.Name, Attempt: s.Forward.Attempt, Reason: "too large"}, true
			}
		}
		return nil, false
	}
}

// drain lets agents succeed and time pass, until the job ends.
func (x *world) drain() {
	for range 2000 {
		if x.job.ProcessState.Finished() || x.job.ProcessState == makegood.Error {
			return
		}
		x.requests++
		if x.job.Paused() {
			x.deliver(x.job, makegood.Requested{Verb: makegood.Resume, Request: fmt.Sprintf("r%d", x.requests)})
			continue
		}
		x.claim()
		progress := false
		for _, s := range x.job.Steps {
			for _, a := range []makegood.Activity{s.Forward, s.Undo} {
				id := fmt.Sprintf("%s#%d", s.Name, a.Attempt)
				if e, ok := x.replyOf("s"+s.Name[1:]+"#"+fmt.Sprint(a.Attempt), true); ok && a.State == makegood.Dispatched && x.used[id] {
					progress = x.deliver(x.job, e) == machine.Applied || progress
				}
			}
		}
		if !progress {
			if x.now.Before(x.job.CompleteBy) {
				x.now = x.job.CompleteBy
			}
			x.deliver(x.job, makegood.DeadlinePassed{Key: x.job.CompleteBy})
		}
	}
	x.t.Fatalf("the job did not end: %+v", x.job)
}
