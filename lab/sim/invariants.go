package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/lab/oracle"
)

// wrote looks at every write of a job's item. The numbers are those of the invariants in failure-modes.md
// (docs/proof.md names them). w.mu is held.
func (w *world) wrote(before, after job.Job) {
	if w.over {
		return
	}
	c := change{world: w, before: before, after: after}
	if !w.ordered(after.ID) {
		w.violate(after.ID, "I1: there is a job %s that nobody submitted", after.ID)
		return
	}
	c.w = w.definition(after.Definition)
	c.note()
	c.caused()
	c.state()
	c.key()
	for n := range c.after.Steps {
		c.step(n)
	}
	c.child()
	c.children()
	c.mapRules()
	c.counts()
	c.history()
	c.closed()
	c.announced()
	c.changed()
	c.ledger()
	c.refers()
	c.fired()
	c.releases()
	c.breakerRules()
	c.excuses()
	if !c.world.children { // The oracle knows neither births nor the requests of parents.
		c.referee(c.after.ID).Saved(c.after, time.Now())
	}
	c.inlined()
	c.gateRules()
	c.plays()
}

// referee returns who judges the policy of a job: the oracle of what its workflow promises. w.mu is held.
func (w *world) referee(id string) *oracle.Referee {
	r := w.referees[id]
	if r == nil {
		r = oracle.Watch(w.workflowOf(id), func(format string, args ...any) {
			if !w.children {
				w.violate(id, "job %s: POL: %s", id, fmt.Sprintf(format, args...))
			}
		})
		r.Exact = w.exact
		r.Definition = func(j job.Job) makegood.Workflow { return w.definition(j.Definition) }
		w.referees[id] = r
	}
	return r
}

func (w *world) at(t time.Time) string {
	return fmt.Sprintf("at %s", t.Sub(w.start).Truncate(time.Millisecond))
}

// change is a write of a job's item.
type change struct {
	*world
	w             makegood.Workflow
	before, after job.Job
}

func (c change) wrong(format string, args ...any) {
	c.violate(c.after.ID, "job "+c.after.ID+": "+format, args...)
}

// saved reports whether it was a save, or the birth, and not the raw write that parks a job.
func (c change) saved() bool { return c.before.Rev == 0 || c.before.LockedBy != c.after.LockedBy }

// state: I3.
func (c change) state() {
	from, to := c.before.ProcessState, c.after.ProcessState
	switch {
	case c.before.Rev == 0:
		return
	case from != to && !slices.Contains(machine.Transitions(from), to) && !c.interruptedTo(from, to):
		c.wrong("I3: goes from %s to %s", from, to)
	case from == makegood.JobUndone && to != from && c.after.Round != c.before.Round+1:
		c.wrong("I3: leaves Undone in round %d, and began none", c.after.Round)
	case c.before.Desired != makegood.JobProcessed && c.after.Desired == makegood.JobProcessed && c.after.Round == c.before.Round && c.undoneOfRound():
		c.wrong("I3: is wanted undone, and then done, in one round of which something is undone")
	case c.after.FailureCount < c.before.FailureCount:
		c.wrong("I9: FailureCount goes from %d to %d", c.before.FailureCount, c.after.FailureCount)
	case c.after.Seq < c.before.Seq:
		c.wrong("NTF-2: announcement %d comes behind %d", c.after.Seq, c.before.Seq)
	case from != to && to == makegood.JobError && c.after.Seq == c.before.Seq:
		c.wrong("I13: is in Error, and nobody is told")
	}
}

// interruptedTo reports whether being interrupted, and then what was asked for in the same save, may have led there.
func (c change) interruptedTo(from, to makegood.ProcessState) bool {
	return c.before.Incarnation != c.after.Incarnation && slices.ContainsFunc(machine.Transitions(from), func(s makegood.ProcessState) bool {
		return slices.Contains(machine.Transitions(s), to)
	})
}

// key: I10.
func (c change) key() {
	j := c.after
	if j.ProcessState.Finished() && j.Told() {
		if !j.CompleteBy.IsZero() {
			c.wrong("I10: is finished and told, and in the index")
		}
		return
	}
	if j.CompleteBy.IsZero() {
		c.wrong("I10: is %s, and not in the index", j.ProcessState)
		return
	}
	if due, what := c.due(); !due.IsZero() && j.CompleteBy.After(due) {
		c.wrong("I10: its key is %s later than %s is due", j.CompleteBy.Sub(due), what)
	}
}

// due is the latest moment at which a job must be looked at; zero: at any.
func (c change) due() (due time.Time, what string) {
	j := c.after
	if j.ProcessState.Finished() {
		return due, what
	}
	sooner := func(at time.Time, of string) {
		if due.IsZero() || at.Before(due) {
			due, what = at, of
		}
	}
	still := j.ProcessState == makegood.JobError || j.Paused()
	if !still && j.Desired == makegood.JobProcessed && !j.Deadline.IsZero() {
		sooner(j.Deadline, "its end")
	}
	if !still && (j.Desired == makegood.JobProcessed || j.AnotherRound) && !j.WarnAt.IsZero() {
		sooner(j.WarnAt, "telling that it is late")
	}
	for n, s := range j.Steps {
		def := c.w.Steps[n]
		for undo, a := range directions(s) {
			p := planOf(def, undo)
			switch {
			case a.State == job.Backoff && !still:
				sooner(a.At, "the next attempt of "+s.Name)
			case a.State == job.Waiting && !still:
				sooner(a.Wait.Deadline, "the end of the wait of "+s.Name)
			case a.State == job.Dispatched && a.Closing:
				// A minute ahead by the clock of whoever asked for it.
				sooner(a.LookAt, "the closing of "+s.Name)
			case a.State == job.Dispatched && a.Queued:
				sooner(a.LookAt, "a look at the gate of "+s.Name)
			case a.State == job.Dispatched && a.Inline != "":
				sooner(a.At.Add(c.silenceInline(def, p.silence, undo)), "the end of "+s.Name)
			case a.State == job.Dispatched && def.Agent == makegood.AgentWorkflow:
				sooner(a.LookAt, "a look at the child of "+s.Name)
			case a.State == job.Dispatched && def.Shared:
				sooner(a.At.Add(p.startBy+p.silence), "the end of "+s.Name)
			case a.State == job.Dispatched:
				sooner(c.silenceSeen(a, s.Name, undo, p), "a look at "+s.Name)
			}
		}
	}
	return due, what
}

// silenceInline is how long an inline attempt may be silent at most. In a chain that is as long as those behind it may
// be, which are inline and not exclusive.
func (c change) silenceInline(def makegood.Step, silence time.Duration, undo bool) time.Duration {
	if undo || !def.Shared {
		return silence
	}
	for _, other := range c.w.Steps {
		if other.Inline && other.Shared && other.Name != def.Name {
			silence = max(silence, planOf(def, false).silence, planOf(other, false).silence+limits.ChainTime)
		}
	}
	return max(silence, planOf(def, false).silence+limits.ChainTime)
}

// step: I5, I7 and what a reply may change (I4).
func (c change) step(n int) {
	if !c.saved() {
		return
	}
	s, def := c.after.Steps[n], c.w.Steps[n]
	var was job.StepState
	if c.before.Rev > 0 {
		was, _ = c.before.Step(s.Name)
	}
	if open := outOf(c.after, s.Name); open != 0 && (c.before.Rev == 0 || open != outOf(c.before, s.Name)) {
		name := c.after.ID + "/" + s.Name
		redriven := open == c.opened[name] && s.Forward.Repeats > was.Forward.Repeats
		if open <= c.opened[name] && !redriven {
			c.wrong("I4: attempt %d of %s is opened behind %d", open, s.Name, c.opened[name])
		}
		c.opened[name] = open
	}
	child := def.Agent == makegood.AgentWorkflow
	if child {
		c.childStep(s, was)
	} else {
		c.describes(s, def)
		c.byHand(s, was, def)
		c.attempts(s, was, def)
	}
	if s.Forward.State == job.Dispatched && s.Forward.Attempt != was.Forward.Attempt {
		for _, need := range def.Needs {
			if _, ahead := c.ahead(s, false); ahead {
				continue // Its process begins it in its turn.
			}
			if state, _ := c.after.Step(need); state.Forward.State != job.Done && state.Forward.State != job.Skipped {
				c.wrong("I7: %s begins before %s, which is %q", s.Name, need, state.Forward.State)
			}
		}
	}
	if s.Undo.State == job.Dispatched && s.Undo.Attempt != was.Undo.Attempt {
		c.undoBegins(s)
	}
	if child {
		return
	}
	if s.Forward.State == job.Done && was.Forward.State != job.Done {
		c.done(s, was, def)
	}
	if s.Undo.State == job.Done && was.Undo.State != job.Done {
		c.undone(s, def)
	}
}

// undoBegins: the undo of a step comes after those of the steps that follow it, and after its own attempts.
func (c change) undoBegins(s job.StepState) {
	if s.Forward.State == job.Dispatched {
		c.wrong("I12: the undo of %s begins while its attempt %d is out", s.Name, s.Forward.Attempt)
	}
	c.childrenBehind(s.Name)
	for n, def := range c.w.Steps {
		follower := c.after.Steps[n]
		if !slices.Contains(def.Needs, s.Name) {
			continue
		}
		for _, a := range []job.Activity{follower.Forward, follower.Undo} {
			if a.State == job.Dispatched || follower.Undo.State == job.Backoff {
				c.wrong("I11: the undo of %s begins while %s, which follows it, is %q", s.Name, follower.Name, a.State)
			}
		}
	}
}

// done: what is said to be done was done, by an attempt that may say so.
func (c change) done(s, was job.StepState, def makegood.Step) {
	if c.after.Settled(s.Forward) != nil {
		return // A person says so.
	}
	if def.Agent == makegood.AgentApproval {
		c.approved(s)
		return
	}
	if !c.applied(def) && !c.saidAgain(s, def) {
		c.wrong("I4: %s is said to be done, and is not", s.Name)
	}
	output := s.Forward.Output.Inline
	if ref := s.Forward.Output.Ref; ref != "" {
		stored, err := c.store.Payload(context.Background(), c.after.ID, ref)
		if err != nil {
			c.wrong("CMP-3: the output %s of %s is not in the store", ref, s.Name)
			return
		}
		output = stored
		c.outputs[[2]string{c.after.ID, ref}] = stored
	}
	if def.Map == nil && domain.BatchSize(c.w, slices.IndexFunc(c.w.Steps, func(other makegood.Step) bool { return other.Name == s.Name })) > 0 {
		c.answeredAll(s, output)
		return
	}
	var said struct {
		A       int
		Forged  bool
		Outside string
	}
	if err := json.Unmarshal(output, &said); err != nil || said.A == 0 {
		c.wrong("I4: %s is done with the output %s", s.Name, output)
		return
	}
	if said.Forged {
		c.wrong("I4: SEC-1: %s is done by a reply that a stranger made", s.Name)
	}
	if said.Outside != "" {
		c.fromOutside(s.Name, said.Outside)
		return
	}
	// One that was silent may still speak, and may have been found silent in the same save.
	if said.A != s.Forward.Attempt && said.A != was.Forward.Silence().Attempt && said.A != was.Forward.Attempt {
		c.wrong("I4: attempt %d finished %s, whose attempt is %d", said.A, s.Name, s.Forward.Attempt)
	}
	if !def.Shared && c.claimed[on(c.after.ID, s.Name, said.A)] == 0 {
		c.wrong("I5: attempt %d finished %s, and was never claimed", said.A, s.Name)
	}
}

// counts: FailureCount counts what started. What needs no claim starts by being made, also by a definition that the job
// had before, and of a step that is gone.
func (c change) counts() {
	made := c.unclaimed[c.after.ID]
	if made == nil {
		made = map[string]int{}
		c.unclaimed[c.after.ID] = made
	}
	for n, s := range c.after.Steps {
		if d := c.w.Steps[n]; d.Shared || !domain.GetsTasks(d.Agent) {
			made[s.Name] = s.Attempt
		}
	}
	shared := 0
	for _, attempts := range made {
		shared += attempts
	}
	if c.after.FailureCount > c.started[c.after.ID]+shared {
		c.wrong("I9: FailureCount is %d, and %d attempts started", c.after.FailureCount, c.started[c.after.ID]+shared)
	}
}

// mayReply: I8, nothing is said past CompleteBy. Its clock is the one that no skew changes.
func (w *world) mayReply(l *life, m queue.Message) {
	in, err := w.reading.event(m.Body)
	if err != nil {
		return
	}
	by := ""
	switch e := in.Event.(type) {
	case job.StepSucceeded:
		by = e.LockedBy
	case job.StepFailed:
		by = e.LockedBy
	case job.StepWaiting:
		by = e.LockedBy
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if e, is := in.Event.(job.StepHeld); is {
		w.referee(m.Group).LetGo(e.Step, e.Attempt)
	}
	if held, known := w.leases[by]; known && time.Now().After(held.until) {
		w.violate(m.Group, "I8: %s replies %s after its CompleteBy", l.name, time.Since(held.until))
	}
}

// finish judges the end of a run.
func (w *world) finish() Result {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = false // From here on nothing happens but what is noted.
	ends := map[makegood.ProcessState]int{}
	jobs := w.store.All()
	for _, j := range jobs {
		ends[j.ProcessState]++
		change{world: w, w: w.workflowOf(j.ID), before: j, after: j}.ledger()
		missed := map[string]int{}
		for seq := 1; seq <= j.Seq; seq++ {
			name := j.ID + "/" + strconv.Itoa(seq)
			for who, owed := range w.owed[name] {
				if _, told := w.told[who+" "+name]; owed && !told {
					missed[who]++
				}
			}
		}
		// What nobody could be told of for a day is given up, with a note.
		if missed["operator"] > 0 || missed["listener"] > j.Unheard {
			w.violate(j.ID, "NTF-1: announcements of job %s were never made: %v, and given up are %d", j.ID, missed, j.Unheard)
		}
		delete(w.acked, j.ID)
	}
	for id := range w.acked {
		w.violate(id, "I1: job %s was granted, and is nowhere", id)
	}
	for _, m := range w.queues[quarantineQueue].order {
		if !strings.Contains(m.body, "exists with other content") && !slices.ContainsFunc(poison, func(p string) bool { return strings.Contains(m.body, p) }) {
			w.violate("", "I14: in quarantine is %s", m.body)
		}
	}
	w.payloads()
	w.allHeard(jobs)
	r := w.result
	r.Waits, r.Words = len(w.handed), len(w.words)
	if w.limits != nil {
		r.Queued, r.Tokens = len(w.limits.queued), w.limits.tokens
		for _, q := range w.queues {
			if q.fair != nil {
				r.Turned += q.fair.turned
			}
		}
	}
	if m := w.maps; m != nil {
		r.Redriven, r.Tried, r.Refused, r.Left, r.Items = m.redriven, m.tried, m.refused, m.left, m.most
		r.Edits = m.edits
	}
	if w.breaking != nil {
		r.Breaks = w.breaking.breaks
	}
	w.playedFaults()
	r.Events, r.Hash, r.Faults, r.Ends, r.struck = w.events, w.hash, w.faults.counts, ends, w.faults.struck
	if len(r.Violations) > 0 {
		r.story = w.story()
	}
	return r
}

// workflowOf is the definition that a job has; before its birth, the one that it was ordered with. w.mu is held.
func (w *world) workflowOf(id string) makegood.Workflow {
	if j, there := w.store.Stored(id); there {
		return w.definition(j.Definition)
	}
	for _, o := range w.load.jobs {
		if o.id == id {
			return o.workflow.Workflow
		}
	}
	if _, is := w.fire(id); is {
		for _, c := range w.load.workflows {
			if c.Workflow.Name == w.scheduled.workflow {
				return c.Workflow
			}
		}
	}
	return makegood.Workflow{}
}
