package oracle_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/testkit/layers"
	"github.com/makegood-dev/makegood/internal/testkit/seed"
	"github.com/makegood-dev/makegood/lab/oracle"
)

// cases is how many jobs every test run plays; -rapid.checks says another number.
const cases = "6000"

func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", cases); err != nil {
		panic(err)
	}
	flag.Parse()
	os.Exit(m.Run())
}

// A replay of a failure: go test ./lab/oracle -run TestAJobIs -rapid.seed=SEED (the failure prints it).

// Whatever a workflow says, and however its steps go, the core makes of the job what a naive reading of the docs makes
// of it, at every moment.
func TestAJobIsWhatTheDocsSay(t *testing.T) {
	played.tests++
	seed.Check(t, func(t *rapid.T) {
		x := newWorld(t, &played.seen)
		for range rapid.IntRange(0, 40).Draw(t, "events") {
			x.happen()
		}
	})
}

// And so it does when people settle steps by hand, and edit the job's timeout.
func TestARepairedJobIsWhatTheDocsSay(t *testing.T) {
	played.tests++
	seed.Check(t, func(t *rapid.T) {
		x := newWorld(t, &played.seen)
		for range rapid.IntRange(0, 40).Draw(t, "events") {
			if oneIn(t, 6, "repair") {
				x.repair()
				continue
			}
			x.happen()
		}
	})
}

// played is what the tests of this run have played. It is compared with the page when all of them have.
var played struct {
	seen  layers.Seen
	tests int
}

func TestThePageSaysWhatTheOraclePlays(t *testing.T) {
	if played.tests == 2 && seed.Usual() {
		played.seen.Column(t, "oracle")
	}
}

// happen lets something happen.
func (x *world) happen() {
	switch rapid.IntRange(0, 29).Draw(x.t, "happens") {
	case 0, 1, 2, 3:
		x.pass(time.Duration(rapid.IntRange(0, 40_000).Draw(x.t, "ms")) * time.Millisecond)
	case 4:
		x.pass(time.Duration(rapid.IntRange(0, 300).Draw(x.t, "hours")) * time.Hour / rapid.SampledFrom([]time.Duration{1, 100, 100, 100}).Draw(x.t, "part"))
	case 5, 6, 7:
		x.claim()
	case 8, 9, 10, 11:
		x.reply(succeeds)
	case 12, 13, 14:
		x.reply(fails)
	case 22, 23, 24:
		x.reply(waits)
	case 25, 26, 27:
		x.say()
	case 28:
		x.extend()
	case 29:
		x.tellOfWaits()
	case 15:
		x.replyLate()
	case 16, 17:
		x.request(rapid.SampledFrom(verbs()).Draw(x.t, "verb"))
	case 18, 19:
		x.again()
	case 20:
		x.tell()
	default:
		if oneIn(x.t, 2, "restart") {
			x.restart()
		}
	}
}

// pass lets time pass, and what is due be looked at on the way.
func (x *world) pass(d time.Duration) {
	until := x.now.Add(d)
	for range 200 {
		key := x.job.CompleteBy
		if key.IsZero() || key.After(until) {
			x.now = until
			return
		}
		if key.After(x.now) {
			x.now = key
		}
		x.look()
	}
}

func (x *world) look() {
	e := job.DeadlinePassed{Key: x.job.CompleteBy}
	v, found := x.decide(e)
	// An attempt that another's end gives up is closed behind the save, and so heard of then.
	found = slices.DeleteFunc(found, func(f oracle.Finding) bool { return x.closing(f) })
	x.want.Clock(x.now, found...)
	x.heard(e, v)
	x.judge("looked, and found", found, e)
}

func (x *world) closing(f oracle.Finding) bool {
	s, _ := x.job.Step(f.Step)
	return s.Forward.Attempt == f.Attempt && s.Forward.Closing || s.Undo.Attempt == f.Attempt && s.Undo.Closing
}

// heard notes an event that may come again: one that did something. A late success that comes too early is another then.
func (x *world) heard(e job.Event, v machine.Verdict) {
	if v.Kind == machine.Applied {
		x.events = append(x.events, e)
	}
}

// claim lets an agent begin an attempt that is out.
func (x *world) claim() {
	var open []makegood.Task
	for _, task := range x.out() {
		if _, inline := x.inline(task); !inline && !task.Shared && x.items[task.Agent+"/"+task.Step].Attempt < task.Attempt {
			open = append(open, task)
		}
	}
	if len(open) == 0 {
		return
	}
	task := rapid.SampledFrom(open).Draw(x.t, "claims")
	c := job.Claim{Attempt: task.Attempt, LockedBy: "a:" + name(task.Step, task.Attempt), StartedAt: x.now, CompleteBy: x.now.Add(task.Timeout.Std())}
	if oneIn(x.t, 2, "company") {
		c.Beside = rapid.IntRange(1, 9).Draw(x.t, "beside")
	}
	item, err := store.Claimed(x.items[task.Agent+"/"+task.Step], c, task.ClaimUntil)
	if err != nil {
		return
	}
	x.items[task.Agent+"/"+task.Step] = item
	x.want.Claimed(task.Step, task.Attempt, c.Beside, x.now)
	x.note("claimed", c.LockedBy)
}

// inline is the claim of an attempt that is run where it was decided on.
func (x *world) inline(task makegood.Task) (job.Claim, bool) {
	i := slices.IndexFunc(x.job.Steps, func(s job.StepState) bool { return s.Name == task.Step })
	if i < 0 {
		return job.Claim{}, false
	}
	claim, inline := machine.ClaimWithin(x.w, x.job, i)
	return claim, inline && claim.Attempt == task.Attempt
}

func (x *world) replyOf(task makegood.Task) (job.Reply, bool) {
	r := job.Reply{Step: task.Step, Attempt: task.Attempt, Token: task.Token}
	claim, inline := x.inline(task)
	if task.Shared {
		r.LockedBy = claim.LockedBy
		return r, true
	}
	if inline {
		r.LockedBy, r.StartedAt = claim.LockedBy, claim.StartedAt
		return r, true
	}
	item := x.items[task.Agent+"/"+task.Step]
	r.LockedBy, r.StartedAt = item.LockedBy, item.StartedAt
	return r, item.Attempt == task.Attempt && item.LockedBy != "" && item.Closed == ""
}

// reply lets an agent that has begun say how it went.
func (x *world) reply(how string) {
	var held []makegood.Task
	for _, task := range x.out() {
		if _, holds := x.replyOf(task); holds {
			held = append(held, task)
		}
	}
	if len(held) == 0 {
		return
	}
	task := rapid.SampledFrom(held).Draw(x.t, "replies")
	r, _ := x.replyOf(task)
	if _, inline := x.inline(task); inline && oneIn(x.t, 4, "not begun") {
		e := job.StepHeld{Reply: r}
		v, _ := x.decide(e)
		x.want.NotBegun(r.Step, r.Attempt, x.now)
		x.heard(e, v)
		x.judge("not begun", e, e)
		return
	}
	var e job.Event = job.StepSucceeded{Reply: r}
	switch how {
	case waits:
		e = job.StepWaiting{Reply: r, Deadline: x.drawTime()}
	case fails:
		failure := job.StepError{Message: "no", Retryable: !oneIn(x.t, 4, "final"), Applied: makegood.AppliedUnknown}
		failure.Kind = rapid.SampledFrom(kinds()).Draw(x.t, "kind")
		if oneIn(x.t, 2, "not applied") {
			failure.Applied = makegood.AppliedNo
		}
		if oneIn(x.t, 3, "retry after") {
			failure.RetryAfter = seconds(x.t, 100, "after")
		}
		e = job.StepFailed{Reply: r, Error: failure}
	}
	v, _ := x.decide(e)
	switch e := e.(type) {
	case job.StepSucceeded:
		x.want.Succeeded(r.Step, r.Attempt, r.StartedAt, x.now)
	case job.StepFailed:
		x.want.Failed(r.Step, r.Attempt, e.Error, r.StartedAt, x.now)
	case job.StepWaiting:
		x.want.Waits(r.Step, r.Attempt, e.Deadline, r.StartedAt, x.now)
	}
	x.heard(e, v)
	x.judge("replied", e, e)
}

// replyLate lets an agent that was given up say that it succeeded after all.
func (x *world) replyLate() {
	if len(x.silent) == 0 {
		return
	}
	task := x.tasks[rapid.SampledFrom(x.silent).Draw(x.t, "late")]
	r := job.Reply{Step: task.Step, Attempt: task.Attempt, Token: task.Token}
	if !task.Shared {
		r.LockedBy = "a:" + name(task.Step, task.Attempt)
	}
	s, _ := x.job.Step(task.Step)
	for _, a := range []job.Activity{s.Forward, s.Undo} {
		if a.Silence().Attempt == task.Attempt {
			r.LockedBy = a.Silent.LockedBy
		}
	}
	began := x.silentSince(task)
	e := job.StepSucceeded{Reply: r}
	v, found := x.decide(e)
	for _, f := range found {
		if f.Silent {
			x.learn(f, true)
		}
	}
	x.want.Succeeded(r.Step, r.Attempt, began, x.now)
	x.heard(e, v)
	x.judge("late success", r, e)
}

// silentSince is when a silent attempt had begun; known, so that it may only be what it was.
func (x *world) silentSince(task makegood.Task) time.Time {
	s, _ := x.job.Step(task.Step)
	if task.Undo != nil {
		return s.Undo.StartedAt
	}
	return s.Forward.StartedAt
}

// verbs are those of jobs that nobody repairs.
func verbs() []makegood.Verb {
	return slices.DeleteFunc(domain.Verbs(), func(v makegood.Verb) bool { return v == makegood.VerbEdit })
}

// request asks for a verb.
func (x *world) request(verb makegood.Verb) {
	x.requests++
	e := job.Requested{Verb: verb, Request: fmt.Sprintf("r%d", x.requests)}
	if verb == makegood.VerbReschedule {
		e.StartAt = x.now.Add(time.Duration(rapid.IntRange(-60, 120).Draw(x.t, "startAt")) * time.Second)
	}
	if verb == makegood.VerbEdit {
		e.Timeout = x.drawTimeout()
	}
	v, _ := x.decide(e)
	var answer oracle.Answer
	switch verb {
	case makegood.VerbReschedule:
		answer = x.want.Rescheduled(e.StartAt, x.now)
	case makegood.VerbEdit:
		answer = x.want.Edited(e.Timeout, x.now)
	default:
		answer = x.want.Asked(verb, x.now)
	}
	want := map[oracle.Answer]machine.Kind{oracle.Granted: machine.Applied, oracle.So: machine.Duplicate, oracle.Refused: machine.Refused}
	if v.Kind != want[answer] {
		x.fail("%s is %s (%s), and should be %s", verb, v.Kind, v.Reason, answer)
	}
	x.grants(makegood.EntryRequest, verb, answer)
	x.heard(e, v)
	x.judge(string(verb), answer, e)
}

// again delivers an event once more: nothing changes, and nothing goes out that may not.
func (x *world) again() {
	events := x.events
	if causes := x.causes(); len(causes) > 0 {
		events = causes
	}
	if len(events) == 0 {
		return
	}
	e := rapid.SampledFrom(events).Draw(x.t, "again")
	if due, ok := e.(job.DeadlinePassed); ok && due.Key.Equal(x.job.CompleteBy) {
		return // It is what comes next, then: what waits may end as it begins, under the same key.
	}
	x.decide(e)
	x.note("again", e)
	if wrong := x.want.Differences(x.job, x.now); len(wrong) > 0 {
		x.fail("after %#v came again: %v", e, wrong)
	}
	x.nothingNoted()
	x.carryOut(e, nil, false)
}

// causes are the events that made something due that is out: most of what comes again has nothing to say.
func (x *world) causes() (events []job.Event) {
	for _, e := range x.events {
		if slices.ContainsFunc(x.job.Steps, func(s job.StepState) bool {
			return s.Forward.State == job.Dispatched && s.Forward.Cause == e.Cause() || s.Undo.State == job.Dispatched && s.Undo.Cause == e.Cause()
		}) {
			events = append(events, e)
		}
	}
	return events
}

// tell lets people hear of what was announced, up to somewhere.
func (x *world) tell() {
	if len(x.job.Untold) == 0 {
		return
	}
	a := rapid.SampledFrom(x.job.Untold).Draw(x.t, "told")
	e := job.Told{Seq: a.Seq, Operator: oneIn(x.t, 2, "operator"), Listener: oneIn(x.t, 2, "listener")}
	x.decide(e)
	x.want.Heard(e.Seq, e.Operator, e.Listener)
	x.judge("told", e.Seq, e)
}

// restart starts the embedded engine again: what was out is over.
func (x *world) restart() {
	for _, task := range x.out() {
		x.over[name(task.Step, task.Attempt)] = true
	}
	x.run++
	e := job.Interrupted{Incarnation: x.run}
	x.decide(e)
	x.want.Restarted(x.now)
	x.judge("restarted", x.run, e)
}
