package oracle_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/testkit/layers"
	"github.com/makegood-dev/makegood/lab/oracle"
)

// world is one job that the shipped core decides about, without faults: each event comes once, at its time, or comes
// again; whatever is due is looked at; a closing is carried out at once. Beside it stands what the oracle expects.
type world struct {
	t    *rapid.T
	w    makegood.Workflow
	job  job.Job
	want *oracle.Job
	now  time.Time

	order    oracle.Order
	run      int
	requests int
	// settlements is how many names those have given who settled a step.
	settlements int
	events      []job.Event
	items       map[string]store.ClaimItem
	// tasks went out; over are those of attempts that a restart took along. refuses are attempts whose task no queue takes.
	tasks   map[string]makegood.Task
	over    map[string]bool
	refuses map[string]bool
	// silent are the attempts that fell silent.
	silent []string
	// decisions numbers them; here and until say what the last one could run itself.
	decisions int
	here      bool
	until     time.Time
	trail     []moment
	seen      *layers.Seen
	told      told
}

// moment is something that happened, for whoever reads of a failure.
type moment struct {
	at    time.Time
	what  string
	about any
	state makegood.ProcessState
	sent  []oracle.Sent
}

func (m moment) String() string {
	return fmt.Sprintf("%s: %s %v: %s, sent %v", m.at.Sub(epoch), m.what, m.about, m.state, m.sent)
}

// epoch is when every world begins.
var epoch = time.UnixMilli(1_000_000).UTC()

func (x *world) note(what string, about any) {
	x.trail = append(x.trail, moment{x.now, what, about, x.job.ProcessState, x.want.Sent})
}

func seconds(t *rapid.T, most int, what string) makegood.Duration {
	return makegood.Duration(rapid.IntRange(1, most).Draw(t, what)) * makegood.Second
}

func oneIn(t *rapid.T, n int, what string) bool { return rapid.IntRange(1, n).Draw(t, what) == n }

func drawRetry(t *rapid.T) makegood.Retry {
	backoff := seconds(t, 20, "backoff")
	var during makegood.Duration
	if oneIn(t, 3, "for a time") {
		during = seconds(t, 90, "for")
	}
	return makegood.Retry{
		For: during, Attempts: rapid.IntRange(1, 4).Draw(t, "attempts"), Backoff: backoff, Max: backoff + makegood.Duration(rapid.IntRange(0, 60).Draw(t, "max"))*makegood.Second,
	}
}

func drawWorkflow(t *rapid.T) makegood.Workflow {
	w := makegood.Workflow{Name: "drawn"}
	undoes, chain, inline := !oneIn(t, 4, "no undo"), oneIn(t, 3, "chain"), oneIn(t, 4, "chain of inline steps")
	for i := range rapid.IntRange(1, 5).Draw(t, "steps") {
		s := makegood.Step{Name: fmt.Sprintf("s%d", i), Agent: "a", Needs: []string{}, Retry: drawRetry(t)}
		for n := range i {
			if oneIn(t, 2, "need") || chain && n == i-1 {
				s.Needs = append(s.Needs, fmt.Sprintf("s%d", n))
			}
		}
		s.StartBy = seconds(t, 40, "startBy")
		if oneIn(t, 20, "long") {
			s.StartBy = makegood.Duration(rapid.IntRange(30, 72).Draw(t, "hours")) * makegood.Hour
		}
		s.Timeout = seconds(t, 40, "timeout")
		s.Shared = oneIn(t, 6, "shared")
		s.Inline = oneIn(t, 3, "inline")
		s.Any = len(s.Needs) > 1 && oneIn(t, 3, "any")
		s.OnError = drawRoutes(t)
		if oneIn(t, 6, "repeat") {
			s.Repeat = &makegood.Repeat{Until: "${ .output }", Every: seconds(t, 20, "every"), For: seconds(t, 100, "for"), Attempts: rapid.IntRange(1, 4).Draw(t, "repeats")}
		}
		switch {
		case undoes && !oneIn(t, 4, "none"):
			s.Undo = &makegood.Undo{Action: "u", Retry: drawRetry(t), Timeout: seconds(t, 40, "timeout"), StartBy: seconds(t, 40, "startBy")}
		case undoes:
			s.Undo = &makegood.Undo{None: true}
		}
		drawWaits(t, &s)
		if inline && s.Agent == "a" && !oneIn(t, 6, "out of the chain") {
			s.Inline, s.Shared, s.Repeat, s.Waiting, s.Needs = true, true, nil, nil, []string{}
			if i > 0 {
				s.Needs = []string{w.Steps[i-1].Name}
			}
		}
		w.Steps = append(w.Steps, s)
	}
	drawGoto(t, w.Steps)
	if oneIn(t, 3, "job timeout") {
		w.Timeout = seconds(t, 200, "timeout")
	}
	switch rapid.IntRange(0, 5).Draw(t, "onFailure") {
	case 4, 5:
		if undoes && domain.HasUndo(w) {
			w.OnFailure = makegood.OnFailure{Action: makegood.FailureRestart, Rounds: rapid.IntRange(2, 4).Draw(t, "rounds"), Wait: seconds(t, 60, "wait")}
		}
	case 0:
		w.OnFailure.Action = makegood.FailureStop
	case 1:
		w.OnFailure = makegood.OnFailure{Action: makegood.FailureWait, Wait: seconds(t, 60, "wait")}
	}
	return domain.WithDefaults(w)
}

// kinds are those of the errors of agents.
func kinds() []string { return []string{"", "busy", "declined", "panic"} }

func drawRoutes(t *rapid.T) (routes []makegood.ErrorRoute) {
	for oneIn(t, 3, "route") && len(routes) < 4 {
		r := makegood.ErrorRoute{Kind: rapid.SampledFrom([]string{"*", "busy", "declined", "timeout", "dispatch", "expression", "panic", "not_ready"}).Draw(t, "kind")}
		r.Do.Action = rapid.SampledFrom([]makegood.RouteAction{makegood.RouteFail, makegood.RouteStop, makegood.RouteSkip, makegood.RouteRetry}).Draw(t, "do")
		if r.Do.Action == makegood.RouteRetry {
			r.Retry = drawRetry(t)
		}
		routes = append(routes, r)
	}
	return routes
}

// drawGoto makes a step one that others go to.
func drawGoto(t *rapid.T, steps []makegood.Step) {
	if len(steps) < 2 || !oneIn(t, 3, "goto") {
		return
	}
	to := rapid.IntRange(1, len(steps)-1).Draw(t, "to")
	steps[to].Only, steps[to].Any, steps[to].Needs = makegood.OnlyOnError, false, []string{}
	for range rapid.IntRange(1, 2).Draw(t, "routers") {
		from := &steps[rapid.IntRange(0, to-1).Draw(t, "from")]
		from.OnError = append([]makegood.ErrorRoute{{
			Kind: rapid.SampledFrom([]string{"*", "busy", "timeout"}).Draw(t, "kind"), Do: makegood.ErrorDo{Action: makegood.RouteGoto, Step: steps[to].Name},
		}}, from.OnError...)
		if from.Agent == makegood.AgentApproval {
			from.OnAnswer = map[string]makegood.AnswerDo{"no": {Action: makegood.AnswerGoto, Step: steps[to].Name}}
		}
	}
}

func isChain(w makegood.Workflow) bool {
	for i, s := range w.Steps[1:] {
		if s.Any || !slices.Contains(s.Needs, w.Steps[i].Name) {
			return false
		}
	}
	return true
}

func newWorld(t *rapid.T, seen *layers.Seen) *world {
	x := &world{
		t: t, seen: seen, w: drawWorkflow(t), now: epoch, items: map[string]store.ClaimItem{},
		tasks: map[string]makegood.Task{}, over: map[string]bool{}, refuses: map[string]bool{},
		order: oracle.Order{
			Listens: oneIn(t, 2, "listens"), Skips: map[string]bool{}, Broken: map[string]bool{}, BrokenUndo: map[string]bool{}, ReadyAfter: map[string]int{},
			Waits: map[string]oracle.Lasting{},
		},
	}
	for i, s := range x.w.Steps {
		x.order.Waits[s.Name] = x.drawLasting()
		if x.order.Skips[s.Name] = oneIn(t, 6, "skip"); x.order.Skips[s.Name] {
			x.w.Steps[i].When = "${ false }"
		}
		x.order.ReadyAfter[s.Name] = rapid.IntRange(1, 4).Draw(t, "ready after")
		// Which of several that could begin at one moment is first to fail is promised nowhere.
		x.order.Broken[s.Name] = isChain(x.w) && oneIn(t, 20, "broken")
		x.order.BrokenUndo[s.Name] = isChain(x.w) && oneIn(t, 20, "broken undo")
	}
	if oneIn(t, 5, "starts later") {
		x.order.StartAt = x.now.Add(seconds(t, 60, "startAt").Std())
	}
	x.submit()
	return x
}

func (x *world) submit() {
	s := machine.Submission{ID: "j", Definition: "d", StartAt: x.order.StartAt, Later: oneIn(x.t, 5, "later")}
	if x.order.Listens {
		s.ReplyTo = "shop"
	}
	facts := x.facts()
	facts.Lane = x.lane()
	x.told = told{round: 1, forwards: true}
	for {
		j, v := machine.Submit(x.w, s, facts, x.now)
		if v.Kind != machine.Wanting {
			x.job, x.told.noted = j, v.Entries
			break
		}
		x.values(facts, v)
	}
	x.seen.Moved(layers.Move{Workflow: x.w, After: x.job})
	if s.Later {
		x.decide(job.Submitted{})
	}
	x.want = oracle.Submitted(x.w, x.order, x.here, x.until, x.now)
	x.events = append(x.events, job.Submitted{})
	x.judge("submitted", x.w.OnFailure, job.Submitted{})
}

// lane is what the process of the next decision may run itself, which the oracle is told, too.
func (x *world) lane() machine.Lane {
	x.decisions++
	l := machine.Lane{LockedBy: fmt.Sprintf("s:%d", x.decisions)}
	x.here, x.until = !oneIn(x.t, 3, "elsewhere"), time.Time{}
	if x.here {
		l.Agents = []string{"a"}
	}
	if oneIn(x.t, 4, "little time") {
		x.until = x.now.Add(seconds(x.t, 40, "until").Std())
		l.Until = x.until
	}
	return l
}

func (x *world) facts() machine.Facts {
	// A random number of ones waits as long as may be, more often than chance would have it.
	return machine.Facts{
		Random: rapid.Uint64().Draw(x.t, "random"), Secret: []byte("sixteen bytes ok"), Incarnation: x.run,
		Values: map[machine.Want]machine.Fact{}, Found: map[machine.Ask]job.Found{},
	}
}

func (x *world) values(facts machine.Facts, v machine.Verdict) {
	for _, want := range v.Wants {
		if want.Ready {
			s, _ := x.job.Step(want.Step)
			facts.Values[want] = machine.Fact{Run: s.Forward.Repeats+1 >= x.order.ReadyAfter[want.Step]}
			continue
		}
		fact := machine.Fact{Run: want.Undo || !x.order.Skips[want.Step]}
		if x.order.Broken[want.Step] && !want.Undo || x.order.BrokenUndo[want.Step] && want.Undo {
			fact.Err = "no such field"
		}
		lasting := x.order.Waits[want.Step]
		fact.For, fact.Until = makegood.Duration(lasting.For), lasting.Until
		facts.Values[want] = fact
	}
}

// decide lets the core take an event, and returns what was found out about attempts meanwhile.
func (x *world) decide(e job.Event) (v machine.Verdict, found []oracle.Finding) {
	facts := x.facts()
	facts.Lane = x.lane()
	if x.want != nil {
		x.want.Decides(x.here, x.until)
	}
	for range 100 {
		j, verdict := machine.Apply(x.w, x.job, e, facts, x.now)
		if verdict.Kind == machine.Applied {
			x.seen.Moved(layers.Move{Workflow: x.w, Before: x.job, After: j, Event: e})
			x.job = j
			x.told.noted = append(x.told.noted, verdict.Entries...)
		}
		if verdict.Kind != machine.Wanting {
			return verdict, found
		}
		for _, a := range verdict.Asks {
			answer := x.ask(a)
			facts.Found[a] = answer
			if f, ok := finding(a.Step, a.Attempt, answer); ok {
				found = append(found, f)
			}
		}
		x.values(facts, verdict)
	}
	x.t.Fatalf("%#v: there is no end to what the core wants to know", e)
	return v, found
}

func finding(step string, attempt int, f job.Found) (oracle.Finding, bool) {
	silent := f.Finding == job.FoundSilent
	return oracle.Finding{
		Step: step, Attempt: attempt, Silent: silent, Began: f.Claim.StartedAt, Until: f.Claim.CompleteBy, InCompany: f.Claim.Beside > 0,
	}, silent || f.Finding == job.FoundNobody
}

func (x *world) slot(step string, undo bool) string {
	return machine.AgentOf(x.w, step, undo) + "/" + step
}

func (x *world) ask(a machine.Ask) job.Found {
	s, _ := x.job.Step(a.Step)
	until := s.Forward.ClaimUntil()
	if a.Undo {
		until = s.Undo.ClaimUntil()
	}
	slot := x.slot(a.Step, a.Undo)
	if a.Kind == machine.AskLook {
		return store.Looked(x.items[slot], a.Attempt, until, x.now)
	}
	c := store.Closing{Attempt: a.Attempt, Until: until, Now: x.now, LockedBy: a.LockedBy}
	if a.Mark {
		c.Ends = machine.ClosingEnds(x.w, a.Step, a.Undo, x.now)
	}
	item, found := store.Closed(x.items[slot], c)
	x.items[slot] = item
	return found
}

func name(step string, attempt int) string { return fmt.Sprintf("%s#%d", step, attempt) }

// judge compares the job with what is expected of it, carries out what the event made due, and judges that.
func (x *world) judge(what string, about any, e job.Event) {
	x.note(what, about)
	x.noteSilent()
	if wrong := x.want.Differences(x.job, x.now); len(wrong) > 0 {
		x.fail("the job is not what it should be:\n  %s", strings.Join(wrong, "\n  "))
	}
	x.compareHistory()
	due := x.want.Sent
	x.want.Sent = nil
	closings, refused := x.carryOut(e, due, true)
	for _, c := range closings {
		x.close(c)
	}
	for _, r := range refused {
		x.decide(r)
		x.want.Refused(r.Step, r.Attempt, x.now)
		x.judge("refused", name(r.Step, r.Attempt), r)
	}
}

func (x *world) fail(format string, args ...any) {
	var trail strings.Builder
	for _, m := range x.trail[max(0, len(x.trail)-40):] {
		fmt.Fprintln(&trail, m)
	}
	x.t.Fatalf("%s\n%sworkflow %+v\norder %+v", fmt.Sprintf(format, args...), trail.String(), x.w, x.order)
}

// carryOut sends what an event made due: all that the oracle wants sent, if the event is new, and in no case what may
// not be.
func (x *world) carryOut(e job.Event, due []oracle.Sent, isNew bool) (closings []job.CloseAttempt, refused []job.DispatchRefused) {
	var sent []oracle.Sent
	take := func(d job.Dispatch, inline bool) {
		task := machine.TaskOf(x.w, x.job, d)
		one := oracle.Sent{Step: d.Step, Attempt: d.Attempt, Undo: d.Undo, Alone: task.Alone, Inline: inline}
		if task.Undo != nil {
			one.Outcome = task.Undo.Outcome
		}
		sent = append(sent, one)
		if !x.want.MaySend(d.Step, d.Attempt) {
			x.fail("the task of %s is sent for %s, and may not be", name(d.Step, d.Attempt), e.Cause())
		}
		which := name(d.Step, d.Attempt)
		if _, again := x.tasks[which]; !again && oneIn(x.t, 40, "refused") {
			refused = append(refused, job.DispatchRefused{Step: d.Step, Attempt: d.Attempt, Reason: "too large"})
		}
		x.tasks[which] = task
	}
	if isNew {
		for _, chain := range machine.Inlined(x.w, x.job, fmt.Sprintf("s:%d", x.decisions)) {
			for _, d := range chain {
				take(d, true)
			}
		}
	}
	for _, c := range machine.Pending(x.w, x.job, e, x.now) {
		switch c := c.(type) {
		case job.Ask:
			x.asked(c)
		case job.CloseAttempt:
			closings = append(closings, c)
		case job.Dispatch:
			take(c, false)
		}
	}
	for _, s := range due {
		if isNew && !slices.Contains(sent, s) && x.want.MaySend(s.Step, s.Attempt) {
			x.fail("sent is %+v, want %+v as well", sent, s)
		}
	}
	return closings, refused
}

// close carries a closing out, and brings the answer.
func (x *world) close(c job.CloseAttempt) {
	found := x.ask(machine.Ask{Kind: machine.AskClose, Step: c.Step, Attempt: c.Attempt, Undo: c.Undo, Mark: c.Mark})
	e := job.AttemptClosed{Step: c.Step, Attempt: c.Attempt, Found: found, Asked: c.Asked}
	x.decide(e)
	x.learn(finding(c.Step, c.Attempt, found))
	x.judge("closed "+string(found.Finding), name(c.Step, c.Attempt), e)
}

func (x *world) learn(f oracle.Finding, ended bool) {
	switch {
	case ended && f.Silent:
		x.want.Silent(f, x.now)
	case ended:
		x.want.Unclaimed(f.Step, f.Attempt, x.now)
	}
}

// noteSilent: what fell silent may speak yet.
func (x *world) noteSilent() {
	for _, s := range x.job.Steps {
		for _, a := range []int{s.Forward.Silence().Attempt, s.Undo.Silence().Attempt} {
			if a > 0 && !slices.Contains(x.silent, name(s.Name, a)) {
				x.silent = append(x.silent, name(s.Name, a))
			}
		}
	}
}

// out are the tasks whose attempts are out, and were not lost with an engine.
func (x *world) out() (tasks []makegood.Task) {
	for _, which := range slices.Sorted(maps.Keys(x.tasks)) {
		task := x.tasks[which]
		s, _ := x.job.Step(task.Step)
		for _, a := range []job.Activity{s.Forward, s.Undo} {
			if a.State == job.Dispatched && a.Attempt == task.Attempt && !x.over[which] {
				tasks = append(tasks, task)
			}
		}
	}
	return tasks
}
