package scheduler_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/changes"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/payload"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/faultstore"
	"github.com/makegood-dev/makegood/internal/wire"
)

// The task of a step has its input and the names of the secrets in it, and knows when its job began.
func TestATaskHasItsSecretsAndKnowsWhenItsJobBegan(t *testing.T) {
	const yaml = "name: one\nsteps: [{name: first, agent: a, undo: none, with: {key: \"${ secret(\\\"bank\\\") }\", at: \"${ .job.startedAt }\", id: \"${ .job.id }\"}}]"
	for name, later := range map[string]time.Duration{"at once": 0, "later": time.Hour} {
		w := newWorld(t)
		c := w.define(yaml)
		if _, _, err := w.s.Submit(t.Context(), scheduler.Submission{ID: "j", Definition: c.Hash, Input: []byte(`{}`), StartAt: w.now.Add(later)}); err != nil {
			t.Fatal(err)
		}
		want := w.now.Add(later).Format(time.RFC3339)
		if later > 0 {
			w.now = w.now.Add(later + time.Minute)
			w.handle(w.record("j", job.DeadlinePassed{Key: w.job("j").CompleteBy}))
		}
		tasks := w.tasks("a")
		if len(tasks) != 1 || !strings.Contains(string(tasks[0].Input), `"at":"`+want+`"`) || !strings.Contains(string(tasks[0].Input), `"id":"j"`) {
			t.Errorf("%s: got the tasks %+v, want one that began at %s", name, tasks, want)
			continue
		}
		if got := tasks[0].Secrets; len(got) != 1 || got[0].Name != "bank" {
			t.Errorf("%s: got the secrets %v, want bank", name, got)
		}
	}
}

// A submission by message is for whom it says, with its labels, and under its trace.
func TestASubmissionByMessageIsForWhomItSays(t *testing.T) {
	w := newWorld(t)
	w.define(twoAgents)
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	body, err := wire.EncodeSubmit(wire.Submit{Workflow: "two", ID: "j", Input: json.RawMessage(`{}`), Tenant: "acme", Priority: makegood.PriorityUrgent, Labels: map[string]string{"lane": "a"}, Traceparent: trace})
	if err != nil {
		t.Fatal(err)
	}
	w.handle(w.raw(body))
	if j := w.job("j"); j.Tenant != "acme" || j.Priority != makegood.PriorityUrgent || len(j.Labels) != 1 || j.Labels["lane"] != "a" || !strings.HasPrefix(fmt.Sprintf("%x", j.Trace), "0af7651916cd43dd8448eb211c80319c") {
		t.Errorf("got the tenant %q, the priority %q, the labels %v and the trace %x", j.Tenant, j.Priority, j.Labels, j.Trace)
	}
}

// The hook that sees every job that is stored sees its cost, as it is stored.
func TestWhoSeesAJobSeesWhatItHasCost(t *testing.T) {
	w := newWorld(t)
	w.use(func(c *scheduler.Config) { c.Counts = true })
	w.define(twoSteps)
	body, err := wire.EncodeSubmit(wire.Submit{Workflow: "two", ID: "j", Input: json.RawMessage(`{}`)})
	if err != nil {
		t.Fatal(err)
	}
	w.handle(w.raw(body))
	w.handle(w.done("j", "first"))
	if len(w.saved) != 2 {
		t.Fatalf("saw %d jobs, want the birth and the save", len(w.saved))
	}
	birth, now := w.saved[0], w.job("j")
	if birth.Spent.Requests < job.SpentParts || birth.Rev != 1 || w.saved[1].Spent != now.Spent || w.saved[1].Rev != now.Rev {
		t.Errorf("saw %+v and %+v, want what is stored: %+v", birth.Spent, w.saved[1].Spent, now.Spent)
	}
	if now.Spent == birth.Spent {
		t.Errorf("got %+v, want more than %+v", now.Spent, birth.Spent)
	}
}

// Undos go to a queue of their own where there is one, and steps to that of their agent.
func TestUndosGoToAQueueOfTheirOwn(t *testing.T) {
	w := newWorld(t)
	w.use(func(c *scheduler.Config) { c.Undos = func(string) string { return "tasks-b" } })
	w.submit(w.define("name: one\nsteps: [{name: first, agent: a, undo: {action: back}}]"), "j")
	if got := w.tasks("a"); len(got) != 1 || got[0].Undo != nil {
		t.Errorf("got %+v in the queue of the agent, want the step", got)
	}
	w.handle(w.done("j", "first"))
	w.request("j", job.Requested{Verb: makegood.VerbUndo, Request: "u"})
	if got := w.tasks("b"); len(got) != 1 || got[0].Undo == nil || string(got[0].Undo.Output) != `"ok"` {
		t.Errorf("got %+v in the queue of undos, want the undo", got)
	}
}

// A run that follows one that was told to stop says so to the jobs of that one, and to no others.
func TestAJobHearsHowTheRunBeforeEnded(t *testing.T) {
	for name, c := range map[string]struct {
		born, stopped int
		clean         bool
	}{
		"it was told to stop":        {1, 1, true},
		"it died":                    {1, 0, false},
		"the job is of one before":   {1, 2, false},
		"the job is of no run":       {0, 0, false},
		"the job is of no run, told": {0, 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			w, r := newWorld(t), &watcher{}
			w.use(func(config *scheduler.Config) { config.Incarnation = c.born })
			w.submit(w.define(twoSteps), "j")
			w.use(func(config *scheduler.Config) { config.Incarnation, config.Stopped, config.Watch = 3, c.stopped, r })
			w.handle(w.record("j", job.DeadlinePassed{}))
			if len(r.happened) == 0 {
				t.Fatal("nothing has happened, want that the job was interrupted")
			}
			if e, is := r.happened[0].Event.(job.Interrupted); !is || e.Incarnation != 3 || e.Clean != c.clean {
				t.Errorf("got %+v, want the run 3, clean: %v", r.happened[0].Event, c.clean)
			}
		})
	}
}

// unreadableDefinitions are definitions that cannot be read now.
type unreadableDefinitions struct {
	store.Definitions
	current, body error
}

func (d unreadableDefinitions) CurrentDefinition(ctx context.Context, name string) (string, error) {
	if d.current != nil {
		return "", d.current
	}
	return d.Definitions.CurrentDefinition(ctx, name)
}

func (d unreadableDefinitions) Definition(ctx context.Context, hash string) ([]byte, error) {
	if d.body != nil {
		return nil, d.body
	}
	return d.Definitions.Definition(ctx, hash)
}

// Where a definition cannot be read, it is not known whether a job can be moved to it: that is an error, and no
// refusal. That there is none is a refusal.
func TestADefinitionThatCannotBeReadRefusesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		definition    string
		current, body error
		refused       string
	}{
		"which is current is not known": {job.CurrentDefinition, errBroken, nil, ""},
		"none is current":               {job.CurrentDefinition, store.ErrNotFound, nil, "there is no current definition of two"},
		"it cannot be read":             {"abc", nil, errBroken, ""},
		"it is not there":               {"abc", nil, nil, "there is no definition"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.submit(w.define("name: two\nonFailure: stop\nsteps: [{name: first, agent: a, retry: {attempts: 1}}]"), "j")
			w.handle(w.failed("j", "first", w.claim("j", "first"), job.StepError{Message: "no", Applied: makegood.AppliedNo}))
			w.s.Stats()
			d := &unreadableDefinitions{Definitions: w.config.Definitions, current: c.current}
			w.use(func(config *scheduler.Config) { config.Definitions = d })
			if _, err := w.s.SentInputs(t.Context(), "j", "", nil); err != nil { // The definition of the job is known from here on.
				t.Fatal(err)
			}
			d.body = c.body
			r := job.Requested{Verb: makegood.VerbResubmit, Request: "1", Definition: c.definition}
			_, planned, err := w.s.Plan(t.Context(), "j", r)
			_, asked, again := w.s.Request(t.Context(), "j", r)
			if c.refused == "" {
				if !errors.Is(err, errBroken) || !errors.Is(again, errBroken) {
					t.Errorf("got %v of the plan and %v, want %v", err, again, errBroken)
				}
				return
			}
			if err != nil || again != nil || !strings.Contains(planned.Reason, c.refused) || !strings.Contains(asked.Reason, c.refused) {
				t.Errorf("got %+v, %v of the plan and %+v, %v, want it refused: %s", planned, err, asked, again, c.refused)
			}
		})
	}
}

// clocked notes how long those have who are to keep payloads or to publish changes.
type clocked struct {
	payload.Keeper // nil: nothing is read

	reader
	kept, published []time.Duration
	asks            map[string]int
}

func left(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return -1
	}
	return time.Until(deadline)
}

func (c *clocked) Keep(ctx context.Context, id string, _ makegood.Payload) error {
	c.kept = append(c.kept, left(ctx))
	c.asks[id]++
	return nil
}

func (c *clocked) Publish(ctx context.Context, runs []changes.Run) []error {
	c.published = append(c.published, left(ctx))
	return c.reader.Publish(ctx, runs)
}

// A save does not wait long for what comes before it, nor not at all: half a second for who hears of changes, five
// seconds for payloads.
func TestWhatComesBeforeASaveHasAShortTime(t *testing.T) {
	w, c := newWorld(t), &clocked{asks: map[string]int{}}
	w.use(func(config *scheduler.Config) { config.Changes = c })
	c.deaf = errBroken
	w.submit(w.define(wide(12)), "j")
	for i := range 11 {
		w.handle(w.done("j", fmt.Sprint("s", i)))
	}
	short := 0
	for _, within := range c.published {
		if within <= 0 || within > 5*time.Second {
			t.Errorf("who hears of changes had %v, want up to 5s", within)
		}
		if within <= 500*time.Millisecond {
			short++
		}
	}
	if short != 1 {
		t.Errorf("of %v, %d were up to half a second, want the one before a save", c.published, short)
	}
}

// The payloads of a job are kept anew from an age on, once a day, by a process that remembers the last thousand jobs.
func TestPayloadsAreKeptAnewOnceADay(t *testing.T) {
	w, c := newWorld(t), &clocked{asks: map[string]int{}}
	const age = 7 * 24 * time.Hour
	w.use(func(config *scheduler.Config) { config.Large, config.LargeAge = c, age })
	compiled := w.define("name: order\nsteps: [{name: sign, agent: approval, with: {choices: [yes], question: \"Sign?\", for: 8760h}}]")
	input, err := json.Marshal(makegood.Payload{SHA256: strings.Repeat("ab", 32), Bytes: 10})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.s.Submit(t.Context(), scheduler.Submission{ID: "j", Definition: compiled.Hash, Input: input}); err != nil {
		t.Fatal(err)
	}
	born := w.now
	c.asks["j"], c.kept = 0, nil
	for _, look := range []struct {
		at   time.Duration
		want int
	}{{age - time.Millisecond, 0}, {age, 1}, {age + 24*time.Hour - time.Millisecond, 1}, {age + 24*time.Hour, 2}} {
		w.now = born.Add(look.at)
		w.handle(w.record("j", job.DeadlinePassed{}))
		if c.asks["j"] != look.want {
			t.Errorf("%v after its birth its payload was kept %d times, want %d", look.at, c.asks["j"], look.want)
		}
	}
	for _, within := range c.kept {
		if within <= 0 || within > 5*time.Second {
			t.Errorf("a look had %v for it, want up to 5s", within)
		}
	}
}

// The messages that are left to a newer release are counted over all batches.
func TestWhatIsLeftIsAddedUp(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define(twoAgents), "j")
	w.watchLeft()
	for batch := int64(1); batch <= 3; batch++ {
		w.handle(w.raw(`{"v":2,"type":"StepSucceeded","job":"j"}`), w.raw(`{"v":2,"type":"StepFailed","job":"j"}`), w.raw(`nothing`))
		if got := w.s.Stats(); got.Left != 2*batch || got.Poisoned != batch {
			t.Errorf("after %d batches: %d are left and %d poisoned, want %d and %d", batch, got.Left, got.Poisoned, 2*batch, batch)
		}
	}
}

// A submission that could not be stored is named in the log when it goes back to the queue.
func TestASubmissionThatGoesBackIsNamedInTheLog(t *testing.T) {
	w := newWorld(t)
	var log strings.Builder
	w.use(func(c *scheduler.Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	w.define(twoAgents)
	w.failing("Create", faultstore.FailBefore)
	body, err := wire.EncodeSubmit(wire.Submit{Workflow: "two", ID: "bad", Input: json.RawMessage(`{}`)})
	if err != nil {
		t.Fatal(err)
	}
	if failed := w.handle(w.raw(body)); len(failed) != 1 || !strings.Contains(log.String(), "submission goes back to the queue\" job=bad ") {
		t.Errorf("wants again %v, and logged %s; want the record, and its job", failed, log.String())
	}
}

// A job that goes on has not stopped, and one that stops has.
func TestOnlyAJobThatStopsIsCountedAsStopped(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define("name: two\nonFailure: stop\nsteps: [{name: first, agent: a}, {name: second, agent: a, retry: {attempts: 1}}]"), "j")
	w.handle(w.done("j", "first"))
	if got := w.s.Stats().Stopped; got != 0 {
		t.Errorf("after a success: got %d, want none", got)
	}
	w.handle(w.failed("j", "second", w.claim("j", "second"), job.StepError{Message: "no", Applied: makegood.AppliedNo}))
	if got := w.s.Stats().Stopped; got != 1 {
		t.Errorf("after a failure: got %d, want 1", got)
	}
}

// A task that came back because its agent is paused is judged by the pauses as they are now, any other reply by those of a while ago.
func TestATaskThatIsHeldIsJudgedByThePausesOfNow(t *testing.T) {
	w, p := newWorld(t), &pauses{}
	w.use(func(c *scheduler.Config) { c.Held = p })
	w.submit(w.define(twoSteps), "j")
	p.sure = 0
	w.handle(w.done("j", "first"))
	if p.sure != 0 || p.asked == 0 {
		t.Errorf("a success: got %d looks, %d of them at the pauses of now, want none of these", p.asked, p.sure)
	}
	w.handle(w.record("j", job.StepHeld{Reply: job.Reply{Step: "second", Attempt: 1, Token: machine.Token(w.job("j"), "second", 1)}}))
	if p.sure != 1 {
		t.Errorf("a task that is held: got %d looks at the pauses of now, want one", p.sure)
	}
}

// An attempt that was closed for a decision whose save was lost is closed, and not asked to be closed again.
func TestAnAttemptIsClosedOnceForADecisionThatIsTriedAgain(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define("name: both\nsteps: [{name: first, agent: a, needs: [], timeout: 30s}, {name: second, agent: a, needs: [], timeout: 1h}]"), "j")
	w.claim("j", "first")
	second := w.done("j", "second")
	w.now = w.now.Add(time.Minute)
	due := w.deadline("j")
	other := w.second()
	w.beforeSave("j", func() { w.handleWith(other, second) })
	w.forget()
	if failed := w.handle(due); failed != nil {
		t.Errorf("wants again: %v, want none", failed)
	}
	if got := w.s.Stats().Conflicts; got != 1 {
		t.Errorf("got %d conflicts, want one", got)
	}
	w.checkCalls(map[string]int{"Close": 1, "Save": 2})
}

// The large output that a person gives a step is kept beside the job, as that of its agent is.
func TestALargeOutputOfASettledStepIsKeptBesideTheJob(t *testing.T) {
	for bytes, beside := range map[int]bool{limits.MaxInlineBytes: false, limits.MaxInlineBytes + 1: true} {
		w := newWorld(t)
		w.submit(w.define("name: one\nonFailure: stop\nsteps: [{name: first, agent: a, retry: {attempts: 1}}]"), "j")
		w.handle(w.failed("j", "first", w.claim("j", "first"), job.StepError{Message: "no", Applied: makegood.AppliedNo}))
		output := text(bytes, "x")
		_, v, err := w.s.Settle(t.Context(), "j", job.Settled{Place: job.Place{Step: "first"}, Done: true, Output: wire.Inline(output), Reason: "done by hand"})
		if err != nil || v.Kind != machine.Applied {
			t.Fatalf("got %+v, %v, want it settled", v, err)
		}
		step, _ := w.job("j").Step("first")
		if got := w.output("j", "first"); got != string(output) || (step.Forward.Output.Ref != "") != beside {
			t.Errorf("%d bytes: got %d, kept as %q, want all, beside the job: %v", bytes, len(got), step.Forward.Output.Ref, beside)
		}
	}
}

// An input whose parts are gone from the store is not what was sent, and says so.
func TestAnInputWhosePartsAreGoneIsNotWhatWasSent(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define("name: two\nsteps: [{name: first, agent: a}, {name: second, agent: b, with: {all: \"${ .steps.first.output }\"}}]"), "j")
	w.handle(w.says("j", "first", w.claim("j", "first"), text(limits.MaxInlineBytes+1, "x")))
	w.use(func(c *scheduler.Config) { c.Payloads = gone{c.Payloads} })
	all, err := w.s.SentInputs(t.Context(), "j", "second", nil)
	if err != nil || len(all.Inputs) != 1 || all.Inputs[0].AsSent || !strings.Contains(all.Inputs[0].Problem, "is gone from the store") {
		t.Errorf("got %+v, %v, want that a part is gone, and that it is not what was sent", all, err)
	}
}
