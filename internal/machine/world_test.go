package machine_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/testkit/layers"
)

// world is a job in a store that keeps the contract of package store, with agents that claim behind
// the Scheduler's back, and closings that are carried out late, twice, or never.
type world struct {
	t        *rapid.T
	w        makegood.Workflow
	job      job.Job
	now      time.Time
	period   time.Duration
	run      int
	events   []job.Event
	requests int
	// items are the claim items by agent and step, tasks those of every attempt that was ever out.
	items map[string]store.ClaimItem
	tasks map[string]makegood.Task
	// closings were derived, answers given.
	closings []closing
	answers  []job.Event
	// over are the attempts that were closed, or that ended in a save: nobody may claim them. dead went with the
	// process that would have run them.
	over, dead map[string]bool
	// ledger is what the services may know, by key and by what they were asked for, accounts the same in its order. bodies are
	// what attempts ask for, those of undos what is asked of their steps.
	ledger   map[string]*account
	accounts []*account
	bodies   map[string]asked
	applied  map[string]bool
	// sawn are the inputs that the attempts of a step saw in a round. One that is not asked with the input may have seen several.
	sawn map[string][]string
	// tokens are the completion tokens that anybody was given, and what they are of.
	tokens map[string]body
	// keys are the idempotency keys, and what they are of, both ways.
	keys  map[string]string
	fence *fenced
	// draining: the life comes to its end.
	draining bool
	// helped counts what an operator did about a job that waited for one.
	helped int
	// seen notes what is played; nil: nobody asks.
	seen *layers.Seen
	// mending: people change what the job is made of more often than anything else happens.
	mending bool
	// notDone is the last attempt of a step of which somebody has said that nothing stands: they waited for it.
	notDone map[string]int
	skip    map[string]bool
	bad     map[machine.Want]string
	// idle are the attempts that had no effect; claimed says by whom each was claimed, said whether it succeeded.
	idle    map[string]bool
	said    map[string]string
	claimed map[string]string
	nested  bool
	// inline are the attempts that ran in the process whose save opened them, decisions numbers those saves.
	inline    map[string]bool
	decisions int
	// kids are the children by their ids, births the dispatches of children that were derived.
	kids   map[string]*kid
	births []birth
	// holds are the agents and workflows that are paused, held those that the decision under way knows of.
	holds, held job.Holds
	wasHeld     bool
	// permitted are the attempts that the gates of their agents have given permits.
	permitted map[string]bool
	// harmless are the steps of which nothing has an effect, unless it is said that it succeeded.
	harmless map[string]bool
	// definitions are those that the job may be moved to, by their hash.
	definitions map[string]makegood.Workflow
	first       makegood.Workflow
	// publishes: somebody hears of every change, and replay is what they know.
	publishes bool
	replay    replay
}

func newWorld(t *rapid.T) *world {
	mending, most := rapid.Bool().Draw(t, "mending"), 5
	if mending {
		most = 2
	}
	x := &world{
		t: t, w: drawWorkflow(t, most), mending: mending, now: time.UnixMilli(1_000_000).UTC(),
		items: map[string]store.ClaimItem{}, tasks: map[string]makegood.Task{}, over: map[string]bool{}, dead: map[string]bool{},
		skip: map[string]bool{}, bad: map[machine.Want]string{}, claimed: map[string]string{}, idle: map[string]bool{}, said: map[string]string{},
		harmless: map[string]bool{}, definitions: map[string]makegood.Workflow{}, ledger: map[string]*account{},
		bodies: map[string]asked{}, applied: map[string]bool{}, tokens: map[string]body{}, keys: map[string]string{},
		sawn: map[string][]string{}, notDone: map[string]int{}, inline: map[string]bool{}, kids: map[string]*kid{}, permitted: map[string]bool{},
	}
	x.fence = drawFence(t, x.w)
	x.first = x.w
	x.publishes = rapid.Bool().Draw(t, "publishes")
	x.period = time.Duration(rapid.IntRange(0, 1).Draw(t, "period")) * time.Minute
	for i, s := range x.w.Steps {
		if rapid.IntRange(0, 4).Draw(t, "skip") == 0 && x.w.Part == nil { // An item has no condition.
			x.w.Steps[i].When = "${ false }"
		}
		x.skip[s.Name] = x.w.Steps[i].When != ""
		x.harmless[s.Name] = !s.Shared && rapid.IntRange(0, 3).Draw(t, "harmless") == 0
		for _, undo := range []bool{false, true} {
			// A step that waits by itself would try its broken expressions again for ever.
			forEver := x.w.OnFailure.Action == makegood.FailureWait && s.Agent != "a"
			if rapid.IntRange(0, 14).Draw(t, "bad") == 0 && !forEver {
				x.bad[machine.Want{Step: s.Name, Undo: undo}] = "no such field"
			}
		}
	}
	facts := x.facts(nil)
	facts.Lane = x.lane()
	submission := machine.Submission{ID: "j", Definition: "d", Later: rapid.IntRange(0, 4).Draw(t, "later") == 0}
	if rapid.IntRange(0, 3).Draw(t, "listens") == 0 {
		submission.ReplyTo = "shop"
	}
	if rapid.IntRange(0, 4).Draw(t, "startLater") == 0 {
		submission.StartAt = x.now.Add(time.Duration(rapid.IntRange(0, 60).Draw(t, "startAt")) * time.Second)
	}
	if rapid.IntRange(0, 4).Draw(t, "limited") == 0 {
		x.drawLimit()
		facts.Held, x.held = x.holds, x.holds
	}
	for {
		j, v := machine.Submit(x.w, submission, facts, x.now)
		if v.Kind == machine.Wanting {
			x.values(x.w, &facts, v.Wants)
			continue
		}
		j.Rev = 1
		x.job = j
		break
	}
	x.noteBodies()
	x.noteShared()
	x.check(job.Job{})
	x.runInline(facts.Lane)
	return x
}

func (x *world) facts(found map[machine.Ask]job.Found) machine.Facts {
	return machine.Facts{
		Random: rapid.Uint64().Draw(x.t, "random"), Secret: []byte("sixteen bytes ok"),
		Period: x.period, Incarnation: x.run, Found: found, Held: x.held, Publishes: x.publishes, Published: x.replay.known,
	}
}

func (x *world) values(of makegood.Workflow, facts *machine.Facts, wants []machine.Want) {
	values := maps.Clone(facts.Values)
	if values == nil {
		values = map[machine.Want]machine.Fact{}
	}
	for _, w := range wants {
		if _, ok := values[w]; ok {
			x.t.Fatalf("fact %v was wanted twice", w)
		}
		values[w] = machine.Fact{Run: w.Undo || !x.skip[w.Step], Err: x.bad[w]}
		if w.Ready {
			values[w] = x.ready()
			continue
		}
		if domain.WaitsByItself(machine.AgentOf(of, w.Step, w.Undo)) {
			values[w] = x.untilOf(values[w])
		}
	}
	facts.Values = values
}

func id(step string, attempt int) string { return fmt.Sprintf("%s#%d", step, attempt) }

func (x *world) slot(step string, undo bool) string {
	return machine.AgentOf(x.w, step, undo) + "/" + step
}

// ask answers the core from the claim items, as package store says.
func (x *world) ask(a machine.Ask) (job.Found, error) {
	if _, there := x.job.Step(a.Step); !there {
		return job.Found{}, store.ErrConflict // The job was moved meanwhile, so what is decided over it will not be saved.
	}
	if x.isChild(a.Step, a.Undo) {
		return x.askChild(a), nil
	}
	if a.Kind == machine.AskPermit {
		return x.permit(a), nil
	}
	name, task := x.slot(a.Step, a.Undo), x.tasks[id(a.Step, a.Attempt)]
	switch a.Kind {
	case machine.AskLook:
		return store.Looked(x.items[name], a.Attempt, task.ClaimUntil, x.now), nil
	case machine.AskClose:
		c := store.Closing{Attempt: a.Attempt, Until: task.ClaimUntil, Now: x.now, LockedBy: a.LockedBy}
		if a.Mark {
			c.Ends = machine.ClosingEnds(x.w, a.Step, a.Undo, x.now)
			if x.wanted(a) {
				x.t.Fatalf("%+v marks an attempt that is wanted", a)
			}
		}
		item, found := store.Closed(x.items[name], c)
		x.items[name] = item
		x.noteClosed(a, found)
		return found, nil
	case machine.AskOverrule:
		item, err := store.Overruled(x.items[name], a.Attempt, a.LockedBy, task.ClaimUntil)
		if err != nil {
			return job.Found{}, err
		}
		if a.LockedBy != "liar" {
			x.t.Fatalf("%+v overrules a claim that is true", a)
		}
		x.items[name] = item
		x.over[id(a.Step, a.Attempt)] = true
		return job.Found{Finding: job.FoundSilent}, nil
	default:
		x.t.Fatalf("unknown ask %q", a.Kind)
		return job.Found{}, nil
	}
}

// wanted reports whether an attempt is out, in the direction that is wanted.
func (x *world) wanted(a machine.Ask) bool {
	activity := activityOf(x.job, a.Step, a.Undo)
	return activity.State == job.Dispatched && activity.Attempt == a.Attempt && a.Undo == (x.job.Desired != makegood.JobProcessed) && !activity.Held()
}

// noteClosed: who was closed as never claimed, never was.
func (x *world) noteClosed(a machine.Ask, found job.Found) {
	which := id(a.Step, a.Attempt)
	switch found.Finding {
	case job.FoundNobody:
		if by := x.claimed[which]; by != "" && !x.dead[which] {
			x.t.Fatalf("attempt %s was claimed by %s, and closed as never claimed", which, by)
		}
		x.over[which] = true
	case job.FoundSilent, job.FoundReplied:
		x.over[which] = true
	}
}

// decide asks the core, answering from the claim items. It is not ok where the job must be loaded afresh first, or the
// process has died meanwhile.
func (x *world) decide(j job.Job, e job.Event, facts machine.Facts) (next job.Job, v machine.Verdict, ok bool) {
	run := x.run
	for range 10 * (len(x.w.Steps) + 1) {
		before := j.Clone()
		next, v = machine.Apply(x.of(j), j, e, facts, x.now)
		if !reflect.DeepEqual(before, j) {
			x.t.Fatalf("Apply(%T) changed the job that it was given", e)
		}
		if v.Kind != machine.Wanting {
			return next, v, true
		}
		if v.Definition != "" {
			facts.Definition = definitionOf(v.Definition, x.of(job.Job{Definition: v.Definition}))
			continue
		}
		afresh := false
		for i, a := range v.Asks {
			if _, known := facts.Found[a]; known || slices.Contains(v.Asks[:i], a) {
				x.t.Fatalf("%+v was asked twice", a)
			}
			if x.behind(); x.run != run {
				return next, v, false
			}
			found, err := x.ask(a)
			if err != nil {
				clear(facts.Found)
				return next, v, false
			}
			facts.Found[a] = found
			afresh = afresh || found.Finding == job.FoundOver
		}
		if afresh {
			return next, v, false
		}
		x.values(x.of(next), &facts, v.Wants)
	}
	x.t.Fatalf("%#v: there is no end to what the core wants to know: %+v", e, v)
	return next, v, false
}

// behind is what happens behind the Scheduler's back, between its load, its facts and its save.
func (x *world) behind() {
	switch rapid.IntRange(0, 11).Draw(x.t, "behind") {
	case 0:
		x.claim()
	case 1:
		x.heartbeat()
	case 2:
		if e, ok := x.drawEvent(); ok && !x.nested {
			x.nested = true
			x.move(x.job.Clone(), e)
			x.nested = false
		}
	}
}

// move brings an event to the job as it was loaded, and saves it as the contract of store.Jobs says. After a conflict it
// loads again, with what it knows of claims that were closed.
func (x *world) move(j job.Job, e job.Event) machine.Kind {
	found, run := map[machine.Ask]job.Found{}, x.run
	for range 50 {
		kind, done := x.try(j, e, found)
		if done {
			return kind
		}
		if x.run != run {
			return "died" // Nothing of an engine goes on after its end.
		}
		if rapid.IntRange(0, 5).Draw(x.t, "gives up") == 0 {
			return "conflict"
		}
		maps.DeleteFunc(found, func(a machine.Ask, f job.Found) bool {
			return a.Kind == machine.AskLook && f.Finding != job.FoundOver
		})
		j = x.job.Clone()
	}
	return "conflict"
}

// try is one load and save. An engine that was started again says so first.
func (x *world) try(loaded job.Job, e job.Event, found map[machine.Ask]job.Found) (machine.Kind, bool) {
	events := []job.Event{e}
	if loaded.Incarnation < x.run && !loaded.ProcessState.Finished() {
		events = []job.Event{job.Interrupted{Incarnation: x.run}, e}
		x.seen.Played(layers.Batches)
	}
	held, lane := x.known(), x.lane()
	j, changed := loaded, false
	var kind machine.Kind
	prior := loaded // before the last event
	for _, e := range events {
		x.held = held // Another decision may have come between, and knew otherwise.
		facts := x.facts(found)
		facts.Lane = lane
		next, v, ok := x.decide(j, e, facts)
		if !ok {
			return "", false
		}
		kind = v.Kind
		if v.Kind == machine.Applied {
			prior, j, changed = j, next, true
		} else if !reflect.DeepEqual(next, j) {
			x.t.Fatalf("a %s %T changed the job", v.Kind, e)
		}
	}
	if changed {
		run := x.run
		if x.behind(); x.run != run || loaded.Rev != x.job.Rev {
			return "", false
		}
		x.held = held
		before := x.job
		x.save(prior, j, e)
		x.runInline(lane)
		if kind == machine.Applied {
			x.checkOnce(before, e, found)
		}
	}
	for _, e := range events {
		x.carryOut(e)
	}
	return kind, true
}

func (x *world) save(prior, j job.Job, e job.Event) {
	stored := x.job
	if prior.Definition != j.Definition {
		x.redefined(prior, j)
	}
	x.job = j.Clone()
	x.job.Rev = stored.Rev + 1
	if x.job.Round > stored.Round {
		x.takesBack(stored, prior)
		x.checkLedger(prior)
	}
	x.noteBodies()
	x.noteShared()
	x.noteOutside(stored, e)
	x.noteNotDone(stored, e)
	x.takesBack(stored, x.job) // That an undo is done for a reason is held by checkDone.
	x.check(stored)
	x.checkUndoBegins(stored)
	x.checkChildren()
	x.checkHeld(stored)
	x.checkGates(stored)
	x.checkWaits(stored, e)
	x.checkPart(stored, e)
	x.checkBatches(stored, e)
	x.checkToken(e)
	x.seen.Moved(layers.Move{Workflow: x.w, Before: stored, After: x.job, Event: e})
}

func (x *world) drawEvent() (job.Event, bool) {
	if len(x.births) > 0 && rapid.IntRange(0, 3).Draw(x.t, "child") == 0 {
		return x.liveOn()
	}
	if e, ok := x.drawBeside(); ok {
		return e, true
	}
	if x.mending && rapid.Bool().Draw(x.t, "mends") {
		return x.drawMending()
	}
	switch rapid.IntRange(0, 26).Draw(x.t, "event") {
	case 25:
		x.drawLimit()
		return nil, false
	case 26:
		return x.admitted()
	case 21, 22:
		x.drawHold()
		return nil, false
	case 23:
		return x.letGo()
	case 24:
		return job.DeadlinePassed{}, true
	case 0, 1, 2:
		return x.reply(saysDone)
	case 3:
		return x.reply(saysFailed)
	case 13, 14:
		return x.reply(saysWaiting)
	case 15, 16, 17, 18:
		return x.drawCompletion()
	case 19, 20:
		return x.drawSettled(), true
	case 4, 5:
		return job.DeadlinePassed{Key: x.job.CompleteBy}, !x.job.CompleteBy.IsZero()
	case 6:
		if len(x.events) == 0 {
			return nil, false
		}
		x.seen.Played(layers.Doubled)
		return rapid.SampledFrom(x.events).Draw(x.t, "again"), true
	case 7:
		return x.drawOwn(), true
	case 8:
		return x.drawRequest(), true
	case 9, 10, 11:
		x.close()
		if len(x.answers) == 0 {
			return nil, false
		}
		return rapid.SampledFrom(x.answers).Draw(x.t, "answer"), true
	default:
		for i, s := range x.job.Steps {
			// A task that is refused was never sent, so a shared one, too, has not run, nor has an inline one.
			if s.Forward.State == job.Dispatched && !x.w.Steps[i].Shared && s.Forward.Inline == "" && (!x.isChild(s.Name, false) || x.notBegun(s.Name)) {
				return job.DispatchRefused{Step: s.Name, Attempt: s.Forward.Attempt, Reason: "too large"}, true
			}
		}
		return nil, false
	}
}
