package sqsqueue_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/makegood-dev/makegood/internal/queue/sqsqueue"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store/sqlitestore"
	"github.com/makegood-dev/makegood/internal/wire"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// A batch of ten submissions by message is one request of SQS: SQS is paid by the request, and each one takes
// its time.
func TestTenSubmissionsByMessageAreOneRequest(t *testing.T) {
	s := serve(t)
	file, err := sqlitestore.Open(t.Context(), sqlitestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Shut() })
	c, err := workflowfile.Parse("test.yaml", []byte("name: one\nsteps: [{name: first, agent: a}]"))
	if err != nil {
		t.Fatal(err)
	}
	if err := file.PutDefinition(t.Context(), "one", c.Hash, c.Definition); err != nil {
		t.Fatal(err)
	}
	sched := scheduler.New(scheduler.Config{
		Jobs: file, Closings: file, Payloads: file, Definitions: file, Queue: s.queues(sqsqueue.Config{}),
		Events: "events", Quarantine: "quarantine", Tasks: func(agent string) string { return "tasks-" + agent }, Instance: "test",
	})
	var batch events.SQSEvent
	for i := range 10 {
		body, err := wire.EncodeSubmit(wire.Submit{Workflow: "one", ID: fmt.Sprint("job-", i), Input: json.RawMessage(`{}`)})
		if err != nil {
			t.Fatal(err)
		}
		batch.Records = append(batch.Records, events.SQSMessage{MessageId: fmt.Sprint("m", i), Body: body})
	}
	response, err := sched.HandleSQS(t.Context(), batch)
	if err != nil || len(response.BatchItemFailures) > 0 {
		t.Errorf("got %v, %v, want no failures", response.BatchItemFailures, err)
	}
	sent := s.of("SendMessageBatch")
	if len(sent) != 1 || len(sent[0].Entries) != 10 {
		t.Errorf("got %d requests, want one with ten tasks", len(sent))
	}
	if all := len(s.requests); all != 2 {
		t.Errorf("got %d requests in all, want 2: that, and the look-up of the queue's address", all)
	}
}
