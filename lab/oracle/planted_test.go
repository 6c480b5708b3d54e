package oracle_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/makegood-dev/makegood/internal/testkit/proof"
)

// bugs are wrong policies: nothing is lost or done twice by them, and yet no workflow file promises what they do.
func bugs() []proof.Bug {
	const (
		attempts   = "machine/attempts.go"
		deadlines  = "machine/deadlines.go"
		requests   = "machine/requests.go"
		machine    = "machine/machine.go"
		directions = "machine/directions.go"
		completion = "machine/completion.go"
		waiting    = "machine/waiting.go"
		rounds     = "machine/rounds.go"
		turning    = "machine/turning.go"
		joins      = "machine/joins.go"
		routes     = "machine/routes.go"
		repeat     = "machine/repeat.go"
		alone      = "machine/alone.go"
	)
	return proof.Bugs([][4]string{
		{"the job's timeout undoes although onFailure is stop", deadlines, "t.w.OnFailure.Action == makegood.FailureStop || !domain.HasUndo(t.w)", "!domain.HasUndo(t.w)"},
		{"the job's timeout stops an undo", deadlines, "t.going() && t.forwards() && passed(t.job.Deadline, t.now) {\n\t\t// What is out", "t.going() && passed(t.job.Deadline, t.now) {\n\t\t// What is out"},
		{"a new round keeps the deadline that passed", rounds, "\tt.newRound()\n\tt.renewDeadline()\n", "\tt.newRound()\n"},
		{"a resubmit keeps the deadline that passed", requests, "\t\tt.noReason()\n\t\tt.renewDeadline()\n", "\t\tt.noReason()\n"},
		{"the deadline runs on while the job is paused", requests, "t.job.Deadline = t.job.Deadline.Add(t.now.Sub(stood))", "t.job.Deadline = t.job.Deadline.Add(0)"},
		{"a job that stops while paused stays paused, and cannot be resubmitted", machine, "\tt.endPause()\n\tt.job.RemindAt", "\tt.job.RemindAt"},
		{"a job that ends while paused stays paused", machine, "\tt.job.FinishedAt = t.now\n\tt.job.PausedAt = time.Time{}\n", "\tt.job.FinishedAt = t.now\n"},
		{"an attempt that was taken back uses up one of those granted", "machine/closing.go", "\ta.Tries--\n\tif t.conclude(at) {", "\tif t.conclude(at) {"},
		{"an interruption uses up an attempt", deadlines, "\ta.Tries--\n", ""},
		{"an interruption is not known to have begun", deadlines, "\ta.Unknown = true\n", ""},
		{"a silence in company uses up an attempt", alone, "\ta.Tries--\n", ""},
		{"every silence in company is spared", alone, " || a.Alone {", " {"},
		{"every silence is spared once", alone, "claim.Beside <= 0 || a.Alone", "a.Alone"},
		{"who fell silent in company runs in company again", "machine/task.go", ", Alone: a.Alone,", ","},
		{"a failure that is told does not end running alone", attempts, "\t\ta.Alone = false\n", ""},
		{"a step that waits runs alone when it is tried again", waiting, "\ta.Alone = false\n", ""},
		{"a resubmit grants nothing", requests, "\t\t\tgrant(a)\n", ""},
		{"after a wait nothing is granted", attempts, "\t\tgrant(a)\n", ""},
		{"one attempt too many", attempts, "a.Tries < retry.Attempts", "a.Tries <= retry.Attempts"},
		{"one attempt too few", attempts, "a.Tries < retry.Attempts", "a.Tries+1 < retry.Attempts"},
		{"a final failure is tried again", attempts, "wanted && retryable && t.may", "wanted && t.may"},
		{"a backoff is not kept", deadlines, "t.wanted(at) && passed(a.At, t.now) {", "t.wanted(at) {"},
		{"a backoff doubles too soon", attempts, "doubled(retry.Backoff, a.Tries-1, retry.Max)", "doubled(retry.Backoff, a.Tries, retry.Max)"},
		{"a backoff is longer than max", attempts, "doubled(retry.Backoff, a.Tries-1, retry.Max)", "doubled(retry.Backoff, a.Tries-1, 2*retry.Max)"},
		{"Retry-After is not kept to", attempts, "return later(next, t.now.Add(min(after, retry.Max).Std()))", "return next"},
		{"an attempt is made beyond its time", attempts, "t.now.Before(a.FailingSince.Add(retry.For.Std()))", "true"},
		{"the time begins anew with each failure", attempts, "retry.For > 0 && a.FailingSince.IsZero()", "retry.For > 0"},
		{"its time runs while an attempt is not claimed", attempts, "\tleaveOut(a, earlier(ended.StartedAt, t.now))\n", ""},
		{"its time runs while it is not sent", attempts, "\tleaveOut(a, t.now)\n", ""},
		{"its time runs while it is sent again", "machine/closing.go", "\t\tleaveOut(a, t.now)\n", ""},
		{"a failure that does not count begins the time", attempts, " && a.Tries > 0", ""},
		{"a silence that is noticed late uses up the time", "machine/deadlines.go", "; due.Before(t.now) {", "; due.Before(due) {"},
		{"the last attempt comes after its time", attempts, "next = earlier(next, a.FailingSince.Add(retry.For.Std()))", "next = later(next, a.FailingSince.Add(retry.For.Std()))"},
		{"Retry-After is kept to beyond retry.max", attempts, "min(after, retry.Max)", "min(after, 2*retry.Max)"},
		{"the task is sent again in Error", "machine/pending.go", " && j.ProcessState != makegood.JobError", ""},
		{"the task is sent again in a paused job", "machine/pending.go", " && !j.Paused() && j", " && j"},
		{"an undo is told unknown of what is done", "machine/task.go", "task.Undo.Outcome = makegood.OutcomeDone", "task.Undo.Outcome = makegood.OutcomeUnknown"},
		{"what failed is not undone, though it may have been done", attempts, "a.Unknown = a.Unknown || failure.Applied != makegood.AppliedNo", "a.Unknown = a.Unknown && failure.Applied != makegood.AppliedNo"},
		{"an undo does not wait for those that follow", directions, "behind = behind && over[f]", "behind = behind || over[f]"},
		{"startBy doubles beyond 72 hours", deadlines, "resent, makegood.Duration(limits.MaxStartBy))", "resent, 2*makegood.Duration(limits.MaxStartBy))"},
		{"startBy does not double", deadlines, "return doubled(startBy, resent, ", "return doubled(startBy, 0, "},
		{"the start of the last attempt is taken for the first", attempts, "case a.StartedAt.IsZero():", "case !at.IsZero():"},
		{"the end of a job stands while it is undone", requests, "\tt.job.FinishedAt = time.Time{}\n\tif !t.forwards() {", "\tif !t.forwards() {"},
		{"a step that goes on is said to have finished", requests, "a.State, a.FinishedAt = job.NotStarted, time.Time{}", "a.State = job.NotStarted"},
		{"one announcement of several is taken off", "machine/telling.go", "if a.Seq > e.Seq {", "if a.Seq != e.Seq {"},
		{"nobody hears that a job is being undone", "machine/telling.go", "is != was && is != makegood.JobError", "is != was && is != makegood.JobUndoing && is != makegood.JobError"},
		{"a person hears of an Error once", deadlines, "\t\t\tt.announce(true, false)\n", "\t\t\t_ = t.job.Seq\n"},
		{"a failure is in no history", attempts, "\tended.Failure = t.job.FailureCount\n", ""},
		{"a request is in no history", requests, "\tt.noteRequest(e)\n", ""},
		{"an answer is in no history", completion, "\tt.noteOf(at, job.Entry{Kind: makegood.EntryCompleted, By: c.By, Reason: c.Why, Error: c.Error})\n", ""},
		{"that a job turns is in no history", directions, "\tt.note(job.Entry{Kind: makegood.EntryTurned, State: want, Reason: t.job.Reason})\n", ""},
		{"that a job stops is in no history", machine, "\tt.note(job.Entry{Kind: makegood.EntryStopped, Reason: t.job.Reason})\n", ""},
		{"what fails on the way back is not counted", attempts, "\tt.job.FailureCount++\n", "\tif t.wanted(at) {\n\t\tt.job.FailureCount++\n\t}\n"},
		{"onFailure undo stops", attempts, "\t\tt.turnRound(makegood.JobUndone, reason)\n", "\t\tt.stop(reason)\n"},
		{"a round that begins by itself has its own time", rounds, "\tt.newRound()\n\tt.job.RoundsAgain = again\n", "\tt.newRound()\n\tt.renewDeadline()\n\tt.job.RoundsAgain = again\n"},
		{"a round too many", rounds, "t.job.AnotherRound = tried < rounds", "t.job.AnotherRound = tried <= rounds"},
		{"a step that was skipped begins a join of any", joins, "need.Forward.State == job.Done {", "through(need.Forward.State) {"},
		{"a join of any waits for all", joins, "\tcase a.By != \"\":\n", "\tcase a.By != \"\" && t.allThrough(i):\n"},
		{"a join of any is done though none is", joins, "\tcase t.allThrough(i):\n\t\tt.skip(i)", "\tcase t.allThrough(i):\n\t\tt.start(side{i, false})"},
		{"a step that others go to begins with the first", joins, "\tcase !t.allThrough(i):\n\tcase slices", "\tcase slices"},
		{"nothing is left out", routes, "\t\tt.leaveOut(at.step)\n", ""},
		{"what follows both is left out, too", routes, "behind := t.graph.behind(to)", "behind := map[int]bool{to: true}"},
		{"a route that says fail tries again", routes, "return retry, false", "return retry, failure.Retryable"},
		{"a retry by kind keeps to what is final", routes, "return again.Retry, true", "return again.Retry, failure.Retryable"},
		{"a retry by kind waits as the step does", routes, "return again.Retry, true", "return retry, true"},
		{"an undo has routes", routes, "\tif at.undo {\n\t\treturn retry, failure.Retryable\n\t}\n", ""},
		{"what was passed by was not done", routes, "\tt.rest(a, job.Skipped)\n", "\tt.rest(a, job.Skipped)\n\ta.Unknown = false\n"},
		{"a repetition uses up an attempt", repeat, "a.Tries, a.FailingSince, a.Unknown, a.Error = 0, time.Time{}, true, nil", "a.FailingSince, a.Unknown, a.Error = time.Time{}, true, nil"},
		{"what was repeated is not undone", repeat, "a.Tries, a.FailingSince, a.Unknown, a.Error = 0, time.Time{}, true, nil", "a.Tries, a.FailingSince, a.Error = 0, time.Time{}, nil"},
		{"a repetition too many", repeat, "a.RepeatTries >= repeat.Attempts", "a.RepeatTries > repeat.Attempts"},
		{"a step is repeated beyond its time", repeat, " || next.After(a.RepeatSince.Add(repeat.For.Std()))", ""},
		{"a step is repeated at once", repeat, "next := t.now.Add(repeat.Every.Std())", "next := t.now"},
		{"no round follows", rounds, "t.job.AnotherRound = tried < rounds", "t.job.AnotherRound = false"},
		{"the rounds are not counted", rounds, "\tt.job.RoundsAgain = again\n", "\t_ = again\n"},
		{"a resubmit grants no rounds", requests, "\tt.job.RoundsAgain = 0\n", ""},
		{"the wait before a round is not kept", rounds, "!passed(t.job.NextRoundAt, t.now)", "t.job.NextRoundAt.IsZero()"},
		{"a round begins in a paused job", rounds, "if !t.going() || ", "if !t.active() || "},
		{"a cancel lets another round follow", requests, "\tt.noMoreRounds()\n\tt.because(reasonOf(e))", "\tt.because(reasonOf(e))"},
		{"a cancelled job ends Undone", requests, "\t\tt.job.Desired = makegood.JobCancelled\n", "\t\tt.job.Desired = makegood.JobUndone\n"},
		{"the time of a wait runs on while the job is paused", requests, "\t\t\tt.stoodStill(t.inDirection(i), paused)\n", "\t\t\t_ = t.inDirection(i)\n"},
		{"an answer is forgotten when the attempt falls silent", attempts, "\tif t.conclude(at) {\n\t\t// How", "\tif t.activity(at) == nil {\n\t\t// How"},
		{"a second answer takes the place of the first", completion, "\tcase a.Held():\n", "\tcase a.Held() && a.State == job.Done:\n"},
		{"what follows does not wait for the end of the attempt", completion, "job.FoundHeld && !t.lie(at, found) {", "job.FoundHeld && !t.lie(at, found) && !t.conclude(at) {"},
		{"an answer by address is kept without being asked to", completion, "\tcase e.Token == \"\" && e.Early && (", "\tcase e.Token == \"\" && ("},
		{"a kept answer is forgotten when the step waits", waiting, "c != nil && c.Early {\n\t\tt.take", "c != nil && c.Held {\n\t\tt.take"},
		{"an approval takes any answer", completion, "!ok || !slices.Contains(allowed, answer)", "ok && answer == \"\""},
		{"the end of a wait is a failure although onTimeout says otherwise", waiting, "case rules != nil && rules.OnTimeout != nil:", "case rules != nil && rules.OnTimeout != nil && t.job.Paused():"},
		{"nobody is reminded", waiting, "next = earlier(next, a.At.Add(all[n].after))", "next = earlier(next, a.At.Add(all[n].after+limits.FarKey))"},
		{"an extension makes a wait shorter", completion, "if !until.After(a.Wait.Deadline) {", "if until.Equal(a.Wait.Deadline) {"},
		{"an extension is as long as the wait is by now", completion, "t.now.Add(a.Wait.For.Std())", "t.now.Add(a.Wait.Deadline.Sub(a.At))"},
		{"an agent that was down uses up the time of a step that waits", waiting, "\tleaveOut(a, earlier(e.StartedAt, t.now))\n", ""},
		{"a round that was asked for waits as those of onFailure do", rounds, "\tif t.job.RoundAsked {\n\t\treturn time.Millisecond\n\t}\n", ""},
		{"a round that was asked for has the time that the job had left", rounds, "\tif t.job.RoundAsked {\n\t\tt.askedRound()\n\t\treturn\n\t}\n", ""},
		{"a job goes forward again over an undo that may have had an effect", turning, "\t\tcase s.Undo.Unknown, t.job.Settled(s.Undo) != nil:\n", "\t\tcase t.job.Settled(s.Undo) != nil:\n"},
		{"what was taken back stays so when the job goes forward again", turning, "s.Forward.State == job.Withdrawn", "s.Forward.State == job.Withdrawn && s.Forward.Unknown"},
		{"what waited when the job turned round is not undone", waiting, "\ta.Unknown = a.Unknown || !t.waitsByItself(at)\n", ""},
		{"a release that knows no waits may decide about them", machine, "\tt.job.Needs = max(t.job.Needs, t.needs())\n", "\t_ = t.needs()\n"},
	})
}

// repairs are wrong policies about what people repair.
func repairs() []proof.Bug {
	const (
		settle   = "machine/settle.go"
		notDone  = "machine/notdone.go"
		requests = "machine/requests.go"
	)
	return proof.Bugs([][4]string{
		{"what does not stand is undone", notDone, "a.Unknown, a.Silent, a.Former = false,", "a.Unknown, a.Silent, a.Former = true,"},
		{"the success counts of an attempt of which nothing stands", notDone, "= false, job.Claim{}, 0", "= false, a.Silent, 0"},
		{"nothing stands of what is under way", notDone, "\tcase a.State == job.Dispatched:\n", "\tcase a.Held():\n"},
		{"nothing stands of what waits", notDone, "case a.State == job.Done, a.State == job.Waiting:", "case a.State == job.Done:"},
		{"nothing stands of what is being undone", notDone, "!t.forwards() || t.job.ProcessState.Finished()", "t.job.ProcessState.Finished()"},
		{"the same settlement again is refused", settle, "was != nil && was.Answer == e.Answer()", "was != nil && was.Answer == e.Answer() && e.Request == was.By"},
		{"the request that settled a step is forgotten", settle, "\t\tt.job.Requests = remember(t.job.Requests, name)\n", "\t\t_ = name\n"},
		{"a settlement of another round counts", settle, "e.Round != 0 && e.Round != t.job.Round", "e.Round > t.job.Round"},
		{"what is done is settled", settle, "\tcase a.State == job.Done:\n\t\treturn name + \" is done\"\n", ""},
		{"what cannot be undone is left out", settle, "a.State == job.Irreversible && !e.Done", "a.State == job.Irreversible && e.Round < 0"},
		{"what cannot be undone is not settled after the end", settle, "\tcase a.State == job.Irreversible:\n\t\treturn \"\"\n", "\tcase a.State == job.Irreversible && t.job.ProcessState.Finished():\n\t\treturn name\n\tcase a.State == job.Irreversible:\n\t\treturn \"\"\n"},
		{"a step is settled while its job is being undone", settle, "case at.undo == t.forwards() || t.job.ProcessState.Finished() && !at.undo:", "case t.job.ProcessState.Finished() && !at.undo:"},
		{"an undo is settled while its step is under way", settle, "\tcase at.undo && t.job.Steps[at.step].Forward.State == job.Dispatched:\n", "\tcase at.undo && a.Held():\n"},
		{"an undo is settled of what was not done", settle, "a.State == job.Skipped || at.undo && t.nothingToUndo(at.step)", "a.State == job.Skipped"},
		{"what may have been done has no undo to settle", settle, " && !forward.Unknown", ""},
		{"what is not exclusive is settled while it may run", settle, "a.State == job.Dispatched && t.shared(at)", "a.State == job.Dispatched && t.shared(at) && at.undo"},
		{"an approval is settled with any output", settle, "!ok || !slices.Contains(allowed, answer)", "ok && answer == \"\""},
		{"an attempt that nobody had claimed uses up one", settle, "\t\ta.Tries--\n", "\t\tt.job.FailureCount++\n"},
		{"a silence is no failure when the step is settled", settle, "\t\tt.countFailure(at, t.fellSilent(at, found.Claim, why))\n", "\t\t_ = t.fellSilent(at, found.Claim, why)\n"},
		{"what fell silent had no effect when the step is left out", settle, "\t\ta.Unknown = true\n", ""},
		{"what waited had no effect when it is left out", settle, "a.Unknown = a.Unknown || was == job.Waiting && !t.waitsByItself(at)", "a.Unknown = a.Unknown && t.waitsByItself(at) || a.Unknown"},
		{"what was left out had no effect", settle, "a.Unknown = a.Unknown || was == job.Waiting", "a.Unknown = was == job.Waiting"},
		{"the output of who settled is lost", settle, "\t\tt.done(at, output)\n", "\t\tt.done(at, job.Payload{})\n"},
		{"it is not kept that a step was settled", settle, "\ta.Settled = &job.Settlement{", "\ta.Settled = (*job.Settlement)(nil)\n\ta.Settled = &job.Settlement{Kept: \"\"}\n\t_ = &job.Settlement{"},
		{"a settlement is in no history", settle, "\tt.noteOf(at, job.Entry{Kind: makegood.EntrySettled,", "\t_ = (job.Entry{Kind: makegood.EntrySettled,"},
		{"a job goes on though another step has failed", settle, "if t.activity(left).State == job.Failed {", "if t.activity(left).State == job.Failed && left == at {"},
		{"a job stays in Error when all that failed is settled", settle, "\tt.goOn()\n\tif at.undo {", "\tif at.undo {"},
		{"a job goes on though its timeout stopped it", settle, "case was == job.Failed && t.job.ProcessState", "case t.job.ProcessState"},
		{"nobody hears that what was not undone is", settle, "\t\tt.announce(false, true)\n", "\t\t_ = t.job.Seq\n"},
		{"what was settled has begun", requests, "s.Forward.State != job.NotStarted && t.job.Settled(s.Forward) == nil", "s.Forward.State != job.NotStarted"},
		{"an edited timeout counts from when the job last got one", requests, "\tif t.active() {\n\t\tt.renewDeadline()\n\t}\n\treturn Verdict{Kind: Applied}", "\tif t.active() && t.job.Deadline.IsZero() {\n\t\tt.renewDeadline()\n\t}\n\treturn Verdict{Kind: Applied}"},
		{"an edited timeout counts while the job is in Error", requests, "\tif t.active() {\n\t\tt.renewDeadline()\n\t}\n\treturn Verdict{Kind: Applied}", "\tt.renewDeadline()\n\treturn Verdict{Kind: Applied}"},
		{"an edited timeout is good for once", requests, "\tif t.job.Timeout == 0 {", "\tif t.job.Timeout == 0 || t.job.Round > 1 {"},
		{"none is no timeout to be edited to", requests, "return max(t.job.Timeout, 0)", "return max(t.job.Timeout, makegood.Second)"},
		{"the time that an edit grants runs while the job is paused", requests, "\tif t.job.Paused() {\n\t\tfrom = t.job.PausedAt\n\t}\n", ""},
		{"the time that an edit grants runs before the start", requests, "\tif from.Before(t.job.StartAt) {\n\t\tfrom = t.job.StartAt\n\t}\n", ""},
		{"the timeout of what is undone is edited", requests, "\tcase !t.forwards():\n\t\treturn Verdict{Kind: Refused, Reason: backUntimed}\n", ""},
	})
}

var foundAfter = regexp.MustCompile(`(?:failed|panic) after (\d+) tests: ([^\n]+\n[^\n]*)`)

// One of the wrong policies; make planted tries them all.
func TestPlantedPoliciesAreFound(t *testing.T) {
	proof.Hunt{
		Bugs: bugs(), All: os.Getenv("PLANTED") != "", Quick: []int{0}, Found: foundAfter,
		Args: []string{"-run", "^TestAJobIsWhatTheDocsSay$", ".", "-rapid.seed=1", "-rapid.shrinktime=0s", "-rapid.nofailfile", "-rapid.checks=100000"},
	}.Run(t)
}

// And one of those about repair.
func TestPlantedRepairsAreFound(t *testing.T) {
	proof.Hunt{
		Bugs: repairs(), All: os.Getenv("PLANTED") != "", Quick: []int{0}, Found: foundAfter,
		Args: []string{"-run", "^TestARepairedJobIsWhatTheDocsSay$", ".", "-rapid.seed=1", "-rapid.shrinktime=0s", "-rapid.nofailfile", "-rapid.checks=100000"},
	}.Run(t)
}
