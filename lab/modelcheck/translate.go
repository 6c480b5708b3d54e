package modelcheck

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/store"
)

// tick is one unit of the clock of a model; a model's workflow counts in it.
const tick = makegood.Millisecond

// weeks is how long passes at once where weeks pass: longer than limits.MaxUnclaimed. After two of them no attempt
// can be claimed, and its item may be gone.
const weeks = 8 * 24 * time.Hour

// staleKey lies so far back that no stored key is equal to it.
const staleKey when = -100

var (
	// The clock stands still; the times in a job move towards it.
	base = time.UnixMilli(10_000_000_000).UTC()

	states     = domain.ProcessStates()
	activities = []job.ActivityState{
		job.NotStarted, job.Dispatched, job.Backoff, job.Done, job.Skipped,
		job.Failed, job.Withdrawn, job.Irreversible, job.Waiting,
	}
	stDispatched   = uint8(slices.Index(activities, job.Dispatched))
	stBackoff      = uint8(slices.Index(activities, job.Backoff))
	stDone         = uint8(slices.Index(activities, job.Done))
	stSkipped      = uint8(slices.Index(activities, job.Skipped))
	stWaiting      = uint8(slices.Index(activities, job.Waiting))
	stIrreversible = uint8(slices.Index(activities, job.Irreversible))

	findings = []job.Finding{
		"", job.FoundOpen, job.FoundHeld, job.FoundClosed, job.FoundNobody,
		job.FoundSilent, job.FoundReplied, job.FoundOver, job.FoundEnded, job.FoundAdmitted, job.FoundQueued,
	}
	foundOpen     = findingOf(job.FoundOpen)
	foundNobody   = findingOf(job.FoundNobody)
	foundSilent   = findingOf(job.FoundSilent)
	foundOver     = findingOf(job.FoundOver)
	foundAdmitted = findingOf(job.FoundAdmitted)
	foundQueued   = findingOf(job.FoundQueued)

	asks   = []machine.AskKind{"", machine.AskLook, machine.AskClose, machine.AskOverrule, machine.AskPermit}
	secret = []byte("0123456789abcdef")
)

func stateOf(s makegood.ProcessState) uint8 { return uint8(slices.Index(states, s)) }

func findingOf(f job.Finding) uint8 { return uint8(slices.Index(findings, f)) }

func (j *record) is(s makegood.ProcessState) bool { return states[j.state] == s }

func timeOf(at when) time.Time {
	switch at {
	case never:
		return time.Time{}
	case far:
		return base.Add(limits.FarKey)
	case minute:
		return base.Add(limits.TellAgain)
	default:
		return base.Add(time.Duration(at) * time.Millisecond)
	}
}

func whenOf(at time.Time) when {
	ticks := at.Sub(base).Milliseconds()
	switch {
	case at.IsZero():
		return never
	case ticks >= limits.FarKey.Milliseconds()/2:
		return far
	case ticks >= 1000:
		return minute
	case ticks > limits.ChainTime.Milliseconds()/2 && ticks < 2*limits.ChainTime.Milliseconds():
		// The end of an attempt in a chain. The chain takes one tick.
		return when(ticks-limits.ChainTime.Milliseconds()) + 1
	case ticks > 100 || ticks < -100:
		panic(fmt.Sprintf("modelcheck: a time %d ticks from now", ticks))
	default:
		return when(ticks)
	}
}

// openedAt is when an attempt of this age was opened, claimUntil until when it can be claimed.
func openedAt(age uint8) time.Time { return base.Add(-time.Duration(age) * weeks) }

func claimUntil(age uint8) time.Time { return openedAt(age).Add(limits.MaxClaimDelay) }

func stepName(i int) string { return fmt.Sprintf("s%d", i) }

const liar = "liar"

// coming names the save of the decision under way.
const coming = "the coming save"

func lockedBy(attempt uint8) string { return fmt.Sprintf("agent:%d", attempt) }

func nameOf(by, attempt uint8) string {
	switch by {
	case byAgent:
		return lockedBy(attempt)
	case byLiar:
		return liar
	default:
		return ""
	}
}

func byOf(name string) uint8 {
	switch name {
	case "":
		return byNobody
	case liar:
		return byLiar
	default:
		return byAgent
	}
}

// slot says which of the claim items of a step is that of its attempts, or of those of its undo.
func (m *model) slot(i int, undo bool) int {
	if s := m.w.Steps[i]; undo && s.Undo.Agent != s.Agent {
		return 1
	}
	return 0
}

// fullItem writes a claim item out as the store knows it.
func (m *model) fullItem(i int, it item) store.ClaimItem {
	if it.attempt == 0 {
		return store.ClaimItem{}
	}
	full := store.ClaimItem{
		Claim: m.claimOf(i, it.attempt, it.by, it.extended, it.until), Closed: findings[it.closed],
		ExpiresAt: base.Add(time.Duration(it.keeps) * weeks),
	}
	if it.ends != never {
		full.Ends = timeOf(it.ends)
	}
	return full
}

func (m *model) claimOf(i int, attempt, by uint8, extended bool, until when) job.Claim {
	c := job.Claim{Attempt: int(attempt), LockedBy: nameOf(by, attempt), CompleteBy: timeOf(until)}
	started := m.timeout(i)
	if extended {
		started *= 2
	}
	c.StartedAt = c.CompleteBy.Add(-time.Duration(started) * time.Millisecond)
	return c
}

// compactItem returns the item as the model keeps it.
func (m *model) compactItem(i int, full store.ClaimItem) item {
	if full.Attempt == 0 {
		return item{ends: never}
	}
	it := item{attempt: small(full.Attempt), closed: findingOf(full.Closed), by: byOf(full.LockedBy), ends: whenOf(full.Ends)}
	if it.closed == 0 {
		it.until = whenOf(full.CompleteBy)
		timeout := time.Duration(m.timeout(i)) * time.Millisecond
		it.extended = it.by == byAgent && full.CompleteBy.After(full.StartedAt.Add(timeout))
	}
	for left := full.ExpiresAt.Sub(base); left > 0; left -= weeks {
		it.keeps++
	}
	return it
}

// found is what was found, as the core is told.
func (m *model) found(f fact) job.Found {
	found := job.Found{Finding: findings[f.finding]}
	if found.Child = endOf(f); found.Child == nil && f.n > 0 {
		found.Claim = m.claimOf(int(f.step), f.n, f.by, f.extended, f.until)
	}
	return found
}

// factOf keeps what was found.
func (m *model) factOf(a ask, found job.Found) fact {
	f := fact{ask: a, finding: findingOf(found.Finding)}
	if found.Claim.Attempt == 0 {
		return f
	}
	f.n, f.by = small(found.Claim.Attempt), byOf(found.Claim.LockedBy)
	if found.Finding == job.FoundHeld || found.Finding == job.FoundOver {
		it := m.compactItem(int(a.step), store.ClaimItem{Claim: found.Claim})
		f.extended, f.until = it.extended, max(0, it.until)
	}
	return f
}

// fullAsk and compactAsk translate what is asked.
func fullAsk(a ask) machine.Ask {
	agent := ""
	if a.kind == askPermit {
		agent = "a"
	}
	return machine.Ask{
		Kind: asks[a.kind], Step: stepName(int(a.step)), Attempt: int(a.attempt), Undo: a.undo, Mark: a.mark,
		LockedBy: nameOf(a.by, a.attempt), Redrives: int(a.redrives), Agent: agent,
	}
}

func compactAsk(a machine.Ask) ask {
	c := ask{kind: uint8(slices.Index(asks, a.Kind)), attempt: small(a.Attempt), undo: a.Undo, mark: a.Mark, by: byOf(a.LockedBy), redrives: small(a.Redrives)}
	if _, err := fmt.Sscanf(a.Step, "s%d", &c.step); err != nil {
		panic(fmt.Sprintf("modelcheck: step %q", a.Step))
	}
	if fullAsk(c) != a {
		panic(fmt.Sprintf("modelcheck: %+v is asked", a))
	}
	return c
}

// causeText is the name that the core gives to an event's cause.
func (m *model) causeText(e event) string {
	if e.kind == evNone {
		return ""
	}
	return m.event(e, event{}, question{}).Cause()
}

// causeOf reads the name of a cause. All deadlines that have passed share one: their redelivery is
// the stale one.
func (m *model) causeOf(text string) event {
	var e event
	switch {
	case text == "":
		return e
	case text == "submit":
		return event{kind: evSubmitted}
	case strings.HasPrefix(text, "due:"):
		return event{kind: evStaleDue}
	case strings.HasPrefix(text, "run:"):
		if _, err := fmt.Sscanf(text, "run:%d", &e.n); err != nil {
			panic(fmt.Sprintf("modelcheck: cause %q", text))
		}
		e.kind = evInterrupted
		return e
	case strings.HasPrefix(text, "refused:"):
		e = m.causeOf(strings.TrimPrefix(text, "refused:"))
		e.kind = evRefused
		return e
	case strings.HasPrefix(text, "held:"):
		e = m.causeOf(strings.TrimPrefix(text, "held:"))
		e.code = replyHeld
		return e
	case strings.HasPrefix(text, "completed:"):
		e, _ = m.wordOf(text)
		return e
	case strings.HasPrefix(text, "child:"):
		e = m.causeOf(strings.TrimPrefix(text, "child:"))
		e.kind = evChild
		return e
	case strings.HasPrefix(text, "admitted:"):
		e = m.causeOf(strings.TrimPrefix(text, "admitted:"))
		e.kind = evAdmitted
		return e
	case strings.HasPrefix(text, "settled:"):
		return m.settlementOf(text)
	case strings.Contains(text, ":"):
		for i := range m.config.Verbs {
			if m.causeText(event{kind: evRequest, n: uint8(i)}) == text {
				return event{kind: evRequest, n: uint8(i)}
			}
		}
	}
	if _, err := fmt.Sscanf(text, "s%d#%d", &e.step, &e.n); err != nil {
		panic(fmt.Sprintf("modelcheck: cause %q", text))
	}
	e.kind = evReply
	return e
}

// event builds the event that e names, for a job as it was loaded; asked is, of a closing, the event that asked for it.
func (m *model) event(e, asked event, q question) job.Event {
	name, n := stepName(int(e.step)), int(e.n)
	switch e.kind {
	case evSubmitted:
		return job.Submitted{}
	case evDue:
		return job.DeadlinePassed{Key: timeOf(q.job.key)}
	case evStaleDue:
		return job.DeadlinePassed{Key: timeOf(staleKey)}
	case evPoke:
		return job.DeadlinePassed{}
	case evInterrupted:
		return job.Interrupted{Incarnation: n}
	case evRefused:
		return job.DispatchRefused{Step: name, Attempt: n, Reason: "too large"}
	case evTold:
		return job.Told{Seq: n, Operator: true, Listener: true}
	case evRequest:
		return job.Requested{Verb: m.config.Verbs[n], Request: fmt.Sprint(n)}
	case evClosed:
		for _, f := range q.known {
			if f.kind == askCommand && f.step == e.step && f.attempt == e.n {
				return job.AttemptClosed{Step: name, Attempt: n, Found: m.found(f), Asked: m.causeText(asked)}
			}
		}
		panic("modelcheck: nothing is known of a closing")
	case evWord:
		return m.completion(e.n)
	case evSettle:
		return m.settling(e.n)
	case evChild:
		return job.ChildEnded{Step: name, Attempt: n}
	case evAdmitted:
		return job.Admitted{Step: name, Attempt: n}
	case evReply:
		return m.reply(e)
	default:
		panic(fmt.Sprintf("modelcheck: event %d", e.kind))
	}
}

// full writes a job out as the core knows it.
func (m *model) full(c record) job.Job {
	j := job.Job{
		ID: "j", Workflow: m.w.Name, Round: int(c.round), Rev: fullRev, Birth: "birth", Secret: secret, Incarnation: int(c.incarnation),
		ProcessState: states[c.state], Desired: states[c.desired], Seq: int(c.seq),
		CompleteBy: timeOf(c.key), Deadline: timeOf(c.deadline), RemindAt: timeOf(c.remind),
		RoundsAgain: int(c.again), AnotherRound: c.another, NextRoundAt: timeOf(c.next), ExpectBy: timeOf(c.expect), WarnAt: timeOf(c.warn),
	}
	if c.warned {
		j.ExpectBy = base
	}
	if c.paused {
		j.PausedAt = base
	}
	for n := range m.config.Verbs {
		if c.requests&(1<<n) != 0 {
			j.Requests = append(j.Requests, m.requests[n])
		}
	}
	for seq := c.seq - c.untold; seq < c.seq; seq++ {
		j.Untold = append(j.Untold, job.Announcement{
			Seq: int(seq) + 1, ProcessState: makegood.JobError, At: base, Operator: true, Listener: true,
		})
	}
	for i := range m.w.Steps {
		s, name := c.steps[i], stepName(i)
		j.Steps = append(j.Steps, job.StepState{
			Name: name, Attempt: int(s.attempt), Forward: m.fullActivity(i, s.age, s.forward), Undo: m.fullActivity(i, s.age, s.undo),
		})
		j.FailureCount += int(s.forward.failures) + int(s.undo.failures) // Of a map, items count as well.
	}
	return j
}

// fullRev is the Rev of each job that the core is given: of two saves it knows which was over the other by actors.
const fullRev = 1

func (m *model) fullActivity(i int, age uint8, c activity) job.Activity {
	a := job.Activity{
		State: activities[c.state], Attempt: int(c.attempt), Tries: int(c.tries), FailureCount: int(c.failures),
		Resent: int(c.resent), Unknown: c.unknown, Cause: m.causeText(c.cause), Closing: c.closing, Queued: c.queued, Alone: c.alone,
		Repeats: int(c.repeats), RepeatTries: int(flag(c.owed)),
	}
	if c.inline {
		a.Inline = lockedBy(c.attempt)
	}
	if c.queued {
		a.QueuedOver = fullRev - int64(c.over)
	}
	if c.silent > 0 {
		a.Silent = &job.Claim{Attempt: int(c.silent)}
		if !c.nameless {
			a.Silent.LockedBy = lockedBy(c.silent)
		}
	}
	a.Completion = m.fullWord(c.word, c.how)
	a.Settled = m.fullSettled(c.settled)
	switch c.state {
	case stWaiting:
		waitingActivity(&a, c.due)
	case stBackoff:
		a.At = timeOf(c.due)
	case stDispatched:
		a.LookAt, a.OpenedAt = timeOf(c.look), openedAt(age)
		// Where it is claimed, when it was sent decides nothing any more.
		a.At = base.Add(-time.Second)
		if c.due != never {
			a.At = timeOf(c.due - m.wait(i, c.resent))
		}
	}
	return a
}

// wait is how long an attempt of step i may wait unclaimed.
func (m *model) wait(i int, resent uint8) when {
	return when(m.w.Steps[i].StartBy/tick) << resent
}

// compact returns the job of the core as the model keeps it.
func (m *model) compact(j job.Job) record {
	c := record{
		state: stateOf(j.ProcessState), desired: stateOf(j.Desired), round: small(j.Round), seq: small(j.Seq),
		untold: small(len(j.Untold)), paused: j.Paused(), incarnation: small(j.Incarnation),
		key: whenOf(j.CompleteBy), deadline: whenOf(j.Deadline), remind: never,
		again: small(j.RoundsAgain), another: j.AnotherRound, next: whenOf(j.NextRoundAt), expect: whenOf(j.ExpectBy), warn: whenOf(j.WarnAt),
	}
	if !j.ExpectBy.IsZero() && j.WarnAt.IsZero() {
		c.warned, c.expect, c.warn = true, never, never
	}
	if j.ProcessState == makegood.JobError {
		c.remind = whenOf(j.RemindAt)
	}
	for _, name := range j.Requests {
		c.requests |= 1 << slices.Index(m.requests[:], name)
	}
	for i, s := range j.Steps {
		c.steps[i] = step{
			attempt: small(s.Attempt), forward: m.compactActivity(i, s.Forward), undo: m.compactActivity(i, s.Undo),
		}
		c.steps[i].forward.settled = m.compactSettled(i, false, s.Forward.Settled)
		c.steps[i].undo.settled = m.compactSettled(i, true, s.Undo.Settled)
		for _, a := range []job.Activity{s.Forward, s.Undo} {
			if a.State == job.Dispatched {
				c.steps[i].age = uint8(base.Sub(a.Opened()) / weeks)
			}
		}
	}
	for i := range c.steps {
		s := &c.steps[i]
		if i >= len(j.Steps) {
			s.forward.due, s.forward.look, s.undo.due, s.undo.look = never, never, never, never
			continue
		}
		// An attempt whose count of resends is held down waits less long than the core thinks.
		for _, a := range []*activity{&s.forward, &s.undo} {
			if a.resent > m.config.Resends {
				a.resent = m.config.Resends
				a.look = min(a.look, a.due)
				c.key = min(c.key, a.due)
			}
		}
	}
	c.settle()
	return c
}

func (m *model) compactActivity(i int, a job.Activity) activity {
	c := activity{
		state: uint8(slices.Index(activities, a.State)), attempt: small(a.Attempt), tries: small(a.Tries),
		failures: small(a.FailureCount), resent: small(a.Resent), silent: small(a.Silence().Attempt),
		unknown: a.Unknown, closing: a.Closing, queued: a.Queued, inline: a.Inline != "", alone: a.Alone, due: never, look: never,
		repeats: small(a.Repeats), owed: a.RepeatTries > 0,
	}
	c.nameless = c.silent > 0 && byOf(a.Silence().LockedBy) != byAgent
	if c.queued {
		c.over = small(int(fullRev - a.QueuedOver))
	}
	c.word, c.how = m.compactWord(a.Completion)
	switch a.State {
	case job.Waiting:
		c.due = whenOf(a.Wait.Deadline)
	case job.Dispatched:
		if a.Cause != "" {
			c.cause = m.causeOf(a.Cause)
			if c.cause.code != replyHeld {
				c.cause.code = 0
			}
		}
		c.look = whenOf(a.LookAt)
		if at := a.At.Sub(base).Milliseconds(); at >= -100 && !c.inline && !c.queued && !m.isChild(i) {
			// Sent again for the third time and for the tenth is the same, but for how long it waits.
			c.due = when(at) + m.wait(i, min(c.resent, m.config.Resends))
		}
	case job.Backoff:
		c.due = whenOf(a.At)
	}
	return c
}

func small(n int) uint8 {
	if n < 0 || n > 100 {
		panic(fmt.Sprintf("a counter of %d", n))
	}
	return uint8(n)
}
