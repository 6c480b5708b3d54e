package sim

import (
	"context"
	"slices"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/machine"
)

// The rules of the breaker, BRK-1 to BRK-6, are judged by the writes, by the pauses that each process was told of, and
// by an account of how attempts ended.

// pausedAt is the pause of an agent as it was stored at a time; the zero value of the pause: it had none.
type pausedAt struct {
	at   time.Time
	hold job.Hold
}

// plain is a pause that prints all its fields.
type plain job.Hold

// tripped reports whether the breaker pauses an agent.
func tripped(h job.Hold) bool { return h.Name != "" && h.On() && h.Tripped }

// pauseOf returns the pause of an agent, also one that is being released; the zero value: it has none.
func pauseOf(all job.Holds, agent string) job.Hold {
	for _, h := range all {
		if h.Kind == makegood.HoldAgent && h.Name == agent {
			return h
		}
	}
	return job.Hold{}
}

// paused judges a write of the pauses. w.mu is held.
func (w *world) paused(l *life, all job.Holds) {
	b := w.breaking
	if b == nil {
		return
	}
	for _, agent := range agents {
		was, is := job.Hold{}, pauseOf(all, agent)
		if n := len(b.were[agent]); n > 0 {
			was = b.were[agent][n-1].hold
		}
		if was == is {
			continue
		}
		b.were[agent] = append(b.were[agent], pausedAt{time.Now(), is})
		if was.Name != "" && was.On() && !was.Automatic() && l.isFunction() {
			w.violate("", "BRK-5: %s makes of the pause of a person %+v this: %+v", l.name, plain(was), plain(is))
		}
		switch {
		case tripped(is) && !tripped(was):
			w.trips(l, agent, was, is)
		case tripped(is):
			w.probes(l, was, is)
		case tripped(was) && l.isFunction():
			w.heals(l, agent, was, is)
		case is.Name != "" && is.On() && is.Automatic() && (!was.On() || was.Name == ""):
			if b.Slow++; !b.asked[agent] {
				w.violate("", "BRK-6: %s pauses agent %s, and its service has not asked for that: %+v", l.name, agent, plain(is))
			}
		case l.isFunction() && was.Name != "" && was.On() && !is.On() && w.exact && time.Now().Before(was.Until):
			w.violate("", "BRK-6: %s ends the pause of agent %s before its time: %+v", l.name, agent, plain(was))
		}
	}
}

// fewSick is how many attempts that failed trip a breaker at the least, and fewJobs of how many jobs.
const (
	fewSick = 10
	fewJobs = 5
)

// trips: BRK-1, the breaker pauses an agent that has one and is not paused, for attempts that its process has seen fail
// in a way that may be tried again: at least ten, of at least five jobs.
func (w *world) trips(l *life, agent string, was, is job.Hold) {
	b, by := w.breaking, l.name+" "+agent
	b.Trips++
	if l.isFunction() {
		b.Judged++
	}
	jobs := map[string]bool{}
	for _, id := range b.sick[by] {
		jobs[id] = true
	}
	switch {
	case !b.has[agent]:
		w.violate("", "BRK-1: %s trips agent %s, which has no breaker", l.name, agent)
	case was.Name != "" && was.On():
		w.violate("", "BRK-1: %s trips agent %s, which is paused: %+v", l.name, agent, plain(was))
	case l.isFunction() && (len(b.sick[by]) < fewSick || len(jobs) < fewJobs):
		w.violate("", "BRK-1: %s trips agent %s, and has seen fail %v", l.name, agent, b.sick[by])
	case is.Probes != was.Probes || !is.Next.Equal(is.Since.Add(probeIn(is.Probes))):
		w.violate("", "BRK-4: the breaker makes of %+v this: %+v", plain(was), plain(is))
	}
	b.sick[by] = nil
}

// probeIn is how long after the pause began, or after the probe before it, the next is let through.
func probeIn(probes int) time.Duration {
	return min(limits.FirstProbe<<min(probes, 10), limits.MaxProbe)
}

// probes: BRK-4, one job at a time is let through, at its time, and the next after twice as long.
func (w *world) probes(l *life, was, is job.Hold) {
	if is.Probes == was.Probes {
		if is.Probe != was.Probe || is.Next.Before(was.Next) || !w.breaking.asked[is.Name] {
			w.violate("", "BRK-4: %s makes of %+v this: %+v", l.name, plain(was), plain(is))
		}
		return
	}
	w.breaking.Probes++
	early := w.exact && (time.Now().Before(was.Next) || is.Next.Before(was.Next.Add(probeIn(is.Probes))))
	late := w.exact && time.Until(is.Next) > probeIn(is.Probes)
	if is.Probes != was.Probes+1 || is.Probe == "" || !is.Since.Equal(was.Since) || early || late {
		w.violate("", "BRK-4: %s lets the next probe through, and makes of %+v this: %+v", l.name, plain(was), plain(is))
	}
}

// heals: BRK-4, the breaker resumes an agent after the success of an attempt that was opened in the pause, or, at the
// time of the next probe, where no job waits.
func (w *world) heals(l *life, agent string, was, is job.Hold) {
	well := w.breaking.well[l.name+" "+agent].After(was.Since.Add(limits.HoldsFresh))
	if well {
		w.breaking.Heals++
	}
	if is.On() && is.Name != "" || w.exact && !well && time.Now().Before(was.Next) {
		w.violate("", "BRK-4: %s knows of no probe that succeeded, and makes of %+v this: %+v", l.name, plain(was), plain(is))
	}
}

// hearsPauses notes what a process is told of the breakers, and judges it. w.mu is held.
//
// BRK-3: it knows the pause of an agent as it was at most so long ago.
func (w *world) hearsPauses(l *life, all job.Holds, age time.Duration) {
	if w.breaking == nil {
		return
	}
	for _, agent := range agents {
		h := pauseOf(all, agent)
		if tripped(h) {
			l.ruled["shut "+agent] = true
			l.ruled["probe "+h.Probe] = true
		} else {
			l.ruled["free "+agent] = true
		}
		same := func(of job.Hold) bool { return of == h }
		if w.exact && !w.breaking.stood(agent, time.Now().Add(-age), same) {
			w.violate("", "BRK-3: %s knows as the pause of %s %+v, which it was not since %s ago", l.name, agent, plain(h), age)
		}
	}
}

// stood reports whether the pause of an agent was so at some time since.
func (b *breaking) stood(agent string, since time.Time, so func(job.Hold) bool) bool {
	last := job.Hold{}
	for _, one := range b.were[agent] {
		if one.at.After(since) && so(last) {
			return true
		}
		last = one.hold
	}
	return so(last)
}

// mayBegin: BRK-3, an agent begins a task that was not held some time in the last seconds, and lets one go that is held
// now. w.mu is held.
func (w *world) mayBegin(l *life, t makegood.Task, held bool) {
	now, _ := w.store.Holds(context.Background(), true) // memory never fails
	_, byWorkflow := now.Holds.On(job.HoldName(makegood.HoldWorkflow, domain.WorkflowOf(t.Workflow)))
	free := func(h job.Hold) bool { return h.Name == "" || !h.On() }
	probe := func(h job.Hold) bool { return tripped(h) && h.Probe == t.Job } // Of any breaker.
	_, heldNow := now.Holds.OnFor(job.HoldName(makegood.HoldAgent, t.Agent), t.Job)
	name, since := on(t.Job, t.Step, t.Attempt), time.Now().Add(-limits.HoldsFresh)
	switch {
	case held && !byWorkflow && !heldNow:
		w.violate(t.Job, "BRK-3: %s lets %s go, and agent %s is not paused for it", l.name, name, t.Agent)
	case !held && w.exact && !w.breaking.stood(t.Agent, since, free) && !slices.ContainsFunc(agents, func(a string) bool { return w.breaking.stood(a, since, probe) }):
		w.violate(t.Job, "BRK-3: %s begins %s, and agent %s has been paused for %s", l.name, name, t.Agent, limits.HoldsFresh)
	}
}

// breakerRules judge a save by the pauses that its process was told of. w.mu is held.
func (c change) breakerRules() {
	if c.breaking == nil || c.writer == nil || !c.saved() || c.before.Rev == 0 || c.before.Definition != c.after.Definition {
		return
	}
	for _, s := range c.after.Steps {
		was, _ := c.before.Step(s.Name)
		for undo, a := range directions(s) {
			b := activity(was, undo)
			if a.Attempt == 0 || undo && !domain.CanUndo(defOf(c.w, s.Name)) {
				continue
			}
			if m := (ended{c, s.Name, undo, machine.AgentOf(c.w, s.Name, undo), b, a}); slices.Contains(agents, m.agent) {
				m.judge()
			}
		}
	}
}

// excuses tells the referee which attempts a save may put off for a breaker.
func (c change) excuses() {
	if c.breaking == nil || c.writer == nil {
		return
	}
	for _, s := range c.before.Steps {
		for undo, a := range directions(s) {
			if a.State == job.Dispatched && c.ruled["shut "+machine.AgentOf(c.definition(c.before.Definition), s.Name, undo)] {
				c.referee(c.after.ID).MeetsBreaker(s.Name, a.Attempt)
			}
		}
	}
}

// ended is a step, or its undo, before and after a save.
type ended struct {
	change
	step  string
	undo  bool
	agent string
	was   job.Activity
	is    job.Activity
}

func (m ended) judge() {
	shut := m.ruled["shut "+m.agent] && !m.ruled["free "+m.agent]
	opened := m.is.State == job.Dispatched && !m.is.Queued && (m.was.State != job.Dispatched || m.was.Attempt != m.is.Attempt)
	if opened && shut && !m.ruled["probe "+m.after.ID] && !m.is.Closing {
		m.wrong("BRK-3: attempt %d of %s is opened, and %s knows that the breaker has paused agent %s", m.is.Attempt, m.step, m.writer.name, m.agent)
	}
	if m.is.Tries < 0 || m.is.Deferred > limits.MaxDeferrals {
		m.wrong("BRK-2: of %s %d attempts are counted, and %d put off", m.step, m.is.Tries, m.is.Deferred)
	}
	by := m.writer.name + " " + m.agent
	if at := m.was.Opened(); m.says(answers) && at.After(m.breaking.well[by]) { // It may have been silent before.
		m.breaking.well[by] = at
	}
	if m.was.State != job.Dispatched || m.is.State == job.Dispatched && m.is.Attempt == m.was.Attempt {
		return
	}
	if m.is.State == job.Done && m.before.Incarnation == m.after.Incarnation && m.says(succeeds) {
		m.heal(shut)
	}
	if m.is.Error == nil || !m.is.Error.Retryable {
		return
	}
	m.breaking.sick[by] = append(m.breaking.sick[by], m.after.ID)
	if m.is.Deferred > m.was.Deferred {
		m.breaking.Deferred++
	}
	wanted := m.before.Desired == m.after.Desired && m.undo == (m.after.Desired != makegood.JobProcessed)
	sick := domain.IsSick(defOf(m.w, m.step), m.undo, m.is.Error.Kind)
	if shut && wanted && sick && !m.writer.asks && m.is.FailureCount > m.was.FailureCount && m.was.Deferred < limits.MaxDeferrals {
		m.wrong("BRK-2: attempt %d of %s is counted, and %s knows that the breaker has paused agent %s", m.was.Attempt, m.step, m.writer.name, m.agent)
	}
}

// says reports whether there is such a reply of the attempt that was out.
func (m ended) says(so func(job.Event) bool) bool {
	return slices.ContainsFunc(m.writer.batch[m.after.ID], func(e job.Event) bool {
		said, is := e.(interface{ Said() job.Reply })
		return is && said.Said().Step == m.step && said.Said().Attempt == m.was.Attempt && machine.Genuine(m.before, said.Said()) && so(e)
	})
}

func succeeds(e job.Event) bool {
	_, is := e.(job.StepSucceeded)
	return is
}

// answers reports whether a reply shows that a service is well: also one that refuses for good does.
func answers(e job.Event) bool {
	failed, is := e.(job.StepFailed)
	return !is || !failed.Error.Retryable
}

// heal notes that the process that writes has to resume an agent: it knows of the pause, and that a probe succeeded.
func (m ended) heal(shut bool) {
	all := m.breaking.were[m.agent]
	if !shut || m.world.late || len(all) == 0 || !tripped(all[len(all)-1].hold) {
		return
	}
	if h := all[len(all)-1].hold; m.was.Opened().After(h.Since.Add(limits.HoldsFresh)) {
		m.breaking.healing[m.writer.name+" "+m.agent] = h
	}
}

// healed: BRK-4, a process that has saved the success of a probe, and has no trouble, resumes the agent. w.mu is held.
func (w *world) healed(l *life) {
	if w.breaking == nil {
		return
	}
	for _, agent := range agents {
		by := l.name + " " + agent
		h, heals := w.breaking.healing[by]
		delete(w.breaking.healing, by)
		all := w.breaking.were[agent]
		if !heals || l.troubled || l.stood || len(all) == 0 {
			continue
		}
		if is := all[len(all)-1].hold; tripped(is) && is.Since.Equal(h.Since) {
			w.violate("", "BRK-4: %s knows that a probe succeeded, and agent %s is paused: %+v", l.name, agent, plain(is))
		}
	}
}

// Where clocks are right and all is well, the next probe is let through within probeWithin of its time: some sweeps.
const probeWithin = 30 * time.Minute

// probed: BRK-4, no breaker waits for ever, whatever died. w.mu is held.
func (w *world) probed() {
	if w.breaking == nil || !w.exact {
		return
	}
	for _, agent := range agents {
		if all := w.breaking.were[agent]; len(all) > 0 {
			h := all[len(all)-1].hold
			if h.Name != "" && h.On() && h.Automatic() && time.Since(h.Next) > probeWithin {
				w.violate("", "BRK-4: agent %s should have been looked at %s ago: %+v", agent, time.Since(h.Next), plain(h))
			}
		}
	}
}

// mayHealIn is how often it is looked at in the end whether the pauses of agents are over, each operatorEvery.
const mayHealIn = 100

// pausesEnd: BRK-4, when all jobs have ended, the pauses end that no person has set.
func (w *world) pausesEnd() {
	for n := 0; w.breaking != nil; n++ {
		now, _ := w.store.Holds(context.Background(), true) // memory never fails
		on := slices.IndexFunc(now.Holds, func(h job.Hold) bool { return h.On() && h.Automatic() })
		if on < 0 {
			return
		}
		if n == mayHealIn {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.violate("", "BRK-4: all jobs have ended, and still there is %+v", plain(now.Holds[on]))
			return
		}
		time.Sleep(operatorEvery)
	}
}
