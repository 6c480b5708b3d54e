package sim

import (
	"fmt"
	"os"
	"regexp"
	"testing"

	"github.com/makegood-dev/makegood/internal/planted"
	"github.com/makegood-dev/makegood/internal/proof"
)

// bugs are wrong versions of what the model check does not run: the Scheduler, the runner of agents, the
// Supervisor, and the store where it is more than its predicates.
func bugs() []planted.Bug {
	const (
		move   = "scheduler/move.go"
		handle = "scheduler/handle.go"
		run    = "agentrun/attempt.go"
	)
	return planted.Table([][4]string{
		{"a task is sent before the save", move, "\tif applied {\n\t\tif change.Job, err", "\tif applied {\n\t\tvar out outbox\n\t\tl := &letter{job: id, moved: m}\n\t\tl.moved.job = change.Job\n\t\tfor _, c := range pending(compiled.Workflow, change.Job, events) {\n\t\t\tif d, ok := c.(makegood.Dispatch); ok {\n\t\t\t\tif name, message, err := s.message(ctx, l.moved, d); err == nil {\n\t\t\t\t\tout.add(name, message, errand{letter: l, dispatch: d})\n\t\t\t\t}\n\t\t\t}\n\t\t}\n\t\ts.send(ctx, &out)\n\t\tif change.Job, err"},
		{"commands are not derived again", move, "\tm.commands = pending(compiled.Workflow, m.job, events)", "\tif applied {\n\t\tm.commands = pending(compiled.Workflow, m.job, events)\n\t}"},
		{"an output is written after the save that refers to it", move, "\tif err := v.write(ctx, change.Job); err != nil {\n\t\treturn change.Job, err\n\t}\n", "\tdefer func() { _ = v.write(ctx, change.Job) }()\n"},
		{"a save that lost is taken for one that won", move, "\t\tif change.Job, err = s.save(ctx, change, m.values); err != nil {", "\t\tif change.Job, err = s.save(ctx, change, m.values); err != nil && !errors.Is(err, store.ErrConflict) {"},
		{"an announcement that failed counts as made", handle, "\"status\", a.ProcessState, \"error\", err)\n\t\t\tbreak", "\"status\", a.ProcessState, \"error\", err)"},
		{"records that failed are deleted", handle, "failed = append(failed, l.records...)", "_ = l.records"},
		{"poison fails its record for ever", handle, "s.Quarantine, record, failed.Error()) != nil", "s.Quarantine, record, failed.Error()) == nil"},
		{"of several events of a job one is heeded", handle, "letters[i].events = append(letters[i].events, in.Event)", "letters[i].events = []makegood.Event{in.Event}"},
		{"the same id with other content is the same job", "scheduler/submit.go", "if have.InputHash != job.InputHash {", "if have.InputHash == \"\" {"},
		{"unclaimed siblings are sent again at every reply", "machine/pending.go", "if !ok || a.Cause != cause || !wanted(job, undo) {", "if cause == \"\" || !ok || !wanted(job, undo) {"},
		{"an agent works without a claim", run, "return a.settle(a.claim())", "return a.settle(nil)"},
		{"a claim whose answer was an error is worked on", run, "\t\treturn false, err\n\t}\n}", "\t\treturn true, nil\n\t}\n}"},
		{"an agent begins when it is too late", run, "if a.lease.Err() != nil {\n\t\treturn result{err", "if a.lease.Err() != nil && a.task.Shared {\n\t\treturn result{err"},
		{"an agent goes on past CompleteBy", "agentrun/lease.go", "completeBy: completeBy, expires: started.Add(budget),", "completeBy: completeBy.Add(time.Hour), expires: started.Add(2 * budget),"},
		{"a heartbeat moves CompleteBy back", "agentrun/lease.go", "claim.CompleteBy = stored\n", "_ = stored\n"},
		{"the Supervisor tells a key that it has not seen", "supervisor/supervisor.go", "makegood.DeadlinePassed{Key: entry.CompleteBy}", "makegood.DeadlinePassed{Key: makegood.Instant(s.Now())}"},
		{"the Supervisor sends however deep the queue is", "supervisor/supervisor.go", "if depth.Waiting > s.Depth {", "if depth.Waiting > 1000*s.Depth {"},
		{"the Supervisor sends though nobody takes the events", "supervisor/supervisor.go", "depth.InFlight > 0 {", "depth.InFlight >= 0 {"},
		{"an own claim is taken for another's", "store/may.go", "case Holds(job, step, claim):\n\t\treturn nil\n", ""},
		{"a save erases the claims", "sim/store.go", "job.Claims = makegood.Claims{Rev: old.Claims.Rev, Slots: maps.Clone(old.Claims.Slots)}", "job.Claims = c.Job.Claims"},
		{"a load that decides is stale", "sim/store.go", "\treturn job.Clone(), nil\n}\n\n// Save", "\tif time.Now().UnixMilli()%3 == 0 {\n\t\tjob.Claims = makegood.Claims{}\n\t}\n\treturn job.Clone(), nil\n}\n\n// Save"},
	})
}

// plantedSeeds is how many seeds may pass until a planted bug is found.
const plantedSeeds = 20_000

var foundAfter = regexp.MustCompile(`found after (\d+) seeds: ([^\n]+)`)

// Some of the wrong versions; make planted tries them all.
func TestPlantedBugsAreFound(t *testing.T) {
	all := bugs()
	if os.Getenv("PLANTED") == "" {
		all = all[10:11]
	}
	for _, bug := range all {
		t.Run(bug.Name, func(t *testing.T) {
			out, err := planted.Run(t, bug, "-run", "^TestUntilTheFirstViolation$", ".", "-until-violation")
			found := foundAfter.FindSubmatch(out)
			if err == nil || found == nil {
				t.Fatalf("got %v, want a violation:\n%s", err, out)
			}
			row := fmt.Sprintf("| %s | %s |", bug.Name, found[1])
			t.Logf("%s %s |", row, found[2])
			proof.Says(t, row)
		})
	}
	proof.Says(t, fmt.Sprintf("%d of %[1]d are found; ", len(bugs())))
}

// TestUntilTheFirstViolation is what a planted bug is looked for with.
func TestUntilTheFirstViolation(t *testing.T) {
	if !*untilViolation {
		return
	}
	for seed := uint64(1); seed <= plantedSeeds; seed++ {
		if r := run(t, Options{Seed: seed}); len(r.Violations) > 0 {
			t.Fatalf("found after %d seeds: %s", seed, r.Violations[0])
		}
	}
}
