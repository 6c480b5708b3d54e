package modelcheck

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
)

// tick is one unit of the clock of a model; a model's workflow counts in it.
const tick = makegood.Millisecond

// staleKey lies so far back that no stored key is equal to it.
const staleKey when = -100

var (
	// The clock stands still; the times in a job move towards it.
	base = time.UnixMilli(1_000_000_000).UTC()

	states     = makegood.ProcessStates()
	activities = []makegood.ActivityState{
		makegood.NotStarted, makegood.Dispatched, makegood.Backoff, makegood.Done, makegood.Skipped,
		makegood.Failed, makegood.Withdrawn, makegood.Irreversible,
	}
	stDispatched   = uint8(slices.Index(activities, makegood.Dispatched))
	stBackoff      = uint8(slices.Index(activities, makegood.Backoff))
	stDone         = uint8(slices.Index(activities, makegood.Done))
	stSkipped      = uint8(slices.Index(activities, makegood.Skipped))
	stIrreversible = uint8(slices.Index(activities, makegood.Irreversible))
)

func stateOf(s makegood.ProcessState) uint8 { return uint8(slices.Index(states, s)) }

func (j *job) is(s makegood.ProcessState) bool { return states[j.state] == s }

func timeOf(at when) time.Time {
	switch at {
	case never:
		return time.Time{}
	case far:
		return base.Add(makegood.FarKey)
	case minute:
		return base.Add(makegood.TellAgain)
	default:
		return base.Add(time.Duration(at) * time.Millisecond)
	}
}

func whenOf(at time.Time) when {
	ticks := at.Sub(base).Milliseconds()
	switch {
	case at.IsZero():
		return never
	case ticks >= makegood.FarKey.Milliseconds()/2:
		return far
	case ticks >= 1000:
		return minute
	case ticks > 100 || ticks < -100:
		panic(fmt.Sprintf("modelcheck: a time %d ticks from now", ticks))
	default:
		return when(ticks)
	}
}

func stepName(i int) string { return fmt.Sprintf("s%d", i) }

func lockedBy(attempt uint8) string { return fmt.Sprintf("agent:%d", attempt) }

// causeText is the name that the core gives to an event's cause.
func (m *model) causeText(e event) string {
	if e.kind == evNone {
		return ""
	}
	return m.event(e, job{key: 0}).Cause()
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
	case strings.HasPrefix(text, "refused:"):
		e = m.causeOf(strings.TrimPrefix(text, "refused:"))
		e.kind = evRefused
		return e
	case strings.Contains(text, ":"):
		for i := range m.config.Verbs {
			if m.event(event{kind: evRequest, n: uint8(i)}, job{}).Cause() == text {
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

// event builds the event that e names, for a job as it was loaded.
func (m *model) event(e event, j job) makegood.Event {
	name, n := stepName(int(e.step)), int(e.n)
	switch e.kind {
	case evSubmitted:
		return makegood.Submitted{}
	case evDue:
		return makegood.DeadlinePassed{Key: timeOf(j.key)}
	case evStaleDue:
		return makegood.DeadlinePassed{Key: timeOf(staleKey)}
	case evRefused:
		return makegood.DispatchRefused{Step: name, Attempt: n, Reason: "too large"}
	case evTold:
		return makegood.Told{Seq: n}
	case evRequest:
		return makegood.Requested{Verb: m.config.Verbs[n], Request: fmt.Sprint(n)}
	case evReply:
		failure := makegood.StepError{Message: "no", Retryable: e.code != replyFinal, Applied: makegood.AppliedNo}
		failure.RetryAfter = m.w.Steps[e.step].Retry.Max
		if e.code == replyUnknown {
			failure.Applied = makegood.AppliedUnknown
		}
		if e.code == replySucceeded {
			return makegood.StepSucceeded{Step: name, Attempt: n, LockedBy: lockedBy(e.n)}
		}
		return makegood.StepFailed{Step: name, Attempt: n, LockedBy: lockedBy(e.n), Error: failure}
	default:
		panic(fmt.Sprintf("modelcheck: event %d", e.kind))
	}
}

// full writes a job out as the core knows it.
func (m *model) full(c job) makegood.Job {
	j := makegood.Job{
		ID: "j", Workflow: m.w.Name, Round: int(c.round), Rev: 1,
		ProcessState: states[c.state], Desired: states[c.desired], Seq: int(c.seq),
		CompleteBy: timeOf(c.key), Deadline: timeOf(c.deadline),
	}
	if c.paused {
		j.PausedAt = base
	}
	if c.request > 0 {
		j.Request = m.causeText(event{kind: evRequest, n: c.request - 1})
	}
	for seq := c.seq - c.untold; seq < c.seq; seq++ {
		j.Untold = append(j.Untold, makegood.Announcement{Seq: int(seq) + 1, ProcessState: makegood.Error})
	}
	j.Open, j.Claims.Slots = map[string]int{}, map[string]makegood.Claim{}
	for i := range m.w.Steps {
		s, name := c.steps[i], stepName(i)
		j.Steps = append(j.Steps, makegood.StepState{
			Name: name, Attempt: int(s.attempt), Forward: m.fullActivity(i, s.forward), Undo: m.fullActivity(i, s.undo),
		})
		j.FailureCount += int(s.forward.failures) + int(s.undo.failures)
		if s.open > 0 {
			j.Open[name] = int(s.open)
		}
		if s.slot > 0 {
			j.Claims.Slots[name] = makegood.Claim{Attempt: int(s.slot), LockedBy: lockedBy(s.slot), CompleteBy: timeOf(s.slotBy)}
		}
	}
	return j
}

func (m *model) fullActivity(i int, c activity) makegood.Activity {
	a := makegood.Activity{
		State: activities[c.state], Attempt: int(c.attempt), Tries: int(c.tries), FailureCount: int(c.failures),
		Resent: int(c.resent), Unknown: c.unknown, Cause: m.causeText(c.cause),
	}
	if c.silent > 0 {
		a.Silent = makegood.Claim{Attempt: int(c.silent), LockedBy: lockedBy(c.silent)}
	}
	switch {
	case c.state == stBackoff:
		a.At = timeOf(c.due)
	case c.state == stDispatched && c.due != never:
		a.At = timeOf(c.due - m.wait(i, c.resent))
	case c.state == stDispatched:
		// Claimed: when it was sent decides nothing any more.
		a.At = base.Add(-time.Second)
	}
	return a
}

// wait is how long an attempt of step i may wait unclaimed.
func (m *model) wait(i int, resent uint8) when {
	return when(m.w.Steps[i].StartBy/tick) << resent
}

// compact gives the job of the core as the model keeps it.
func (m *model) compact(j makegood.Job) job {
	c := job{
		state: stateOf(j.ProcessState), desired: stateOf(j.Desired), round: small(j.Round), seq: small(j.Seq),
		untold: small(len(j.Untold)), paused: j.Paused(), key: whenOf(j.CompleteBy), deadline: whenOf(j.Deadline),
	}
	if j.Request != "" {
		c.request = m.causeOf(j.Request).n + 1
	}
	for i, s := range j.Steps {
		c.steps[i] = step{
			attempt: small(s.Attempt), open: small(j.Open[s.Name]),
			forward: m.compactActivity(i, s.Forward), undo: m.compactActivity(i, s.Undo),
		}
		if slot, held := j.Claims.Slots[s.Name]; held {
			c.steps[i].slot, c.steps[i].slotBy = small(slot.Attempt), whenOf(slot.CompleteBy)
		}
	}
	for i := len(j.Steps); i < maxSteps; i++ {
		c.steps[i].forward.due, c.steps[i].undo.due = never, never
	}
	for i, s := range j.Steps {
		// An attempt whose count of resends is held down waits less long than the core thinks.
		if s.Forward.Resent > int(m.config.Resends) || s.Undo.Resent > int(m.config.Resends) {
			c.key = min(c.key, c.steps[i].forward.due, c.steps[i].undo.due)
		}
	}
	c.settle()
	return c
}

func (m *model) compactActivity(i int, a makegood.Activity) activity {
	c := activity{
		state: uint8(slices.Index(activities, a.State)), attempt: small(a.Attempt), tries: small(a.Tries),
		failures: small(a.FailureCount), resent: small(a.Resent), silent: small(a.Silent.Attempt),
		unknown: a.Unknown, due: never,
	}
	if a.Cause != "" {
		c.cause = m.causeOf(a.Cause)
		c.cause.code = 0
	}
	// Sent again for the third time and for the tenth is the same, but for how long it waits.
	c.resent = min(c.resent, m.config.Resends)
	switch a.State {
	case makegood.Dispatched:
		if at := a.At.Sub(base).Milliseconds(); at >= -100 {
			c.due = when(at) + m.wait(i, c.resent)
		}
	case makegood.Backoff:
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
