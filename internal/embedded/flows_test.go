package embedded_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

func TestAChainOfSixtyStepsEndsProcessed(t *testing.T) {
	var r troupe
	w := open(t, embedded.Config{Agents: r.agents("a")})
	yaml, want := "name: chain\nsteps:\n", ""
	for i := range 60 {
		yaml += fmt.Sprintf("  - {name: s%d, agent: a}\n", i)
		want += fmt.Sprintf("s%d ", i)
	}
	w.submit(w.define(yaml), "j", `{"n": 1}`)
	w.ends("j", makegood.JobProcessed)
	if got := r.order(); got != strings.TrimSpace(want) {
		t.Errorf("the steps ran in the order %s, want %s", got, want)
	}
}

// Twenty layers of ten steps, each needing two of the layer before.
func TestAWorkflowOfTwoHundredStepsEndsProcessed(t *testing.T) {
	var r troupe
	w := open(t, embedded.Config{Agents: r.agents("a", "b")})
	yaml := "name: wide\nsteps:\n"
	for layer := range 20 {
		for i := range 10 {
			needs := ""
			if layer > 0 {
				needs = fmt.Sprintf("l%ds%d, l%ds%d", layer-1, i, layer-1, (i+1)%10)
			}
			yaml += fmt.Sprintf("  - {name: l%ds%d, agent: %c, needs: [%s]}\n", layer, i, 'a'+i%2, needs)
		}
	}
	c := w.define(yaml)
	w.submit(c, "j", `{}`)
	w.ends("j", makegood.JobProcessed)
	began := map[string]int{}
	for i, task := range r.seen("") {
		if _, twice := began[task.Step]; twice {
			t.Errorf("step %s ran twice", task.Step)
		}
		began[task.Step] = i
	}
	for _, s := range c.Workflow.Steps {
		for _, need := range s.Needs {
			if began[s.Name] < began[need] {
				t.Errorf("step %s began before %s, which it needs", s.Name, need)
			}
		}
	}
	if len(began) != 200 {
		t.Errorf("%d steps ran, want 200", len(began))
	}
}

func TestADiamondRunsItsBranchesBesideEachOtherAndJoinsThem(t *testing.T) {
	left, right := newDoor(), newDoor()
	r := troupe{script: map[string]work{
		"top": gives(`{"n": 2}`), "left": left.wait, "right": right.wait,
	}}
	w := open(t, embedded.Config{Agents: r.agents("a")})
	w.submit(w.define(`
name: diamond
steps:
  - {name: top, agent: a}
  - {name: left, agent: a, needs: [top], with: {n: "${ .steps.top.output.n * 10 }"}}
  - {name: right, agent: a, needs: [top], with: {n: "${ .steps.top.output.n * 100 }"}}
  - {name: bottom, agent: a, needs: [left, right], with: {text: "${ .steps.left.output } and ${ .steps.right.output } of ${ .job.id }", top: "${ .steps.top.output }"}}
`), "j", `{}`)
	// Both are there before either is let go: they run beside each other.
	for _, branch := range []struct {
		door *door
		want string
	}{{left, `{"n":20}`}, {right, `{"n":200}`}} {
		if task := <-branch.door.arrived; string(task.Input) != branch.want {
			t.Errorf("input of %s: got %s, want %s", task.Step, task.Input, branch.want)
		}
	}
	close(left.open)
	w.until("j", func(j job.Job) bool { return stepOf(t, j, "left").Forward.State == job.Done })
	if got := r.seen("bottom"); len(got) > 0 {
		t.Errorf("bottom began before right was done")
	}
	close(right.open)
	w.ends("j", makegood.JobProcessed)
	bottom := r.seen("bottom")
	if want := `{"text":"ok and ok of j","top":{"n":2}}`; len(bottom) != 1 || string(bottom[0].Input) != want {
		t.Errorf("bottom: got %d tasks, %+v, want one with %s", len(bottom), bottom, want)
	}
}

func TestASkippedStepIsDoneWithANullOutput(t *testing.T) {
	var r troupe
	w := open(t, embedded.Config{Agents: r.agents("a")})
	w.submit(w.define(`
name: skips
steps:
  - {name: look, agent: a}
  - {name: mail, agent: a, when: "${ .input.email != null }"}
  - {name: follow, agent: a, needs: [mail], when: "${ .steps.mail.output != null }"}
  - {name: report, agent: a, needs: [look, mail, follow], with: {mail: "${ .steps.mail.output }", both: "${ [.steps.look.output, .steps.follow.output] }"}}
`), "j", `{"email": null}`)
	j := w.ends("j", makegood.JobProcessed)
	if got, want := r.order(), "look report"; got != want {
		t.Errorf("got the steps %s, want %s", got, want)
	}
	for _, name := range []string{"mail", "follow"} {
		if got := stepOf(t, j, name).Forward.State; got != job.Skipped {
			t.Errorf("%s: got %q, want skipped", name, got)
		}
	}
	if got, want := string(r.seen("report")[0].Input), `{"both":["ok",null],"mail":null}`; got != want {
		t.Errorf("input of report: got %s, want %s", got, want)
	}
}

// The first step of a workflow may be the one that is skipped, and then all may be: the job is at its
// end before anything was sent.
func TestAJobWhoseStepsAreAllSkippedIsProcessedAtOnce(t *testing.T) {
	p := newTap()
	var r troupe
	w := open(t, embedded.Config{Agents: r.agents("a"), WrapQueues: p.wrap})
	j := w.submit(w.define(`
name: nothing
steps:
  - {name: one, agent: a, when: "${ .input.go }"}
  - {name: two, agent: a, when: "${ .input.go }"}
`), "j", `{"go": false}`)
	if j.ProcessState != makegood.JobProcessed || !j.CompleteBy.IsZero() {
		t.Errorf("got %s with CompleteBy %s, want Processed, out of the index", j.ProcessState, j.CompleteBy)
	}
	if n := p.count("tasks-a"); n != 0 {
		t.Errorf("%d tasks were sent, want none", n)
	}
}

// An expression that fails is a final failure of its step, with the reason; what was done is undone.
func TestAnExpressionThatFailsGivesItsStepUp(t *testing.T) {
	var r troupe
	w := open(t, embedded.Config{Agents: r.agents("a")})
	w.submit(w.define(`
name: broken
steps:
  - {name: first, agent: a, undo: {action: takeback}}
  - {name: second, agent: a, with: {n: "${ .steps.first.output + 1 }"}}
`), "j", `{}`)
	j := w.ends("j", makegood.JobError)
	if got, want := r.order(), "first"; got != want {
		t.Errorf("got the actions %s, want %s", got, want)
	}
	if !strings.Contains(j.Reason, "step second failed: ") || !strings.Contains(j.Reason, "cannot add") {
		t.Errorf("got the reason %q, want the step and what jq said", j.Reason)
	}
}

func TestOutputsBeyondTheInlineLimitAreSpilledAndReadBack(t *testing.T) {
	just, over := text(limits.MaxInlineBytes), text(limits.MaxInlineBytes+1)
	large := text(makegood.MaxPayloadBytes)
	r := troupe{script: map[string]work{
		"just": gives(just), "over": gives(over), "large": gives(large), "last": always(agent.Final(errDeaf)),
	}}
	w := open(t, embedded.Config{Dir: t.TempDir(), Agents: r.agents("a")})
	w.submit(w.define(`
name: spill
steps:
  - {name: just, agent: a, undo: none}
  - {name: over, agent: a, undo: {action: back, with: {own: "${ .steps.over.output | length }"}}}
  - {name: large, agent: a, with: {sum: "${ (.steps.just.output | length) + (.steps.over.output | length) }"}, undo: {action: large_back, with: {}}}
  - {name: last, agent: a, with: {large: "${ .steps.large.output | length }", over: "${ .steps.over.output }"}}
`), "j", fmt.Sprintf(`{"text": %s}`, text(1000)))
	j := w.ends("j", makegood.JobUndone)
	for _, want := range []struct {
		step   string
		inline bool
		bytes  int
	}{{"just", true, len(just)}, {"over", false, len(over)}, {"large", false, len(large)}} {
		got := stepOf(t, j, want.step).Forward.Output
		if (got.Inline != nil) != want.inline || (got.Ref == "") != want.inline || got.Bytes != want.bytes {
			t.Errorf("output of %s: got %d bytes inline, ref %q, %d bytes, want inline %t, %d bytes",
				want.step, len(got.Inline), got.Ref, got.Bytes, want.inline, want.bytes)
		}
	}
	if j.Input.Ref == "" || j.Input.Inline != nil {
		t.Errorf("input of %d bytes: got ref %q and %d bytes inline, want it spilled", j.Input.Bytes, j.Input.Ref, len(j.Input.Inline))
	}
	for action, want := range map[string]string{
		"just":  fmt.Sprintf(`{"text":%s}`, text(1000)),
		"large": fmt.Sprintf(`{"sum":%d}`, len(just)-2+len(over)-2),
		"last":  fmt.Sprintf(`{"large":%d,"over":%s}`, len(large)-2, over),
		"back":  fmt.Sprintf(`{"own":%d}`, len(over)-2),
	} {
		if got := string(r.seen(action)[0].Input); got != want {
			t.Errorf("input of %s: got %.80s of %d bytes, want %.80s of %d", action, got, len(got), want, len(want))
		}
	}
	if got := r.seen("large_back")[0].Undo.Output; string(got) != large {
		t.Errorf("the undo of large was told an output of %d bytes, want the %d that it gave", len(got), len(large))
	}
}

// text returns a JSON string of n bytes, quotes included.
func text(n int) string { return `"` + strings.Repeat("x", n-2) + `"` }

// An output that no message can carry becomes a large payload of the job, and its undo is told of it by reference.
func TestAnOutputBeyondThePayloadLimitGoesByReference(t *testing.T) {
	r := troupe{script: map[string]work{"big": gives(text(makegood.MaxPayloadBytes + 1)), "bad": func(context.Context, makegood.Task) (json.RawMessage, error) {
		return nil, agent.Final(errors.New("no"))
	}}}
	w := open(t, embedded.Config{Agents: r.agents("a")})
	w.submit(w.define("name: big\nsteps: [{name: big, agent: a, undo: {action: small}}, {name: bad, agent: a, undo: none}]"), "j", `{}`)
	w.ends("j", makegood.JobUndone)
	p, whole := domain.WholePayload(r.seen("small")[0].Undo.Output)
	if !whole || p.Bytes != makegood.MaxPayloadBytes+1 || p.By != "a" || p.Type != makegood.PayloadJSON {
		t.Errorf("the undo was told %.200s", r.seen("small")[0].Undo.Output)
	}
}

// A task that can never be sent is a final failure of its step: no time mends it, and nothing of it
// has started.
func TestATaskTooLargeToSendGivesItsStepUp(t *testing.T) {
	r := troupe{script: map[string]work{"half": gives(text(200 << 10))}}
	w := open(t, embedded.Config{Agents: r.agents("a")})
	w.submit(w.define(`
name: heavy
steps:
  - {name: half, agent: a, undo: {action: back, with: {}}}
  - {name: whole, agent: a, with: {one: "${ .steps.half.output }", two: "${ .steps.half.output }"}, undo: {action: never}}
`), "j", `{}`)
	j := w.ends("j", makegood.JobError)
	if got, want := r.order(), "half"; got != want {
		t.Errorf("got the actions %s, want %s", got, want)
	}
	if !strings.Contains(j.Reason, "step whole failed: ") || !strings.Contains(j.Reason, "262144 bytes") {
		t.Errorf("got the reason %q, want the step and the limit", j.Reason)
	}
	if j.FailureCount != 0 || stepOf(t, j, "whole").Attempt != 0 {
		t.Errorf("got %d failures and attempt %d of whole, want none: it never started", j.FailureCount, stepOf(t, j, "whole").Attempt)
	}
}

// Everything that reaches a job is JSON of the submitter or an agent, whatever characters are in it.
func TestAnyCharacterOfAnInputOrOutputReachesTheAgents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const odd = "\"\\u0000\\u0001 <&> \U0001F600 \\ufffe\\uffff \uFFFD \\ud83d\\ude00 \\\" \\\\ end\""
		r := troupe{script: map[string]work{"first": gives(odd)}}
		w := open(t, embedded.Config{Agents: r.agents("a")})
		w.submit(w.define(`
name: odd
steps:
  - {name: first, agent: a}
  - {name: second, agent: a, with: {got: "${ .steps.first.output }", text: "> ${ .steps.first.output }", in: "${ .input }"}}
`), "j", odd)
		w.ends("j", makegood.JobProcessed)
		var want string
		if err := json.Unmarshal([]byte(odd), &want); err != nil {
			t.Fatal(err)
		}
		var got struct{ Got, Text, In string }
		if err := json.Unmarshal(r.seen("second")[0].Input, &got); err != nil {
			t.Fatal(err)
		}
		if got.Got != want || got.In != want || got.Text != "> "+want {
			t.Errorf("got %q, want %q thrice", got, want)
		}
	})
}
