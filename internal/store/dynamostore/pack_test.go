package dynamostore

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/store/jobformat"
	"github.com/makegood-dev/makegood/internal/testkit/seed"
)

// failer is a test, one of rapid's too.
type failer interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// unpackAll reads a packed job as Load does, from what was written.
func unpackAll(t failer, p packed, bodies map[string][]byte) (job.Job, []detail) {
	t.Helper()
	u, err := jobformat.Decode(p.data)
	if err != nil {
		t.Fatal(err)
	}
	if u.NamesAt != nil {
		names, err := jobformat.DecodeNames(p.names.body)
		if key := shapePrefix + hashText(u.NamesAt); err != nil || p.names.key != key {
			t.Fatalf("names %s, want %s: %v", p.names.key, key, err)
		}
		if err := u.Name(names); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range p.details {
		if d.body != nil {
			bodies[d.key] = d.body
		}
	}
	stored, err := fill(&u, bodies)
	if err != nil {
		t.Fatal(err)
	}
	return u.Job, stored
}

// inData is the job but for what stands beside data.
func inData(j job.Job) job.Job {
	j.ID, j.Workflow, j.ProcessState, j.FailureCount, j.LockedBy = "", "", "", 0, ""
	j.CompleteBy, j.Rev = time.Time{}, 0
	if len(j.Untold) == 0 {
		j.Untold = nil
	}
	return j
}

func same(t failer, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%s:\n got %+v\nwant %+v", what, got, want)
	}
}

// chain of saves: each changes a few activities of the job as it was loaded, so that details are made,
// kept, outlived and dropped.
func TestAnyJobIsLoadedAsItWasSaved(t *testing.T) {
	seed.Check(t, func(t *rapid.T) {
		j := drawJob(t)
		bodies := map[string][]byte{}
		var stored []detail
		for range rapid.IntRange(1, 6).Draw(t, "saves") {
			beside := rapid.SampledFrom([]int{0, 700, 1000, 5000}).Draw(t, "beside")
			p := pack(j, stored, beside)
			got, now := unpackAll(t, p, bodies)
			same(t, "job", got, inData(j))
			if stored = now; rapid.Bool().Draw(t, "forget") {
				stored = nil
			}
			for range rapid.IntRange(0, 3).Draw(t, "changes") {
				if i := rapid.IntRange(-1, len(j.Steps)-1).Draw(t, "step"); i >= 0 {
					j.Steps[i] = drawStep(t, i)
				}
			}
		}
	})
}

func drawJob(t *rapid.T) job.Job {
	at := func(name string) time.Time { return drawTime(t, name) }
	text := rapid.SampledFrom([]string{"", "abcd", "ABCD", "0123456789abcdef", "Zażółć \x00 \"", strings.Repeat("why ", 200)})
	j := job.Job{
		ID: "a", Workflow: "order", Definition: text.Draw(t, "definition"), InputHash: text.Draw(t, "hash"),
		Round: rapid.IntRange(0, 3).Draw(t, "round"), ProcessState: makegood.JobProcessing,
		Desired:  rapid.SampledFrom(append(domain.ProcessStates(), "")).Draw(t, "desired"),
		PausedAt: at("paused"), Reason: text.Draw(t, "reason"), CreatedAt: at("created"), FinishedAt: at("finished"),
		StartAt: at("start"), ReplyTo: text.Draw(t, "replyTo"), Deadline: at("deadline"), Input: drawPayload(t),
		Transitions: rapid.IntRange(-1, 5000).Draw(t, "transitions"),
		Incarnation: rapid.IntRange(0, 3).Draw(t, "incarnation"), Seq: rapid.IntRange(0, 300).Draw(t, "seq"),
	}
	for range rapid.IntRange(0, 2).Draw(t, "untold") {
		j.Untold = append(j.Untold, job.Announcement{
			Seq: 7, ProcessState: makegood.JobError, Reason: text.Draw(t, "told"), At: at("told at"),
			Operator: rapid.Bool().Draw(t, "operator"), Listener: rapid.Bool().Draw(t, "listener"),
		})
	}
	for range rapid.SampledFrom([]int{0, 1, limits.MaxRequests}).Draw(t, "requests") {
		j.Requests = append(j.Requests, text.Draw(t, "request"))
	}
	j.Birth, j.Secret = text.Draw(t, "birth"), rapid.SampledFrom([][]byte{nil, []byte("sixteen bytes of")}).Draw(t, "secret")
	j.RemindAt, j.TellAt = at("remind"), at("tell")
	j.TellTries, j.Unheard = rapid.IntRange(0, 3).Draw(t, "tells"), rapid.IntRange(0, 3).Draw(t, "unheard")
	for i := range rapid.SampledFrom([]int{0, 1, 3, 9, 40}).Draw(t, "steps") {
		j.Steps = append(j.Steps, drawStep(t, i))
	}
	return j
}

func drawStep(t *rapid.T, i int) job.StepState {
	s := job.StepState{Name: fmt.Sprintf("step_%04d", i)}
	s.Forward, s.Undo = drawActivity(t, s.Name), drawActivity(t, s.Name)
	if s.Attempt = max(s.Forward.Attempt, s.Undo.Attempt); rapid.Bool().Draw(t, "more") {
		s.Attempt++
	}
	return s
}

func drawActivity(t *rapid.T, step string) job.Activity {
	if rapid.IntRange(0, 2).Draw(t, "nothing") == 0 {
		return job.Activity{}
	}
	small := rapid.IntRange(0, 3)
	a := job.Activity{
		State:   rapid.SampledFrom(activityStates()).Draw(t, "state"),
		Attempt: small.Draw(t, "attempt"), Tries: small.Draw(t, "tries"), FailureCount: small.Draw(t, "failures"),
		Interruptions: small.Draw(t, "interruptions"), Resent: small.Draw(t, "resent"),
		At: drawTime(t, "at"), Cause: rapid.SampledFrom([]string{"", "submit", step + "#1"}).Draw(t, "cause"),
		Unknown: rapid.Bool().Draw(t, "unknown"), Output: drawPayload(t),
		StartedAt: drawTime(t, "started"), FinishedAt: drawTime(t, "finished"),
		OpenedAt: drawTime(t, "opened"), LookAt: drawTime(t, "look"), Closing: rapid.Bool().Draw(t, "closing"),
	}
	if rapid.Bool().Draw(t, "own ref") {
		a.Output = job.Payload{Ref: outputKey(step, a.Attempt) + rapid.SampledFrom([]string{"0123456789abcdef", "x", ""}).Draw(t, "rest"), Bytes: 70_000}
	}
	if rapid.Bool().Draw(t, "failed") {
		a.Error = &job.StepError{
			Message: strings.Repeat("no", small.Draw(t, "message")), Retryable: rapid.Bool().Draw(t, "retryable"),
			Applied:    rapid.SampledFrom([]makegood.Applied{"", makegood.AppliedNo, makegood.AppliedUnknown}).Draw(t, "applied"),
			RetryAfter: makegood.Duration(small.Draw(t, "after")) * makegood.Second,
		}
	}
	if rapid.Bool().Draw(t, "silent") {
		a.Silent = &job.Claim{Attempt: 1, LockedBy: "agent/0123", StartedAt: drawTime(t, "claimed"), CompleteBy: drawTime(t, "until")}
	}
	return a
}

func drawTime(t *rapid.T, name string) time.Time {
	n := rapid.SampledFrom([]int64{0, -7, 1_700_000_000_000, 1_700_000_000_123, 1_700_003_600_000}).Draw(t, name)
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMilli(n).UTC()
}

func drawPayload(t *rapid.T) job.Payload {
	return rapid.SampledFrom([]job.Payload{
		{}, {Inline: []byte(`{"ok":true}`), Bytes: 11}, {Ref: "input", Bytes: 300}, {Ref: "output#other#9", Bytes: 1}, {Inline: []byte(`1`), Bytes: 5},
	}).Draw(t, "payload")
}

func activityStates() []job.ActivityState {
	return []job.ActivityState{
		job.NotStarted, job.Dispatched, job.Backoff, job.Done, job.Skipped,
		job.Failed, job.Withdrawn, job.Irreversible,
	}
}

// outputKey is what the keys of an attempt's outputs begin with.
func outputKey(step string, attempt int) string { return fmt.Sprintf("output#%s#%d#", step, attempt) }

// finished is a job of n steps that are over, whose details are spilled.
func finished(n int) job.Job {
	created := time.UnixMilli(1_700_000_000_000).UTC()
	j := job.Job{ID: "order-123456", Definition: strings.Repeat("0a", 16), InputHash: strings.Repeat("0b", 16), Round: 1, Desired: makegood.JobProcessed, CreatedAt: created}
	for i := range n {
		s := job.StepState{Name: fmt.Sprintf("step_%03d", i), Attempt: 100}
		s.Forward = job.Activity{
			State: job.Done, Attempt: 90, Tries: 90, FailureCount: 89, Unknown: true, At: created.Add(time.Hour),
			Output: job.Payload{Ref: outputKey(s.Name, 90) + "0123456789abcdef", Bytes: makegood.MaxPayloadBytes},
		}
		s.Forward.StartedAt, s.Forward.FinishedAt = created.Add(time.Hour), created.Add(2*time.Hour)
		j.Steps = append(j.Steps, s)
	}
	return j
}

// spilledSize is how large the data of a job is whose details are elsewhere.
func spilledSize(j job.Job) int {
	return len(packData(j, shapeOf(j.Steps), details(j, nil, over)))
}

func TestAFinishedStepTakesTwelveBytes(t *testing.T) {
	const few, many = 10, limits.MaxSteps
	size := func(n int) int { return spilledSize(finished(n)) }
	if got := float64(size(many)-size(few)) / (many - few); got > 12 {
		t.Errorf("a finished step takes %.2f bytes, the limit is 12", got)
	}
}

// A step that went well at once takes three bytes, once its details are elsewhere.
func TestAStepThatWentWellTakesThreeBytes(t *testing.T) {
	well := func(n int) job.Job {
		j := finished(n)
		for i := range j.Steps {
			a := &j.Steps[i].Forward
			a.Attempt, a.Tries, a.FailureCount, a.Unknown = 1, 1, 0, false
			a.Output = job.Payload{Inline: []byte(`{"ok":true}`), Bytes: 11}
			j.Steps[i].Attempt = 1
		}
		return j
	}
	const few, many = 10, limits.MaxSteps
	size := func(n int) int { return spilledSize(well(n)) }
	if got := float64(size(many)-size(few)) / (many - few); got > 3 {
		t.Errorf("a step that went well takes %.2f bytes, want at most 3", got)
	}
}

// When an attempt was made, and when it is looked at, are said of those that are out, and near when it was sent.
func TestLookingAtAnAttemptTakesFewBytes(t *testing.T) {
	j := finished(1)
	a := &j.Steps[0].Forward
	a.State, a.At = job.Dispatched, j.CreatedAt.Add(20*24*time.Hour)
	before := len(packData(j, nil, nil))
	a.LookAt = a.At.Add(10 * time.Minute)
	if got := len(packData(j, nil, nil)) - before; got > 4 {
		t.Errorf("LookAt takes %d bytes, want at most 4", got)
	}
}

func TestASmallJobSpillsNothing(t *testing.T) {
	if p := pack(finished(5), nil, 300); len(p.details) != 0 || p.names != nil {
		t.Errorf("got %d details and names %v of %d bytes, want none", len(p.details), p.names, len(p.data))
	}
}

// An activity that is over again is described by the newer detail, though the older one is still there
// for others.
func TestTheNewerDetailHolds(t *testing.T) {
	j, bodies := finished(40), map[string][]byte{}
	j.Steps[3].Forward.Error = &job.StepError{Message: strings.Repeat("first ", 200)}
	_, stored := unpackAll(t, pack(j, nil, 0), bodies)
	j.Steps[3].Forward.Error = &job.StepError{Message: strings.Repeat("second ", 200)}
	p := pack(j, stored, 0)
	if len(stored) != 1 || len(p.details) != 2 || p.details[0].body != nil {
		t.Fatalf("got %d details and then %d, want 1 and then it and another", len(stored), len(p.details))
	}
	got, _ := unpackAll(t, p, bodies)
	same(t, "job", got, inData(j))
}

// Spilling costs a write of its own, so it must save one.
func TestWhatSavesNoUnitDoesNotSpill(t *testing.T) {
	j := finished(5)
	data := len(pack(j, nil, 0).data)
	for beside, want := range map[int]int{unit - data: 0, unit - data + 1: 1, unit: 0, 2*unit - data: 0, 2*unit - data + 1: 1} {
		if got := len(pack(j, nil, beside).details); got != want {
			t.Errorf("beside %d bytes: got %d details, want %d", beside, got, want)
		}
	}
}

// What is under way changes soon: its details stay where they can be changed.
func TestWhatIsUnderWayDoesNotSpill(t *testing.T) {
	j := finished(100)
	for i, state := range []job.ActivityState{job.Dispatched, job.Backoff, job.NotStarted} {
		j.Steps[i].Forward.State = state
	}
	all := pack(j, nil, unit).details
	if len(all) == 0 {
		t.Fatal("got no details, want those of the steps that are over")
	}
	for _, d := range all {
		for p := range d.holds {
			if p.Step < 3 {
				t.Errorf("got a detail of step %d, which is %q", p.Step, j.Steps[p.Step].Forward.State)
			}
		}
	}
}

// full is a job of 200 steps that were tried often and have long errors, forward and back: all are tried again.
func full() job.Job {
	j := finished(limits.MaxSteps)
	long := strings.Repeat("x", limits.MaxReasonBytes)
	a := job.Activity{
		State: job.Backoff, Attempt: 9, Tries: 9, FailureCount: 9, Unknown: true, At: j.CreatedAt.Add(time.Hour),
		Error:  &job.StepError{Message: long, Retryable: true, Kind: "declined"},
		Silent: &job.Claim{Attempt: 8, LockedBy: long[:limits.MaxLockedByBytes], StartedAt: j.CreatedAt, CompleteBy: j.CreatedAt.Add(time.Minute)},
	}
	for i := range j.Steps {
		j.Steps[i].Forward, j.Steps[i].Undo = a, a
	}
	return j
}

// Where the item would be larger than DynamoDB lets it be, the details of what is under way spill, too. The next save changes one
// step, and writes what has changed alone.
func TestAJobThatIsTooLargeForItsItemSpillsWhatIsUnderWay(t *testing.T) {
	const beside = 500
	j, bodies := full(), map[string][]byte{}
	if whole := len(packData(j, nil, nil)); whole < maxItem {
		t.Fatalf("the job has %d bytes, want more than an item holds", whole)
	}
	p := pack(j, nil, beside)
	if got := beside + len(p.data); got > maxHot {
		t.Errorf("the item has %d bytes, want %d at most", got, maxHot)
	}
	loaded, stored := unpackAll(t, p, bodies)
	same(t, "job", loaded, inData(j))
	j.Steps[7].Forward.Error = &job.StepError{Message: "another"}
	p = pack(j, stored, beside)
	for _, d := range p.details {
		if d.body != nil {
			t.Errorf("a detail of %d bytes is written, want none: what has changed fits", len(d.body))
		}
	}
	loaded, _ = unpackAll(t, p, bodies)
	same(t, "job after a change", loaded, inData(j))
}
