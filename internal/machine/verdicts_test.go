package machine_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/machine"
)

// What is said of a step that the job does not have is stale, says so, and changes nothing.
func TestWhatIsSaidOfAnUnknownStepIsStale(t *testing.T) {
	w := makegood.Workflow{Name: "w", Steps: []makegood.Step{{Name: "a", Agent: "x"}}}.WithDefaults()
	facts := machine.Facts{Secret: make([]byte, makegood.SecretBytes), Values: map[machine.Want]machine.Fact{{Step: "a"}: {Run: true}}}
	now := time.UnixMilli(1_000_000).UTC()
	job, _ := machine.Submit(w, machine.Submission{ID: "j"}, facts, now)
	for _, e := range []makegood.Event{
		makegood.StepSucceeded{Reply: makegood.Reply{Step: "b", Attempt: 1}},
		makegood.StepFailed{Reply: makegood.Reply{Step: "b", Attempt: 1, LockedBy: "x"}},
		makegood.AttemptClosed{Step: "b", Attempt: 1, Found: makegood.Found{Finding: makegood.FoundNobody}},
		makegood.DispatchRefused{Step: "b", Attempt: 1},
	} {
		next, got := machine.Apply(w, job, e, facts, now)
		if want := (machine.Verdict{Kind: machine.Stale, Reason: "there is no step b"}); !reflect.DeepEqual(got, want) {
			t.Errorf("%T: got %+v, want %+v", e, got, want)
		}
		if !reflect.DeepEqual(next, job) {
			t.Errorf("%T: got the job %+v, want it as it was: %+v", e, next, job)
		}
	}
}

// A job is born with all that its submission says, and its first attempts open.
func TestAJobIsBornWithAllThatItsSubmissionSays(t *testing.T) {
	w := makegood.Workflow{Name: "w", Timeout: makegood.Hour, Steps: []makegood.Step{{Name: "a", Agent: "x"}}}.WithDefaults()
	secret := []byte("sixteen bytes ok")
	facts := machine.Facts{Secret: secret, Incarnation: 3, Values: map[machine.Want]machine.Fact{{Step: "a"}: {Run: true}}}
	now := time.UnixMilli(1_000_000).UTC()
	input := makegood.Payload{Inline: json.RawMessage(`{}`), Bytes: 2}
	said := machine.Submission{
		ID: "j", Definition: "d", Input: input, InputHash: "h", Birth: "b", StartAt: now.Add(-time.Second), ReplyTo: "shop",
	}
	looked := now.Add(w.Steps[0].Timeout.Std())
	want := makegood.Job{
		ID: "j", Workflow: "w", Definition: "d", Input: input, InputHash: "h", Birth: "b", Secret: secret,
		Round: 1, ProcessState: makegood.Pending, Desired: makegood.Processed, Incarnation: 3, Transitions: 1,
		CreatedAt: now, StartAt: said.StartAt, Deadline: now.Add(time.Hour), CompleteBy: now.Add(makegood.TellAgain), ReplyTo: "shop",
		Seq: 1, Untold: []makegood.Announcement{{Seq: 1, ProcessState: makegood.Pending, At: now, Listener: true}},
		Steps: []makegood.StepState{{Name: "a", Attempt: 1, Forward: makegood.Activity{
			State: makegood.Dispatched, Attempt: 1, Tries: 1, At: now, Cause: makegood.Submitted{}.Cause(), LookAt: looked,
		}}},
	}
	if looked.Before(want.CompleteBy) {
		want.CompleteBy = looked
	}
	got, verdict := machine.Submit(w, said, facts, now)
	if verdict.Kind != machine.Applied || !reflect.DeepEqual(got, want) {
		t.Errorf("got %s,\n%+v, want\n%+v", verdict.Kind, got, want)
	}
	said.Later = true
	want.Secret, want.Incarnation, want.Transitions, want.CompleteBy = nil, 0, 0, now
	want.Steps = []makegood.StepState{{Name: "a"}}
	if got, verdict = machine.Submit(w, said, machine.Facts{}, now); verdict.Kind != machine.Applied || !reflect.DeepEqual(got, want) {
		t.Errorf("later: got %s,\n%+v, want\n%+v", verdict.Kind, got, want)
	}
}
