package view_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/view"
)

var base = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// TestAJobInJSON holds the fields to design.md, section 5, and null to what is not there yet.
func TestAJobInJSON(t *testing.T) {
	j := job.Job{
		ID: "j", Workflow: "order", Definition: "hash", Round: 1, ProcessState: makegood.JobPending,
		Desired: makegood.JobProcessed, CreatedAt: base, CompleteBy: base.Add(time.Minute),
		Steps: []job.StepState{{Name: "a"}},
	}
	text, err := json.Marshal(view.Of(j, nil))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"id":"j","workflow":"order","definition":"hash","parent":"","round":1,"processState":"Pending","desired":"Processed",` +
		`"paused":false,"pausedAt":null,"heldBy":"","heldReason":"","reason":"","firstReason":"","failureCount":0,"tenant":"","labels":null,"lockedBy":null,"completeBy":"2026-01-02T03:05:05Z","startAt":null,` +
		`"createdAt":"2026-01-02T03:04:05Z","finishedAt":null,"deadline":null,"expectBy":null,"warned":false,"nextRoundAt":null,"requestedBy":null,"historyCount":0,"history":[],"historyGaps":[],"input":null,"inputBytes":0,"spent":null,"steps":[{"name":"a","state":"notStarted","attempt":0,` +
		`"failureCount":0,"lockedBy":null,"completeBy":null,"inline":false,"completedBy":null,"completedWhy":null,"startedAt":null,"finishedAt":null,"sentAt":null,"lastStartedAt":null,"nextAt":null,"progress":null,"output":null,"outputBytes":0,"error":null,"settled":null,"child":"","items":null,"edited":null,"undo":null}]}`
	if string(text) != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
}

// A claim is shown with the one of the two, step or undo, whose attempt it names.
func TestAClaimIsShownWhereItIs(t *testing.T) {
	claim := job.Claim{Attempt: 2, LockedBy: "agent:nonce", StartedAt: base, CompleteBy: base.Add(time.Second)}
	dispatched := func(attempt int) job.Activity {
		return job.Activity{State: job.Dispatched, Attempt: attempt}
	}
	for _, test := range []struct {
		step          job.StepState
		forward, undo makegood.StepState
	}{
		{job.StepState{Name: "a", Forward: dispatched(2)}, makegood.StepClaimed, ""},
		{job.StepState{Name: "a", Forward: dispatched(3)}, "dispatched", ""},
		{job.StepState{Name: "a", Forward: job.Activity{State: job.Done, Attempt: 1}, Undo: dispatched(2)}, "done", makegood.StepClaimed},
		{job.StepState{Name: "a", Forward: job.Activity{State: job.Failed, Attempt: 2}, Undo: job.Activity{State: job.Skipped}}, "failed", "skipped"},
		{job.StepState{Name: "b", Forward: dispatched(2)}, "dispatched", ""},
		{job.StepState{Name: "a", Forward: job.Activity{State: job.Dispatched, Attempt: 2, Inline: claim.LockedBy}}, makegood.StepClaimed, ""},
	} {
		got := view.Of(job.Job{Steps: []job.StepState{test.step}}, map[string]job.Claim{"a": claim}).Steps[0]
		undo := makegood.StepState("")
		held := &got.Activity
		if got.Undo != nil {
			undo = got.Undo.State
		}
		if undo == makegood.StepClaimed {
			held = got.Undo
		}
		if got.State != test.forward || undo != test.undo {
			t.Errorf("%+v: got %s and undo %s, want %s and %s", test.step, got.State, undo, test.forward, test.undo)
		}
		claimed := held.State == makegood.StepClaimed
		if claimed != (held.LockedBy != nil) || claimed && (*held.LockedBy != claim.LockedBy || !held.CompleteBy.Equal(claim.CompleteBy) || !held.StartedAt.Equal(base)) {
			t.Errorf("%+v: got the claim %+v", test.step, *held)
		}
		if inline := test.step.Forward.Inline != ""; held.Inline != inline {
			t.Errorf("%+v: got inline %v, want %v", test.step, held.Inline, inline)
		}
	}
}

// What an attempt of before has reported is not this one's.
func TestProgressIsShownOfTheAttemptThatReportedIt(t *testing.T) {
	for _, c := range []struct {
		at   time.Time
		want string
	}{
		{time.Time{}, "null"},
		{base.Add(-time.Millisecond), "null"},
		{base.Add(time.Second), `{"value":{"page":3},"at":"` + base.Add(time.Second).Format(time.RFC3339Nano) + `"}`},
	} {
		claim := job.Claim{Attempt: 2, LockedBy: "agent:nonce", StartedAt: base, CompleteBy: base.Add(time.Minute)}
		if !c.at.IsZero() {
			claim.Progress = job.Progress{Value: `{"page":3}`, At: c.at}
		}
		step := job.StepState{Name: "a", Forward: job.Activity{State: job.Dispatched, Attempt: 2}}
		got, err := json.Marshal(view.Of(job.Job{Steps: []job.StepState{step}}, map[string]job.Claim{"a": claim}).Steps[0].Progress)
		if err != nil || string(got) != c.want {
			t.Errorf("reported at %v: got %s, %v, want %s", c.at, got, err, c.want)
		}
	}
}

func TestEveryStateOfAStepHasItsWord(t *testing.T) {
	for _, s := range []job.ActivityState{
		job.NotStarted, job.Dispatched, job.Backoff, job.Done, job.Skipped,
		job.Failed, job.Withdrawn, job.Irreversible,
	} {
		got := view.Of(job.Job{Steps: []job.StepState{{Forward: job.Activity{State: s}}}}, nil).Steps[0].State
		if !strings.Contains(fmt.Sprint(domain.StepStates()), string(got)) || got == "" {
			t.Errorf("%q: got %q, which is none of %v", s, got, domain.StepStates())
		}
	}
}

// An attempt before the gate of its agent is no sent one: its state is queued, and it has no time of sending.
func TestAnAttemptBeforeAGateIsNotShownAsSent(t *testing.T) {
	a := job.Activity{State: job.Dispatched, Attempt: 1, At: base}
	shown := func() makegood.Activity {
		return view.Of(job.Job{Steps: []job.StepState{{Name: "a", Forward: a}}}, nil).Steps[0].Activity
	}
	if got := shown(); got.State != makegood.StepDispatched || got.SentAt == nil {
		t.Errorf("sent: got %+v", got)
	}
	a.Queued = true
	if got := shown(); got.State != makegood.StepQueued || got.SentAt != nil {
		t.Errorf("before the gate: got %+v, want %s, without a time of sending", got, makegood.StepQueued)
	}
}

func TestPayloadsAreReadWhereTheyAre(t *testing.T) {
	j := job.Job{
		ID: "j", Input: job.Payload{Ref: "input"},
		Steps: []job.StepState{
			{Name: "a", Forward: job.Activity{State: job.Done, Output: job.Payload{Inline: json.RawMessage(`1`)}}},
			{Name: "b", Forward: job.Activity{State: job.Done, Output: job.Payload{Ref: "output#b#1"}}, Undo: job.Activity{State: job.Done, Output: job.Payload{Ref: "gone"}}},
		},
	}
	from := source{payload: func(id, key string) ([]byte, error) {
		if key == "gone" {
			return nil, fmt.Errorf("payload: %w", store.ErrNotFound)
		}
		return fmt.Appendf(nil, "%q", id+"/"+key), nil
	}}
	v, err := view.WithPayloads(t.Context(), j, nil, from)
	got := fmt.Sprintf("%s %s %s %s", v.Input, v.Steps[0].Output, v.Steps[1].Output, v.Steps[1].Undo.Output)
	if want := `"j/input" 1 "j/output#b#1" `; err != nil || got != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	broken := errors.New("the disk is gone")
	from.payload = func(string, string) ([]byte, error) { return nil, broken }
	if _, err := view.WithPayloads(t.Context(), j, nil, from); !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
}

// An outline has the small payloads, reads no other, and says of all how large they are.
func TestAnOutlineReadsWhatIsSmall(t *testing.T) {
	large := job.Payload{Ref: "large", Bytes: limits.MaxOutlineBytes + 1}
	j := job.Job{ID: "j", Input: job.Payload{Ref: "input", Bytes: 7}, Steps: []job.StepState{{Name: "a", Forward: job.Activity{State: job.Done, Output: large}}}}
	for range limits.MaxOutline/limits.MaxOutlineBytes + 3 {
		full := job.Payload{Ref: "full", Bytes: limits.MaxOutlineBytes}
		j.Steps = append(j.Steps, job.StepState{Name: "b", Forward: job.Activity{State: job.Done, Output: full}})
	}
	read := 0
	from := source{payload: func(_, key string) ([]byte, error) {
		if key == "large" {
			t.Error("a large payload was read")
		}
		read++
		return fmt.Appendf(nil, "%q", key), nil
	}}
	v, err := view.Outlined(t.Context(), j, nil, from)
	if err != nil || string(v.Input) != `"input"` || v.InputBytes != 7 || v.Steps[0].Output != nil || v.Steps[0].OutputBytes != large.Bytes {
		t.Errorf("got the input %s of %d bytes, an output %s of %d bytes, %v", v.Input, v.InputBytes, v.Steps[0].Output, v.Steps[0].OutputBytes, err)
	}
	if want := limits.MaxOutline / limits.MaxOutlineBytes; read != want {
		t.Errorf("%d payloads were read, want %d: the input, and what fits beside it", read, want)
	}
	if j.Input.Ref == "" || j.Steps[0].Forward.Output.Ref == "" {
		t.Error("the job that was given has lost a payload")
	}
}

// source is where a job's payloads and the pages of its history are.
type source struct {
	payload func(id, key string) ([]byte, error)
	// pages are read as often as reads says.
	pages map[string][]byte
	reads *int
}

func (s source) Payload(_ context.Context, id, key string) ([]byte, error) { return s.payload(id, key) }

func (s source) HistoryPages(context.Context, string) (map[string][]byte, error) {
	*s.reads++
	return s.pages, nil
}

func TestAHistoryIsShownAndCostsNothingWhereThereIsNone(t *testing.T) {
	j, reads := job.Job{ID: "j", Birth: "b"}, 0
	from := source{pages: map[string][]byte{}, reads: &reads}
	if v, err := view.WithPayloads(t.Context(), j, nil, from); err != nil || len(v.History) > 0 || reads != 0 {
		t.Errorf("a job that goes well: got %+v, %v after %d reads", v.History, err, reads)
	}
	entries := []job.Entry{
		{At: base, Kind: makegood.EntrySilent, Step: "a", Attempt: 2, StartedAt: base, LockedBy: "agent:1", Failure: 1, Error: &job.StepError{Message: "no reply"}},
		{At: base, Kind: makegood.EntryRequest, Verb: makegood.VerbCancel, By: "anna", Reason: "enough"},
	}
	var page job.Page
	j.History, page = j.History.With(j.Birth, entries)
	from.pages[page.Key] = page.Body
	v, err := view.WithPayloads(t.Context(), j, nil, from)
	if err != nil || len(v.History) != 2 || v.HistoryCount != 2 || len(v.HistoryGaps) > 0 {
		t.Fatalf("got %+v, gaps %v, %v", v.History, v.HistoryGaps, err)
	}
	text, err := json.Marshal(v.History[0])
	want := `{"n":1,"at":"` + base.Format(time.RFC3339Nano) + `","kind":"silent","step":"a","attempt":2,"startedAt":"` + base.Format(time.RFC3339Nano) +
		`","lockedBy":"agent:1","error":{"message":"no reply","retryable":false,"kind":"","applied":"unknown"},"failure":1}`
	if err != nil || string(text) != want {
		t.Errorf("got\n%s, %v, want\n%s", text, err, want)
	}
	if e := v.History[1]; e.N != 2 || e.Verb != makegood.VerbCancel || e.By != "anna" || e.Reason != "enough" {
		t.Errorf("got %+v", e)
	}
	delete(from.pages, page.Key)
	v, err = view.WithPayloads(t.Context(), j, nil, from)
	if want := []makegood.HistoryGap{{From: 1, To: 2, Why: "missing"}}; err != nil || !slices.Equal(v.HistoryGaps, want) {
		t.Errorf("a page is gone: got %v, %v, want %v and the job", v.HistoryGaps, err, want)
	}
}

// A key in the index that JSON has no year for, as only a broken or hostile item has one, is shown as the end of time.
func TestOneBrokenKeyDoesNotKeepAListFromBeingShown(t *testing.T) {
	jobs := []store.Listed{{ID: "good", CompleteBy: base, CreatedAt: base}, {ID: "bad", CompleteBy: time.UnixMilli(1 << 60)}}
	text, err := json.Marshal(view.Listed(jobs, false))
	if err != nil || !strings.Contains(string(text), `"completeBy":"9999-12-31T00:00:00Z"`) {
		t.Errorf("got %s, %v, want both", text, err)
	}
	if _, err := json.Marshal(view.Strays([]store.Audited{{Job: "bad", ProcessState: makegood.JobProcessed, CompleteBy: time.UnixMilli(1 << 60), Indexed: true, NoJob: true}})); err != nil {
		t.Errorf("audit: %v", err)
	}
}

// The child of a step is named while it is under way and afterwards, by what holds the attempt, and by no other holder.
func TestAStepNamesTheJobThatDoesIt(t *testing.T) {
	child := domain.ChildID("j", "0a1b2c3d4e5f", "a", 2)
	for _, x := range []struct {
		state job.ActivityState
		by    string
		want  string
	}{
		{job.Dispatched, domain.HolderOf(child), child},
		{job.Done, domain.HolderOf(child), child},
		{job.Dispatched, "agent:1", ""},
		{job.Dispatched, domain.HolderOf("other"), ""},
	} {
		j := job.Job{ID: "j", Birth: "0a1b2c3d4e5f", Steps: []job.StepState{{Name: "a", Forward: job.Activity{State: x.state, Attempt: 2}}}}
		if got := view.Of(j, map[string]job.Claim{"a": {Attempt: 2, LockedBy: x.by}}).Steps[0].Child; got != x.want {
			t.Errorf("%s, by %s: got %q, want %q", x.state, x.by, got, x.want)
		}
	}
}
