package services

import (
	"fmt"
	"testing"

	"github.com/makegood-dev/makegood"
)

const manyOrders = 5000

func orderID(n int) string { return fmt.Sprintf("%d", 700000+n) }

func TestTheSameSeedGivesTheSameScript(t *testing.T) {
	differs := 0
	for n := range manyOrders {
		order := orderID(n)
		one, again := Script{Profile: FaultsNasty, Seed: 7}, Script{Profile: FaultsNasty, Seed: 7}
		other := Script{Profile: FaultsNasty, Seed: 8}
		if one.Ends(order) != again.Ends(order) {
			t.Fatalf("order %s ends %s and then %s", order, one.Ends(order), again.Ends(order))
		}
		for _, action := range Actions() {
			got, want := again.Fault(order, action, 1), one.Fault(order, action, 1)
			if got != want {
				t.Fatalf("order %s, %s: fault %q and then %q", order, action, want, got)
			}
			if other.Fault(order, action, 1) != want {
				differs++
			}
		}
	}
	if differs == 0 {
		t.Error("another seed gives the same faults")
	}
}

func TestFaultsOfAnActionStopUnlessForGood(t *testing.T) {
	s := Script{Profile: FaultsNasty, Seed: 1}
	down := 0
	for n := range manyOrders {
		order := orderID(n)
		for _, action := range Actions() {
			forGood := action == Ship && s.fate(order) == carrierDown
			if forGood {
				down++
			}
			for try := 1; try <= 12; try++ {
				fault := s.Fault(order, action, try)
				switch {
				case forGood && (fault == NoFault || fault == Twice):
					t.Fatalf("order %s, %s, try %d: fault %q, want one without a good answer", order, action, try, fault)
				case forGood && try > MaxFaults && fault != HangsLate:
					t.Fatalf("order %s, %s, try %d: fault %q, want an effect that comes late", order, action, try, fault)
				case !forGood && try > MaxFaults && fault != NoFault:
					t.Fatalf("order %s, %s, try %d: fault %q, want none after %d", order, action, try, fault, MaxFaults)
				}
			}
		}
	}
	if down == 0 {
		t.Error("no order has its carrier down, so nothing was tested")
	}
}

func TestTheProfilesMeanWhatTheySay(t *testing.T) {
	for _, row := range []struct {
		profile           Profile
		faults, processed [2]int // from and to, per thousand
		kinds             int
	}{
		{FaultsNone, [2]int{0, 0}, [2]int{1000, 1000}, 0},
		{FaultsSome, [2]int{80, 120}, [2]int{880, 910}, 8},
		{FaultsNasty, [2]int{430, 490}, [2]int{770, 810}, 9},
	} {
		s := Script{Profile: row.profile, Seed: 3}
		kinds := map[Fault]bool{}
		faults, processed := 0, 0
		for n := range manyOrders {
			if fault := s.Fault(orderID(n), Charge, 1); fault != NoFault {
				kinds[fault] = true
				faults++
			}
			if s.Ends(orderID(n)) == makegood.JobProcessed {
				processed++
			}
		}
		within(t, row.profile, "first attempts that meet a fault", faults*1000/manyOrders, row.faults)
		within(t, row.profile, "orders that end Processed", processed*1000/manyOrders, row.processed)
		if len(kinds) != row.kinds {
			t.Errorf("%s: kinds of fault: got %d (%v), want %d", row.profile, len(kinds), kinds, row.kinds)
		}
	}
}

func within(t *testing.T, p Profile, what string, got int, want [2]int) {
	t.Helper()
	if got < want[0] || got > want[1] {
		t.Errorf("%s: %s: got %d in a thousand, want %d to %d", p, what, got, want[0], want[1])
	}
}

func TestAnOrderIsRefusedWhereItsFateSays(t *testing.T) {
	s := Script{Profile: FaultsNasty, Seed: 1}
	want := map[fate]struct {
		refused string
		ends    makegood.ProcessState
	}{
		delivered:      {"", makegood.JobProcessed},
		outOfStock:     {"reserve 422 ", makegood.JobUndone},
		declined:       {"charge 402 ", makegood.JobUndone},
		addressUnknown: {"ship 422 ", makegood.JobUndone},
		refundRefused:  {"refund 422 ship 422 ", makegood.JobError},
		carrierDown:    {"", makegood.JobUndone},
	}
	seen := map[fate]bool{}
	for n := range manyOrders {
		order, refused := orderID(n), ""
		for _, action := range Actions() {
			if no, is := s.refusal(order, 0, action); is {
				refused += fmt.Sprintf("%s %d ", action, no.status)
			}
		}
		f := s.fate(order)
		seen[f] = true
		if refused != want[f].refused || s.Ends(order) != want[f].ends {
			t.Fatalf("order %s (%s): got %q and %s, want %q and %s",
				order, f, refused, s.Ends(order), want[f].refused, want[f].ends)
		}
	}
	if len(seen) != len(want) {
		t.Errorf("fates seen: got %v, want all %d", seen, len(want))
	}
}

func TestAProfileIsReadByItsName(t *testing.T) {
	for _, p := range []Profile{FaultsNone, FaultsSome, FaultsNasty} {
		if got, err := ParseProfile(string(p)); got != p || err != nil {
			t.Errorf("ParseProfile(%q): got %q, %v", p, got, err)
		}
	}
	if got, err := ParseProfile("wild"); err == nil {
		t.Errorf("ParseProfile(wild): got %q, want an error", got)
	}
}
