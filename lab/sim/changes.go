package sim

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/changes"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/scheduler"
)

// In some worlds somebody hears of every change. What they are handed is held to an account of its own: what each write
// made of the job, whatever the job says that it was.

// hearing is who hears of every change, and what they have heard.
type hearing struct {
	// relayed: an embedded engine hands over beside its work (changes.Relay), and says later what became of it.
	relayed bool
	// deaf is when they can be told nothing, and hangs, that whoever tells them then waits in vain.
	deaf  window
	hangs bool
	jobs  map[string]*stream
	ctx   context.Context
	over  context.CancelFunc
}

// stream is what was saved of a job's changes, and what was heard.
type stream struct {
	// saved are the changes by their numbers, from 1 on: those that nobody could keep are left empty, but for the last of them.
	saved []makegood.Change
	heard map[int]bool
	// handed: those up to this number were handed over.
	handed int
	// state is what the changes so far make of the job. parked: it was written by who publishes nothing.
	state  heardOf
	parked bool
}

// heardOf is a job as somebody has it who knows its changes alone.
type heardOf struct {
	state  string
	paused bool
	round  int
	sides  map[sideOf]sideIs
}

type sideOf struct {
	step string
	undo bool
}

type sideIs struct {
	state   string
	attempt int
}

// hear begins to hear, if anybody does in this world.
func (w *world) hear(o Options, embedded bool) {
	if !o.Changes {
		return
	}
	r := w.chance.of("hearing")
	h := &hearing{relayed: embedded && oneIn(r, 2), hangs: oneIn(r, 3), jobs: map[string]*stream{}}
	h.deaf = w.faults.window(ListenerDeaf, "hearer", w.start, faultsLast)
	h.ctx, h.over = context.WithCancel(context.Background())
	w.hearing = h
}

// heardBy returns the Scheduler of a process that publishes.
func (w *world) heardBy(l *life, c scheduler.Config) *scheduler.Scheduler {
	switch {
	case w.hearing == nil:
		return scheduler.New(c)
	case !w.hearing.relayed:
		c.Changes = hearer{l}
		return scheduler.New(c)
	}
	relay := changes.NewRelay(func(ctx context.Context, run makegood.Changes) error {
		return hearer{l}.Publish(ctx, []changes.Run{{Changes: run}})[0]
	}, quiet)
	c.Changes = relay
	s := scheduler.New(c)
	go relay.Run(w.hearing.ctx, s.Handed)
	return s
}

// hearer is who hears of every change, as a process reaches them.
type hearer struct{ l *life }

// Publish is what changes.Publisher says, in a world: each run meets its own fate.
func (h hearer) Publish(ctx context.Context, runs []changes.Run) []error {
	w, what := h.l.w, ""
	for _, run := range runs {
		what += " " + run.Job + "/" + strconv.Itoa(run.UpTo())
	}
	if w.hangsNow("hearer") {
		h.l.hung("hearer")
	}
	if w.deafHearer() && w.hearing.hangs {
		_ = wait(ctx, longest)
	}
	errs, gone := make([]error, len(runs)), false
	err := h.l.reach(ctx, "publish", what, func() error {
		for i, run := range runs {
			var fate error
			switch {
			case w.hearing.deaf.holds(time.Now()) && !w.faults.over:
				fate = errNoAnswer
			case w.faults.strikes(PartSent, h.l.name+" publishes"+what+" "+run.Job):
				fate = errThrottled
			default:
				w.hearsOf(run)
			}
			if !gone {
				errs[i] = fate
			}
		}
		return nil
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	gone = true
	if err != nil {
		return slices.Repeat([]error{err}, len(runs))
	}
	return errs
}

func (w *world) deafHearer() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.hearing.deaf.holds(time.Now()) && !w.faults.over
}

// stream returns that of a job. w.mu is held.
func (w *world) stream(id string) *stream {
	s := w.hearing.jobs[id]
	if s == nil {
		s = &stream{heard: map[int]bool{}, state: heardOf{sides: map[sideOf]sideIs{}}}
		w.hearing.jobs[id] = s
	}
	return s
}

// hearsOf takes a run: CHG-1, what is heard was saved, as it was; CHG-2, a run leaves nothing out that was not handed
// over, between its changes or before them. w.mu is held.
func (w *world) hearsOf(run changes.Run) {
	s := w.stream(run.Job)
	next := 0
	for i, c := range run.Changes.Changes {
		first := c.Number - max(1, c.Lost) + 1
		switch {
		case i > 0 && first != next, i == 0 && first > s.handed+1:
			w.violate(run.Job, "CHG-2: change %d of job %s is told, and up to %d were told before", first, run.Job, max(s.handed, next-1))
		case c.Number > len(s.saved):
			w.violate(run.Job, "CHG-1: change %d of job %s is told, and was not saved", c.Number, run.Job)
			return
		case s.saved[c.Number-1] != c:
			w.violate(run.Job, "CHG-1: change %d of job %s is told as %+v, and was saved as %+v", c.Number, run.Job, c, s.saved[c.Number-1])
		}
		next = c.Number + 1
		for n := first; n < next; n++ {
			s.heard[n] = true
		}
	}
	s.handed = max(s.handed, next-1)
	w.result.Heard += len(run.Changes.Changes)
}

// changed: CHG-3, what a write changes of a job is what it says that it has changed; and CHG-4, what nobody has heard stays.
func (c change) changed() {
	if c.hearing == nil {
		return
	}
	s := c.stream(c.after.ID)
	if !c.saved() {
		s.parked = true
		return
	}
	c.kept(s)
	fresh := c.after.After(c.before.Changes.Seq).Changes
	for _, one := range fresh {
		if first := one.Number - max(1, one.Lost) + 1; first != len(s.saved)+1 && one.Lost == 0 || one.Number <= len(s.saved) {
			c.wrong("CHG-3: change %d is saved after %d", first, len(s.saved))
			return
		}
		for len(s.saved) < one.Number-1 {
			s.saved = append(s.saved, makegood.Change{})
		}
		s.saved = append(s.saved, one)
		if one.Lost > 0 {
			c.lost(s, one)
			continue
		}
		c.replay(s, one)
	}
	if len(s.saved) != c.after.Changes.Seq {
		c.wrong("CHG-3: it counts %d changes, and %d were saved", c.after.Changes.Seq, len(s.saved))
	}
	if is := knownOf(c.after); !s.state.same(is) {
		c.wrong("CHG-3: it is %+v, and its changes say %+v", is, s.state)
	}
}

// kept: CHG-4.
func (c change) kept(s *stream) {
	for _, one := range c.after.After(0).Changes {
		if one.Lost > 0 && one.Number <= len(s.saved) && s.saved[one.Number-1].Lost != one.Lost {
			c.lost(s, one) // Those before it became one.
			s.saved[one.Number-1] = one
		}
	}
	if first := c.after.Changes.First(); first > s.handed+1 {
		c.wrong("CHG-4: changes %d to %d are dropped, and nobody has heard of them", s.handed+1, first-1)
	}
}

// lost: CHG-5, changes are lost only where a job was parked, or more were pending than it keeps. What it is then, the job says.
func (c change) lost(s *stream, one makegood.Change) {
	if !s.parked && len(c.after.Changes.Pending) < limits.MaxUnpublished {
		c.wrong("CHG-5: %d changes up to %d are lost", one.Lost, one.Number)
	}
	if s.parked {
		s.state = knownOf(c.before)
	}
	s.parked = false
}

// replay plays a change on what those before it have made of the job.
func (c change) replay(s *stream, one makegood.Change) {
	if one.Step == "" {
		if one.From != s.state.state {
			c.wrong("CHG-3: change %d goes from %s, and it was %q", one.Number, one.From, s.state.state)
		}
		s.state.state, s.state.paused, s.state.round = one.To, one.Paused, one.Round
		return
	}
	side := sideOf{one.Step, one.Undo}
	was, known := s.state.sides[side]
	if !known {
		was.state = string(makegood.StepNotStarted)
	}
	if one.From != was.state {
		c.wrong("CHG-3: change %d of %s goes from %s, and it was %s", one.Number, one.Step, one.From, was.state)
	}
	if (one.To == string(job.Dispatched) || one.To == string(makegood.StepQueued)) && !one.Undo {
		c.beginsAfter(s, one)
	}
	s.state.sides[side] = sideIs{one.To, one.Attempt}
}

// beginsAfter: whoever hears of a step that begins has heard before that what it needs has ended, but in a chain, which
// one save opens.
func (c change) beginsAfter(s *stream, one makegood.Change) {
	of, _ := c.after.Step(one.Step)
	_, chained := c.chained[on(c.after.ID, one.Step, one.Attempt)]
	if _, ahead := c.ahead(of, false); chained || ahead && of.Forward.Attempt == one.Attempt {
		return
	}
	i := slices.IndexFunc(c.w.Steps, func(d makegood.Step) bool { return d.Name == one.Step })
	if d, out := c.w.Steps[i], of.Forward.State == job.Dispatched && of.Forward.Attempt == one.Attempt; !out && d.Inline && d.Shared && len(d.Needs) == 1 {
		return // A chain began and was over in one save: of several events, one opened it and a later one ended it.
	}
	for _, need := range c.w.Steps[i].Needs {
		if is := s.state.sides[sideOf{need, false}].state; is != string(job.Done) && is != string(job.Skipped) {
			c.wrong("CHG-3: change %d tells that %s begins, and %s, which it needs, is %q", one.Number, one.Step, need, is)
		}
	}
}

// knownOf is a job as its changes should have it.
func knownOf(j job.Job) heardOf {
	a := heardOf{state: string(j.ProcessState), paused: j.Paused(), round: j.Round, sides: map[sideOf]sideIs{}}
	for _, s := range j.Steps {
		for _, undo := range []bool{false, true} {
			is := s.Forward
			if undo {
				is = s.Undo
			}
			state := string(is.ChangeState())
			if is.State == job.NotStarted {
				state = string(makegood.StepNotStarted)
			}
			a.sides[sideOf{s.Name, undo}] = sideIs{state, is.Attempt}
		}
	}
	return a
}

// same compares what changes say with what a job is, which names sides that never began.
func (a heardOf) same(is heardOf) bool {
	for side, want := range is.sides {
		got, known := a.sides[side]
		if !known {
			got = sideIs{state: string(makegood.StepNotStarted)}
		}
		if got != want {
			return false
		}
	}
	return a.state == is.state && a.paused == is.paused && a.round == is.round
}

// allHeard: CHG-6, of every job that has ended every change was heard. w.mu is held.
func (w *world) allHeard(jobs []job.Job) {
	if w.hearing == nil {
		return
	}
	for _, j := range jobs {
		s := w.stream(j.ID)
		for n := range s.saved {
			if !s.heard[n+1] && j.ProcessState.Finished() {
				w.violate(j.ID, "CHG-6: change %d of %d of job %s was never heard of", n+1, len(s.saved), j.ID)
				break
			}
		}
		if j.ProcessState.Finished() && len(s.saved) == 0 {
			w.violate(j.ID, "CHG-6: nothing was heard of job %s", j.ID)
		}
	}
}
