package sim

import (
	"errors"
	"math/rand/v2"
	"time"
)

// Kind is a kind of fault.
type Kind string

// The kinds of fault. The first group strikes calls of the store, of a queue and of those who are told, the
// second messages, the third whole parts for a while, the fourth the remote services.
const (
	CrashBefore Kind = "crash-before"   // the process dies before the call
	CrashAfter  Kind = "crash-after"    // the process dies when the call has been carried out
	AnswerLost  Kind = "answer-lost"    // carried out, and answered with an error
	Repeated    Kind = "repeated"       // carried out, the answer lost, and asked again by the SDK
	LandsLate   Kind = "lands-late"     // answered with an error, and carried out a while later
	Throttled   Kind = "throttled"      // refused for now
	Conflict    Kind = "tx-conflict"    // refused because a transaction touches the item
	Paused      Kind = "zombie"         // the call takes up to minutes; whoever made it goes on then
	PartSent    Kind = "partial-send"   // a message of a batch is refused for now
	PartFailed  Kind = "partial-delete" // a message of a batch that was dealt with is not deleted

	Lost    Kind = "message-lost"
	Doubled Kind = "message-doubled"
	Delayed Kind = "message-delayed" // so others overtake it
	Poison  Kind = "message-poison"
	// Stranger sends replies without their token, and what nobody may say.
	Stranger    Kind = "message-forged"
	TaskRefused Kind = "task-refused" // the queue will never take it

	StaleIndex     Kind = "stale-index"
	PollingStopped Kind = "polling-stopped"
	TickDropped    Kind = "tick-dropped"
	TickDoubled    Kind = "tick-doubled"
	ClockSkewed    Kind = "clock-skewed"
	ClockJumped    Kind = "clock-jumped"
	ListenerDeaf   Kind = "listener-deaf"
	PowerLost      Kind = "power-lost" // an embedded engine dies, and its last claims with it

	RemoteRefuses  Kind = "remote-refuses"  // and says that nothing was applied
	RemoteFails    Kind = "remote-fails"    // before or after it has applied, and does not say
	RemoteHangs    Kind = "remote-hangs"    // and has applied, or has not, or will
	RemoteForGood  Kind = "remote-for-good" // refuses for good
	RemoteTakesFor Kind = "remote-slow"     // longer than the step's timeout, with heartbeats or without
	AgentLies      Kind = "agent-lies"      // and claims what was never made, or for much too long

	// FoldTorn strikes between the events of one job in a batch: what the first of them needed to know was found out, and
	// what a later one needs cannot be, or the process dies over it.
	FoldTorn Kind = "fold-torn"

	// ReceiverHangs: who is told takes the call and does not come back. PayloadMissing: an agent says that it has written a
	// payload, and has not.
	ReceiverHangs  Kind = "receiver-hangs"
	PayloadMissing Kind = "payload-missing"
)

// Kinds are all of them.
func Kinds() []Kind {
	return []Kind{
		CrashBefore, CrashAfter, AnswerLost, Repeated, LandsLate, Throttled, Conflict, Paused, PartSent, PartFailed,
		Lost, Doubled, Delayed, Poison, Stranger, TaskRefused,
		StaleIndex, PollingStopped, TickDropped, TickDoubled, ClockSkewed, ClockJumped, ListenerDeaf, PowerLost,
		RemoteRefuses, RemoteFails, RemoteHangs, RemoteForGood, RemoteTakesFor, AgentLies, FoldTorn,
		ReceiverHangs, PayloadMissing,
	}
}

var (
	errThrottled = errors.New("sim: throttled")
	errConflict  = errors.New("sim: transaction conflict")
	errNoAnswer  = errors.New("sim: no answer")
)

// faults decides what goes wrong.
type faults struct {
	chance chance
	// perMille is how often each kind strikes.
	perMille map[Kind]int
	// without are single faults that are left out, by their names.
	without map[string]bool
	// over ends them all, once last has passed.
	over bool
	last time.Duration
	// struck are the faults that happened, in their order; counts are how many of each kind.
	struck []string
	counts map[Kind]int
}

// newFaults rolls how bad the days of a seed are. Some kinds never strike in a seed, and some do often, so
// that seeds differ from one another and not only from themselves.
func newFaults(c chance, o Options, embedded bool) *faults {
	f := &faults{chance: c, perMille: map[Kind]int{}, without: o.without, counts: map[Kind]int{}, last: faultsLast * time.Duration(max(1, o.items/1000))}
	r := c.of("rates")
	for _, kind := range Kinds() {
		rate := pick(r, 0, 0, 3, 10, 30, 80)
		switch kind {
		case StaleIndex, PollingStopped, TickDropped, TickDoubled, ClockSkewed, ListenerDeaf, PowerLost, Stranger, ReceiverHangs:
			rate *= 6
		case FoldTorn:
			rate = min(20*rate, 1000)
		case RemoteRefuses, RemoteFails, RemoteHangs, RemoteTakesFor, Poison, PayloadMissing:
			rate *= 3
		case CrashBefore, CrashAfter:
			if embedded {
				rate = (rate + 1) / 2 // Everything dies at once.
			}
		}
		if o.items > 0 { // A hundred items wait for the one with the most faults.
			rate = (rate + 9) / 10
		}
		if o.Maps && kind == RemoteForGood {
			rate = pick(r, 30, 100, 250) // Else too few items fail.
		}
		if !o.off[kind] {
			f.perMille[kind] = rate
		}
	}
	return f
}

// strikes reports whether a fault of this kind happens to what has this name.
func (f *faults) strikes(kind Kind, name string) bool {
	rate := f.perMille[kind]
	if f.over || rate == 0 || f.chance.of(string(kind), name).IntN(1000) >= rate {
		return false
	}
	fault := string(kind) + " " + name
	if f.without[fault] {
		return false
	}
	f.struck = append(f.struck, fault)
	f.counts[kind]++
	return true
}

// first returns the first of the kinds that strikes; empty: none.
func (f *faults) first(name string, kinds ...Kind) Kind {
	for _, kind := range kinds {
		if f.strikes(kind, name) {
			return kind
		}
	}
	return ""
}

// window is a stretch of time in which something is amiss.
type window struct{ from, to time.Time }

func (w window) holds(t time.Time) bool { return !t.Before(w.from) && t.Before(w.to) }

// window rolls a stretch of at most so long within the time of faults; often none.
func (f *faults) window(kind Kind, name string, start time.Time, most time.Duration) window {
	r := f.chance.of("window", string(kind), name)
	from := start.Add(between(r, 0, faultsLast/2))
	to := from.Add(between(r, time.Second, most))
	if end := start.Add(faultsLast); to.After(end) {
		to = end
	}
	if !f.strikes(kind, name) {
		return window{}
	}
	return window{from, to}
}

// skew rolls how wrong a clock goes: seldom, and then from a second to an hour.
func skew(r *rand.Rand) time.Duration {
	size := between(r, time.Second, pick(r, 5*time.Second, time.Minute, time.Hour))
	if oneIn(r, 2) {
		return -size
	}
	return size
}
