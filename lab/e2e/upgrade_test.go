package e2e

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/sample/services"
	"github.com/makegood-dev/makegood/internal/testkit/seed"
	"github.com/makegood-dev/makegood/lab/e2e/release"
)

// Two releases take turns on one data folder, each killed in the middle of its work: nothing is lost or done again,
// and whichever comes last ends the jobs.
func TestTwoReleasesTakeTurnsOnOneFolder(t *testing.T) {
	next, err := release.Next(t.TempDir(), release.Later())
	if err != nil {
		t.Fatal(err)
	}
	later := built(t, next)
	for name, pair := range map[string][2]string{"this, then the next": {program, later}, "the next, then this": {later, program}} {
		t.Run(name, func(t *testing.T) {
			if marked := alternate(t, pair[0], pair[1]); marked == 0 {
				t.Error("the next release has written nothing of its own: nothing was shown")
			}
		})
	}
	if os.Getenv("UPGRADE") == "" {
		return // CI has no history to take the release before from; make upgrade-test has.
	}
	before, err := release.Before(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	earlier := built(t, before)
	t.Run("the one before, then this", func(t *testing.T) { alternate(t, earlier, program) })
	t.Run("this, then the one before", func(t *testing.T) { alternate(t, program, earlier) })
}

func built(t *testing.T, of release.Release) string {
	t.Helper()
	file, err := of.Build("cmd/makegood", filepath.Join(t.TempDir(), of.Name))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// alternate returns how many jobs had something that only the next release knows, when the last of the two took over.
func alternate(t *testing.T, one, other string) (ofTheNext int) {
	const orders, turns = 2000, 8
	seed := seed.Of(t)
	random := rand.New(rand.NewPCG(seed, 0))
	s := openShop(t, services.Options{Script: services.Script{Profile: services.FaultsNone}})
	ids := s.orders(orders)
	programs := []string{one, other}
	var midway int
	var marked map[string]bool
	// A slow machine may have shown neither by then: they take turns until it has.
	for i := 0; i < turns || i%2 == 1 || (midway == 0 || len(marked) == 0) && i < 5*turns; i++ {
		s.program = programs[i%2]
		s.workAndDie(time.Duration(random.IntN(300))*time.Millisecond, 3*orders/(2*turns))
		midway, marked = len(done(s.jobs(), s.open.Ledger())), markedByTheNext(s.jobs())
	}
	s.program = programs[turns%2]
	s.allIsMadeGood(ids)
	still := markedByTheNext(s.jobs())
	for id := range marked {
		if !still[id] {
			t.Errorf("order %s has lost what only the next release knows", id)
		}
	}
	if midway == 0 || midway == 3*orders {
		t.Errorf("the kills came too early or too late to show anything: %d steps were done by then", midway)
	}
	return len(marked)
}

// markedByTheNext are the jobs with what only the next release writes, in the job and in each of its steps.
func markedByTheNext(jobs map[string]job.Job) map[string]bool {
	marked := map[string]bool{}
	for id, j := range jobs {
		has := j.Kept == release.Field
		for _, s := range j.Steps {
			has = has && s.Kept == release.Field
		}
		if has {
			marked[id] = true
		}
	}
	return marked
}

// workAndDie lets the engine come to work, and kills it a while later, or when it has made so many requests: a fast
// machine is not to be done before it is killed.
func (s *shop) workAndDie(later time.Duration, most int) (back time.Duration) {
	s.t.Helper()
	requests := func() int { return s.open.Ledger().Totals.Requests }
	before := requests()
	cmd := s.command(s.t.Context())
	started := time.Now()
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	for requests() == before && time.Since(started) < 2*time.Minute {
		time.Sleep(2 * time.Millisecond)
	}
	back = time.Since(started).Round(time.Millisecond)
	if requests() == before {
		s.t.Errorf("%s came to no work in %v", s.program, back)
	}
	for end := time.Now().Add(later); time.Now().Before(end) && requests() < before+most; {
		time.Sleep(10 * time.Millisecond)
	}
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
