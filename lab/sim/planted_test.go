package sim

import (
	"fmt"
	"os"
	"regexp"
	"testing"

	"github.com/makegood-dev/makegood/internal/testkit/proof"
)

// bugs are wrong versions of what the model check does not run: the Scheduler, the runner of agents, the
// Supervisor, and the store where it is more than its predicates.
func bugs() []proof.Bug {
	const (
		factsCommands  = "machine/facts_commands.go"
		factsDeadlines = "machine/facts_deadlines.go"
		movesActivity  = "machine/moves_activity.go"
		movesJob       = "machine/moves_job.go"
		move           = "scheduler/move.go"
		handle         = "scheduler/handle.go"
		list           = "scheduler/worklist.go"
		outbox         = "scheduler/outbox.go"
		tell           = "scheduler/tell.go"
		closing        = "scheduler/closings.go"
		run            = "agentrun/attempt.go"
		fire           = "timetable/fire.go"
	)
	return proof.Bugs([][4]string{
		{"a task is sent before the save", move, "\tif applied || s.awaits(change.Job, events) {\n\t\tif err := s.save", "\tif applied {\n\t\tvar out outbox\n\t\tw := &work{job: id, moved: m}\n\t\tw.moved.job = change.Job\n\t\tfor _, c := range pending(compiled.Workflow, change.Job, events, s.now()) {\n\t\t\tif d, ok := c.(job.Dispatch); ok {\n\t\t\t\t_ = s.dispatch(ctx, &out, w, []job.Dispatch{d})\n\t\t\t}\n\t\t}\n\t\ts.send(ctx, out)\n\t\tif err := s.save"},
		{"commands are not derived again", move, "\tm.commands = pending(m.compiled.Workflow, m.job, events, s.now())", "\tif applied {\n\t\tm.commands = pending(m.compiled.Workflow, m.job, events, s.now())\n\t}"},
		{"an output is written after the save that refers to it", move, "\tif err := m.values.write(ctx, change.Job); err != nil {\n\t\treturn err\n\t}\n", "\tdefer func() { _ = m.values.write(ctx, change.Job) }()\n"},
		{"a save that lost is taken for one that won", move, "\t\t\treturn nil, parked(err.Error(), loaded)\n\t\t} else if err != nil {", "\t\t\treturn nil, parked(err.Error(), loaded)\n\t\t} else if err != nil && !errors.Is(err, store.ErrConflict) {"},
		{"a page of a history is not written", "scheduler/values.go", "refs := []string{j.History.HeadKey()}", "var refs []string"},
		{"of several events of a save one is in the history", move, "m.entries = append(m.entries, v.Entries...)", "m.entries = v.Entries"},
		{"an announcement that failed counts as made", tell, "\"status\", a.ProcessState, \"error\", err)\n\t\t\t\treturn told, a.Seq", "\"status\", a.ProcessState, \"error\", err)"},
		{"records that failed are deleted", handle, "for _, record := range w.records {\n\t\t\tb.failed = append(b.failed, record.MessageId)", "for _, record := range w.records {\n\t\t\t_ = record"},
		{"poison fails its record for ever", handle, "u.record, u.why.Error()) != nil {", "u.record, u.why.Error()) == nil {"},
		{"of several events of a job one is heeded", list, "append(w.events, in.Event), append(w.next, in.Event), append(w.records, record)", "append(w.events, in.Event), []job.Event{in.Event}, append(w.records, record)"},
		{"the same id with other content is the same job", "scheduler/submit.go", "if have.InputHash != hash {", "if have.InputHash == \"\" {"},
		{"unclaimed siblings are sent again at every reply", factsCommands, "case !ok || a.Cause != cause:", "case !ok || cause == \"\":"},
		{"closings are not made", outbox, "w.unwanted = append(w.unwanted, c)", "_ = c"},
		{"a closing that failed is forgotten", closing, "w.fail(errors.Join(errs...))", "_ = errors.Join(errs...)"},
		{"the answer to a closing is not brought to the job", closing, "\t\t\tw.follows(e)", "\t\t\t_ = e"},
		{"the answers to closings are saved one by one", list, "\tm, err := s.moveOrPark(ctx, w.job, next, &w.known)", "\tif _, is := next[0].(job.AttemptClosed); is {\n\t\tfor _, e := range next[1:] {\n\t\t\t_, _ = s.moveOrPark(ctx, w.job, []job.Event{e}, &w.known)\n\t\t}\n\t\tnext = next[:1]\n\t}\n\tm, err := s.moveOrPark(ctx, w.job, next, &w.known)"},
		{"the answer to one closing is given to another attempt", closing, "\t\tif e != nil {\n\t\t\tw.follows", "\t\tif e = answers[0]; e != nil {\n\t\t\tw.follows"},
		{"a newer claim is judged without loading again", closing, "\tif found.Finding == job.FoundOver {", "\tif found.Finding == \"\" {"},
		{"a pause tells who works to stop", factsCommands, "unwanted := undo == (j.Desired == makegood.JobProcessed)", "unwanted := true"},
		{"whatever an agent claims is believed", factsDeadlines, "p.silence() + limits.MaxClaimAhead)", "p.silence() + 1000*limits.MaxClaimAhead)"},
		{"attempts are looked at early", factsDeadlines, "a.LookAt.Sub(t.now) > waits/4", "a.LookAt.Sub(t.now) > 2*waits"},
		{"who lives is looked at seldom", factsDeadlines, "min(max(lived, silence), maxHeartbeats*silence)", "lived + 1000*silence"},
		{"people are told before the tasks are sent", list, "\ts.send(ctx, out)\n", "\tpublished := s.publishAll(ctx, list)\n\ts.crew.Each(len(list), maxClosings, func(i int) {\n\t\ts.tell(ctx, list[i], published)\n\t\tlist[i].notices = nil\n\t})\n\ts.send(ctx, out)\n"},
		{"the listener counts as told when the operator was", tell, "all = append(all, job.Told{Seq: operator, Operator: true})", "all = append(all, job.Told{Seq: operator, Operator: true, Listener: true})"},
		{"the operator is told as long as the listener is deaf", tell, "\treturn append(toldOf(told, heard, unheard), asked...)", "\tif unheard > 0 || w.moved.job.TellTries > 0 {\n\t\ttold = 0\n\t}\n\treturn append(toldOf(told, heard, unheard), asked...)"},
		{"a deaf listener is not given time", factsCommands, "a.Listener = a.Listener && !now.Before(j.TellAt)", "a.Listener = a.Listener && !now.IsZero()"},
		{"a task that the queue refused is forgotten", outbox, "e.work.follows(refused(e.task, never(err)))", "_ = e.task"},
		{"who was told when a task was refused is told again", list, "w.moved, w.notices, w.asks, w.publish = m, nil, nil, nil", "w.moved, w.asks, w.publish = m, nil, nil"},
		{"a task carries the token of another attempt", factsCommands, "Token: Token(j, d.Step, d.Attempt), ", "Token: Token(j, d.Step, d.Attempt-1), "},
		{"the token of a reply is not looked at", "machine/facts_tokens.go", "if !Genuine(t.job, r) {", "if r.Step == \"\" {"},
		{"attempts of an earlier run are waited for", move, "interrupted := loaded.Incarnation < s.config.Incarnation", "interrupted := s.config.Incarnation < 0"},
		{"recovery derives nothing", move, "if interrupted || s.poked(events) {", "if s.config.Incarnation < 0 {"},
		{"what a newer release wrote is parked", move, "\tif errors.Is(err, store.ErrNewer) {\n\t\treturn nil, errNewerJob", "\tif errors.Is(err, store.ErrNewer) {\n\t\treturn nil, &parkError{reason: err.Error(), seen: seenKey(events), keyless: askedWithoutKey(events)}"},
		{"what a newer release wrote is decided about", move, "\tif errors.Is(err, store.ErrNewer) {\n\t\treturn nil, errNewerJob", "\tif errors.Is(err, store.ErrNewer) {\n\t\terr = nil"},
		{"replies to a newer release's job are dropped", "scheduler/leave.go", "[i].(job.DeadlinePassed); is {", "[i].(job.Submitted); !is {"},
		{"fields that are not known are lost", "store/jobformat/record.go", "r.kept(&m, &j.Kept)", "r.kept(&m, new(string))"},
		{"fields of activities that are not known are lost", "store/jobformat/encode.go", "detailKept, hotKept := splitKept(a.Kept)", "detailKept, hotKept := splitKept(\"\")"},
		{"a new round forgets what is not known", movesJob, "FailureCount: s.Forward.FailureCount, Kept: s.Forward.Kept}", "FailureCount: s.Forward.FailureCount}"},
		{"heartbeats carry an attempt past its timeout", "store/may.go", "asked = earliest(asked, started.Add(task.Timeout.Std()))", "_ = started"},
		{"an agent works without a claim", run, "return a.settle(a.claim())", "return a.settle(nil)"},
		{"a claim whose answer was an error is worked on", run, "\t\treturn false, err\n\t}\n}", "\t\treturn true, nil\n\t}\n}"},
		{"an agent begins when it is too late", run, "; a.lease.Err() != nil || !time.Now().Before(deadline) {\n\t\treturn result{err", "; a.task.Shared && (a.lease.Err() != nil || !time.Now().Before(deadline)) {\n\t\treturn result{err"},
		{"an agent goes on past CompleteBy", "agentrun/lease.go", "completeBy: completeBy, expires: started.Add(budget),", "completeBy: completeBy.Add(time.Hour), expires: started.Add(2 * budget),"},
		{"the Supervisor tells a key that it has not seen", "supervisor/supervisor.go", "job.DeadlinePassed{Key: entry.CompleteBy}", "job.DeadlinePassed{Key: domain.Instant(time.Now())}"},
		{"the Supervisor sends however deep the queue is", "supervisor/supervisor.go", "if depth.Waiting <= s.config.Depth {", "if depth.Waiting <= 1000*s.config.Depth {"},
		{"the Supervisor sends though nobody takes the events", "supervisor/supervisor.go", "depth.InFlight > 0 {", "depth.InFlight >= 0 {"},
		{"an own claim is taken for another's", "store/may.go", "case item.holds(claim):\n\t\titem.Bytes = 0\n\t\treturn item, nil\n", ""},
		{"a silence in company uses up an attempt", movesActivity, "\ta.Tries--\n", ""},
		{"a claim that says nothing of others is spared", movesActivity, "claim.Beside <= 0 || a.Alone", "a.Alone"},
		{"what was closed unclaimed can be claimed", "store/may.go", ", item.Attempt == claim.Attempt && item.Closed != \"\", claim.StartedAt", ", claim.StartedAt"},
		{"a look is stale", "store/memstore/claims.go", "return s.Rules.Looked(s.claims[slot], attempt, until, now), nil", "if time.Now().UnixMilli()%3 == 0 {\n\t\treturn s.Rules.Looked(store.ClaimItem{}, attempt, until, now), nil\n\t}\n\treturn s.Rules.Looked(s.claims[slot], attempt, until, now), nil"},
		{"the timeout undoes although onFailure is stop", "machine/event_deadline.go", "t.w.OnFailure.Action == makegood.FailureStop || !domain.HasUndo(t.w)", "!domain.HasUndo(t.w)"},
		{"a new round keeps the deadline that passed", movesJob, "\tt.newRound()\n\tt.renewDeadline()\n", "\tt.newRound()\n"},
		{"a job that stops while paused stays paused", movesJob, "\tt.endPause()\n\tt.job.RemindAt", "\tt.job.RemindAt"},
		{"one attempt too many", movesActivity, "a.Tries < retry.Attempts", "a.Tries <= retry.Attempts"},
		{"one attempt too few", movesActivity, "a.Tries < retry.Attempts", "a.Tries+1 < retry.Attempts"},
		{"a backoff is not kept", "machine/moves_going_on.go", "t.wanted(at) && passed(a.At, t.now) {", "t.wanted(at) {"},
		{"the task is sent again in Error", factsCommands, " && j.ProcessState != makegood.JobError", ""},
		{"an undo is told unknown of what is done", factsCommands, "undo.Outcome = makegood.OutcomeDone", "undo.Outcome = makegood.OutcomeUnknown"},
		{"the last start is taken for the first", movesActivity, "case a.StartedAt.IsZero():", "case !at.IsZero():"},
		{"a submission that could not be stored is deleted", "scheduler/submissions.go", "\t\tb.unfit = append(b.unfit, unfit{sub.record, wire.Incoming{Job: sub.message.ID}, errs[i]})", "\t\tif errs[i] == nil {\n\t\t\tb.unfit = append(b.unfit, unfit{sub.record, wire.Incoming{Job: sub.message.ID}, errs[i]})\n\t\t}"},
		{"a receiver that hangs is waited for", "pause/receivers.go", "\tcase <-ctx.Done():\n\t}\n\tlate", "\t}\n\tlate"},
		{"a payload is not kept before the save", "scheduler/large.go", "err := s.config.Large.Keep(ctx, id, p)\n\t\tif errors.Is", "var err error\n\t\tif errors.Is"},
		{"a reference to what is not there is taken", "scheduler/large.go", "\t\tif errors.Is(err, payload.ErrNotFound) || errors.Is(err, payload.ErrAltered) {\n", "\t\tif errors.Is(err, payload.ErrNotFound) {\n\t\t\tcontinue\n\t\t}\n\t\tif errors.Is(err, payload.ErrAltered) {\n"},
		{"a payload that could not be kept counts as kept", "scheduler/large.go", "\t\tif err != nil {\n\t\t\treturn \"\", err\n\t\t}\n\t}\n\treturn \"\", nil\n", "\t}\n\treturn \"\", nil\n"},
		{"an agent writes its payloads as another", "agentrun/large.go", "By: p.task.Agent}", "By: p.task.Step}"},
		{"a schedule moves on before its job is made", fire, "\tif err := t.submit(ctx, &s, turn); err != nil {\n\t\treturn s, err\n\t}\n\treturn t.moveOn(ctx, s, rule, turn)\n", "\tof := s\n\ts, err = t.moveOn(ctx, s, rule, turn)\n\tif err == nil {\n\t\terr = t.submit(ctx, &of, turn)\n\t}\n\treturn s, err\n"},
		{"fires that are left out are not counted", fire, "\ts.Skipped += int64(len(fires))\n", ""},
		{"a fire that made its job is left out", fire, "\tif made {\n\t\ts.Skipped--", "\tif made && s.Rev < 0 {\n\t\ts.Skipped--"},
		{"that a fire made its job is not noted", fire, "\tif err == nil && there {\n", "\tif err == nil && there && s.Rev < 0 {\n"},
		{"what is left out before a fire is not stored", fire, "\tif skip == 0 {\n", "\tif skip >= 0 {\n"},
		{"a job that was made before a pause is not noted", "timetable/change.go", "\t\tif _, err := t.note(ctx, s); err != nil {\n", "\t\tif _, err := t.note(ctx, &store.Scheduled{}); err != nil {\n"},
		{"what came due before a change is lost", "timetable/change.go", "stored.Due = due[skip:]", "stored.Due = due[len(due):]"},
		{"a fire is made before its time", fire, "return !s.Key.IsZero() && !t.now().Before(s.Key)", "return !s.Key.IsZero() && (s.Rev > 0 || !t.now().Before(s.Key))"},
		{"a fire asks for no job before it", fire, "return there && !state.Finished(), err", "return there && !state.Finished() && s.Rev < 0, err"},
		{"a hint whose fire failed is deleted", "router/router.go", "failed = append(failed, events.SQSBatchItemFailure{ItemIdentifier: due[i].message})", "_ = due[i].message"},
		{"the task of an inline attempt is sent as well", "machine/facts_commands.go", "case a.Inline != \"\":", "case a.Inline == \"none\":"},
		{"whoever saves a job runs its inline attempts", "machine/facts_inline.go", "ok && a.Inline != \"\" && a.Inline == lockedBy", "ok && a.Inline != \"\" && lockedBy != \"\""},
		{"inline attempts run though their save failed", "scheduler/move.go", "unclear(err) && s.isStored(ctx, change.Job.ID, change.Job.Birth, m.lockedBy) {", "unclear(err) {"},
		{"what the save that opens it stops is run inline all the same", "machine/moves_job.go", "t.unsaved(a) || a.Queued {\n\t\ta.Tries--", "t.unsaved(a) && a.Tries < 0 || a.Queued {\n\t\ta.Tries--"},
		{"an inline attempt that runs counts as never begun", "machine/facts_inline.go", "\tcase t.unsaved(a):\n", "\tcase ask.Kind == AskClose && ask.LockedBy == \"\":\n"},
		{"a chain goes on after a failure", "scheduler/chain.go", "if !ok || len(success", "if ok && len(success"},
		{"a chain goes on when its time is over", "scheduler/chain.go", "limits.ChainTime-time.Since(c.began)", "time.Hour-time.Since(c.began)"},
		{"a chain says of what it has begun that it has not", "scheduler/chain.go", "chainEnds(c.moved, c.attempts[c.begun])", "chainEnds(c.moved, c.attempts[c.begun-1])"},
		{"a chain that was interrupted counts as not begun, but for its first step", "machine/event_interrupted.go", "\ta.Unknown = true\n", "\ta.Unknown = a.Unknown || !t.ahead(at)\n"},
		{"a chain whose process has died counts as not begun, but for its first step", "machine/moves_closing.go", "\ta.Unknown = true\n\ta.Tries--\n\tt.rest", "\ta.Tries--\n\tt.rest"},
		{"what was done is undone over the new input", "job/job.go", "undo && s.Forward.Former > 0 {", "undo && s.Forward.Former > 1000 {"},
	})
}

// plantedSeeds is how many seeds may pass until a planted bug is found.
const plantedSeeds = 20_000

var foundAfter = regexp.MustCompile(`found after (\d+) seeds: ([^\n]+)`)

// One of the wrong versions; make planted tries them all.
func TestPlantedBugsAreFound(t *testing.T) {
	proof.Hunt{
		Bugs: bugs(), All: os.Getenv("PLANTED") != "", Quick: []int{10}, Found: foundAfter,
		Args: []string{"-run", "^TestUntilTheFirstViolation$", ".", "-until-violation"},
	}.Run(t)
	proof.Says(t, fmt.Sprintf("%d of %[1]d are found; ", len(bugs())))
}

// TestUntilTheFirstViolation is what a planted bug is looked for with.
func TestUntilTheFirstViolation(t *testing.T) {
	if !*untilViolation {
		return
	}
	for seed := uint64(1); seed <= plantedSeeds; seed++ {
		o := Options{Seed: seed}
		o.Children, o.Maps = *withChildren, *withMaps
		if *withChanges {
			o = hearingOf(seed)
		}
		if *withLimits {
			o = limitsOf(seed)
		}
		if *withBreakers {
			o = breakersOf(seed)
		}
		if r := run(t, o); len(r.Violations) > 0 {
			t.Fatalf("found after %d seeds: %s", seed, r.Violations[0])
		}
	}
}
