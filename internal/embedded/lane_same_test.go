package embedded_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/control"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
)

// The outcome of an inline attempt is what it were if its reply came by the queue.
func TestAnInlineReplyIsWhatItWereByTheQueue(t *testing.T) {
	long := strings.Repeat("ż", 5000)
	for name, do := range map[string]work{
		"spaces":            gives(` { "a" : 1 , "b" : [ ] } `),
		"null":              gives("null"),
		"none":              gives(""),
		"not JSON":          gives("{"),
		"large":             gives(`"` + strings.Repeat("x", 200_000) + `"`),
		"escapes":           gives(`"<&>\u003c\u2028é"`),
		"too large":         gives(`"` + strings.Repeat("x", makegood.MaxPayloadBytes) + `"`),
		"long error":        always(agent.Final(errors.New(long))),
		"not UTF-8":         always(agent.Final(errors.New("a\xffb"))),
		"waits long":        always(agent.Wait(time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC))),
		"waits before time": always(agent.Wait(time.Date(-5, 1, 1, 0, 0, 0, 0, time.UTC))),
		"waited":            always(agent.Wait(time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC))),
		"odd kind":          always(agent.Final(agent.Kind("what kind?", errors.New("no")))),
		"forever":           always(agent.RetryAfter(1<<62, errors.New("busy"))),
		"a moment":          always(agent.RetryAfter(-time.Hour, errors.New("busy"))),
		"no error":          func(context.Context, makegood.Task) (json.RawMessage, error) { return nil, (*nilError)(nil) },
		"goes":              func(context.Context, makegood.Task) (json.RawMessage, error) { runtime.Goexit(); return nil, nil },
	} {
		t.Run(name, func(t *testing.T) {
			var got [2]string
			for i, inline := range []string{"false", "true"} {
				synctest.Test(t, func(t *testing.T) {
					r := troupe{script: map[string]work{"do": do}}
					w := open(t, embedded.Config{Agents: r.agents("a")})
					c := w.define("name: order\nsteps: [{name: one, agent: a, action: do, inline: " + inline + ", retry: {attempts: 2}}]")
					synctest.Wait()
					w.submit(c, "j", `{}`)
					time.Sleep(time.Minute)
					synctest.Wait()
					j, err := w.engine.Job(t.Context(), "j")
					if err != nil {
						t.Fatal(err)
					}
					a := stepOf(t, j, "one").Forward
					wait := ""
					if a.Wait != nil {
						wait = a.Wait.Deadline.Format(time.RFC3339)
					}
					why := ""
					if a.Error != nil {
						why = fmt.Sprintf("%+v", *a.Error)
					}
					got[i] = fmt.Sprintf("%s %s output %.300s %.13s error %s wait %s attempts %d unknown %v", j.ProcessState, a.State, a.Output.Inline, a.Output.Ref, why, wait, a.Attempt, a.Unknown)
				})
			}
			if got[0] != got[1] {
				t.Errorf("by the queue:\n%s\ninline:\n%s", got[0], got[1])
			}
		})
	}
}

type nilError struct{ text string }

func (e *nilError) Error() string { return e.text }

// trial is a job with a step that waits at a door, and the answers to what was asked of it.
type trial struct {
	*world
	door            *door
	inline, answers string
}

// asks notes the answer to a request.
func (r *trial) asks(ask func(control.Scheduler) (job.Job, machine.Verdict, error)) {
	_, verdict, err := ask(r.engine.Parts().Scheduler)
	r.answers += fmt.Sprintf("%s %s %v; ", verdict.Kind, verdict.Reason, err)
	synctest.Wait()
}

func (r *trial) requests(all ...job.Requested) {
	for _, e := range all {
		e.Request = fmt.Sprint(len(r.answers))
		r.asks(func(s control.Scheduler) (job.Job, machine.Verdict, error) {
			return s.Request(r.t.Context(), "j", e)
		})
	}
}

// holder is the name of the holder of an attempt.
var holder = regexp.MustCompile(`held by \S+`)

// Requests, timeouts and answers that come while an inline attempt runs are those of any attempt.
func TestWhatComesWhileAnInlineAttemptRuns(t *testing.T) {
	const plain = "steps: [{name: charge, agent: a, INLINE, undo: {action: refund}}, {name: ship, agent: a, INLINE}]"
	const stops = "onFailure: stop\nsteps: [{name: bad, agent: a, needs: [], undo: none}, {name: charge, agent: a, INLINE, needs: [], undo: {action: refund}}, {name: ship, agent: a, INLINE, needs: [charge, bad]}]"
	charge := job.Place{Step: "charge"}
	for name, c := range map[string]struct {
		yaml string
		do   func(*trial)
	}{
		"nothing":            {plain, func(*trial) {}},
		"timeout of the job": {"timeout: 10s\n" + plain, func(*trial) { time.Sleep(15 * time.Second) }},
		"its own timeout":    {plain, func(*trial) { time.Sleep(100 * time.Second) }},
		"pause and resume": {plain, func(r *trial) {
			r.requests(job.Requested{Verb: makegood.VerbPause})
			time.Sleep(3 * time.Second)
			r.requests(job.Requested{Verb: makegood.VerbResume})
		}},
		"cancel": {plain, func(r *trial) { r.requests(job.Requested{Verb: makegood.VerbCancel}) }},
		"redo":   {plain, func(r *trial) { r.requests(job.Requested{Verb: makegood.VerbRedo}) }},
		"undo and forward": {plain, func(r *trial) {
			r.requests(job.Requested{Verb: makegood.VerbUndo}, job.Requested{Verb: makegood.VerbForward})
		}},
		"edit": {plain, func(r *trial) {
			r.requests(job.Requested{Verb: makegood.VerbEdit, Timeout: makegood.Second})
			time.Sleep(2 * time.Second)
		}},
		"settle": {plain, func(r *trial) {
			r.asks(func(s control.Scheduler) (job.Job, machine.Verdict, error) {
				return s.Settle(r.t.Context(), "j", job.Settled{Place: charge, Done: true})
			})
		}},
		"complete": {plain, func(r *trial) {
			r.asks(func(s control.Scheduler) (job.Job, machine.Verdict, error) {
				return s.Complete(r.t.Context(), "j", job.StepCompleted{Place: charge})
			})
		}},
		"complete by its token": {plain, func(r *trial) {
			j, err := r.engine.Job(r.t.Context(), "j")
			if err != nil {
				r.t.Fatal(err)
			}
			place := job.Place{Step: "charge", Round: 1, Token: machine.CompletionToken(j, "charge", false)}
			for _, e := range []*job.StepError{nil, {Message: "too late"}} {
				r.asks(func(s control.Scheduler) (job.Job, machine.Verdict, error) {
					return s.Complete(r.t.Context(), "j", job.StepCompleted{Place: place, Error: e, Request: fmt.Sprint(e == nil)})
				})
			}
		}},
		"resubmit to another definition": {stops, func(r *trial) {
			time.Sleep(3 * time.Second) // The step beside it has stopped the job.
			other := r.define("name: pay\n" + strings.ReplaceAll(stops, "INLINE", "action: other, "+r.inline))
			r.requests(job.Requested{Verb: makegood.VerbResubmit, Definition: other.Hash})
			close(r.door.open)
			time.Sleep(3 * time.Second)
			r.requests(job.Requested{Verb: makegood.VerbResubmit, Definition: other.Hash}, job.Requested{Verb: makegood.VerbResubmit})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var got [2]string
			for i, inline := range []string{"inline: false", "inline: true"} {
				synctest.Test(t, func(t *testing.T) {
					d := newDoor()
					r := troupe{script: map[string]work{"charge": d.wait, "bad": once(agent.Final(errors.New("no")))}}
					fails := r.script["bad"]
					r.script["bad"] = func(ctx context.Context, task makegood.Task) (json.RawMessage, error) {
						time.Sleep(time.Second) // Else it may stop the job before the step beside it has begun.
						return fails(ctx, task)
					}
					play := &trial{world: open(t, embedded.Config{Agents: r.agents("a")}), door: d, inline: inline}
					def := play.define("name: pay\n" + strings.ReplaceAll(c.yaml, "INLINE", inline))
					synctest.Wait()
					play.submit(def, "j", `{}`)
					<-d.arrived
					synctest.Wait()
					c.do(play)
					select {
					case <-d.open:
					default:
						close(d.open)
					}
					time.Sleep(time.Minute)
					synctest.Wait()
					j, err := play.engine.Job(t.Context(), "j")
					if err != nil {
						t.Fatal(err)
					}
					ran := strings.Fields(r.order())
					slices.Sort(ran)
					got[i] = fmt.Sprintf("%s by %v, %s; %s", j.ProcessState, ran, j.Reason, holder.ReplaceAllString(play.answers, "held"))
				})
			}
			if got[0] != got[1] {
				t.Errorf("by the queue: %s\ninline:       %s", got[0], got[1])
			}
		})
	}
}

// Whatever its rules, a workflow comes to the same inline as by the queues.
func TestAWorkflowComesToTheSameInline(t *testing.T) {
	for name, yaml := range map[string]string{
		"repeat": `steps: [{name: one, agent: a, action: third, INLINE, repeat: {until: "${ .output == 3 }", every: 1s, for: 1m}, undo: {action: back}}, {name: two, agent: a, action: fatal, INLINE}]`,
		"skip":   `steps: [{name: one, agent: a, action: fatal, INLINE, onError: [{kind: "*", do: skip}], undo: none}, {name: two, agent: a, INLINE}]`,
		"goto": `
steps:
  - {name: one, agent: a, action: fatal, INLINE, onError: [{kind: "*", do: goto mend}], undo: none}
  - {name: two, agent: a, INLINE, undo: none}
  - {name: mend, agent: a, INLINE, only: onError}`,
		"fail and go back": `steps: [{name: one, agent: a, INLINE, undo: {action: fatal}}, {name: two, agent: a, action: fatal, INLINE}]`,
		"restart":          "onFailure: restart 2 wait 1s\nsteps: [{name: one, agent: a, INLINE, undo: {action: back}}, {name: two, agent: a, action: fatal, INLINE}]",
		"wait":             "onFailure: wait 20s\nsteps: [{name: one, agent: a, action: second, INLINE, retry: {attempts: 1}}]",
		"stop":             "onFailure: stop\nsteps: [{name: one, agent: a, action: fatal, INLINE}, {name: two, agent: a, INLINE}]",
		"waits":            `steps: [{name: one, agent: a, action: waits, INLINE, retry: {attempts: 1}, undo: none}, {name: two, agent: a, INLINE}]`,
		"wrong input":      `steps: [{name: one, agent: a, INLINE, undo: none}, {name: two, agent: a, INLINE, with: "${ .steps.one.output.x.y | error }"}]`,
		"retries":          `steps: [{name: one, agent: a, action: second, INLINE, retry: {attempts: 3, backoff: 1s}}]`,
		"hangs":            `steps: [{name: one, agent: a, action: hangs, INLINE, timeout: 2s, retry: {attempts: 2, backoff: 1s}, undo: {action: back}}]`,
		"panics":           `steps: [{name: one, agent: a, action: panics, INLINE, retry: {attempts: 2, backoff: 1s}, undo: {action: back}}]`,
	} {
		t.Run(name, func(t *testing.T) {
			var got [2]string
			for i, inline := range []string{"inline: false", "inline: true"} {
				synctest.Test(t, func(t *testing.T) {
					var third, second atomic.Int64
					r := troupe{script: map[string]work{
						"fatal": always(agent.Final(errors.New("no"))), "waits": always(agent.Wait(time.Now().Add(10 * time.Second))),
						"third": func(context.Context, makegood.Task) (json.RawMessage, error) { return json.Marshal(third.Add(1)) },
						"hangs": func(context.Context, makegood.Task) (json.RawMessage, error) {
							time.Sleep(5 * time.Second)
							return nil, nil
						},
						"panics": func(context.Context, makegood.Task) (json.RawMessage, error) { panic("no") },
						"second": func(context.Context, makegood.Task) (json.RawMessage, error) {
							if second.Add(1) < 2 {
								return nil, errors.New("busy")
							}
							return json.RawMessage("true"), nil
						},
					}}
					w := open(t, embedded.Config{Agents: r.agents("a")})
					c := w.define("name: order\n" + strings.ReplaceAll(yaml, "INLINE", inline))
					synctest.Wait()
					w.submit(c, "j", `{}`)
					time.Sleep(3 * time.Minute)
					synctest.Wait()
					j, err := w.engine.Job(t.Context(), "j")
					if err != nil {
						t.Fatal(err)
					}
					got[i] = fmt.Sprintf("%s by %s: %s;", j.ProcessState, r.order(), j.Reason)
					for _, s := range j.Steps {
						got[i] += fmt.Sprintf(" %s %s/%s attempts %d failures %d unknown %v", s.Name, s.Forward.State, s.Undo.State, s.Attempt, s.Forward.FailureCount, s.Forward.Unknown)
					}
				})
			}
			if got[0] != got[1] {
				t.Errorf("by the queue: %s\ninline:       %s", got[0], got[1])
			}
		})
	}
}
