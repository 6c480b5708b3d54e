package embedded_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
)

// order is the workflow of most tests here: three steps that can be undone.
const order = `
name: order
steps:
  - {name: reserve, agent: inventory, undo: {action: release}}
  - {name: charge, agent: payments, undo: {action: refund, with: {charged: "${ .steps.charge.output }"}}}
  - {name: ship, agent: shipping, undo: {action: recall}}
`

var (
	errNo           = errors.New("the service says no")
	finalNotApplied = agent.Final(agent.NotApplied(errNo))
)

func TestUndosRunInReverseOrderAndAreToldWhatTheyUndo(t *testing.T) {
	r := troupe{script: map[string]work{
		"charge": gives(`{"id": "c-17"}`), "ship": always(finalNotApplied),
	}}
	w := open(t, embedded.Config{Agents: r.agents("inventory", "payments", "shipping")})
	w.submit(w.define(order), "j", `{"sku": "a"}`)
	j := w.ends("j", makegood.JobUndone)
	if got, want := r.order(), "reserve charge ship refund release"; got != want {
		t.Errorf("got the actions %s, want %s", got, want)
	}
	want := []makegood.Task{
		{
			Step: "charge", Attempt: 2, Agent: "payments", Key: "j/charge/1/undo", Input: json.RawMessage(`{"charged":{"id":"c-17"}}`),
			Undo: &makegood.UndoTask{ForwardKey: "j/charge/1", Outcome: makegood.OutcomeDone, Output: json.RawMessage(`{"id":"c-17"}`)},
		},
		{
			Step: "reserve", Attempt: 2, Agent: "inventory", Key: "j/reserve/1/undo", Input: json.RawMessage(`{"sku":"a"}`),
			Undo: &makegood.UndoTask{ForwardKey: "j/reserve/1", Outcome: makegood.OutcomeDone, Output: json.RawMessage(`"ok"`)},
		},
	}
	for i, got := range r.seen("")[3:] {
		checkTask(t, got, want[i])
	}
	if want := "step ship failed: the service says no"; j.Reason != want {
		t.Errorf("got the reason %q, want %q", j.Reason, want)
	}
	if got := stepOf(t, j, "ship").Undo.State; got != job.Skipped {
		t.Errorf("the undo of a step that was not applied: got %q, want skipped", got)
	}
}

// checkTask compares what want says of a task.
func checkTask(t *testing.T, got, want makegood.Task) {
	t.Helper()
	if got.Step != want.Step || got.Attempt != want.Attempt || got.Agent != want.Agent || got.Key != want.Key || string(got.Input) != string(want.Input) {
		t.Errorf("got the task %s#%d of %s, key %s, input %s, want %s#%d of %s, key %s, input %s",
			got.Step, got.Attempt, got.Agent, got.Key, got.Input, want.Step, want.Attempt, want.Agent, want.Key, want.Input)
	}
	if got.Undo == nil || want.Undo == nil {
		t.Errorf("step %s: got undo %+v, want %+v", got.Step, got.Undo, want.Undo)
		return
	}
	if got.Undo.ForwardKey != want.Undo.ForwardKey || got.Undo.Outcome != want.Undo.Outcome || string(got.Undo.Output) != string(want.Undo.Output) {
		t.Errorf("the undo of %s was told %s %s %s, want %s %s %s", got.Step,
			got.Undo.ForwardKey, got.Undo.Outcome, got.Undo.Output, want.Undo.ForwardKey, want.Undo.Outcome, want.Undo.Output)
	}
}

// A failure that does not say that nothing was applied leaves the outcome unknown: the step that failed
// is undone, too, by an undo that knows that, and whose expressions work with a null output.
func TestAStepOfUnknownOutcomeIsUndoneWithANullOutput(t *testing.T) {
	r := troupe{script: map[string]work{"charge": always(agent.Final(errNo))}}
	w := open(t, embedded.Config{Agents: r.agents("inventory", "payments", "shipping")})
	w.submit(w.define(order), "j", `{}`)
	w.ends("j", makegood.JobUndone)
	if got, want := r.order(), "reserve charge refund release"; got != want {
		t.Errorf("got the actions %s, want %s", got, want)
	}
	checkTask(t, r.seen("refund")[0], makegood.Task{
		Step: "charge", Attempt: 2, Agent: "payments", Key: "j/charge/1/undo", Input: json.RawMessage(`{"charged":null}`),
		Undo: &makegood.UndoTask{ForwardKey: "j/charge/1", Outcome: makegood.OutcomeUnknown, Output: json.RawMessage(`null`)},
	})
}

// The undo of the diamond's top waits for those of both its branches.
func TestADiamondIsUndoneFromTheBottomUp(t *testing.T) {
	left := newDoor()
	r := troupe{script: map[string]work{"bottom": always(agent.Final(errNo)), "undo_left": left.wait}}
	w := open(t, embedded.Config{Agents: r.agents("a")})
	w.submit(w.define(`
name: diamond
steps:
  - {name: top, agent: a, undo: {action: undo_top}}
  - {name: left, agent: a, needs: [top], undo: {action: undo_left}}
  - {name: right, agent: a, needs: [top], undo: {action: undo_right}}
  - {name: bottom, agent: a, needs: [left, right], undo: {action: undo_bottom}}
`), "j", `{}`)
	<-left.arrived
	w.until("j", func(j job.Job) bool { return stepOf(t, j, "right").Undo.State == job.Done })
	if n := len(r.seen("undo_top")); n > 0 {
		t.Errorf("the top was undone before its left branch")
	}
	close(left.open)
	w.ends("j", makegood.JobUndone)
	actions := strings.Fields(r.order())
	if actions[4] != "undo_bottom" || actions[7] != "undo_top" || len(actions) != 8 {
		t.Errorf("got the actions %s, want the undo of bottom fifth and that of top last, of eight", actions)
	}
}

func TestAProcessedJobIsUndoneOnRequest(t *testing.T) {
	var r troupe
	w := open(t, embedded.Config{Agents: r.agents("inventory", "payments", "shipping")})
	w.submit(w.define(order), "j", `{}`)
	w.ends("j", makegood.JobProcessed)
	w.request("j", makegood.VerbUndo)
	w.until("j", inState(makegood.JobUndone))
	if got, want := r.order(), "reserve charge ship recall refund release"; got != want {
		t.Errorf("got the actions %s, want %s", got, want)
	}
}

// An undo that is refused for good ends in front of a person. A resubmit goes on with undoing.
func TestResubmitGoesOnWithAnUndoThatFailed(t *testing.T) {
	var told bell
	r := troupe{script: map[string]work{
		"ship": always(finalNotApplied), "refund": once(agent.Final(errNo)),
	}}
	w := open(t, embedded.Config{Agents: r.agents("inventory", "payments", "shipping"), Notifier: &told})
	w.submit(w.define(order), "j", `{}`)
	j := w.ends("j", makegood.JobError)
	if want := "undo of charge failed: the service says no"; j.Reason != want || j.Desired != makegood.JobUndone {
		t.Errorf("got %q, wanted %s, want %q, wanted Undone", j.Reason, j.Desired, want)
	}
	w.until("j", job.Job.Told)
	if got := told.heard(); len(got) != 1 || got[0].Job != "j" || got[0].Workflow != "order" || got[0].ProcessState != makegood.JobError || got[0].Reason != j.Reason {
		t.Errorf("told: got %+v, want one Error of job j with its reason", got)
	}
	w.request("j", makegood.VerbResubmit)
	w.until("j", inState(makegood.JobUndone))
	if got, want := r.order(), "reserve charge ship refund refund release"; got != want {
		t.Errorf("got the actions %s, want %s", got, want)
	}
	refunds := r.seen("refund")
	if refunds[0].Key != refunds[1].Key || refunds[0].Attempt >= refunds[1].Attempt {
		t.Errorf("the second refund: got key %s, attempt %d after %s, %d, want the same key and a later attempt",
			refunds[1].Key, refunds[1].Attempt, refunds[0].Key, refunds[0].Attempt)
	}
}

func TestResubmitGoesOnForwardFromWhatFailed(t *testing.T) {
	r := troupe{script: map[string]work{"second": once(agent.Final(errNo))}}
	w := open(t, embedded.Config{Agents: r.agents("a")})
	w.submit(w.define(`
name: stops
onFailure: stop
steps:
  - {name: first, agent: a}
  - {name: second, agent: a}
  - {name: third, agent: a}
`), "j", `{}`)
	w.ends("j", makegood.JobError)
	w.request("j", makegood.VerbResubmit)
	j := w.until("j", inState(makegood.JobProcessed))
	if got, want := r.order(), "first second second third"; got != want {
		t.Errorf("got the actions %s, want %s", got, want)
	}
	second := r.seen("second")
	if second[0].Key != second[1].Key || second[1].Attempt != second[0].Attempt+1 || j.FailureCount != 1 || j.Reason != "" {
		t.Errorf("got keys %s and %s, attempts %d and %d, %d failures, reason %q, want one key, the next attempt, 1 failure, no reason",
			second[0].Key, second[1].Key, second[0].Attempt, second[1].Attempt, j.FailureCount, j.Reason)
	}
}

// The old keys were undone, and remotes refuse them: a new round has its own. Attempts are counted on.
func TestANewRoundHasNewKeysAndLaterAttempts(t *testing.T) {
	r := troupe{script: map[string]work{"ship": once(finalNotApplied)}}
	w := open(t, embedded.Config{Agents: r.agents("inventory", "payments", "shipping")})
	w.submit(w.define(order), "j", `{}`)
	w.ends("j", makegood.JobUndone)
	w.request("j", makegood.VerbResubmit)
	j := w.until("j", inState(makegood.JobProcessed))
	if got, want := r.order(), "reserve charge ship refund release reserve charge ship"; got != want {
		t.Errorf("got the actions %s, want %s", got, want)
	}
	charges := r.seen("charge")
	if charges[1].Key != "j/charge/2" || charges[1].Attempt != 3 || charges[1].Round != 2 || j.Round != 2 {
		t.Errorf("second charge: got key %s, attempt %d, round %d of %d, want j/charge/2, 3, 2 of 2",
			charges[1].Key, charges[1].Attempt, charges[1].Round, j.Round)
	}
}

func TestCancelBeforeAnythingWasClaimedStartsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTap()
		release := p.hold("tasks-inventory")
		var r troupe
		w := open(t, embedded.Config{Agents: r.agents("inventory", "payments", "shipping"), WrapQueues: p.wrap})
		w.submit(w.define(order), "j", `{}`)
		j := w.request("j", makegood.VerbCancel)
		if j.ProcessState != makegood.JobCancelled || !j.CompleteBy.IsZero() || j.Reason != "cancelled on request" {
			t.Errorf("got %s, CompleteBy %s, %q, want Cancelled at once, out of the index", j.ProcessState, j.CompleteBy, j.Reason)
		}
		// The task is still on its way. Nobody may take it any more.
		release()
		synctest.Wait()
		if got := r.order(); got != "" || p.count("tasks-inventory") != 1 {
			t.Errorf("got the actions %q of %d tasks, want none of one", got, p.count("tasks-inventory"))
		}
	})
}

// What was claimed runs to its end, and is undone after that; its agent hears from its next heartbeat
// that nobody wants the result.
func TestCancelWhileAStepRunsTellsItsAgentAndUndoesWhatItDid(t *testing.T) {
	for _, test := range []struct {
		name   string
		answer error
		want   string
	}{
		{"it was done all the same", nil, "reserve charge refund release"},
		{"it may have been done", errNo, "reserve charge refund release"},
		{"it was not done", agent.NotApplied(errNo), "reserve charge release"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				charging, heartbeat, answer := make(chan bool), make(chan bool), make(chan bool)
				var heartbeats []error
				r := troupe{script: map[string]work{"charge": func(ctx context.Context, _ makegood.Task) (json.RawMessage, error) {
					heartbeats = append(heartbeats, agent.Heartbeat(ctx))
					close(charging)
					<-heartbeat
					heartbeats = append(heartbeats, agent.Heartbeat(ctx), ctx.Err())
					<-answer
					return json.RawMessage(`{"id":1}`), test.answer
				}}}
				w := open(t, embedded.Config{Agents: r.agents("inventory", "payments", "shipping")})
				w.submit(w.define(order), "j", `{}`)
				<-charging
				w.request("j", makegood.VerbCancel)
				close(heartbeat)
				synctest.Wait()
				if got := r.order(); got != "reserve charge" {
					t.Errorf("while charge runs: got the actions %s, want reserve charge: nothing is undone before its outcome is known", got)
				}
				close(answer)
				w.ends("j", makegood.JobCancelled)
				if got := r.order(); got != test.want {
					t.Errorf("got the actions %s, want %s", got, test.want)
				}
				if heartbeats[0] != nil || !errors.Is(heartbeats[1], agent.ErrWithdrawn) || heartbeats[2] == nil {
					t.Errorf("heartbeats before and after the cancel: got %v and %v, context %v, want nil, ErrWithdrawn, ended", heartbeats[0], heartbeats[1], heartbeats[2])
				}
			})
		})
	}
}

func TestCancelBetweenStepsUndoesWhatWasDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTap()
		release := p.hold("tasks-payments")
		var r troupe
		w := open(t, embedded.Config{Agents: r.agents("inventory", "payments", "shipping"), WrapQueues: p.wrap})
		w.submit(w.define(order), "j", `{}`)
		w.until("j", func(j job.Job) bool { return stepOf(t, j, "charge").Forward.State == job.Dispatched })
		w.request("j", makegood.VerbCancel)
		w.ends("j", makegood.JobCancelled)
		release()
		synctest.Wait()
		if got, want := r.order(), "reserve release"; got != want {
			t.Errorf("got the actions %s, want %s", got, want)
		}
	})
}

func TestAPausedJobStartsNothingUntilItIsResumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		charge := newDoor()
		r := troupe{script: map[string]work{"charge": charge.wait}}
		w := open(t, embedded.Config{Agents: r.agents("inventory", "payments", "shipping")})
		w.submit(w.define("timeout: 10m\n"+strings.TrimSpace(order)), "j", `{}`)
		<-charge.arrived
		deadline := w.request("j", makegood.VerbPause).Deadline
		close(charge.open)
		w.until("j", func(j job.Job) bool { return stepOf(t, j, "charge").Forward.State == job.Done })
		time.Sleep(time.Hour)
		if got, want := r.order(), "reserve charge"; got != want {
			t.Errorf("paused for an hour: got the actions %s, want %s", got, want)
		}
		j := w.request("j", makegood.VerbResume)
		if got := j.Deadline.Sub(deadline); got != time.Hour {
			t.Errorf("the job's timeout moved by %s, want the hour for which it was paused", got)
		}
		w.ends("j", makegood.JobProcessed)
		if got, want := r.order(), "reserve charge ship"; got != want {
			t.Errorf("got the actions %s, want %s", got, want)
		}
	})
}

func TestARequestIsGrantedOnceAndRefusedWithAReason(t *testing.T) {
	var r troupe
	w := open(t, embedded.Config{Agents: r.agents("inventory", "payments", "shipping")})
	w.submit(w.define(order), "j", `{}`)
	before := w.ends("j", makegood.JobProcessed)
	ask := func(verb makegood.Verb, name string) machine.Verdict {
		t.Helper()
		_, v, err := w.engine.Parts().Scheduler.Request(t.Context(), "j", job.Requested{Verb: verb, Request: name})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for verb, reason := range map[makegood.Verb]string{
		makegood.VerbCancel:   "it is Processed; undo takes it back",
		makegood.VerbResubmit: "it is Processed; submit a new job to do it again",
		makegood.VerbPause:    "it is Processed; no step is left to pause",
	} {
		if got := ask(verb, "r1"); got.Kind != machine.Refused || got.Reason != reason {
			t.Errorf("%s: got %s %q, want refused: %q", verb, got.Kind, got.Reason, reason)
		}
	}
	if j, err := w.engine.Job(t.Context(), "j"); err != nil || j.Rev != before.Rev {
		t.Errorf("after the refusals: got revision %d, %v, want %d", j.Rev, err, before.Rev)
	}
	if got := ask(makegood.VerbUndo, "r2"); got.Kind != machine.Applied {
		t.Errorf("undo: got %s %q, want applied", got.Kind, got.Reason)
	}
	w.until("j", inState(makegood.JobUndone))
	if got := ask(makegood.VerbUndo, "r2"); got.Kind != machine.Duplicate {
		t.Errorf("the same request again: got %s %q, want duplicate", got.Kind, got.Reason)
	}
	if got, want := r.order(), "reserve charge ship recall refund release"; got != want {
		t.Errorf("got the actions %s, want %s", got, want)
	}
}

// A job goes both ways as often as anybody likes. Each way has keys that no other had, and each round all its attempts.
func TestAJobGoesBothWaysAnyNumberOfTimes(t *testing.T) {
	const times = 5
	var r troupe
	w := open(t, embedded.Config{Agents: r.agents("inventory", "payments", "shipping")})
	w.submit(w.define(order), "j", `{}`)
	w.ends("j", makegood.JobProcessed)
	var want []string
	for range times {
		w.request("j", makegood.VerbUndo)
		w.until("j", inState(makegood.JobUndone))
		w.request("j", makegood.VerbResubmit)
		w.until("j", inState(makegood.JobProcessed))
		want = append(want, "reserve charge ship recall refund release")
	}
	want = append(want, "reserve charge ship")
	if got := r.order(); got != strings.Join(want, " ") {
		t.Errorf("got the actions %s, want %s", got, want)
	}
	keys := map[string]bool{}
	for _, task := range r.seen("charge") {
		keys[task.Key] = true
	}
	if len(keys) != times+1 || !keys["j/charge/6"] {
		t.Errorf("charges have the keys %v, want one for each of %d rounds", keys, times+1)
	}
}

// Where onFailure is restart, what was done is undone and the job is tried again by itself, after the wait; between two
// rounds it says when. Whoever waits for it waits on.
func TestARestartBeginsTheNextRoundAfterTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := troupe{script: map[string]work{"ship": once(finalNotApplied)}}
		w := open(t, embedded.Config{Agents: r.agents("inventory", "payments", "shipping")})
		w.patience = 2 * time.Hour
		began := time.Now()
		w.submit(w.define(strings.Replace(order, "\nsteps:", "\nonFailure: restart 2 wait 1h\nsteps:", 1)), "j", `{}`)
		j := w.until("j", func(j job.Job) bool { return !j.NextRoundAt.IsZero() })
		if wait := j.NextRoundAt.Sub(began); j.ProcessState != makegood.JobUndoing || wait < time.Hour || wait > time.Hour+time.Minute {
			t.Errorf("between two rounds: got %s, and the next begins after %s, want Undoing, and about an hour", j.ProcessState, wait)
		}
		w.ends("j", makegood.JobProcessed)
		if took := time.Since(began); took < time.Hour || took > time.Hour+time.Minute {
			t.Errorf("the job took %s, want about an hour", took)
		}
		if got, want := r.order(), "reserve charge ship refund release reserve charge ship"; got != want {
			t.Errorf("got the actions %s, want %s", got, want)
		}
	})
}
