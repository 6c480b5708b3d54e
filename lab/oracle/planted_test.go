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
		eventCompleted   = "machine/event_completed.go"
		eventDeadline    = "machine/event_deadline.go"
		eventInterrupted = "machine/event_interrupted.go"
		eventRequested   = "machine/event_requested.go"
		eventSucceeded   = "machine/event_succeeded.go"
		factsAnswers     = "machine/facts_answers.go"
		factsCommands    = "machine/facts_commands.go"
		factsDeadlines   = "machine/facts_deadlines.go"
		factsRetries     = "machine/facts_retries.go"
		movesActivity    = "machine/moves_activity.go"
		movesAttempts    = "machine/moves_attempts.go"
		movesClosing     = "machine/moves_closing.go"
		movesDirections  = "machine/moves_directions.go"
		movesGoingOn     = "machine/moves_going_on.go"
		movesJob         = "machine/moves_job.go"
		movesWaiting     = "machine/moves_waiting.go"
	)
	return proof.Bugs([][4]string{
		{"the job's timeout undoes although onFailure is stop", eventDeadline, "t.w.OnFailure.Action == makegood.FailureStop || !domain.HasUndo(t.w)", "!domain.HasUndo(t.w)"},
		{"the job's timeout stops an undo", eventDeadline, "t.going() && t.forwards() && passed(t.job.Deadline, t.now) {\n\t\t// What is out", "t.going() && passed(t.job.Deadline, t.now) {\n\t\t// What is out"},
		{"a new round keeps the deadline that passed", movesJob, "\tt.newRound()\n\tt.renewDeadline()\n", "\tt.newRound()\n"},
		{"a resubmit keeps the deadline that passed", movesGoingOn, "\t\tt.noReason()\n\t\tt.renewDeadline()\n", "\t\tt.noReason()\n"},
		{"the deadline runs on while the job is paused", movesGoingOn, "t.job.Deadline = t.job.Deadline.Add(t.now.Sub(stood))", "t.job.Deadline = t.job.Deadline.Add(0)"},
		{"a job that stops while paused stays paused, and cannot be resubmitted", movesJob, "\tt.endPause()\n\tt.job.RemindAt", "\tt.job.RemindAt"},
		{"a job that ends while paused stays paused", movesJob, "\tt.job.FinishedAt = t.now\n\tt.job.PausedAt = time.Time{}\n", "\tt.job.FinishedAt = t.now\n"},
		{"an attempt that was taken back uses up one of those granted", movesClosing, "\ta.Tries--\n\tswitch {\n\tcase t.conclude(at):", "\tswitch {\n\tcase t.conclude(at):"},
		{"an interruption uses up an attempt", eventInterrupted, "\ta.Tries--\n", ""},
		{"an interruption is not known to have begun", eventInterrupted, "\ta.Unknown = true\n", ""},
		{"a silence in company uses up an attempt", movesActivity, "\ta.Tries--\n", ""},
		{"every silence in company is spared", movesActivity, " || a.Alone {", " {"},
		{"every silence is spared once", movesActivity, "claim.Beside <= 0 || a.Alone", "a.Alone"},
		{"who fell silent in company runs in company again", factsCommands, ", Alone: a.Alone,", ","},
		{"what a chain has not begun is unknown", movesClosing, "\t\tt.unbegun(at)\n", "\t\tt.activity(at).Unknown = true\n\t\tt.unbegun(at)\n"},
		{"what is behind it in its chain has begun", movesClosing, "at, out = next, more", "at, out = next, more && t.activity(at).Attempt < 0"},
		{"a reply counts before the step before it in its chain is done", "machine/facts_tokens.go", "v.Kind == Applied && t.ahead(at)", "v.Kind == Newer && t.ahead(at)"},
		{"a silence ahead of its turn uses up an attempt", movesClosing, "\ta.Tries--\n\tt.rest", "\tt.rest"},
		{"a chain goes on to a step with a condition", "machine/facts_chains.go", "s.When != \"\" || s.Any", "s.Any"},
		{"a step that is made again ahead of its turn", "machine/moves_going_on.go", "\t\t\tt.miss(at)\n", "\t\t\tt.silence(at, inlineClaim(t.activity(at)), noReply)\n"},
		{"a failure that is told does not end running alone", "machine/event_failed.go", "\t\ta.Alone = false\n", ""},
		{"a step that waits runs alone when it is tried again", eventSucceeded, "\ta.Alone = false\n\tt.beginWait(", "\tt.beginWait("},
		{"a resubmit grants nothing", movesGoingOn, "\t\t\tgrant(a)\n", ""},
		{"after a wait nothing is granted", movesAttempts, "\t\tgrant(a)\n", ""},
		{"one attempt too many", movesActivity, "a.Tries < retry.Attempts", "a.Tries <= retry.Attempts"},
		{"one attempt too few", movesActivity, "a.Tries < retry.Attempts", "a.Tries+1 < retry.Attempts"},
		{"a final failure is tried again", movesAttempts, "wanted && retryable && t.may", "wanted && t.may"},
		{"a backoff is not kept", movesGoingOn, "t.wanted(at) && passed(a.At, t.now) {", "t.wanted(at) {"},
		{"a backoff doubles too soon", factsRetries, "doubled(retry.Backoff, a.Tries-1, retry.Max)", "doubled(retry.Backoff, a.Tries, retry.Max)"},
		{"a backoff is longer than max", factsRetries, "doubled(retry.Backoff, a.Tries-1, retry.Max)", "doubled(retry.Backoff, a.Tries-1, 2*retry.Max)"},
		{"Retry-After is not kept to", factsRetries, "return later(next, t.now.Add(min(after, retry.Max).Std()))", "return next"},
		{"an attempt is made beyond its time", movesActivity, "t.now.Before(a.FailingSince.Add(retry.For.Std()))", "true"},
		{"the time begins anew with each failure", movesActivity, "retry.For > 0 && a.FailingSince.IsZero()", "retry.For > 0"},
		{"its time runs while an attempt is not claimed", movesAttempts, "\tt.countFailure(at, ended)\n\tleaveOut(a, earlier(ended.StartedAt, t.now))\n", "\tt.countFailure(at, ended)\n"},
		{"its time runs while it is not sent", movesAttempts, "\tleaveOut(a, t.now)\n", ""},
		{"its time runs while it is sent again", movesClosing, "\t\tleaveOut(a, t.now)\n", ""},
		{"a failure that does not count begins the time", movesActivity, " && a.Tries > 0", ""},
		{"a silence that is noticed late uses up the time", movesActivity, "; due.Before(t.now) {", "; due.Before(due) {"},
		{"the last attempt comes after its time", factsRetries, "next = earlier(next, a.FailingSince.Add(retry.For.Std()))", "next = later(next, a.FailingSince.Add(retry.For.Std()))"},
		{"Retry-After is kept to beyond retry.max", factsRetries, "min(after, retry.Max)", "min(after, 2*retry.Max)"},
		{"the task is sent again in Error", factsCommands, " && j.ProcessState != makegood.JobError", ""},
		{"the task is sent again in a paused job", factsCommands, " && !j.Paused() && j", " && j"},
		{"an undo is told unknown of what is done", factsCommands, "undo.Outcome = makegood.OutcomeDone", "undo.Outcome = makegood.OutcomeUnknown"},
		{"what failed is not undone, though it may have been done", movesAttempts, "a.Unknown = a.Unknown || failure.Applied != makegood.AppliedNo", "a.Unknown = a.Unknown && failure.Applied != makegood.AppliedNo"},
		{"an undo does not wait for those that follow", movesDirections, "behind = behind && over[f]", "behind = behind || over[f]"},
		{"startBy doubles beyond 72 hours", factsDeadlines, "resent, makegood.Duration(limits.MaxStartBy))", "resent, 2*makegood.Duration(limits.MaxStartBy))"},
		{"startBy does not double", factsDeadlines, "return doubled(startBy, resent, ", "return doubled(startBy, 0, "},
		{"the start of the last attempt is taken for the first", movesActivity, "case a.StartedAt.IsZero():", "case !at.IsZero():"},
		{"the end of a job stands while it is undone", eventRequested, "\tt.job.FinishedAt = time.Time{}\n\tif !t.forwards() {", "\tif !t.forwards() {"},
		{"a step that goes on is said to have finished", movesGoingOn, "a.State, a.FinishedAt = job.NotStarted, time.Time{}", "a.State, _ = job.NotStarted, time.Time{}"},
		{"one announcement of several is taken off", "machine/event_told.go", "if a.Seq > e.Seq {", "if a.Seq != e.Seq {"},
		{"nobody hears that a job is being undone", "machine/moves_telling.go", "is != was && is != makegood.JobError", "is != was && is != makegood.JobUndoing && is != makegood.JobError"},
		{"a person hears of an Error once", eventDeadline, "\t\t\tt.announce(true, false)\n", "\t\t\t_ = t.job.Seq\n"},
		{"a failure is in no history", movesActivity, "\tended.Failure = t.job.FailureCount\n", ""},
		{"a request is in no history", eventRequested, "\tt.noteRequest(e)\n", ""},
		{"an answer is in no history", eventCompleted, "\tt.noteOf(at, job.Entry{Kind: makegood.EntryCompleted, By: c.By, Reason: c.Why, Error: c.Error})\n", ""},
		{"that a job turns is in no history", movesJob, "\tt.note(job.Entry{Kind: makegood.EntryTurned, State: want, Reason: t.job.Reason})\n", ""},
		{"that a job stops is in no history", movesJob, "\tt.note(job.Entry{Kind: makegood.EntryStopped, Reason: t.job.Reason})\n", ""},
		{"what fails on the way back is not counted", movesActivity, "\tt.job.FailureCount++\n", "\tif t.wanted(at) {\n\t\tt.job.FailureCount++\n\t}\n"},
		{"onFailure undo stops", movesAttempts, "\t\tt.turnRound(makegood.JobUndone, reason)\n", "\t\tt.stop(reason)\n"},
		{"a round that begins by itself has its own time", movesJob, "\tt.newRound()\n\tt.job.RoundsAgain = again\n", "\tt.newRound()\n\tt.renewDeadline()\n\tt.job.RoundsAgain = again\n"},
		{"a round too many", movesJob, "t.job.AnotherRound = tried < rounds", "t.job.AnotherRound = tried <= rounds"},
		{"a step that was skipped begins a join of any", movesDirections, "need.Forward.State == job.Done {", "through(need.Forward.State) {"},
		{"a join of any waits for all", movesDirections, "\tcase a.By != \"\":\n", "\tcase a.By != \"\" && t.allThrough(i):\n"},
		{"a join of any is done though none is", movesDirections, "\tcase t.allThrough(i):\n\t\tt.skip(i)", "\tcase t.allThrough(i):\n\t\tt.start(side{i, false})"},
		{"a step that others go to begins with the first", movesDirections, "\tcase !t.allThrough(i):\n\tcase slices", "\tcase slices"},
		{"nothing is left out", movesAttempts, "\t\ta.WentTo = route.Do.Step\n\t\tt.leaveOut(at.step)\n", "\t\ta.WentTo = route.Do.Step\n"},
		{"what follows both is left out, too", movesAttempts, "behind := t.graph.behind(to)", "behind := map[int]bool{to: true}"},
		{"a route that says fail tries again", factsRetries, "return retry, false", "return retry, failure.Retryable"},
		{"a retry by kind keeps to what is final", factsRetries, "return again.Retry, true", "return again.Retry, failure.Retryable"},
		{"a retry by kind waits as the step does", factsRetries, "return again.Retry, true", "return retry, true"},
		{"an undo has routes", factsRetries, "\tif at.undo {\n\t\treturn retry, failure.Retryable\n\t}\n", ""},
		{"what was passed by was not done", movesAttempts, "\tt.rest(a, job.Skipped)\n", "\tt.rest(a, job.Skipped)\n\ta.Unknown = false\n"},
		{"a repetition uses up an attempt", eventSucceeded, "a.Tries, a.FailingSince, a.Unknown, a.Error = 0, time.Time{}, true, nil", "a.FailingSince, a.Unknown, a.Error = time.Time{}, true, nil"},
		{"what was repeated is not undone", eventSucceeded, "a.Tries, a.FailingSince, a.Unknown, a.Error = 0, time.Time{}, true, nil", "a.Tries, a.FailingSince, a.Error = 0, time.Time{}, nil"},
		{"a repetition too many", eventSucceeded, "a.RepeatTries >= repeat.Attempts", "a.RepeatTries > repeat.Attempts"},
		{"a step is repeated beyond its time", eventSucceeded, " || next.After(a.RepeatSince.Add(repeat.For.Std()))", ""},
		{"a step is repeated at once", eventSucceeded, "next := t.now.Add(repeat.Every.Std())", "next := t.now"},
		{"no round follows", movesJob, "t.job.AnotherRound = tried < rounds", "t.job.AnotherRound = false"},
		{"the rounds are not counted", movesJob, "\tt.job.RoundsAgain = again\n", "\t_ = again\n"},
		{"a resubmit grants no rounds", movesJob, "\tt.job.RoundsAgain = 0\n", ""},
		{"the wait before a round is not kept", movesJob, "!passed(t.job.NextRoundAt, t.now)", "t.job.NextRoundAt.IsZero()"},
		{"a round begins in a paused job", movesJob, "if !t.going() || ", "if !t.active() || "},
		{"a cancel lets another round follow", eventRequested, "\tt.noMoreRounds()\n\tt.because(reasonOf(e))", "\tt.because(reasonOf(e))"},
		{"a cancelled job ends Undone", eventRequested, "\t\tt.job.Desired = makegood.JobCancelled\n", "\t\tt.job.Desired = makegood.JobUndone\n"},
		{"the time of a wait runs on while the job is paused", movesJob, "\t\t\tt.stoodStill(t.inDirection(i), paused)\n", "\t\t\t_ = t.inDirection(i)\n"},
		{"an answer is forgotten when the attempt falls silent", movesAttempts, "\tif t.conclude(at) {\n\t\t// How", "\tif t.activity(at) == nil {\n\t\t// How"},
		{"a second answer takes the place of the first", factsAnswers, "\tcase a.Held():\n", "\tcase a.Held() && a.State == job.Done:\n"},
		{"what follows does not wait for the end of the attempt", eventCompleted, "job.FoundHeld && !t.lie(at, found) {", "job.FoundHeld && !t.lie(at, found) && !t.conclude(at) {"},
		{"an answer by address is kept without being asked to", factsAnswers, "\tcase e.Token == \"\" && e.Early && (", "\tcase e.Token == \"\" && ("},
		{"a kept answer is forgotten when the step waits", movesWaiting, "c != nil && c.Early {\n\t\tt.take", "c != nil && c.Held {\n\t\tt.take"},
		{"an approval takes any answer", factsAnswers, "!ok || !slices.Contains(allowed, answer)", "ok && !slices.Contains(allowed, answer) && answer == \"\""},
		{"the end of a wait is a failure although onTimeout says otherwise", movesWaiting, "case rules != nil && rules.OnTimeout != nil:", "case rules != nil && rules.OnTimeout != nil && t.job.Paused():"},
		{"nobody is reminded", "machine/facts_waiting.go", "next = earlier(next, a.At.Add(all[n].after))", "next = earlier(next, a.At.Add(all[n].after+limits.FarKey))"},
		{"an extension makes a wait shorter", eventCompleted, "if !until.After(a.Wait.Deadline) {", "if until.Equal(a.Wait.Deadline) {"},
		{"an extension is as long as the wait is by now", eventCompleted, "t.now.Add(a.Wait.For.Std())", "t.now.Add(a.Wait.Deadline.Sub(a.At))"},
		{"an agent that was down uses up the time of a step that waits", eventSucceeded, "\tleaveOut(a, earlier(e.StartedAt, t.now))\n", ""},
		{"a round that was asked for waits as those of onFailure do", factsDeadlines, "\tif t.job.RoundAsked {\n\t\treturn time.Millisecond\n\t}\n", ""},
		{"a round that was asked for has the time that the job had left", movesJob, "\tif t.job.RoundAsked {\n\t\tt.askedRound()\n\t\treturn\n\t}\n", ""},
		{"a job goes forward again over an undo that may have had an effect", "machine/facts_standing.go", "\t\tcase s.Undo.Unknown, t.job.Settled(s.Undo) != nil:\n", "\t\tcase t.job.Settled(s.Undo) != nil:\n"},
		{"what was taken back stays so when the job goes forward again", eventRequested, "s.Forward.State == job.Withdrawn", "s.Forward.State == job.Withdrawn && s.Forward.Unknown"},
		{"what waited when the job turned round is not undone", movesActivity, "\ta.Unknown = a.Unknown || !t.waitsByItself(at)\n", ""},
		{"a release that knows no waits may decide about them", movesJob, "\tt.job.Needs = max(t.job.Needs, t.needs())\n", "\t_ = t.needs()\n"},
	})
}

// repairs are wrong policies about what people repair.
func repairs() []proof.Bug {
	const (
		eventRequested = "machine/event_requested.go"
		eventSettled   = "machine/event_settled.go"
		factsDeadlines = "machine/facts_deadlines.go"
		factsSettling  = "machine/facts_settling.go"
	)
	return proof.Bugs([][4]string{
		{"what does not stand is undone", eventSettled, "a.Unknown, a.Silent, a.Former = false,", "a.Unknown, a.Silent, a.Former = true,"},
		{"the success counts of an attempt of which nothing stands", eventSettled, "= false, nil, 0", "= false, a.Silent, 0"},
		{"nothing stands of what is under way", factsSettling, "\tcase a.State == job.Dispatched:\n", "\tcase a.Held():\n"},
		{"nothing stands of what waits", factsSettling, "case a.State == job.Done, a.State == job.Waiting:", "case a.State == job.Done:"},
		{"nothing stands of what is being undone", factsSettling, "!t.forwards() || t.job.ProcessState.Finished()", "t.job.ProcessState.Finished()"},
		{"the same settlement again is refused", eventSettled, "was != nil && was.Answer == e.Answer()", "was != nil && was.Answer == e.Answer() && e.Request == was.By"},
		{"the request that settled a step is forgotten", eventSettled, "\t\tt.job.Requests = remember(t.job.Requests, name)\n", "\t\t_ = name\n"},
		{"a settlement of another round counts", factsSettling, "e.Round != 0 && e.Round != t.job.Round", "e.Round > t.job.Round"},
		{"what is done is settled", factsSettling, "\tcase a.State == job.Done:\n\t\treturn name + \" is done\"\n", ""},
		{"what cannot be undone is left out", factsSettling, "a.State == job.Irreversible && !e.Done", "a.State == job.Irreversible && e.Round < 0"},
		{"what cannot be undone is not settled after the end", factsSettling, "\tcase a.State == job.Irreversible:\n\t\treturn \"\"\n", "\tcase a.State == job.Irreversible && t.job.ProcessState.Finished():\n\t\treturn name\n\tcase a.State == job.Irreversible:\n\t\treturn \"\"\n"},
		{"a step is settled while its job is being undone", factsSettling, "case at.undo == t.forwards() || t.job.ProcessState.Finished() && !at.undo:", "case t.job.ProcessState.Finished() && !at.undo:"},
		{"an undo is settled while its step is under way", factsSettling, "\tcase at.undo && t.job.Steps[at.step].Forward.State == job.Dispatched:\n", "\tcase at.undo && a.Held():\n"},
		{"an undo is settled of what was not done", factsSettling, "a.State == job.Skipped || at.undo && t.nothingToUndo(at.step)", "a.State == job.Skipped"},
		{"what may have been done has no undo to settle", factsSettling, " && !forward.Unknown", ""},
		{"what is not exclusive is settled while it may run", factsSettling, "a.State == job.Dispatched && t.shared(at)", "a.State == job.Dispatched && t.shared(at) && at.undo"},
		{"an approval is settled with any output", factsSettling, "!ok || !slices.Contains(allowed, answer)", "ok && !slices.Contains(allowed, answer) && answer == \"\""},
		{"an attempt that nobody had claimed uses up one", eventSettled, "\t\ta.Tries--\n", "\t\tt.job.FailureCount++\n"},
		{"a silence is no failure when the step is settled", eventSettled, "\t\tt.countFailure(at, t.fellSilent(at, found.Claim, why))\n", "\t\t_ = t.fellSilent(at, found.Claim, why)\n"},
		{"what fell silent had no effect when the step is left out", eventSettled, "\t\ta.Unknown = true\n", ""},
		{"what waited had no effect when it is left out", eventSettled, "a.Unknown = a.Unknown || was == job.Waiting && !t.waitsByItself(at)", "a.Unknown = a.Unknown && t.waitsByItself(at) || a.Unknown"},
		{"what was left out had no effect", eventSettled, "a.Unknown = a.Unknown || was == job.Waiting", "a.Unknown = was == job.Waiting"},
		{"the output of who settled is lost", eventSettled, "\t\tt.done(at, output)\n", "\t\tt.done(at, job.Payload{})\n"},
		{"it is not kept that a step was settled", eventSettled, "\ta.Settled = &job.Settlement{", "\ta.Settled = (*job.Settlement)(nil)\n\ta.Settled = &job.Settlement{Kept: \"\"}\n\t_ = &job.Settlement{"},
		{"a settlement is in no history", eventSettled, "\tt.noteOf(at, job.Entry{Kind: makegood.EntrySettled, As: makegood.StepState", "\t_ = (job.Entry{Kind: makegood.EntrySettled, As: makegood.StepState"},
		{"a job goes on though another step has failed", eventSettled, "if t.activity(left).State == job.Failed {", "if t.activity(left).State == job.Failed && left == at {"},
		{"a job stays in Error when all that failed is settled", eventSettled, "\tt.goOn()\n\tif at.undo {", "\tif at.undo {"},
		{"a job goes on though its timeout stopped it", eventSettled, "case was == job.Failed && t.job.ProcessState", "case t.job.ProcessState"},
		{"nobody hears that what was not undone is", eventSettled, "\t\tt.announce(false, true)\n", "\t\t_ = t.job.Seq\n"},
		{"what was settled has begun", "machine/facts_standing.go", "s.Forward.State != job.NotStarted && t.job.Settled(s.Forward) == nil", "s.Forward.State != job.NotStarted"},
		{"an edited timeout counts from when the job last got one", eventRequested, "\tif t.active() {\n\t\tt.renewDeadline()\n\t}\n\treturn Verdict{Kind: Applied}", "\tif t.active() && t.job.Deadline.IsZero() {\n\t\tt.renewDeadline()\n\t}\n\treturn Verdict{Kind: Applied}"},
		{"an edited timeout counts while the job is in Error", eventRequested, "\tif t.active() {\n\t\tt.renewDeadline()\n\t}\n\treturn Verdict{Kind: Applied}", "\tt.renewDeadline()\n\treturn Verdict{Kind: Applied}"},
		{"an edited timeout is good for once", factsDeadlines, "\tif t.job.Timeout == 0 {", "\tif t.job.Timeout == 0 || t.job.Round > 1 {"},
		{"none is no timeout to be edited to", factsDeadlines, "return max(t.job.Timeout, 0)", "return max(t.job.Timeout, makegood.Second)"},
		{"the time that an edit grants runs while the job is paused", factsDeadlines, "\tif t.job.Paused() {\n\t\tfrom = t.job.PausedAt\n\t}\n", ""},
		{"the time that an edit grants runs before the start", factsDeadlines, "\tif from.Before(t.job.StartAt) {\n\t\tfrom = t.job.StartAt\n\t}\n", ""},
		{"the timeout of what is undone is edited", eventRequested, "\tcase !t.forwards():\n\t\treturn Verdict{Kind: Refused, Reason: backUntimed}\n", ""},
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
