package modelcheck

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"testing"

	"github.com/makegood-dev/makegood/internal/planted"
	"github.com/makegood-dev/makegood/internal/proof"
)

// mutants are wrong versions of the core, and of the predicates of the store.
func mutants() []planted.Bug {
	const (
		attempts   = "machine/attempts.go"
		deadlines  = "machine/deadlines.go"
		directions = "machine/directions.go"
		requests   = "machine/requests.go"
	)
	return planted.Table([][4]string{
		{
			"no attempt fence", attempts, "case s.Forward.Attempt != attempt && s.Undo.Attempt != attempt:",
			"case ok && a.Attempt != attempt:\n\t\tattempt = a.Attempt\n\tcase s.Forward.Attempt != attempt && s.Undo.Attempt != attempt:",
		},
		{"LockedBy is not compared", attempts, "if !claimed || claim.LockedBy != lockedBy {", "if !claimed || claim.LockedBy == \"\" {"},
		{"recovery does not compare the key", deadlines, "case !e.Key.Equal(t.job.CompleteBy):", "case false:"},
		{"a withdrawal does not rest on the claims", attempts, "\t\tt.onClaims = true\n\t\twithdrawn :=", "\t\twithdrawn :="},
		{"a late success does not rest on the claims", attempts, "\t\tt.onClaims = true\n\tdefault:", "\tdefault:"},
		{"raising the key does not rest on the claims", deadlines, "t.job.CompleteBy = due\n\t\tt.onClaims = true", "t.job.CompleteBy = due"},
		{"silence does not rest on the claims", deadlines, "\tt.onClaims = true\n\tif claimed ||", "\tif claimed ||"},
		{"a refused task does not rest on the claims", attempts, "\tt.onClaims = true\n\tact :=", "\tact :="},
		{"FailureCount is counted twice", attempts, "\ta.FailureCount++\n\tt.job.FailureCount++", "\ta.FailureCount += 2\n\tt.job.FailureCount += 2"},
		{"what never started has failed", deadlines, "if claimed || t.w.Steps[i].Shared {\n\t\tt.silence", "if claimed || a.Attempt > 0 {\n\t\tt.silence"},
		{"the undo skips unknown outcomes", directions, "s.Forward.State != makegood.Done && !s.Forward.Unknown:", "s.Forward.State != makegood.Done:"},
		{"unknown is judged by the last attempt only", attempts, "a.Unknown = a.Unknown || failure", "a.Unknown = failure"},
		{"a claimed task is withdrawn", attempts, "if _, claimed := claimOf(*t.job, s.Name, a); claimed {\n\t\t\tcontinue", "if _, claimed := claimOf(*t.job, s.Name, a); claimed && a.Attempt < 0 {\n\t\t\tcontinue"},
		{"the undo has the attempt number of its step", attempts, "\ts.Attempt++\n", "\tif !undo || s.Attempt == 0 {\n\t\ts.Attempt++\n\t}\n"},
		{"a new round numbers its attempts anew", requests, "s.Forward = makegood.Activity{FailureCount", "s.Attempt = 0\n\t\ts.Forward = makegood.Activity{FailureCount"},
		{"the key is the same in every round", "machine/task.go", "job.ID, d.Step, job.Round)", "job.ID, d.Step, 1)"},
		{"the undo does not wait for the claimed attempt", directions, "if s.Forward.State == makegood.Dispatched {", "if s.Forward.State == makegood.Dispatched && t.w.Steps[i].Shared {"},
		{"undos run in any order", directions, "behind = behind && settled[f]", "behind = behind && f >= 0"},
		{"a step does not wait for what it needs", directions, "if !through(t.job.Steps[n].Forward.State) {", "if n < 0 {"},
		{"the slot of an attempt that is over stays", attempts, "t.ended = append(t.ended, name)", "t.ended = append(t.ended, name)[:0]"},
		{"the key is never lowered", deadlines, "case seen.IsZero() || due.Before(seen):", "case seen.IsZero():"},
		{"a late success is taken from under a newer claim", attempts, "if claimed || t.w.Steps[i].Shared {\n\t\t\treturn false", "if t.w.Steps[i].Shared && claimed {\n\t\t\treturn false"},
		{"what is due after a backoff is never made", deadlines, "if undo != t.forwards() && passed(a.At, t.now) {", "if undo != t.forwards() && passed(a.At, t.now) && a.Attempt > 9 {"},
		{"the second round keeps the undos of the first", requests, "s.Undo = makegood.Activity{FailureCount: s.Undo.FailureCount}", "s.Undo.Tries = 0"},
		{"resubmit forgets what failed", requests, "a.State, a.FinishedAt = makegood.NotStarted, time.Time{}\n", "a.FinishedAt = time.Time{}\n"},
		{"nobody is told of an Error again", "machine/pending.go", "range job.Untold {", "range job.Untold[:0] {"},
		{"a task lost is not sent again", "machine/pending.go", "if !ok || a.Cause != cause || !wanted(job, undo) {", "if !ok || a.Cause != cause || a.Resent > 0 || !wanted(job, undo) {"},
		{"a save does not compare Rev", "store/may.go", "case stored.Rev != change.Job.Rev:", "case false:"},
		{"a save does not compare Claims.Rev", "store/may.go", "case change.OnClaims && ", "case false && "},
		{"a save moves a key that has moved", "store/may.go", "case change.MovesKey() && ", "case false && "},
		{"a claim does not look at Open", "store/may.go", "case job.Open[step] != claim.Attempt:", "case false:"},
		{"a claim overwrites a claim", "store/may.go", "case held && slot.Attempt >= claim.Attempt:", "case held && slot.Attempt > claim.Attempt:"},
	})
}

// caughtAfter is how the check of a mutant says after how many states it was found.
var caughtAfter = regexp.MustCompile(`--- FAIL: TestSmallModels/(\S+)[\s\S]*?: after (\d+) states: ([^\n]+)`)

// Some of the wrong versions; make modelcheck tries them all.
func TestPlantedBugsAreFound(t *testing.T) {
	all := mutants()
	if !large() {
		all = []planted.Bug{all[3], all[10], all[30]}
	}
	for _, bug := range all {
		t.Run(bug.Name, func(t *testing.T) {
			out, err := planted.Run(t, bug, "-run", "^TestSmallModels$", ".")
			caught := caughtAfter.FindSubmatch(out)
			if err == nil || caught == nil {
				t.Fatalf("got %v, want a violation:\n%s", err, out)
			}
			found := fmt.Sprintf("| %s | %s | %s |", bug.Name, bytes.ReplaceAll(caught[1], []byte("_"), []byte(" ")), caught[2])
			t.Logf("%s %s |", found, caught[3])
			proof.Says(t, found)
		})
	}
	proof.Says(t, fmt.Sprintf("%d of %[1]d are found.", len(mutants())))
}

// large reports whether this is make modelcheck.
func large() bool { return os.Getenv("MODELCHECK") != "" }
