package e2e

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/e2e/release"
	"github.com/makegood-dev/makegood/examples/shop/services"
)

// Two releases take turns on one data folder, each killed in the middle of its work: nothing is lost or done again,
// and whichever comes last ends the jobs.
func TestTwoReleasesTakeTurnsOnOneFolder(t *testing.T) {
	next, err := release.Next(t.TempDir(), release.Later())
	if err != nil {
		t.Fatal(err)
	}
	later := built(t, next)
	t.Run("this, then the next", func(t *testing.T) { takeTurns(t, program, later) })
	t.Run("the next, then this", func(t *testing.T) { takeTurns(t, later, program) })
	if os.Getenv("UPGRADE") == "" {
		return // CI has no history to take the release before from; make upgrade-test has.
	}
	before, err := release.Before(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	earlier := built(t, before)
	t.Run("the one before, then this", func(t *testing.T) { takeTurns(t, earlier, program) })
	t.Run("this, then the one before", func(t *testing.T) { takeTurns(t, program, earlier) })
}

func built(t *testing.T, of release.Release) string {
	t.Helper()
	file, err := of.Build("cmd/makegood", filepath.Join(t.TempDir(), of.Name))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func takeTurns(t *testing.T, one, other string) {
	const orders, turns = 2000, 8
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	s := openShop(t, services.Options{Script: services.Script{Profile: services.FaultsNone}})
	ids := s.orders(orders)
	programs := []string{one, other}
	for i := range turns {
		s.program = programs[i%2]
		s.workAndDie(time.Duration(random.IntN(300)) * time.Millisecond)
	}
	midway := len(done(s.jobs(), s.open.Ledger()))
	s.program = programs[turns%2]
	s.allIsMadeGood(ids)
	if midway == 0 || midway == 3*orders {
		t.Errorf("the kills came too early or too late to show anything: %d steps were done by then", midway)
	}
}

// workAndDie lets the engine come to work, and kills it a while later.
func (s *shop) workAndDie(later time.Duration) (back time.Duration) {
	s.t.Helper()
	before := s.open.Ledger().Totals.Requests
	cmd := s.command(s.t.Context())
	started := time.Now()
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	for s.open.Ledger().Totals.Requests == before && time.Since(started) < 10*time.Second {
		time.Sleep(2 * time.Millisecond)
	}
	back = time.Since(started).Round(time.Millisecond)
	time.Sleep(later)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	return back
}

// allIsMadeGood runs the engine to the end of all orders, and looks at what has become of them.
func (s *shop) allIsMadeGood(ids []string) {
	s.t.Helper()
	n := float64(len(ids))
	if code, summary := s.finish(); code != 0 || summary["jobs"] != n || summary["processed"] != n {
		s.t.Errorf("got exit code %d, summary %v, want 0 and all %v processed", code, summary, n)
	}
	ends := map[string]makegood.ProcessState{}
	for id, j := range s.jobs() {
		ends[id] = j.ProcessState
	}
	for _, id := range ids {
		if _, ok := ends[id]; !ok {
			s.t.Errorf("order %s is lost", id)
		}
	}
	for _, v := range services.Check(s.open.Ledger(), ends) {
		s.t.Error(v)
	}
}
