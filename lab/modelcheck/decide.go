package modelcheck

import (
	"fmt"
	"slices"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/testkit/layers"
)

// question is what the core is asked: what it makes of these events, folded, over what is known of claims. It is a
// function, so each question is asked once.
type question struct {
	job        record
	evs, asked [maxFold]event
	known      [maxKnown]fact
	run        uint8
}

// answer is what it said: what it must know first; or the job as it is to be, and what is to be sent once it is saved
// (or at once, if it does not change).
type answer struct {
	asks    [maxSteps]ask
	applied bool
	job     record
	out     [maxOut]message
	broken  string
}

// ask puts events to the core.
func (m *model) ask(q question) answer {
	if a, ok := m.answers[q]; ok {
		return a
	}
	a := m.decide(q)
	m.answers[q] = a
	return a
}

// decide runs the shipped Apply and Pending, as the Scheduler does: it folds the events, and derives the commands of
// all of them from the job as it is to be saved.
func (m *model) decide(q question) (a answer) {
	defer func() {
		if r := recover(); r != nil {
			a.broken = fmt.Sprintf("the core panics: %v", r)
		}
	}()
	before := m.full(q.job)
	after := before
	facts := m.facts(q)
	interrupted := q.job.incarnation < q.run && !states[q.job.state].Finished()
	events := m.events(q, interrupted)
	for _, e := range events {
		next, v := m.apply(after, e, facts)
		switch {
		case len(v.Asks) > 0:
			for n, is := range v.Asks {
				a.asks[n] = compactAsk(is)
			}
			return a
		case v.Kind != machine.Applied:
			continue
		}
		m.learnName(q, e, next)
		if broken := m.judge(after, next, e, facts); broken != "" && a.broken == "" {
			a.broken = broken
		}
		a.applied, after = true, next
	}
	a.job = q.job
	a.applied = a.applied || m.awaits(q, after)
	if a.applied {
		a.job = m.compact(after)
		for i := range m.w.Steps {
			if a.job.steps[i].attempt >= maxAttempt {
				a.broken = fmt.Sprintf("s%d has %d attempts, and no end", i, a.job.steps[i].attempt)
			}
		}
	}
	a.out = m.commands(after, events)
	m.leaveBehind(&a, q)
	return a
}

// events are those of a fold, behind the interruption that the first move of a new run finds.
func (m *model) events(q question, interrupted bool) (all []job.Event) {
	poked := slices.Contains(q.evs[:], event{kind: evPoke})
	if interrupted || poked {
		all = append(all, job.Interrupted{Incarnation: int(q.run)})
	}
	for k, e := range q.evs {
		if e.kind != evNone {
			all = append(all, m.event(e, q.asked[k], q))
		}
	}
	return all
}

// facts are those that are at hand, and what is known of claims.
func (m *model) facts(q question) machine.Facts {
	facts := machine.Facts{
		Random: 1, Values: map[machine.Want]machine.Fact{}, Found: map[machine.Ask]job.Found{}, Secret: secret,
		Period: m.config.Period.Std(), Incarnation: int(q.run), Held: m.holds(),
	}
	if m.lane && q.evs[0].kind != evRequest && q.evs[0].kind != evWord {
		facts.Lane = machine.Lane{LockedBy: coming, Agents: []string{"a"}}
	}
	for _, f := range q.known {
		if f.kind != askNone && f.kind != askCommand {
			facts.Found[fullAsk(f.ask)] = m.found(f)
		}
	}
	return facts
}

// apply asks until the core has all that expressions give: no step is skipped, and no expression fails.
func (m *model) apply(j job.Job, e job.Event, facts machine.Facts) (job.Job, machine.Verdict) {
	for {
		next, v := machine.Apply(m.w, j, e, facts, base)
		if v.Kind != machine.Wanting || len(v.Asks) > 0 {
			if v.Kind == machine.Applied {
				m.played.Moved(layers.Move{Workflow: m.w, Before: j, After: next, Event: e})
			}
			return next, v
		}
		for _, want := range v.Wants {
			facts.Values[want] = machine.Fact{Run: true}
		}
	}
}

// learnName notes by what name a job remembers a request.
func (m *model) learnName(q question, e job.Event, next job.Job) {
	if _, ok := e.(job.Requested); ok {
		m.requests[q.evs[0].n] = next.Requests[len(next.Requests)-1]
	}
}

// commands derives what is to be sent and done from the job as it is saved.
func (m *model) commands(j job.Job, events []job.Event) (out [maxOut]message) {
	n := 0
	add := func(o message) {
		if !slices.Contains(out[:n], o) {
			out[n] = o
			n++
		}
	}
	for _, e := range events {
		for _, c := range machine.Pending(m.w, j, e, base) {
			switch c := c.(type) {
			case job.Dispatch:
				if machine.AgentOf(m.w, c.Step, c.Undo) == makegood.AgentWorkflow {
					add(m.birth(j, c))
					continue
				}
				add(m.task(j, c))
			case job.Announce:
				add(message{kind: sendNotice, n: small(c.Seq)})
			case job.CloseAttempt:
				add(m.closing(j, c))
			case job.AlertAgent, job.Remind:
				// Neither is relied on.
			default:
				panic(fmt.Sprintf("%T", c))
			}
		}
	}
	return out
}

// A closing carries, as code, its direction, whether it marks, and the age of its attempt.
const (
	closeUndo = 1
	closeMark = 2
	closeAge  = 4
)

func (m *model) closing(j job.Job, c job.CloseAttempt) message {
	var i int
	if _, err := fmt.Sscanf(c.Step, "s%d", &i); err != nil {
		panic(fmt.Sprintf("the closing of step %q", c.Step))
	}
	o := message{kind: sendClose, step: uint8(i), n: small(c.Attempt), redrives: small(c.Redrives), asked: m.causeOf(c.Asked)}
	a := j.Steps[i].Forward
	if c.Undo {
		o.code, a = closeUndo, j.Steps[i].Undo
	}
	if c.Mark {
		o.code |= closeMark
	}
	o.code |= closeAge * uint8(base.Sub(a.Opened())/weeks)
	return o
}

// task runs the shipped TaskOf, and keeps what the remote will see of the task, the round in its key, and its age.
func (m *model) task(j job.Job, d job.Dispatch) message {
	t := machine.TaskOf(m.w, j, d)
	var i, round int
	if _, err := fmt.Sscanf(t.Key, "j/s%d/%d", &i, &round); err != nil || stepName(i) != d.Step {
		panic(fmt.Sprintf("the key of step %s is %q", d.Step, t.Key))
	}
	code := taskSent | taskRound*small(round)
	key := fmt.Sprintf("j/s%d/%d", i, round)
	if t.Undo != nil {
		code |= taskUndo
		if t.Undo.ForwardKey != key {
			panic(fmt.Sprintf("the undo of %q carries the key %q", key, t.Undo.ForwardKey))
		}
		key += "/undo"
	}
	if t.Key != key || (t.Undo != nil) != d.Undo || t.Attempt != d.Attempt || t.Token != token(i, d.Attempt) {
		panic(fmt.Sprintf("the task of %+v is %+v", d, t))
	}
	for age := range uint8(3) {
		if t.ClaimUntil.Equal(claimUntil(age)) {
			return message{kind: sendTask, step: uint8(i), n: small(t.Attempt), code: code | taskAge*age}
		}
	}
	panic(fmt.Sprintf("attempt %d of %s can be claimed until %s", t.Attempt, d.Step, t.ClaimUntil))
}

// judge holds what must be true of one decision.
func (m *model) judge(before, after job.Job, e job.Event, facts machine.Facts) string {
	if d, ok := e.(job.DeadlinePassed); ok && d.Key.Equal(timeOf(staleKey)) {
		return "DeadlinePassed acted with a key that is not the one stored"
	}
	facts.Lane.LockedBy = "the save behind it"
	if _, v := m.apply(after, e, facts); v.Kind == machine.Applied && !m.overdue(facts) && !keepsKey(before, after, e) {
		return fmt.Sprintf("%T is applied twice", e)
	}
	if before.Desired != makegood.JobProcessed && after.Desired == makegood.JobProcessed && after.Round == before.Round {
		return "what was given up is wanted again in the same round"
	}
	for _, broken := range []string{judgeWords(before, after, e), m.judgeExpected(before, after)} {
		if broken != "" {
			return broken
		}
	}
	if broken := judgeSettled(before, after, e); broken != "" {
		return broken
	}
	failures, counts := 0, true
	for i, s := range after.Steps {
		failures += s.Forward.FailureCount + s.Undo.FailureCount
		counts = counts && m.w.Steps[i].Map == nil // With a map it counts items.
		old := before.Steps[i]
		for _, a := range []job.Activity{s.Forward, s.Undo} {
			if n := a.Attempt; n > 0 && n != old.Forward.Attempt && n != old.Undo.Attempt && n <= old.Attempt {
				return fmt.Sprintf("attempt %d of %s is opened again", n, s.Name)
			}
		}
		if n := s.Forward.Attempt; n > 0 && n == s.Undo.Attempt {
			return fmt.Sprintf("attempt %d of %s is of the step and of its undo", n, s.Name)
		}
	}
	if counts && failures != after.FailureCount {
		return fmt.Sprintf("the job counts %d failures, its steps %d", after.FailureCount, failures)
	}
	return ""
}

// overdue reports whether a claim was found held, and has passed since: then the key is that, and due again at once.
func (m *model) overdue(facts machine.Facts) bool {
	for _, f := range facts.Found {
		if f.Finding == job.FoundHeld && !f.Claim.CompleteBy.After(base) {
			return true
		}
	}
	return false
}

// strangers are replies that nobody may take: without the token of the attempt that they speak of, or a failure by
// another than who holds the claim.
func (m *model) strangers(j record) string {
	full := m.full(j)
	for i := range m.w.Steps {
		a, _ := j.steps[i].out()
		if a == nil || a.inline && a.look <= 0 || a.queued || m.w.Steps[i].Shared || m.isChild(i) {
			// After its time any reply shows that it is silent. A shared one is replied to by its token alone. That of an
			// attempt before a gate was never sent.
			continue
		}
		name, n := stepName(i), int(a.attempt)
		reply := func(attempt, token int, by string) job.Reply {
			return job.Reply{Step: name, Attempt: attempt, LockedBy: by, Token: machine.Token(full, name, token)}
		}
		forged := reply(n, n, lockedBy(a.attempt))
		forged.Token = "1.forged"
		for _, e := range []job.Event{
			job.StepSucceeded{Reply: forged},
			job.StepFailed{Reply: forged},
			job.StepSucceeded{Reply: reply(n, n+1, lockedBy(a.attempt))},
			job.StepSucceeded{Reply: reply(n+1, n+1, lockedBy(a.attempt))},
			job.StepSucceeded{Reply: reply(n-1, n-1, "stranger")},
			job.StepFailed{Reply: reply(n-1, n-1, "stranger")},
			job.StepFailed{Reply: reply(n, n, "stranger")},
			job.StepFailed{Reply: reply(n, n, "")},
		} {
			held := store.ClaimItem{Claim: m.claimOf(i, a.attempt, byAgent, false, m.timeout(i))}
			if m.taken(full, e, held, j.incarnation) || m.taken(full, e, store.ClaimItem{}, j.incarnation) {
				return fmt.Sprintf("a reply of another than the holder of attempt %d of %s is taken", n, name)
			}
		}
	}
	return ""
}

// taken reports whether a reply changes the job, or the claim item of the attempt that is out.
func (m *model) taken(j job.Job, e job.Event, item store.ClaimItem, run uint8) bool {
	facts := m.facts(question{run: run})
	for {
		_, v := m.apply(j, e, facts)
		if len(v.Asks) == 0 {
			return v.Kind == machine.Applied
		}
		for _, a := range v.Asks {
			if a.Kind == machine.AskPermit {
				facts.Found[a] = job.Found{Finding: job.FoundQueued}
				continue
			}
			next, found := store.Closed(item, store.Closing{Attempt: a.Attempt, Until: claimUntil(0), Now: base, LockedBy: a.LockedBy})
			if next != item {
				return true
			}
			facts.Found[a] = found
		}
	}
}

// fillPredicates asks once whether the save of an actor fails after another's.
func (m *model) fillPredicates() {
	change := store.Change{Job: job.Job{Rev: 1}}
	for rev := range m.saveConflicts {
		_, err := store.Saved(job.Job{Rev: int64(1 + rev)}, change)
		m.saveConflicts[rev] = err != nil
	}
}
