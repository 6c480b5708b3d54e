package services

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net/http"

	"github.com/makegood-dev/makegood"
)

// MaxFaults is how many attempts at one action of one order meet a fault, unless the script says
// "for good". A workflow that grants each step more attempts than this ends as Ends says.
const MaxFaults = 3

// Fault is how the shop misbehaves at one attempt. Those named After come when the effect was made.
type Fault string

// The faults, and their remaining effects.
const (
	NoFault     Fault = ""
	Fails       Fault = "500"                  // answers 500; no effect
	Busy        Fault = "503"                  // answers 503 with Retry-After; no effect
	Throttled   Fault = "429"                  // answers 429; no effect
	Hangs       Fault = "hang"                 // sends no answer until the caller has gone; no effect
	HangsAfter  Fault = "hang with effect"     // the effect is made once the caller has gone
	HangsLate   Fault = "hang, effect late"    // the same, a while after the caller has gone
	HangsUp     Fault = "hang up"              // closes the connection; no effect
	HangsUpThen Fault = "hang up after effect" // makes the effect, then closes the connection
	Twice       Fault = "answer twice"         // the effect, its answer, and a stray answer behind it
)

// Profile is how much goes wrong.
type Profile string

// The profiles.
const (
	FaultsNone  Profile = "none"  // no faults: every order ends Processed
	FaultsSome  Profile = "some"  // about one attempt in ten, and one order in ten is refused
	FaultsNasty Profile = "nasty" // nearly every second attempt, every kind of fault
)

// ParseProfile reads none, some and nasty.
func ParseProfile(text string) (Profile, error) {
	switch p := Profile(text); p {
	case FaultsNone, FaultsSome, FaultsNasty:
		return p, nil
	default:
		return "", fmt.Errorf("faults %q: want none, some or nasty", text)
	}
}

// Script decides the faults of each order. It is a function of the seed and the order's id, so that the same orders
// meet the same fate in every run. The zero value lets everything pass.
type Script struct {
	Profile Profile
	Seed    uint64
	// Plan stands in for the drawn faults when it is set, so that a test can have exactly the one
	// that it is about. It is called from many goroutines; try counts from 1.
	Plan func(order string, action Action, try int) Fault
}

// fate is what becomes of an order once all passing faults are over.
type fate string

const (
	delivered      fate = "delivered"
	outOfStock     fate = "out of stock"    // the reservation is refused
	declined       fate = "card declined"   // the charge is refused
	addressUnknown fate = "address unknown" // the shipment is refused
	refundRefused  fate = "refund refused"  // the shipment is refused, and then the refund too
	carrierDown    fate = "carrier down"    // every attempt at the shipment meets a fault, for good
)

// share is how many of a thousand draws give a value.
type share[T any] struct {
	perMille int
	value    T
}

// faultShares and fateShares define the profiles. The rest of the thousand is NoFault, and delivered.
var (
	faultShares = map[Profile][]share[Fault]{
		FaultsSome: {
			{35, Fails},
			{15, Busy},
			{10, Throttled},
			{5, Hangs},
			{5, HangsAfter},
			{10, HangsUp},
			{10, HangsUpThen},
			{10, Twice},
		},
		FaultsNasty: {
			{90, Fails},
			{50, Busy},
			{40, Throttled},
			{40, Hangs},
			{40, HangsAfter},
			{40, HangsLate},
			{60, HangsUp},
			{60, HangsUpThen},
			{40, Twice},
		},
	}
	fateShares = map[Profile][]share[fate]{
		FaultsSome: {
			{30, outOfStock}, {40, declined}, {20, addressUnknown}, {15, refundRefused},
		},
		FaultsNasty: {
			{50, outOfStock}, {70, declined}, {50, addressUnknown}, {20, refundRefused}, {20, carrierDown},
		},
	}
)

// Ends returns the state in which the job of an order must end, if its workflow is the shop's
// (reserve, charge, ship, each with its undo), undoes on failure, and grants each step and undo more
// than MaxFaults attempts.
func (s Script) Ends(order string) makegood.ProcessState {
	switch f := s.fate(order); f {
	case delivered:
		return makegood.JobProcessed
	case outOfStock, declined, addressUnknown, carrierDown:
		return makegood.JobUndone
	case refundRefused:
		return makegood.JobError
	default:
		panic(fmt.Sprintf("services: fate %q", f))
	}
}

// Fault returns how the shop misbehaves at the try-th attempt that it sees at an action of an order;
// tries count from 1, and an attempt that is seen again is the same try.
func (s Script) Fault(order string, action Action, try int) Fault {
	if s.Plan != nil {
		return s.Plan(order, action, try)
	}
	shares := faultShares[s.Profile]
	n := s.draw(order, string(action), try)
	switch {
	case action == Ship && s.fate(order) == carrierDown:
		return downFault(shares, n, try)
	case try > MaxFaults:
		return NoFault
	default:
		return pick(shares, n, NoFault)
	}
}

// Answering returns the script with every fault in which the caller gets no answer, or two, turned into a 500, for
// a shop that cannot tell when its caller has gone. Orders end as before.
func (s Script) Answering() Script {
	answering := s
	answering.Plan = func(order string, action Action, try int) Fault {
		switch fault := s.Fault(order, action, try); fault {
		case NoFault, Busy, Throttled:
			return fault
		default:
			return Fails
		}
	}
	return answering
}

// downFault is what an attempt at a carrier that is down meets. The last attempts hang and have
// their effect late: the shipment that leaves after it was cancelled is the worst there is.
func downFault(shares []share[Fault], n, try int) Fault {
	if try > MaxFaults {
		return HangsLate
	}
	total := 0
	for _, share := range shares {
		total += share.perMille
	}
	fault := pick(shares, n%total, NoFault)
	if fault == Twice {
		// Its first answer would be a good one.
		return HangsUpThen
	}
	return fault
}

// refusal is a final no: an answer of 4xx that another attempt would get too.
type refusal struct {
	status int
	reason string
}

// refusal reports whether the shop refuses an action for good. Of an order that is out of stock it lacks the first
// line, and has the others.
func (s Script) refusal(order string, line int, action Action) (refusal, bool) {
	f := s.fate(order)
	switch {
	case f == outOfStock && action == Reserve && line == 0:
		return refusal{http.StatusUnprocessableEntity, "out of stock"}, true
	case f == declined && action == Charge:
		return refusal{http.StatusPaymentRequired, "card declined"}, true
	case (f == addressUnknown || f == refundRefused) && action == Ship:
		return refusal{http.StatusUnprocessableEntity, "address unknown"}, true
	case f == refundRefused && action == Refund:
		return refusal{http.StatusUnprocessableEntity, "refund refused: the card was closed"}, true
	default:
		return refusal{}, false
	}
}

func (s Script) fate(order string) fate {
	return pick(fateShares[s.Profile], s.draw(order, "fate", 0), delivered)
}

// draw returns a number from 0 to 999 that depends only on its arguments and the seed.
func (s Script) draw(order, about string, try int) int {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d/%s/%d/%s", s.Seed, about, try, order))
	return int(binary.BigEndian.Uint64(sum[:]) % 1000)
}

func pick[T any](shares []share[T], n int, otherwise T) T {
	for _, share := range shares {
		if n < share.perMille {
			return share.value
		}
		n -= share.perMille
	}
	return otherwise
}
