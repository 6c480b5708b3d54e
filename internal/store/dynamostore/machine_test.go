package dynamostore

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/testkit/seed"
)

// Jobs as the machine makes them, through undo, silence, pauses, cancels and new rounds: each is packed
// and read again after every event, with the details of the save before it at hand, or not.
func TestJobsOfTheMachineAreLoadedAsTheyWereSaved(t *testing.T) {
	seed.Check(t, func(t *rapid.T) {
		x := newPlay(t)
		for range rapid.IntRange(1, 40).Draw(t, "events") {
			x.event()
		}
	})
}

// play is a job that random events happen to.
type play struct {
	*rapid.T
	w      makegood.Workflow
	job    job.Job
	now    time.Time
	beside int
	stored []detail
	bodies map[string][]byte
	slots  map[string]store.ClaimItem
}

func newPlay(t *rapid.T) *play {
	w := makegood.Workflow{Name: "order", Timeout: makegood.Hour}
	w.OnFailure.Action = rapid.SampledFrom([]makegood.FailureAction{"", makegood.FailureStop}).Draw(t, "onFailure")
	for i := range rapid.SampledFrom([]int{1, 3, 12}).Draw(t, "steps") {
		s := makegood.Step{Name: fmt.Sprintf("step_%03d", i), Agent: "shop", Undo: &makegood.Undo{None: true}}
		if rapid.Bool().Draw(t, "undo") {
			s.Undo = &makegood.Undo{Action: "undo"}
		}
		if rapid.Bool().Draw(t, "parallel") {
			s.Needs = []string{}
		}
		s.Retry.Attempts = rapid.IntRange(1, 3).Draw(t, "attempts")
		w.Steps = append(w.Steps, s)
	}
	x := &play{
		T: t, w: domain.WithDefaults(w), now: time.UnixMilli(1_700_000_000_000).UTC(), bodies: map[string][]byte{}, slots: map[string]store.ClaimItem{},
		beside: rapid.SampledFrom([]int{0, 600, 2000}).Draw(t, "beside"),
	}
	j, v := machine.Submit(x.w, machine.Submission{ID: "a", Definition: "0a0b", InputHash: "0c0d", Birth: "0e0f", ReplyTo: "me"}, x.facts(), x.now)
	if v.Kind != machine.Applied {
		t.Fatalf("submit: got %v", v)
	}
	x.save(j)
	return x
}

func (x *play) facts() machine.Facts {
	f := machine.Facts{
		Random: rapid.Uint64().Draw(x.T, "random"), Secret: []byte("sixteen bytes of"), Period: time.Minute,
		Values: map[machine.Want]machine.Fact{}, Found: map[machine.Ask]job.Found{},
	}
	for _, s := range x.w.Steps {
		f.Values[machine.Want{Step: s.Name}] = machine.Fact{Run: rapid.IntRange(0, 5).Draw(x.T, "run") > 0}
		f.Values[machine.Want{Step: s.Name, Undo: true}] = machine.Fact{Run: true}
	}
	return f
}

// event makes something happen, and saves what becomes of the job.
func (x *play) event() {
	x.now = x.now.Add(time.Duration(rapid.IntRange(0, 40_000).Draw(x.T, "ms")) * time.Millisecond)
	e := x.draw()
	x.apply(e)
	for _, c := range machine.Pending(x.w, x.job, e, x.now) {
		if c, ok := c.(job.CloseAttempt); ok && rapid.Bool().Draw(x.T, "closed") {
			found := x.answer(machine.Ask{Kind: machine.AskClose, Step: c.Step, Attempt: c.Attempt, Undo: c.Undo, Mark: c.Mark})
			x.apply(job.AttemptClosed{Step: c.Step, Attempt: c.Attempt, Found: found, Asked: c.Asked})
		}
	}
}

func (x *play) apply(e job.Event) {
	facts := x.facts()
	next, v := machine.Apply(x.w, x.job, e, facts, x.now)
	for v.Kind == machine.Wanting {
		for _, ask := range v.Asks {
			facts.Found[ask] = x.answer(ask)
		}
		next, v = machine.Apply(x.w, x.job, e, facts, x.now)
	}
	if v.Kind == machine.Applied {
		x.save(next)
	}
}

// answer says what is known of an attempt, as a store would.
func (x *play) answer(ask machine.Ask) job.Found {
	state, _ := x.job.Step(ask.Step)
	a := state.Forward
	if ask.Undo {
		a = state.Undo
	}
	if ask.Kind == machine.AskLook {
		return store.Looked(x.slots[ask.Step], ask.Attempt, a.ClaimUntil(), x.now)
	}
	c := store.Closing{Attempt: ask.Attempt, Until: a.ClaimUntil(), Now: x.now, LockedBy: ask.LockedBy}
	if ask.Mark {
		c.Ends = x.now.Add(30 * time.Second)
	}
	next, found := store.Closed(x.slots[ask.Step], c)
	x.slots[ask.Step] = next
	return found
}

func (x *play) draw() job.Event {
	switch rapid.IntRange(0, 7).Draw(x.T, "kind") {
	case 0:
		verb := rapid.SampledFrom(domain.Verbs()).Draw(x.T, "verb")
		return job.Requested{Verb: verb, Request: fmt.Sprint("request-", x.job.Rev)}
	case 1:
		return job.NotHeard{Seq: x.job.Seq}
	case 2:
		return job.Told{Seq: x.job.Seq, Operator: rapid.Bool().Draw(x.T, "operator"), Listener: rapid.Bool().Draw(x.T, "listener")}
	}
	out := x.out()
	if len(out) == 0 || rapid.IntRange(0, 4).Draw(x.T, "late") == 0 {
		x.now = x.job.CompleteBy.Add(time.Millisecond)
		return job.DeadlinePassed{Key: x.job.CompleteBy}
	}
	reply := rapid.SampledFrom(out).Draw(x.T, "reply")
	claim := job.Claim{Attempt: reply.Attempt, LockedBy: reply.LockedBy, StartedAt: x.now, CompleteBy: x.now.Add(30 * time.Second)}
	if next, err := store.Claimed(x.slots[reply.Step], claim, x.now.Add(time.Hour)); err == nil {
		x.slots[reply.Step] = next
	}
	if rapid.IntRange(0, 2).Draw(x.T, "fail") > 0 {
		output := json.RawMessage(`{"ok":true}`)
		return job.StepSucceeded{Reply: reply, Output: job.Payload{Inline: output, Bytes: len(output)}}
	}
	return job.StepFailed{
		Reply: reply, Error: job.StepError{Message: "no stock", Retryable: rapid.Bool().Draw(x.T, "retryable"), Applied: makegood.AppliedUnknown},
	}
}

// out returns a reply to each attempt that is out.
func (x *play) out() (replies []job.Reply) {
	for _, s := range x.job.Steps {
		for _, a := range []job.Activity{s.Forward, s.Undo} {
			if a.State == job.Dispatched {
				replies = append(replies, job.Reply{
					Step: s.Name, Attempt: a.Attempt, Token: machine.Token(x.job, s.Name, a.Attempt),
					LockedBy: fmt.Sprint("agent:", a.Attempt), StartedAt: x.now,
				})
			}
		}
	}
	return replies
}

func (x *play) save(j job.Job) {
	p := pack(j, x.stored, x.beside)
	got, stored := unpackAll(x, p, x.bodies)
	j.Needs = p.needs
	same(x, "job", got, inData(j))
	if x.stored = stored; rapid.IntRange(0, 3).Draw(x.T, "forget") == 0 {
		x.stored = nil
	}
	j.Rev++
	x.job = j
}
