package modelcheck

import (
	"bytes"
	"fmt"
)

const (
	maxSteps   = 3
	maxAttempt = 10 // attempt numbers stay below it
	maxRound   = 3
	maxOut     = 6
	maxFold    = 3 // events in one load and save
	maxKnown   = 6 // facts about claims that one decision rests on
)

// when is a time, in ticks from now. What is not above zero has passed. How long ago it passed
// decides nothing, so what has passed keeps its order only: that makes the states finite.
type when int8

const (
	minute when = 125 // TellAgain, CloseAgain; it comes when nothing nearer is left
	far    when = 126 // FarKey; only weeks bring it
	never  when = 127
)

// event names an event. It is the whole of it together with the state it is taken from: a reply's
// code says what the reply was.
type event struct{ kind, step, n, code uint8 }

const (
	evNone uint8 = iota
	evSubmitted
	evDue      // DeadlinePassed with the key that is stored
	evStaleDue // DeadlinePassed with a key that is not
	evPoke     // DeadlinePassed without a key, as the engine sends it when it starts
	evReply
	evRefused
	evRequest
	evTold
	evClosed // AttemptClosed: what was found is among the facts of the actor
	evInterrupted
	evWord   // StepCompleted, by those outside
	evSettle // Settled, by a person
	evChild  // ChildEnded
	evAdmitted
)

// activity is a job.Activity without what decides nothing.
type activity struct {
	state, attempt, tries, failures, resent uint8
	// silent is the last started attempt that ended in silence, and nameless that nobody was found to have claimed it.
	silent   uint8
	nameless bool
	// due is until when an unclaimed attempt may wait, or when the next is made; look is LookAt.
	due, look when
	unknown   bool
	closing   bool
	// queued: it stands before the gate of its agent, since over saves.
	queued bool
	over   uint8
	// inline: the process that opened the attempt runs it. alone: its next attempts are not inline, and run alone.
	inline, alone bool
	cause         event
	// word is the last that was said of it from outside, from 1; how is whether it waits for the end of an attempt.
	word, how uint8
	// settled is what a person said of it, from 1.
	settled uint8
	// repeats is how often a child was to be redriven; owed: it is to be once more.
	repeats uint8
	owed    bool
}

// step is a job.StepState. age says how long ago its latest attempt was opened, if it is out: 1 is longer than
// MaxUnclaimed, 2 longer than MaxClaimDelay.
type step struct {
	attempt, age  uint8
	forward, undo activity
}

// record is a job.Job. Rev, which only distinguishes two saves, is not in it: an actor remembers instead whether the
// job was saved since it loaded.
type record struct {
	state, desired, round, seq, untold, incarnation uint8
	again                                           uint8 // the rounds that began by themselves
	another                                         bool  // one more follows
	requests                                        uint8 // those granted, a bit each
	paused                                          bool
	key, deadline, remind, next                     when
	// expect is ExpectBy and warn WarnAt while nobody was told; warned that somebody was: then neither decides anything.
	expect, warn when
	warned       bool
	steps        [maxSteps]step
}

// item is a store.ClaimItem.
type item struct {
	attempt, closed, by uint8
	// extended: its CompleteBy was extended since it was claimed.
	extended    bool
	until, ends when
	// keeps is how many weeks it is kept.
	keeps uint8
	// soft: it is not flushed, and may be lost with the power.
	soft bool
}

// The holders of an item.
const (
	byNobody uint8 = iota
	byAgent        // who got the task: known by the attempt, since it is claimed but once
	byLiar
)

// fact is something that an actor has found out about a claim; ask is what it asked.
type fact struct {
	ask
	finding, n, by uint8
	extended       bool
	until          when
	// unsaved: the attempt was opened by an earlier event of the same batch.
	unsaved bool
}

// ask is a machine.Ask, or a command to close.
type ask struct {
	kind, step, attempt uint8
	undo, mark          bool
	by, redrives        uint8
}

const (
	askNone uint8 = iota
	askLook
	askClose
	askOverrule
	askPermit
	askCommand // a close that the job as it was saved commands
)

// message is what a Scheduler is about to send or to do: a task, an announcement, a closing.
type message struct {
	kind, step, n, code, redrives uint8
	asked                         event
}

const (
	sendNone uint8 = iota
	sendTask
	sendLeft // an attempt leaves the gate
	sendClose
	sendNotice
)

// actor is a Scheduler that has events in hand.
type actor struct {
	phase uint8
	evs   [maxFold]event
	// asked are, of evClosed, the events that asked.
	asked [maxFold]event
	known [maxKnown]fact
	// job is the one loaded, then the one decided.
	job record
	// newRev: the job was saved since it was loaded.
	newRev bool
	// saves is how many saves there were since it was loaded, or since its own, where there is a gate.
	saves uint8
	out   [maxOut]message
}

const (
	idle     uint8 = iota
	received       // has events that nobody else has, or facts that stay over a conflict
	loaded
	decided
	sending
	absent // there is no such Scheduler
)

// The life of an attempt at its agent. An agent that stops forever just makes no further move; one
// that stops for long and goes on makes it late. dead is for what went down with the power.
const (
	runClaimed  uint8 = iota + 1
	runEffected       // the remote did it, or undid it
	runRefused        // the remote refused it, for it has been undone
	runHanded         // somebody outside will complete the step
	runReplied
	runDead
	runChained     // its process begins it when the one before it in its chain has succeeded
	runLife    = 7 // the bits of the above
)

// How an attempt was closed, beside its life.
const (
	ranNobody  = 16
	ranSilent  = 32
	ranReplied = 64
)

// The replies of an agent.
const (
	replySucceeded uint8 = iota + 1
	replyFailed          // may be tried again; not applied
	replyFinal           // final; not applied
	replyUnknown         // may be tried again; perhaps applied
	replyWaiting         // somebody outside completes the step
	replyHeld            // its process has not begun it
)

// A task as sent: taskSent, perhaps taskUndo, the round in its key times taskRound, and its age times taskAge.
// taskRefused marks one that the queue refused.
const (
	taskSent    = 1
	taskUndo    = 2
	taskRound   = 4
	taskAge     = 32
	taskRefused = 128
)

func roundOf(task uint8) uint8 { return task / taskRound & 7 }
func ageOf(task uint8) uint8   { return task / taskAge & 3 }

// The remote's ledger for one idempotency key.
const (
	ledgerApplied     = 1
	ledgerUndone      = 2
	ledgerUndoClaimed = 4
	// A person settled the step, or its undo, and heard so.
	ledgerSettled     = 8
	ledgerUndoSettled = 16
)

// state is everything. It is comparable, and equal states are the same state.
//
// Messages are never taken off the network: each that was ever sent may come at any time, any number
// of times, in any order, or never. That is loss, duplication, delay and reordering in one.
type state struct {
	job    record
	actors [2]actor
	// items are the claim items: a step has a second one if another agent undoes it.
	items   [maxSteps][2]item
	tasks   [maxSteps][maxAttempt]uint8
	runs    [maxSteps][maxAttempt]uint8
	replies [maxSteps][maxAttempt]uint8
	remote  [maxSteps][maxRound + 1]uint8
	told    uint8 // announcements that were made, a bit a number
	asked   uint8 // requests that were made
	// run is which one of the embedded engine this is, weeks how many have passed, lies how often agents lied.
	run, weeks, lies uint8
	// handed are the steps that agents have handed to those outside, a bit each, and said the words that those gave.
	handed, said uint8
	// children are the jobs that do attempts, stalled what invocations may yet do to them.
	children [maxSteps][maxAttempt]child
	stalled  [maxSteps][maxAttempt]uint16
	gate     atGate
}

// out returns the activity of a step that is with its agent.
func (s *step) out() (a *activity, undo bool) {
	switch {
	case s.undo.state == stDispatched:
		return &s.undo, true
	case s.forward.state == stDispatched:
		return &s.forward, false
	default:
		return nil, false
	}
}

// times calls f with every time of a job that still decides something.
func (j *record) times(f func(*when)) {
	f(&j.key)
	f(&j.deadline)
	f(&j.remind)
	f(&j.next)
	f(&j.expect)
	f(&j.warn)
	for i := range j.steps {
		s := &j.steps[i]
		f(&s.forward.due)
		f(&s.forward.look)
		f(&s.undo.due)
		f(&s.undo.look)
	}
}

// after returns a time as it is ticks later.
func (at when) after(ticks when) when {
	switch {
	case at == never, at >= minute && ticks < at:
		return at
	case at >= minute:
		return 0
	default:
		return when(max(int(at)-int(ticks), -100))
	}
}

// pass lets ticks go by.
func (j *record) pass(ticks when) {
	j.times(func(at *when) { *at = at.after(ticks) })
	j.settle()
}

// settle brings a job into the one form that all jobs which behave alike share.
func (j *record) settle() {
	for i := range j.steps {
		s := &j.steps[i]
		for _, a := range []*activity{&s.forward, &s.undo} {
			if a.state != stDispatched {
				a.look = never
			}
			if a.state != stDispatched && a.state != stBackoff && a.state != stWaiting {
				a.due, a.resent = never, 0
			}
		}
	}
	// Of what has passed only the order is kept: the latest becomes 0, the one before it -1.
	var past [101]bool
	j.times(func(at *when) {
		if *at <= 0 {
			past[-*at] = true
		}
	})
	j.times(func(at *when) {
		if *at > 0 {
			return
		}
		rank := when(0)
		for _, is := range past[:-*at] {
			if is {
				rank++
			}
		}
		*at = -rank
	})
}

// settle forgets what decides nothing any more, now that it is known who has claimed what.
func (m *model) settle(s *state) {
	busy := false
	for i := range s.actors {
		busy = busy || s.actors[i].phase != idle && s.actors[i].phase != absent
	}
	for i := range m.w.Steps {
		a, undo := s.job.steps[i].out()
		for k := range s.items[i] {
			it := &s.items[i][k]
			is := a != nil && k == m.slot(i, undo) && it.attempt >= a.attempt
			if is {
				// When it was sent decides nothing any more.
				a.due = never
			}
			if it.closed != 0 || !is && !busy {
				it.until, it.ends, it.extended = 0, never, false
			}
			if it.until < 0 {
				it.until = 0
			}
			if it.ends < 0 {
				it.ends = 0
			}
		}
	}
	s.job.settle()
}

// hasFuture reports whether a tick changes anything.
func (j *record) hasFuture() bool {
	future := false
	j.times(func(at *when) { future = future || *at > 0 && *at < minute })
	return future
}

// pass lets ticks go by, for all.
func (m *model) pass(s *state, ticks when) {
	s.job.pass(ticks)
	for i := range s.actors {
		x := &s.actors[i]
		if x.phase == loaded || x.phase == decided {
			x.job.pass(ticks)
		}
		for k := range x.known {
			if x.known[k].kind != askNone {
				x.known[k].until = max(0, x.known[k].until.after(ticks))
			}
		}
	}
	for i := range m.w.Steps {
		for k := range s.items[i] {
			it := &s.items[i][k]
			it.until, it.ends = it.until.after(ticks), it.ends.after(ticks)
		}
	}
	m.settle(s)
}

func (e event) String() string {
	switch e.kind {
	case evSubmitted:
		return "the submission again"
	case evDue:
		return "DeadlinePassed with the stored key"
	case evStaleDue:
		return "DeadlinePassed with an old key"
	case evPoke:
		return "the poke of an engine that starts"
	case evReply:
		return fmt.Sprintf("the reply of s%d#%d (%s)", e.step, e.n, replyNames[e.code])
	case evRefused:
		return fmt.Sprintf("DispatchRefused of s%d#%d", e.step, e.n)
	case evRequest:
		return fmt.Sprintf("request %d", e.n)
	case evTold:
		return fmt.Sprintf("Told %d", e.n)
	case evWord:
		return fmt.Sprintf("word %d from outside", e.n)
	case evSettle:
		return fmt.Sprintf("settlement %d", e.n)
	case evChild:
		return fmt.Sprintf("ChildEnded of s%d#%d", e.step, e.n)
	case evAdmitted:
		return fmt.Sprintf("Admitted of s%d#%d", e.step, e.n)
	case evClosed:
		return fmt.Sprintf("AttemptClosed of s%d#%d", e.step, e.n)
	case evInterrupted:
		return fmt.Sprintf("Interrupted %d", e.n)
	default:
		panic(fmt.Sprintf("modelcheck: event %d", e.kind))
	}
}

var replyNames = [...]string{"none", "succeeded", "failed, not applied", "failed for good, not applied", "failed, perhaps applied", "it waits", "not begun"}

// before sorts Schedulers, for it does not matter which of them is which.
func (x *actor) before(y *actor) bool {
	if x.phase != y.phase {
		return x.phase < y.phase
	}
	if x.phase == idle {
		return false
	}
	return bytes.Compare(x.bytes(), y.bytes()) < 0
}

func flag(is bool) byte {
	if is {
		return 1
	}
	return 0
}

func (e event) bytes(b []byte) []byte { return append(b, e.kind, e.step, e.n, e.code) }

// bytes writes an actor down so that others are written otherwise.
func (x *actor) bytes() []byte {
	b := []byte{flag(x.newRev), x.saves}
	for k := range x.evs {
		b = x.asked[k].bytes(x.evs[k].bytes(b))
	}
	for _, f := range x.known {
		b = append(b, f.kind, f.step, f.attempt, flag(f.undo), flag(f.mark), f.ask.by, f.redrives)
		b = append(b, f.finding, f.n, f.by, flag(f.extended), byte(f.until), flag(f.unsaved))
	}
	for _, o := range x.out {
		b = o.asked.bytes(append(b, o.kind, o.step, o.n, o.code, o.redrives))
	}
	j := &x.job
	b = append(
		b, j.state, j.desired, j.round, j.seq, j.untold, j.incarnation, j.requests, flag(j.paused),
		byte(j.key), byte(j.deadline), byte(j.remind), j.again, flag(j.another), byte(j.next),
		byte(j.expect), byte(j.warn), flag(j.warned),
	)
	for _, s := range j.steps {
		b = append(b, s.attempt, s.age)
		for _, a := range []activity{s.forward, s.undo} {
			b = append(
				b, a.state, a.attempt, a.tries, a.failures, a.resent, a.silent, flag(a.nameless),
				byte(a.due), byte(a.look), flag(a.unknown), flag(a.closing), flag(a.queued), a.over, flag(a.inline), flag(a.alone), a.word, a.how, a.settled, a.repeats, flag(a.owed),
			)
			b = a.cause.bytes(b)
		}
	}
	return b
}
