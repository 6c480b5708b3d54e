package dynamostore

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/machine"
)

// Jobs as the machine makes them, through undo, silence, pauses, cancels and new rounds: each is packed
// and read again after every event, with the details of the save before it at hand, or not.
func TestJobsOfTheMachineAreLoadedAsTheyWereSaved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
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
	job    makegood.Job
	now    time.Time
	beside int
	stored []detail
	bodies map[string][]byte
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
		T: t, w: w.WithDefaults(), now: time.UnixMilli(1_700_000_000_000).UTC(), bodies: map[string][]byte{},
		beside: rapid.SampledFrom([]int{0, 600, 2000}).Draw(t, "beside"),
	}
	job, v := machine.Submit(x.w, machine.Submission{ID: "a", Definition: "0a0b", InputHash: "0c0d"}, x.facts(), x.now)
	if v.Kind != machine.Applied {
		t.Fatalf("submit: got %v", v)
	}
	x.save(job, nil)
	return x
}

func (x *play) facts() machine.Facts {
	f := machine.Facts{Random: rapid.Uint64().Draw(x.T, "random"), Values: map[machine.Want]machine.Fact{}}
	for _, s := range x.w.Steps {
		f.Values[machine.Want{Step: s.Name}] = machine.Fact{Run: rapid.IntRange(0, 5).Draw(x.T, "run") > 0}
		f.Values[machine.Want{Step: s.Name, Undo: true}] = machine.Fact{Run: true}
	}
	return f
}

// event makes something happen, and saves what becomes of the job.
func (x *play) event() {
	x.now = x.now.Add(time.Duration(rapid.IntRange(0, 40_000).Draw(x.T, "ms")) * time.Millisecond)
	next, v := machine.Apply(x.w, x.job, x.draw(), x.facts(), x.now)
	if v.Kind == machine.Applied {
		x.save(next, v.Ended)
	}
}

func (x *play) draw() makegood.Event {
	if rapid.IntRange(0, 5).Draw(x.T, "request") == 0 {
		verb := rapid.SampledFrom(makegood.Verbs()).Draw(x.T, "verb")
		return makegood.Requested{Verb: verb, Request: fmt.Sprint("request-", x.job.Rev)}
	}
	if len(x.job.Open) == 0 || rapid.IntRange(0, 4).Draw(x.T, "late") == 0 {
		x.now = x.job.CompleteBy.Add(time.Millisecond)
		return makegood.DeadlinePassed{Key: x.job.CompleteBy}
	}
	var open []string
	for _, s := range x.w.Steps {
		if x.job.Open[s.Name] > 0 {
			open = append(open, s.Name)
		}
	}
	step := rapid.SampledFrom(open).Draw(x.T, "step")
	attempt := x.job.Open[step]
	claim := makegood.Claim{Attempt: attempt, LockedBy: fmt.Sprint("agent:", attempt), StartedAt: x.now, CompleteBy: x.now.Add(30 * time.Second)}
	if x.job.Claims.Slots == nil {
		x.job.Claims.Slots = map[string]makegood.Claim{}
	}
	if _, held := x.job.Claims.Slots[step]; !held {
		x.job.Claims.Slots[step] = claim
	}
	if rapid.IntRange(0, 2).Draw(x.T, "fail") > 0 {
		output := json.RawMessage(`{"ok":true}`)
		return makegood.StepSucceeded{Step: step, Attempt: attempt, LockedBy: claim.LockedBy, Output: makegood.Payload{Inline: output, Bytes: len(output)}}
	}
	failure := makegood.StepError{Message: "no stock", Retryable: rapid.Bool().Draw(x.T, "retryable"), Applied: makegood.AppliedUnknown}
	return makegood.StepFailed{Step: step, Attempt: attempt, LockedBy: claim.LockedBy, Error: failure}
}

func (x *play) save(job makegood.Job, ended []string) {
	p := pack(job, x.stored, x.beside)
	got, stored := unpackAll(x, p, x.bodies)
	same(x, "job", got, inData(job))
	if x.stored = stored; rapid.IntRange(0, 3).Draw(x.T, "forget") == 0 {
		x.stored = nil
	}
	for _, step := range ended {
		delete(job.Claims.Slots, step)
	}
	job.Rev++
	x.job = job
}
