package modelcheck

import (
	"fmt"
	"os"
	"regexp"
	"testing"

	"github.com/makegood-dev/makegood/internal/testkit/proof"
)

// mutants are wrong versions of the core, and of what the store says of claim items and saves.
func mutants() []proof.Bug {
	const (
		eventChild       = "machine/event_child.go"
		eventCompleted   = "machine/event_completed.go"
		eventDeadline    = "machine/event_deadline.go"
		eventInterrupted = "machine/event_interrupted.go"
		eventSettled     = "machine/event_settled.go"
		eventSucceeded   = "machine/event_succeeded.go"
		factsChildren    = "machine/facts_children.go"
		factsCommands    = "machine/facts_commands.go"
		factsDeadlines   = "machine/facts_deadlines.go"
		factsSettling    = "machine/facts_settling.go"
		factsTokens      = "machine/facts_tokens.go"
		movesActivity    = "machine/moves_activity.go"
		movesAttempts    = "machine/moves_attempts.go"
		movesClosing     = "machine/moves_closing.go"
		movesDirections  = "machine/moves_directions.go"
		movesGoingOn     = "machine/moves_going_on.go"
		movesJob         = "machine/moves_job.go"
		movesTelling     = "machine/moves_telling.go"
		may              = "store/may.go"
	)
	return proof.Bugs([][4]string{
		{"no attempt fence", factsTokens, "case ok && a.Attempt == r.Attempt:", "case ok && a.Attempt > 0:"},
		{"the token is not checked", factsTokens, "if !Genuine(t.job, r) {", "if r.Token == \"\" {"},
		{"a failure that names no claim is asked for", "machine/event_failed.go", "if e.LockedBy == \"\" {", "if e.LockedBy == \"nobody\" {"},
		{"recovery does not compare the key", eventDeadline, "case !e.Key.Equal(t.job.CompleteBy):", "case false:"},
		{"a job that has ended is due", eventDeadline, "case t.job.CompleteBy.IsZero() && t.job.ProcessState.Finished()", "case t.job.ID == \"\" && t.job.ProcessState.Finished()"},
		{"FailureCount is counted twice", movesActivity, "\ta.FailureCount++\n\tt.job.FailureCount++", "\ta.FailureCount += 2\n\tt.job.FailureCount += 2"},
		{"what never started has failed", movesClosing, "case job.FoundNobody:\n\t\tt.nobody(at)", "case job.FoundNobody:\n\t\tt.silence(at, found.Claim, noReply)"},
		{
			"the silence of what is not wanted counts as nobody", movesClosing, "case job.FoundSilent:\n\t\tt.silence(",
			"case job.FoundSilent:\n\t\tif !t.wanted(at) {\n\t\t\tt.nobody(at)\n\t\t\tbreak\n\t\t}\n\t\tt.silence(",
		},
		{"what is held counts as silent", movesClosing, "\tcase job.FoundHeld:\n\t\tt.held(at, found.Claim)", "\tcase job.FoundHeld:\n\t\tt.silence(at, found.Claim, noReply)"},
		{"the undo skips unknown outcomes", movesDirections, "s.Forward.State != job.Done && !s.Forward.Unknown:", "s.Forward.State != job.Done:"},
		{"unknown is judged by the last attempt only", movesAttempts, "a.Unknown = a.Unknown || failure", "a.Unknown = failure"},
		{"the undo has the attempt number of its step", movesAttempts, "\ts.Attempt++\n", "\tif !at.undo || s.Attempt == 0 {\n\t\ts.Attempt++\n\t}\n"},
		{"a new round numbers its attempts anew", movesJob, "s.Forward = job.Activity{FailureCount", "s.Attempt = 0\n\t\ts.Forward = job.Activity{FailureCount"},
		{"the key is the same in every round", "machine/facts_commands.go", `d.Step + "/" + strconv.Itoa(j.Round)`, `d.Step + "/" + strconv.Itoa(1)`},
		{"the undo does not wait for the attempt that is out", movesDirections, "if s.Forward.State == job.Dispatched {", "if s.Forward.State == job.Dispatched && t.shared(side{step: i}) {"},
		{"undos run in any order", movesDirections, "behind = behind && over[f]", "behind = behind && f >= 0"},
		{"a step does not wait for what it needs", movesDirections, "\tcase t.allThrough(i):\n\t\tt.start(", "\tdefault:\n\t\tt.start("},
		{"the key is never lowered", movesJob, "seen.IsZero() || due.Before(seen) ||", "seen.IsZero() ||"},
		{
			"a late success is taken from under a newer claim", eventSucceeded,
			"case found.Finding == job.FoundHeld:\n\t\t\treturn Verdict{Kind: Stale, Reason: fmt.Sprintf(\"attempt %d of step %s is under way\", a.Attempt, e.Step)}, true\n",
			"case found.Finding == job.FoundHeld:\n",
		},
		{
			"a late success does not close the newer attempt", eventSucceeded,
			"case job.Dispatched:\n\t\tif t.shared(at) {", "case job.Dispatched:\n\t\tif !t.shared(at) {\n\t\t\tbreak\n\t\t}\n\t\tif t.shared(at) {",
		},
		{
			"a refused task is not closed", "machine/event_sent.go",
			"if !t.shared(at) && t.activity(at).Inline == \"\" {\n\t\tfound, known := t.ask(t.question(AskClose, at))",
			"if t.shared(at) {\n\t\tfound, known := t.ask(t.question(AskClose, at))",
		},
		{
			"what is due after a backoff is never made", movesGoingOn,
			"if t.going() && t.wanted(at) && passed(a.At, t.now) {", "if t.going() && t.wanted(at) && passed(a.At, t.now) && a.Attempt > 9 {",
		},
		{"the second round keeps the undos of the first", movesJob, "s.Undo = job.Activity{FailureCount: s.Undo.FailureCount, Kept: s.Undo.Kept}", "s.Undo.Tries = 0"},
		{"resubmit forgets what failed", movesGoingOn, "a.State, a.FinishedAt = job.NotStarted, time.Time{}\n", "a.FinishedAt = time.Time{}\n"},
		{"nobody is told of an Error again", factsCommands, "range j.Untold {", "range j.Untold[:0] {"},
		{"a task lost is not sent again", factsCommands, "case !ok || a.Cause != cause:", "case !ok || a.Cause != cause || a.Resent > 0:"},
		{"a pause marks what it closes", factsCommands, "unwanted := undo == (j.Desired == makegood.JobProcessed)", "unwanted := j.Round > 0"},
		{"a turn round closes nothing", movesJob, "t.closeOpen()\n\tt.job.Desired = want", "t.job.Desired = want"},
		{"a stop closes nothing", movesJob, "t.closeOpen()\n\tt.job.ProcessState", "t.job.ProcessState"},
		{"a pause closes nothing", "machine/event_requested.go", "t.closeOpen()\n\t\tt.job.PausedAt", "t.job.PausedAt"},
		{
			"what is given up is closed before that is saved", movesJob, "a.Closing, a.Cause = true, t.cause\n",
			"a.Closing, a.Cause = true, t.cause\n\t\tt.ask(Ask{Kind: AskClose, Step: t.name(at), Attempt: a.Attempt, Undo: at.undo, Mark: true})\n",
		},
		{"a closing that was lost is not asked for again", movesGoingOn, "\t\tt.end(at)\n\tcase due || ", "\t\ta.LookAt = t.now.Add(time.Minute)\n\tcase due || "},
		{"a closing that was lost is asked for after a day", movesJob, "true, t.cause\n\t\ta.LookAt = t.now.Add(limits.CloseAgain)", "true, t.cause\n\t\ta.LookAt = t.now.Add(limits.FarKey)"},
		{"LookAt is not renewed", movesClosing, "t.cause, time.Time{}\n\t}\n\ta.LookAt = t.nextLook(at)\n}", "t.cause, time.Time{}\n\t}\n}"},
		{"what is held is looked at after a day", movesClosing, "a.LookAt = t.lives(at, claim)", "a.LookAt = t.now.Add(limits.FarKey)"},
		{"what was closed is sent again", movesClosing, "\tdefault:\n\t\tt.end(at)\n\t}\n}\n\n// replace", "\tdefault:\n\t\tt.unclaimed(at)\n\t}\n}\n\n// replace"},
		{"the answer to a closing ends whatever is out", "machine/event_sent.go", "if !ok || t.activity(at).Attempt != e.Attempt {\n\t\treturn Verdict{Kind: Duplicate", "if !ok {\n\t\treturn Verdict{Kind: Duplicate"},
		{"a claim of an attempt that was never made is believed", factsDeadlines, "case job.FoundOver:\n\t\treturn true", "case job.FoundOver:\n\t\treturn false"},
		{"a claim for a day is believed", factsDeadlines, "return found.Claim.CompleteBy.After(limit)", "return found.Claim.CompleteBy.Before(limit.Add(-100 * limits.MaxClaim))"},
		{"a new run of the engine ends nothing", eventInterrupted, "case !ok:\n\t\tcase t.activity(at).Queued:", "case !ok || t.activity(at).Attempt < 9:\n\t\tcase t.activity(at).Queued:"},
		{"what was interrupted is not unknown", eventInterrupted, "\ta.Unknown = true\n\ta.Tries--", "\ta.Tries--"},
		{"a job that is revived is of an old run", movesJob, "\tt.job.Incarnation = max(t.job.Incarnation, t.facts.Incarnation)\n", ""},
		{"a save does not compare Rev", may, "|| stored.Rev != change.Job.Rev {", "{"},
		{"a claim overwrites a claim", may, "case item.Attempt == claim.Attempt:\n\t\treturn item, ErrTaken", "case item.Attempt == claim.Attempt && claim.LockedBy == \"\":\n\t\treturn item, ErrTaken"},
		{
			"what was closed can be claimed", may,
			"case item.Attempt > claim.Attempt, item.Attempt == claim.Attempt && item.Closed != \"\", claim.StartedAt.After(until):\n\t\treturn item, ErrWithdrawn\n\tcase item.Attempt == claim.Attempt:",
			"case item.Attempt > claim.Attempt, claim.StartedAt.After(until):\n\t\treturn item, ErrWithdrawn\n\tcase item.Attempt == claim.Attempt && item.Closed == \"\":",
		},
		{"an older attempt can be claimed", may, "case item.Attempt > claim.Attempt, item", "case item.Attempt > claim.Attempt+100, item"},
		{"an attempt can be claimed for ever", may, ", claim.StartedAt.After(until):", ":"},
		{"what was closed can be extended", may, "i.LockedBy == claim.LockedBy && i.Closed == \"\"", "i.LockedBy == claim.LockedBy"},
		{"a heartbeat goes past the end that was set", may, "next.CompleteBy = earliest(next.CompleteBy, item.Ends)", "_ = earliest(next.CompleteBy, item.Ends)"},
		{"Close writes over a newer attempt", may, "case item.Attempt > c.Attempt:", "case item.Attempt > c.Attempt+100:"},
		{"Close ends a claim that holds", may, "case c.LockedBy == \"\" && !item.CompleteBy.After(c.Now):", "case c.LockedBy == \"\":"},
		{"Close marks again", may, "&& !c.Ends.IsZero() && item.Ends.IsZero() &&", "&& !c.Ends.IsZero() &&"},
		{"Close takes the failure of anybody", may, "case c.LockedBy != \"\" && c.LockedBy == item.LockedBy:", "case c.LockedBy != \"\":"},
		{"what was replied is said to anybody", may, "i.Closed == job.FoundReplied && by != \"\" && by == i.LockedBy", "i.Closed == job.FoundReplied"},
		{"an item that is gone means nobody", may, "Closed: job.FoundSilent, ExpiresAt: expiry(c.Now", "Closed: job.FoundNobody, ExpiresAt: expiry(c.Now"},
		{"a second answer takes the place of the first", "machine/facts_answers.go", "\tcase a.Held():\n", "\tcase a.Held() && a.State == job.Done:\n"},
		{"what follows does not wait for the end of a completed attempt", eventCompleted, "job.FoundHeld && !t.lie(at, found) {", "job.FoundHeld && !t.lie(at, found) && !t.conclude(at) {"},
		{"an answer is forgotten when the attempt falls silent", movesAttempts, "\tif t.conclude(at) {\n\t\t// How", "\tif t.activity(at) == nil {\n\t\t// How"},
		{"what waits is never due", factsDeadlines, "\t\t\tcase job.Waiting:\n\t\t\t\tsooner(a.LookAt)", "\t\t\tcase job.Waiting:\n\t\t\t\tsooner(t.now.Add(limits.FarKey))"},
		{"the time of a wait ends nothing", "machine/moves_waiting.go", "\tif passed(a.Wait.Deadline, t.now) {\n\t\tt.waitOver(at)", "\tif passed(a.Wait.Deadline, t.now) && a.Attempt > 9 {\n\t\tt.waitOver(at)"},
		{"what waited when the job turned round is not undone", movesActivity, "\ta.Unknown = a.Unknown || !t.waitsByItself(at)\n", ""},
		{"an answer closes nothing", eventCompleted, "t.question(AskClose, at)", "t.question(AskLook, at)"},
		{"a chain that was interrupted counts as not begun, but for its first step", eventInterrupted, "\ta.Unknown = true\n", "\ta.Unknown = a.Unknown || !t.ahead(at)\n"},
		{"a chain whose process has died counts as not begun, but for its first step", movesClosing, "\ta.Unknown = true\n\ta.Tries--\n\tt.rest", "\ta.Tries--\n\tt.rest"},
		{"a settlement closes nothing", eventSettled, "case t.activity(at).State == job.Dispatched:\n\t\treturn", "case t.activity(at).Attempt > 9:\n\t\treturn"},
		{
			"what is held is settled over", eventSettled, "\tswitch found.Finding {\n\tcase job.FoundHeld:",
			"\tif found.Finding == job.FoundHeld {\n\t\tfound.Finding = job.FoundSilent\n\t}\n\tswitch found.Finding {\n\tcase job.FoundHeld:",
		},
		{"what had failed is settled, and nothing follows", eventSettled, "case was == job.Failed &&", "case was == job.Failed && e.Reason != \"\" &&"},
		{"what fell silent and was settled is not unknown", eventSettled, "\t\ta.Unknown = true\n", ""},
		{"a settlement of an earlier round counts", factsSettling, "case e.Round != 0 && e.Round != t.job.Round:", "case e.Round > t.job.Round:"},
		{"an undo is settled under its step", factsSettling, "case at.undo && t.job.Steps[at.step].Forward.State == job.Dispatched:", "case at.undo && t.job.Steps[at.step].Forward.Attempt > 9:"},
		{"what is late is never due", factsDeadlines, "if t.job.Expected() && !t.job.WarnAt.IsZero() {", "if t.job.Expected() && t.job.Round > 9 {"},
		{"it is told twice of one round", movesTelling, "\tt.job.WarnAt = time.Time{}\n\twhy", "\twhy"},
		{"what is late is not told", movesTelling, "&& !passed(t.job.WarnAt, t.now) {", "&& t.job.Round < 9 {"},
		{"what is undone is late", "job/job.go", "goes && (j.Desired == makegood.JobProcessed || j.AnotherRound)", "goes"},
		{"nothing stands of an attempt that nobody spoke of", factsSettling, "case e.Attempt != 0 && e.Attempt != a.Attempt:", "case e.Attempt > a.Attempt:"},
		{"what does not stand is undone", eventSettled, "a.Unknown, a.Silent, a.Former = false,", "a.Unknown, a.Silent, a.Former = true,"},
		{"what is settled is settled again", factsSettling, "case t.job.Settled(*a) != nil:\n\t\treturn t.wasSettled(at)\n\tcase !at.undo && t.undoStopped(at.step):\n\t\treturn fmt.Sprintf(\"%s: the job is %s, and its undo stopped: add --undo (undo: true) to settle that\", name, t.stands())\n\tcase a.State == job.Done:\n\t\treturn name + \" is done\"\n", ""},
		{"a child begins behind its closing", factsChildren, "return job.FoundNobody, NeverBegin", "return job.FoundNobody, \"\""},
		{"a cancel does not reach the child", factsChildren, "return job.FoundHeld, CancelChild", "return job.FoundHeld, \"\""},
		{"a job in the place of a child is not cancelled, and counts as begun", factsChildren, "case c.Never && !ended:\n\t\treturn job.FoundNobody, CancelChild", "case c.Never && !ended:\n\t\treturn job.FoundHeld, \"\""},
		{"a hint that a child has ended decides", eventChild, "\tfound, known := t.ask(t.question(AskLook, at))\n\tif known && found", "\tif e.Attempt > 0 {\n\t\tt.childEnded(at, job.ChildEnd{State: \"Processed\"})\n\t\treturn Verdict{Kind: Applied}\n\t}\n\tfound, known := t.ask(t.question(AskLook, at))\n\tif known && found"},
		{"the step before is undone before the child has ended", movesDirections, "if s.Forward.State == job.Dispatched {", "if s.Forward.State == job.Dispatched && !t.isChild(side{step: i}) {"},
		{"a child that refuses its undo is not looked at", eventChild, "case found.Finding == job.FoundOpen:\n\t\topen()", "case known:\n\t\topen()"},
		{"the undo of a child is not asked for again after weeks", movesClosing, "(t.isChild(at) && (at.undo ||", "(t.isChild(at) && (at.undo && a.Attempt > 9 ||"},
		{"a child is under way for as long as it was not undone", factsChildren, "case c.State == \"\", c.Back && c.State.Finished():", "case c.State == \"\", c.State.Finished():"},
		{"the undo of a child counts as asked for", factsChildren, "case !c.Back && ask.Kind == AskLook:", "case c.Back && ask.Kind == AskLook:"},
		{"a child that ended before its redrive has ended after it", factsChildren, "ask.Kind == AskLook:\n\t\treturn job.FoundOpen, \"\"\n\tcase ended && c.Redrives < ask.Redrives && !ask.Mark", "ask.Kind == AskLook:\n\t\treturn job.FoundEnded, \"\"\n\tcase ended && c.Redrives < ask.Redrives && !ask.Mark"},
		{"a redrive that was lost passes for made", factsChildren, "c.Redrives < ask.Redrives && ask.Kind == AskLook", "c.Redrives < ask.Redrives-1000 && ask.Kind == AskLook"},
		{"a pause ends a redrive that was not asked for", factsChildren, "return job.FoundHeld, \"\" // A pause", "return job.FoundEnded, \"\" // A pause"},
		{"a redrive comes behind its closing", factsChildren, "return job.FoundEnded, NeverRedrive", "return job.FoundEnded, \"\""},
		{"another child counts as redriven", movesAttempts, "\t\ta.Repeats = 0 //", "\t\ta.Repeats += 0 //"},
		{"a late refusal of a redrive ends it", "machine/event_sent.go", "return t.redriveRefused(at, e.Reason)", "t.notRedriven(at, e.Reason)\n\t\treturn Verdict{Kind: Applied}"},
		{"a closing is of no redrive", factsCommands, "c.Redrives = a.Repeats", "c.Redrives = 0"},
		{"the answer to a closing of before ends a redrive", "machine/event_sent.go", "e.Found.Finding == job.FoundHeld || t.isChild(at) && a.Repeats > 0", "e.Found.Finding == job.FoundHeld"},
		{"a look frees the permit of a save that may come", "gate/look.go", "j.Rev > t.Rev && !opened", "!opened"},
		{"a permit for a save that never came stays for ever", "gate/look.go", "return is, !is && !opened, nil", "return is, false, nil"},
		{"a permit is not renewed for a later save of the job", "gate/keeper.go", "i >= 0 && permits", "i >= 0 && t.Rev == 0 && permits"},
		{"what stands before a gate is sent", factsCommands, "\t\tcase a.Queued:", "\t\tcase a.Queued && a.Attempt > 9:"},
		{"a second attempt never leaves the gate", "machine/moves_gates.go", "if t.mustQueue(at) {\n\t\treturn false", "if t.mustQueue(at) || a.Attempt > 1 {\n\t\treturn false"},
		{"a child is cancelled before what is behind it is over", movesJob, "case t.standsBehind(i):", "case t.standsBehind(i) && a.Attempt > 9:"},
	})
}

// caughtAfter is how the check of a mutant says after how many states it was found.
var caughtAfter = regexp.MustCompile(`--- FAIL: TestSmallModels/(\S+)[\s\S]*?: after (\d+) states: ([^\n]+)`)

// Some of the wrong versions; make modelcheck tries them all.
func TestPlantedBugsAreFound(t *testing.T) {
	proof.Hunt{
		Bugs: mutants(), All: large(), Quick: []int{0, 9, 43}, Found: caughtAfter, Args: []string{"-run", "^TestSmallModels$", "."},
	}.Run(t)
	proof.Says(t, fmt.Sprintf("%d of %[1]d are found.", len(mutants())))
}

// large reports whether this is make modelcheck.
func large() bool { return os.Getenv("MODELCHECK") != "" }
