package deployed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/payload"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store/memstore"
	"github.com/makegood-dev/makegood/internal/supervisor"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// What a bucket takes before a job may be over is said before anything starts.
func TestABucketKeepsLongerThanJobs(t *testing.T) {
	for _, c := range []struct {
		at, days, retention string
		renew               time.Duration
		wrong               string
	}{
		{"", "", "", 0, ""},
		{"b/s", "60", "30", 7 * day, ""},
		{"b/s", "90", "30", 22 * day, ""},
		{"b/s", "59", "30", 0, "MAKEGOOD_PAYLOAD_DAYS is 59, want 60 at least: a job is kept for 30 days"},
		{"b/s", "381", "365", 0, "want 382 at least"},
		{"b/s", "382", "365", 7 * day, ""},
		{"b/s", "60", "0", 0, "is 60, and jobs are kept for ever: 0 keeps their payloads as long (MAKEGOOD_RETENTION_DAYS)"},
		{"b/s", "0", "0", 0, ""},
		{"b/s", "", "30", 0, ""},
		{"b", "60", "30", 0, `MAKEGOOD_PAYLOADS is "b", want BUCKET/STACK`},
		{"b/s/t", "60", "30", 0, "want BUCKET/STACK"},
		{"b/s", "-1", "30", 0, "want a whole number of 0 to 7320"},
	} {
		variables := map[string]string{VarPayloads: c.at, VarPayloadDays: c.days, VarRetention: c.retention}
		e := &environment{getenv: func(name string) string { return variables[name] }}
		got := e.payloads(time.Duration(e.number(VarRetention, 0, maxRetention)) * day)
		err := fmt.Sprint(e.err())
		if c.wrong == "" && (e.err() != nil || got.renew != c.renew) || !strings.Contains(err, c.wrong) {
			t.Errorf("%+v: got %+v, %s", c, got, err)
		}
	}
}

// ageing keeps payloads as a bucket does whose lifecycle takes what is old: by age, and nothing else.
type ageing struct {
	payload.Keeper // nil: nothing is read

	now  func() time.Time
	ends time.Duration
	kept map[string]time.Time
	asks int
}

func (a *ageing) Keep(_ context.Context, job string, p makegood.Payload) error {
	a.asks++
	if at, is := a.kept[job+p.SHA256]; !is || a.now().Sub(at) >= a.ends {
		return payload.ErrNotFound
	}
	a.kept[job+p.SHA256] = a.now()
	return nil
}

// outbox holds what is sent.
type outbox struct{ bodies []string }

func (m *outbox) Send(_ context.Context, name string, messages ...queue.Message) []error {
	for _, one := range messages {
		if name == EventsQueue {
			m.bodies = append(m.bodies, one.Body)
		}
	}
	return nil
}

func (m *outbox) Depth(context.Context, string) (queue.Depth, error) { return queue.Depth{}, nil }

// A job waits for a person for a year, and the bucket takes what nobody has kept for 60 days. What the job refers to is there all the time, because sweeps
// and the audit come to it; what a job without any asks for is nothing; and when the job has ended, nobody keeps it any more.
func TestAJobThatOnlyWaitsKeepsItsPayloads(t *testing.T) {
	const waits = `
name: waits
steps:
  - name: sign
    agent: approval
    with: {choices: [approve], question: "Sign?", for: 8760h}
`
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	report := makegood.Payload{SHA256: strings.Repeat("ab", 32), Bytes: 10}
	bucket := &ageing{now: clock, ends: 60 * day, kept: map[string]time.Time{"with" + report.SHA256: now, "gone" + report.SHA256: now}}
	store, mail := memstore.New(), &outbox{}
	sched := scheduler.New(scheduler.Config{
		Jobs: store, Closings: store, Payloads: store, Definitions: store, Queue: mail, Large: bucket, LargeAge: 7 * day,
		Events: EventsQueue, Quarantine: QuarantineQueue, Tasks: TasksQueue, Instance: "test", Now: clock, Notifier: silent{}, Logger: slog.New(slog.DiscardHandler),
	})
	sup := supervisor.New(supervisor.Config{Index: store, Queue: mail, Events: EventsQueue, Auditor: store, Now: clock, Logger: slog.New(slog.DiscardHandler)})
	compiled, err := workflowfile.Parse("waits.yaml", []byte(waits))
	if err != nil {
		t.Fatal(err)
	}
	if err := store.PutDefinition(t.Context(), compiled.Workflow.Name, compiled.Hash, compiled.Definition); err != nil {
		t.Fatal(err)
	}
	ref, err := json.Marshal(map[string]any{"report": report, "text": strings.Repeat("x", limits.MaxInlineBytes)})
	if err != nil {
		t.Fatal(err)
	}
	for id, input := range map[string]json.RawMessage{"with": ref, "without": json.RawMessage(`{"text":"` + strings.Repeat("x", limits.MaxInlineBytes) + `"}`)} {
		if _, _, err := sched.Submit(t.Context(), scheduler.Submission{ID: id, Definition: compiled.Hash, Input: input}); err != nil {
			t.Fatal(err)
		}
	}
	look := func() {
		mail.bodies = nil
		_, sweepErr := sup.Sweep(t.Context())
		_, auditErr := sup.Audit(t.Context())
		if err := errors.Join(sweepErr, auditErr); err != nil {
			t.Fatal(err)
		}
		var batch events.SQSEvent
		for i, body := range mail.bodies {
			batch.Records = append(batch.Records, events.SQSMessage{MessageId: fmt.Sprint(i), Body: body, Attributes: map[string]string{"ApproximateReceiveCount": "1"}})
		}
		if failed, err := sched.HandleSQS(t.Context(), batch); err != nil || len(failed.BatchItemFailures) > 0 {
			t.Fatalf("day %v: %v, %v", now, failed, err)
		}
	}
	bucket.asks = 0
	for range 364 * 4 {
		now = now.Add(6 * time.Hour)
		look()
		if age := now.Sub(bucket.kept["with"+report.SHA256]); age > 8*day {
			t.Fatalf("on %v the payload is %v old", now, age)
		}
	}
	if bucket.asks < 50 || bucket.asks > 366 {
		t.Errorf("the bucket was asked %d times in a year, want once a day at most", bucket.asks)
	}
	now = now.Add(2 * day) // Nobody has answered: the step has failed.
	look()
	last := bucket.kept["with"+report.SHA256]
	j, err := store.Load(t.Context(), "with")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d asks in a year; then %s", bucket.asks, j.ProcessState)
	if now.Sub(last) > 8*day {
		t.Errorf("when the job ended its payload was %v old", now.Sub(last))
	}
}
