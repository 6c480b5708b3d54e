package machine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/testkit/seed"

	"pgregory.net/rapid"
)

// What a later release has stored in a job, and this one does not know, goes through everything that is decided here:
// replies, deadlines, verbs and new rounds.
func TestNothingThatIsKeptIsLost(t *testing.T) {
	seed.Check(t, func(t *rapid.T) {
		x := newWorld(t)
		x.job.Needs, x.job.Kept = job.LevelMaps+1, "of the job"
		for i := range x.job.Steps {
			s := &x.job.Steps[i]
			s.Kept = "of step " + s.Name
			s.Forward.Kept, s.Undo.Kept = "of forward "+s.Name, "of undo "+s.Name
		}
		for range rapid.IntRange(0, 60).Draw(t, "events") {
			x.now = x.now.Add(time.Duration(rapid.IntRange(0, 15000).Draw(t, "ms")) * time.Millisecond)
			x.claim()
			if e, ok := x.drawEvent(); ok {
				x.move(x.job.Clone(), e)
				checkKept(t, x.job)
			}
		}
	})
}

func checkKept(t *rapid.T, j job.Job) {
	t.Helper()
	if want := job.LevelMaps + 1; j.Needs != want || j.Kept != "of the job" {
		t.Fatalf("the job needs %d and keeps %q, want %d and what it had", j.Needs, j.Kept, want)
	}
	for _, s := range j.Steps {
		if strings.HasPrefix(s.Name, "n") {
			continue // It came in by another definition.
		}
		for want, got := range map[string]string{"of step ": s.Kept, "of forward ": s.Forward.Kept, "of undo ": s.Undo.Kept} {
			if want += s.Name; got != want {
				t.Fatalf("got %q, want %q", got, want)
			}
		}
	}
}
