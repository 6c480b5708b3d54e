package machine_test

import (
	"reflect"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/machine"
)

// checkOnce: an event applied twice is applied once, and nothing need be found out to know that.
func (x *world) checkOnce(before job.Job, e job.Event, found map[machine.Ask]job.Found) {
	if due, ok := e.(job.DeadlinePassed); ok && due.Key.Equal(x.job.CompleteBy) && x.waitEnded(before) {
		// The end of a wait leaves the key where it was, since what follows has often ended before the next sweep. A wait
		// whose time has passed when it begins is due under the same key.
		return
	}
	if let, ok := e.(job.StepHeld); ok && (!x.isHeld(let.Step) || x.isOut(let)) {
		return // Its task is sent again, and once more if its agent lets it go once more; or its end is asked for once more.
	}
	if _, hint := e.(job.Admitted); hint {
		return // It is a hint to look, which may hold the job, and then again.
	}
	if _, hint := e.(job.ChildEnded); hint {
		return // It is a hint to look, and the undo of the step may be out by now.
	}
	_, v := machine.Apply(x.w, x.job, e, x.facts(found), x.now)
	if v.Kind == machine.Applied || v.Kind == machine.Wanting {
		x.t.Fatalf("%#v was applied twice (%s): %+v", e, v.Kind, x.job)
	}
}

// check holds what must be true of every job in every state.
func (x *world) check(before job.Job) {
	j := x.job
	failures := 0
	for i, s := range j.Steps {
		if s.Forward.State == job.Dispatched && s.Undo.State == job.Dispatched {
			x.t.Fatalf("step %s goes both ways at once", s.Name)
		}
		for _, undo := range []bool{false, true} {
			a := s.Forward
			if undo {
				a = s.Undo
			}
			failures += a.FailureCount
			if a.Tries < 0 {
				x.t.Fatalf("step %s has made %d tries", s.Name, a.Tries)
			}
			if a.State == job.Dispatched {
				x.checkOut(before, i, undo, a)
			} else if a.State != job.Waiting && !a.LookAt.IsZero() || !a.OpenedAt.IsZero() || a.Closing || a.Queued || a.Inline != "" {
				x.t.Fatalf("nothing of step %s is out, and it is to be looked at or closed: %+v", s.Name, a)
			}
			if a.State == job.Done && (a.Cause != "" || a.Silent != nil || a.Error != nil) {
				x.t.Fatalf("step %s is done, and keeps how its attempts went: %+v", s.Name, a)
			}
		}
		x.noteEnded(before, s)
		if j.ProcessState == makegood.JobUndone || j.ProcessState == makegood.JobCancelled {
			x.checkUndone(x.w.Steps[i], s)
		}
	}
	switch j.ProcessState {
	case makegood.JobUndone, makegood.JobCancelled:
		x.checkLedger(j)
	case makegood.JobProcessed:
		x.checkProcessed()
	}
	if failures > j.FailureCount || failures < j.FailureCount && len(x.definitions) == 0 {
		x.t.Fatalf("the job counts %d failures, its steps %d", j.FailureCount, failures)
	}
	x.checkTurns()
	x.checkRounds()
	x.checkSettled(before)
	x.checkKey()
	x.checkExpected(before)
	x.checkProgress()
	x.checkChanges()
}

// checkTurns: whatever comes of a step comes after the steps that it needs. Only an attempt of a chain is out before.
func (x *world) checkTurns() {
	for i, s := range x.job.Steps {
		def, f := x.w.Steps[i], s.Forward
		if def.Any || def.Only != "" || x.job.Settled(f) != nil {
			continue
		}
		for _, name := range domain.Before(x.w, def) {
			need, _ := x.job.Step(name)
			through := need.Forward.State == job.Done || need.Forward.State == job.Skipped
			inChain := f.State == job.Dispatched && f.Inline != "" && def.Shared
			if f.State != job.NotStarted && f.State != job.Withdrawn && !through && !inChain {
				x.t.Fatalf("step %s is %q, and %s before it is %q", s.Name, f.State, name, need.Forward.State)
			}
		}
	}
}

// checkRounds: no more rounds begin than the workflow says, and another follows only where the job is being undone.
func (x *world) checkRounds() {
	j := x.job
	if most := max(x.w.OnFailure.Rounds-1, 0); j.RoundsAgain > most {
		x.t.Fatalf("%d rounds were begun by themselves, at most %d may be", j.RoundsAgain, most)
	}
	if j.AnotherRound && (j.Desired != makegood.JobUndone || j.ProcessState.Finished()) || !j.AnotherRound && !j.NextRoundAt.IsZero() {
		x.t.Fatalf("another round follows (%v, at %v) in a job that is %s and wanted %s", j.AnotherRound, j.NextRoundAt, j.ProcessState, j.Desired)
	}
}

// checkOut holds what must be true of an attempt that is out, and lets its task be claimed.
func (x *world) checkOut(before job.Job, i int, undo bool, a job.Activity) {
	def, j := x.w.Steps[i], x.job
	which := id(def.Name, a.Attempt)
	_, known := x.tasks[which]
	if was, ok := before.Step(def.Name); ok && was.Attempt < a.Attempt && known {
		x.t.Fatalf("attempt %s was opened twice", which)
	}
	if j.ProcessState.Finished() {
		x.t.Fatalf("attempt %s is out in a job that is %s", which, j.ProcessState)
	}
	if a.Queued {
		x.checkQueued(which, known, a)
		return
	}
	if !known {
		x.tasks[which] = machine.TaskOf(x.w, j, job.Dispatch{Step: def.Name, Attempt: a.Attempt, Undo: undo})
		x.checkKeyOf(x.tasks[which], a)
		x.inline[which] = a.Inline != ""
	}
	if undo && domain.CanUndo(def) {
		// An undo has times of its own, which a redefined step may have left as they were.
		def.StartBy, def.Timeout, def.Heartbeat = def.Undo.StartBy, def.Undo.Timeout, def.Undo.Heartbeat
	}
	startBy, timeout, silence := def.StartBy.Std(), def.Timeout.Std(), def.Timeout.Std()
	if def.Heartbeat > 0 {
		silence = def.Heartbeat.Std()
	}
	longest := max(10*silence, silence+limits.MaxClaimAhead)
	switch item := x.items[x.slot(def.Name, undo)]; {
	case x.isChild(def.Name, undo):
		x.checkLookAtChild(which, a)
	case a.Inline != "":
		if a.Closing || !a.LookAt.Equal(x.tasks[which].CompleteBy) {
			x.t.Fatalf("inline attempt %s is waited for until %v, closing: %v", which, a.LookAt, a.Closing)
		}
	case def.Shared:
		if !a.LookAt.Equal(a.At.Add(startBy + timeout)) {
			x.t.Fatalf("shared attempt %s is waited for until %v", which, a.LookAt)
		}
	case a.Closing && a.LookAt.After(x.now.Add(limits.CloseAgain)):
		x.t.Fatalf("attempt %s is closing, and nobody looks before %v", which, a.LookAt)
	case a.Closing:
	case a.LookAt.After(x.now.Add(longest)) && a.LookAt.After(a.At.Add(startBy<<min(a.Resent, 20))):
		x.t.Fatalf("nobody looks at attempt %s before %v: %+v", which, a.LookAt, item)
	case undo == (j.Desired != makegood.JobProcessed) && x.live():
	case item.Attempt < a.Attempt && !x.dead[which] && x.now.Before(a.ClaimUntil()):
		x.t.Fatalf("attempt %s is unclaimed, and nobody closes it in a job that is %s, paused %v", which, j.ProcessState, j.Paused())
	}
}

// noteEnded: an attempt that ended in a save can never be claimed. Those that an interruption ended went with their
// process.
func (x *world) noteEnded(before job.Job, s job.StepState) {
	was, ok := before.Step(s.Name)
	if !ok {
		return
	}
	for _, pair := range [][2]job.Activity{{was.Forward, s.Forward}, {was.Undo, s.Undo}} {
		if a, now := pair[0], pair[1]; a.State == job.Dispatched && (now.State != job.Dispatched || now.Attempt != a.Attempt) {
			x.over[id(s.Name, a.Attempt)] = true
		}
	}
}

// checkSettled: what was settled by hand stays so for the whole round, and is over; nothing of it begins any more.
func (x *world) checkSettled(before job.Job) {
	for _, s := range before.Steps {
		for _, undo := range []bool{false, true} {
			was, is := activityOf(before, s.Name, undo), activityOf(x.job, s.Name, undo)
			if before.Settled(was) == nil || before.Round != x.job.Round {
				continue
			}
			if is.Settled == nil || *is.Settled != *was.Settled || is.State != was.State || is.Attempt != was.Attempt {
				x.t.Fatalf("step %s (undo: %v) was settled, %+v, and is %+v", s.Name, undo, was, is)
			}
		}
	}
	for _, s := range x.job.Steps {
		for _, a := range []job.Activity{s.Forward, s.Undo} {
			if x.job.Settled(a) != nil && a.State != job.Done && a.State != job.Skipped {
				x.t.Fatalf("step %s was settled, and is %q", s.Name, a.State)
			}
		}
	}
}

// checkProgress: what agents report stays in their claims.
func (x *world) checkProgress() {
	for _, s := range x.job.Steps {
		if s.Forward.Silence().Progress != (job.Progress{}) || s.Undo.Silence().Progress != (job.Progress{}) {
			x.t.Fatalf("the job keeps progress: %+v", s)
		}
	}
}

func (x *world) live() bool {
	return !x.job.ProcessState.Finished() && x.job.ProcessState != makegood.JobError && !x.job.Paused()
}

// checkExpected: who runs late is told of once a round, and no later than the save after WarnAt; nobody is told of a job of which
// nothing is expected. Several events may lie between the two jobs: it may have stopped since it was told of.
func (x *world) checkExpected(before job.Job) {
	j := x.job
	told := 0
	for _, a := range j.Untold {
		if a.Seq > before.Seq && !a.ExpectBy.IsZero() {
			told++
		}
	}
	was := !before.ExpectBy.IsZero() && before.WarnAt.IsZero()
	switch {
	case x.w.Expect == 0 && before.Definition == j.Definition && (!j.ExpectBy.IsZero() || told > 0):
		x.t.Fatalf("nothing is expected, and it is expected by %v, told %d times", j.ExpectBy, told)
	case told > 1+j.Round-before.Round || told == 1 && was && before.Round == j.Round:
		x.t.Fatalf("the operator is told %d times more in round %d that it is late", told, j.Round)
	case told == 1 && before.Round == j.Round && !j.WarnAt.IsZero():
		x.t.Fatalf("the operator was told in round %d, and is to be told at %v", j.Round, j.WarnAt)
	case x.live() && (j.Desired == makegood.JobProcessed || j.AnotherRound) && !j.WarnAt.IsZero() && !j.WarnAt.After(x.now) && !reflect.DeepEqual(before, j):
		x.t.Fatalf("it is %v, and nobody was told at %v", x.now, j.WarnAt)
	case j.WarnAt.After(j.ExpectBy):
		x.t.Fatalf("nobody is told before %v of a job that is expected by %v", j.WarnAt, j.ExpectBy)
	}
}

// checkKey: the key is never later than the earliest moment at which anything is due.
func (x *world) checkKey() {
	j := x.job
	if why := machine.Standing(x.w, j, x.now); why != "" && j.Rev > 1 {
		x.t.Fatalf("what was just saved is %s: %+v", why, j)
	}
	if j.ProcessState.Finished() && j.Told() {
		if !j.CompleteBy.IsZero() {
			x.t.Fatalf("finished, but still in the index (%v)", j.CompleteBy)
		}
		return
	}
	if j.CompleteBy.IsZero() {
		x.t.Fatalf("a job in %s is invisible", j.ProcessState)
	}
	due := x.now.Add(limits.FarKey)
	if x.live() && x.waits() {
		due = x.now.Add(makegood.MaxWait)
	}
	note := func(at time.Time) {
		if at.Before(due) {
			due = at
		}
	}
	for _, a := range j.Untold {
		if !a.Operator && !a.Listener {
			x.t.Fatalf("announcement %+v is for nobody", a)
		}
		switch again := x.now.Add(limits.TellAgain); {
		case a.Listener && !a.Operator && j.TellAt.After(x.now):
			note(j.TellAt)
		default:
			note(again)
		}
	}
	for _, s := range j.Steps {
		for _, a := range []job.Activity{s.Forward, s.Undo} {
			switch {
			case a.State == job.Dispatched:
				note(a.LookAt)
			case a.State == job.Backoff && x.live():
				note(a.At)
			}
		}
	}
	if x.live() {
		x.dueWaits(note)
	}
	if x.live() && j.Desired == makegood.JobProcessed && !j.Deadline.IsZero() {
		note(j.Deadline)
	}
	if x.live() && !j.NextRoundAt.IsZero() {
		note(j.NextRoundAt)
	}
	if x.live() && (j.Desired == makegood.JobProcessed || j.AnotherRound) && !j.WarnAt.IsZero() {
		note(j.WarnAt)
	}
	if x.live() && j.Desired == makegood.JobProcessed && j.StartAt.After(x.now) {
		note(j.StartAt)
	}
	if j.CompleteBy.After(due) {
		x.t.Fatalf("the key is %v, but something is due at %v", j.CompleteBy, due)
	}
}

func (x *world) checkUndone(def makegood.Step, s job.StepState) {
	if s.Forward.State == job.Dispatched {
		x.t.Fatalf("step %s still runs in an undone job", s.Name)
	}
	switch {
	case !x.mayStand(s.Name):
	case x.job.Settled(s.Undo) != nil:
		if s.Undo.State == job.Skipped && !strings.Contains(x.job.Reason, "not undone: ") {
			x.t.Fatalf("step %s may have been done, its undo was left out, and the job does not say so: %s", s.Name, x.job.Reason)
		}
	case !domain.CanUndo(def) && s.Undo.State != job.Irreversible:
		x.t.Fatalf("step %s may have been done and cannot be undone, but its undo is %q", s.Name, s.Undo.State)
	}
	x.checkNamed(s)
}
