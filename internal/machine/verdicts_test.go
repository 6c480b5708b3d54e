package machine_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/machine"
)

// What is said of a step that the job does not have is stale, says so, and changes nothing.
func TestWhatIsSaidOfAnUnknownStepIsStale(t *testing.T) {
	w := domain.WithDefaults(makegood.Workflow{Name: "w", Steps: []makegood.Step{{Name: "a", Agent: "x"}}})
	facts := machine.Facts{Secret: make([]byte, limits.SecretBytes), Values: map[machine.Want]machine.Fact{{Step: "a"}: {Run: true}}}
	now := time.UnixMilli(1_000_000).UTC()
	j, _ := machine.Submit(w, machine.Submission{ID: "j"}, facts, now)
	for _, e := range []job.Event{
		job.StepSucceeded{Reply: job.Reply{Step: "b", Attempt: 1}},
		job.StepFailed{Reply: job.Reply{Step: "b", Attempt: 1, LockedBy: "x"}},
		job.AttemptClosed{Step: "b", Attempt: 1, Found: job.Found{Finding: job.FoundNobody}},
		job.DispatchRefused{Step: "b", Attempt: 1},
	} {
		next, got := machine.Apply(w, j, e, facts, now)
		if want := (machine.Verdict{Kind: machine.Stale, Reason: "there is no step b"}); !reflect.DeepEqual(got, want) {
			t.Errorf("%T: got %+v, want %+v", e, got, want)
		}
		if !reflect.DeepEqual(next, j) {
			t.Errorf("%T: got the job %+v, want it as it was: %+v", e, next, j)
		}
	}
}

// A reply whose token is of a later scheme is neither heard nor dropped: it is said to be newer, and nothing changes.
func TestAReplyOfALaterSchemeIsNewer(t *testing.T) {
	w := domain.WithDefaults(makegood.Workflow{Name: "w", Steps: []makegood.Step{{Name: "a", Agent: "x"}}})
	facts := machine.Facts{Secret: make([]byte, limits.SecretBytes), Values: map[machine.Want]machine.Fact{{Step: "a"}: {Run: true}}}
	now := time.UnixMilli(1_000_000).UTC()
	j, _ := machine.Submit(w, machine.Submission{ID: "j"}, facts, now)
	reply := job.Reply{Step: "a", Attempt: 1, LockedBy: "x", Token: "2.x"}
	for _, e := range []job.Event{job.StepSucceeded{Reply: reply}, job.StepFailed{Reply: reply}} {
		next, got := machine.Apply(w, j, e, facts, now)
		want := machine.Verdict{Kind: machine.Newer, Reason: "a token of a later scheme for attempt 1 of step a"}
		if !reflect.DeepEqual(got, want) || !reflect.DeepEqual(next, j) {
			t.Errorf("%T: got %+v and %+v, want %+v and the job as it was", e, got, next, want)
		}
	}
}

// A job is born with all that its submission says, and its first attempts open.
func TestAJobIsBornWithAllThatItsSubmissionSays(t *testing.T) {
	w := domain.WithDefaults(makegood.Workflow{Name: "w", Timeout: makegood.Hour, Steps: []makegood.Step{{Name: "a", Agent: "x"}}})
	secret := []byte("sixteen bytes ok")
	facts := machine.Facts{Secret: secret, Incarnation: 3, Values: map[machine.Want]machine.Fact{{Step: "a"}: {Run: true}}}
	now := time.UnixMilli(1_000_000).UTC()
	input := job.Payload{Inline: json.RawMessage(`{}`), Bytes: 2}
	said := machine.Submission{
		ID: "j", Definition: "d", Input: input, InputHash: "h", Birth: "b", StartAt: now.Add(-time.Second), ReplyTo: "shop",
	}
	looked := now.Add(w.Steps[0].Timeout.Std())
	want := job.Job{
		ID: "j", Workflow: "w", Definition: "d", Input: input, InputHash: "h", Birth: "b", Secret: secret,
		Round: 1, ProcessState: makegood.JobPending, Desired: makegood.JobProcessed, Incarnation: 3, Transitions: 1,
		CreatedAt: now, StartAt: said.StartAt, Deadline: now.Add(time.Hour), CompleteBy: now.Add(limits.TellAgain), ReplyTo: "shop",
		Seq: 1, Untold: []job.Announcement{{Seq: 1, ProcessState: makegood.JobPending, At: now, Listener: true}},
		Steps: []job.StepState{{Name: "a", Attempt: 1, Forward: job.Activity{
			State: job.Dispatched, Attempt: 1, Tries: 1, At: now, Cause: job.Submitted{}.Cause(), LookAt: looked,
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
	want.Steps = []job.StepState{{Name: "a"}}
	if got, verdict = machine.Submit(w, said, machine.Facts{}, now); verdict.Kind != machine.Applied || !reflect.DeepEqual(got, want) {
		t.Errorf("later: got %s,\n%+v, want\n%+v", verdict.Kind, got, want)
	}
}

// A task says all that its agent must know of the attempt; that of an undo, what it undoes.
func TestATaskSaysAllOfItsAttempt(t *testing.T) {
	undo := &makegood.Undo{Agent: "y", Action: "back", Timeout: makegood.Minute, StartBy: 5 * makegood.Minute}
	w := domain.WithDefaults(makegood.Workflow{Name: "w", Steps: []makegood.Step{
		{Name: "a", Agent: "x", Action: "go", Undo: undo, Timeout: 20 * makegood.Second, StartBy: 2 * makegood.Minute},
	}})
	now := time.UnixMilli(1_000_000).UTC()
	j := job.Job{
		ID: "j", Workflow: "w", Birth: "b", Round: 3, Secret: []byte("sixteen bytes ok"), Desired: makegood.JobUndone,
		Steps: []job.StepState{{
			Name: "a", Attempt: 5,
			Forward: job.Activity{State: job.Failed, Attempt: 4, At: now},
			Undo:    job.Activity{State: job.Dispatched, Attempt: 5, At: now.Add(time.Second), Resent: 1},
		}},
	}
	step := j.Steps[0]
	forward := makegood.Task{
		Job: "j", Workflow: "w", Step: "a", Round: 3, Attempt: 4, Agent: "x", Action: "go", Key: "j/a/3", Birth: "b",
		Token: machine.Token(j, "a", 4), Completion: machine.CompletionToken(j, "a", false), ClaimUntil: step.Forward.ClaimUntil(), SentAt: now, StartBy: now.Add(2 * time.Minute),
		Timeout: 20 * makegood.Second,
	}
	back := makegood.Task{
		Job: "j", Workflow: "w", Step: "a", Round: 3, Attempt: 5, Agent: "y", Action: "back", Key: "j/a/3/undo", Birth: "b",
		Token: machine.Token(j, "a", 5), Completion: machine.CompletionToken(j, "a", true), ClaimUntil: step.Undo.ClaimUntil(), SentAt: now.Add(time.Second),
		StartBy: now.Add(time.Second + 10*time.Minute), Timeout: makegood.Minute,
		Undo: &makegood.UndoTask{ForwardKey: "j/a/3", Outcome: makegood.OutcomeUnknown},
	}
	for _, want := range []makegood.Task{forward, back} {
		got := machine.TaskOf(w, j, job.Dispatch{Step: "a", Attempt: want.Attempt, Undo: want.Undo != nil})
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got\n%+v, want\n%+v", got, want)
		}
	}
}
