package modelcheck

import (
	"bytes"
	"fmt"
)

const (
	maxSteps   = 3
	maxAttempt = 10 // attempt numbers stay below it
	maxRound   = 3
	maxOut     = 4
)

// when is a time, in ticks from now. What is not above zero has passed. How long ago it passed
// decides nothing, so what has passed keeps its order only: that makes the states finite.
type when int8

const (
	minute when = 125 // TellAgain; it comes when nothing nearer is left
	far    when = 126 // FarKey; nobody waits for it here
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
	evReply
	evRefused
	evRequest
	evTold
)

// activity is a makegood.Activity without what decides nothing.
type activity struct {
	state, attempt, tries, failures, resent, silent uint8
	// due is until when an unclaimed attempt may wait, or when the next is made.
	due     when
	unknown bool
	cause   event
}

// step is a makegood.StepState with its entry of Open and its slot of Claims. Who holds a slot is
// known by the attempt: an attempt that were claimed twice is a violation by itself.
type step struct {
	attempt, open, slot uint8
	slotBy              when
	forward, undo       activity
}

// job is a makegood.Job. Counters that only tell two saves apart (Rev, Claims.Rev) are not in it: an
// actor remembers instead what has changed since it loaded.
type job struct {
	state, desired, round, seq, untold, request uint8
	paused                                      bool
	key, deadline                               when
	steps                                       [maxSteps]step
}

// message is what a Scheduler is about to send: a task, or an announcement.
type message struct{ kind, step, n, code uint8 }

const (
	sendTask uint8 = iota + 1
	sendNotice
)

// actor is a Scheduler that has an event in hand.
type actor struct {
	phase uint8
	ev    event
	// job is the one loaded, then the one decided.
	job             job
	ended           uint8 // a bit a step
	onClaims, moves bool
	// What was written to the job since it was loaded.
	newRev, newClaims, newKey bool
	out                       [maxOut]message
}

const (
	idle     uint8 = iota
	received       // has a request that met a conflict
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
	runReplied
	runDead
)

// The replies of an agent.
const (
	replySucceeded uint8 = iota + 1
	replyFailed          // may be tried again; not applied
	replyFinal           // final; not applied
	replyUnknown         // may be tried again; perhaps applied
)

// A task as sent: taskSent, perhaps taskUndo, and the round in its key times taskRound. taskRefused
// marks one that the queue refused.
const (
	taskSent    = 1
	taskUndo    = 2
	taskRound   = 4
	taskRefused = 128
)

// The remote's ledger for one idempotency key.
const (
	ledgerApplied     = 1
	ledgerUndone      = 2
	ledgerUndoClaimed = 4
)

// state is everything. It is comparable, and equal states are the same state.
//
// Messages are never taken off the network: each that was ever sent may come at any time, any number
// of times, in any order, or never. That is loss, duplication, delay and reordering in one.
type state struct {
	job     job
	actors  [2]actor
	tasks   [maxSteps][maxAttempt]uint8
	runs    [maxSteps][maxAttempt]uint8
	replies [maxSteps][maxAttempt]uint8
	remote  [maxSteps][maxRound + 1]uint8
	told    uint8 // announcements that were made, a bit a number
	asked   uint8 // requests that were made
}

// times calls f with every time of a job that still decides something.
func (j *job) times(f func(*when)) {
	f(&j.key)
	f(&j.deadline)
	for i := range j.steps {
		s := &j.steps[i]
		if s.slot > 0 {
			f(&s.slotBy)
		}
		f(&s.forward.due)
		f(&s.undo.due)
	}
}

// pass lets ticks go by.
func (j *job) pass(ticks when) {
	j.times(func(at *when) {
		switch {
		case *at == minute && ticks >= minute:
			*at = 0
		case *at < minute:
			*at = when(max(int(*at)-int(ticks), -100))
		}
	})
	j.settle()
}

// settle brings a job into the one form that all jobs which behave alike share.
func (j *job) settle() {
	for i := range j.steps {
		s := &j.steps[i]
		if s.slot == 0 {
			s.slotBy = 0
		}
		for _, a := range []*activity{&s.forward, &s.undo} {
			claimed := a.state == stDispatched && s.slot == a.attempt
			if claimed || a.state != stDispatched && a.state != stBackoff {
				a.due = never
			}
			if a.state != stDispatched && a.state != stBackoff {
				a.resent = 0
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

// hasFuture reports whether a tick changes anything.
func (j *job) hasFuture() bool {
	future := false
	j.times(func(at *when) { future = future || *at > 0 && *at < minute })
	return future
}

func (e event) String() string {
	switch e.kind {
	case evSubmitted:
		return "the submission again"
	case evDue:
		return "DeadlinePassed with the stored key"
	case evStaleDue:
		return "DeadlinePassed with an old key"
	case evReply:
		return fmt.Sprintf("the reply of s%d#%d (%s)", e.step, e.n, replyNames[e.code])
	case evRefused:
		return fmt.Sprintf("DispatchRefused of s%d#%d", e.step, e.n)
	case evRequest:
		return fmt.Sprintf("request %d", e.n)
	case evTold:
		return fmt.Sprintf("Told %d", e.n)
	default:
		panic(fmt.Sprintf("modelcheck: event %d", e.kind))
	}
}

var replyNames = [...]string{"none", "succeeded", "failed, not applied", "failed for good, not applied", "failed, perhaps applied"}

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

// bytes writes an actor down so that others are written otherwise.
func (x *actor) bytes() []byte {
	flag := func(is bool) byte {
		if is {
			return 1
		}
		return 0
	}
	b := []byte{
		x.ev.kind, x.ev.step, x.ev.n, x.ev.code, x.ended,
		flag(x.onClaims), flag(x.moves), flag(x.newRev), flag(x.newClaims), flag(x.newKey),
	}
	for _, o := range x.out {
		b = append(b, o.kind, o.step, o.n, o.code)
	}
	j := &x.job
	b = append(b, j.state, j.desired, j.round, j.seq, j.untold, j.request, flag(j.paused), byte(j.key), byte(j.deadline))
	for _, s := range j.steps {
		b = append(b, s.attempt, s.open, s.slot, byte(s.slotBy))
		for _, a := range []activity{s.forward, s.undo} {
			b = append(
				b, a.state, a.attempt, a.tries, a.failures, a.resent, a.silent, byte(a.due), flag(a.unknown),
				a.cause.kind, a.cause.step, a.cause.n, a.cause.code,
			)
		}
	}
	return b
}
