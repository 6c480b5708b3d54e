package services

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
)

// saga is the plainest caller that keeps to the contract of Makegood: an attempt is sent once,
// attempts share a key, what may have been done is undone, in reverse.
type saga struct {
	caller
	order string
	// careless leaves out the undo of a step whose outcome is unknown.
	careless bool
	attempt  int

	// leave ends the present attempt: a caller loses patience when the shop hangs, and no earlier,
	// however slow the machine is.
	mu    sync.Mutex
	leave context.CancelFunc
}

// maxTries is above MaxFaults, with room for stray answers that an attempt takes for its own.
const maxTries = 8

func (s *saga) run() makegood.ProcessState {
	var begun []Action
	for _, p := range pairs {
		status, unknown := s.try(call{action: p.forward, key: s.key(p.forward)})
		switch {
		case status == 200:
			begun = append(begun, p.undo)
			continue
		case unknown && !s.careless:
			begun = append(begun, p.undo)
		}
		return s.unwind(begun)
	}
	return makegood.JobProcessed
}

func (s *saga) unwind(undos []Action) makegood.ProcessState {
	for _, undo := range slices.Backward(undos) {
		forward := s.key(undo.Undoes())
		if status, _ := s.try(call{action: undo, key: forward + "/undo", forwardKey: forward}); status != 200 {
			return makegood.JobError
		}
	}
	return makegood.JobUndone
}

func (s *saga) key(action Action) string { return fmt.Sprintf("%s/%s/1", s.order, action) }

// try makes attempts until one is answered for good. Unknown: one may have had its effect.
func (s *saga) try(q call) (status int, unknown bool) {
	q.order, q.amount = s.order, 5
	for range maxTries {
		s.attempt++
		q.attempt = s.attempt
		ctx, leave := context.WithCancel(context.Background())
		s.mu.Lock()
		s.leave = leave
		s.mu.Unlock()
		status, _, err := s.ask(ctx, q)
		leave()
		switch {
		case err != nil, status >= 500, status == 429:
			unknown = true
		default:
			return status, unknown
		}
	}
	return 0, unknown
}

func (s *saga) loseHeart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leave()
}

// runOrders runs 300 orders at once against a shop with this script, and returns how each ended.
func runOrders(t *testing.T, script Script, careless bool) (Ledger, map[string]makegood.ProcessState) {
	t.Helper()
	orders := map[string]*saga{}
	planned := script
	planned.Plan = func(order string, action Action, try int) Fault {
		fault := script.Fault(order, action, try)
		if fault == Hangs || fault == HangsAfter || fault == HangsLate {
			orders[order].loseHeart()
		}
		return fault
	}
	c := openShop(t, Options{Script: planned, Late: 20 * time.Millisecond})
	for n := range 300 {
		orders[orderID(n)] = &saga{caller: c, order: orderID(n), careless: careless}
	}
	ends := map[string]makegood.ProcessState{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for id, s := range orders {
		all.Go(func() {
			state := s.run()
			mu.Lock()
			defer mu.Unlock()
			ends[id] = state
		})
	}
	all.Wait()
	return c.shop.Ledger(), ends
}

// The shop is fair: whoever keeps to the contract ends every order as the script says, whatever
// fails on the way, and the ledger shows nothing wrong.
func TestACallerThatKeepsToTheContractEndsAsTheScriptSays(t *testing.T) {
	for _, profile := range []Profile{FaultsNone, FaultsSome, FaultsNasty} {
		t.Run(string(profile), func(t *testing.T) {
			script := Script{Profile: profile, Seed: 1}
			ledger, ends := runOrders(t, script, false)
			for order, got := range ends {
				if want := script.Ends(order); got != want {
					t.Errorf("order %s (%s): got %s, want %s", order, script.fate(order), got, want)
				}
			}
			for _, violation := range Check(ledger, ends) {
				t.Error(violation)
			}
		})
	}
}

// And the shop is strict: who forgets that silence may have been success is found out.
func TestACarelessCallerIsFoundOut(t *testing.T) {
	ledger, ends := runOrders(t, Script{Profile: FaultsNasty, Seed: 1}, true)
	if found := Check(ledger, ends); len(found) == 0 {
		t.Error("got no violation, want shipments that nobody cancelled")
	}
}
