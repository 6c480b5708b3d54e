//go:build localstack

package localstack

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/client/dynamotx"
	"github.com/makegood-dev/makegood/internal/sqsbatch"
)

// Orders go through the deployed functions against a shop with faults, and end as its script has it; one that was
// done is undone on request.
func TestOrdersEndAsTheyShould(t *testing.T) {
	w := open(t)
	ends := map[string]makegood.ProcessState{}
	began := time.Now()
	for i := range 12 {
		id := fmt.Sprintf("%s-%02d", w.run, i)
		if _, err := w.jobs.Submit(t.Context(), makegood.Submission{Workflow: "order", ID: id, Input: input(id)}); err != nil {
			t.Fatal(err)
		}
		ends[id] = ""
	}
	done := ""
	for id := range ends {
		job := w.wait(id, makegood.Job.AtEnd)
		if ends[id] = job.ProcessState; job.ProcessState != w.script.Ends(id) {
			t.Errorf("order %s ended %s (%s), want %s", id, job.ProcessState, job.Reason, w.script.Ends(id))
		}
		if job.ProcessState == makegood.JobProcessed {
			done = id
		}
	}
	t.Logf("12 orders in %.0f s: %v", time.Since(began).Seconds(), ends)
	w.books(ends)
	if done == "" {
		t.Fatal("no order was Processed, so that none can be undone")
	}
	if _, err := w.jobs.Request(t.Context(), done, api.Request{Verb: makegood.VerbUndo, Reason: "the customer called"}); err != nil {
		t.Fatal(err)
	}
	job := w.wait(done, func(j makegood.Job) bool { return j.AtEnd() && j.ProcessState != makegood.JobProcessed })
	ends[done] = job.ProcessState
	if job.ProcessState != makegood.JobUndone && job.ProcessState != makegood.JobError {
		t.Errorf("order %s is %s, want it Undone, or in Error where the shop refused a refund", done, job.ProcessState)
	}
	w.books(ends)
}

// A job that was stored in a transaction of the submitter's own, and told nobody, is found by a sweep. The sweep
// is asked for here: not every stand-in has a schedule that fires.
func TestASweepFindsAJobThatNobodyWasToldOf(t *testing.T) {
	w := open(t)
	table := dynamodb.NewFromConfig(w.aws)
	var shards int
	if _, err := fmt.Sscan(w.outputs["Shards"], &shards); err != nil {
		t.Fatalf("output Shards %q: %v", w.outputs["Shards"], err)
	}
	days, err := strconv.Atoi(w.outputs["RetentionDays"])
	if err != nil {
		t.Fatalf("output RetentionDays: %v", err)
	}
	retention := dynamotx.Forever
	if days > 0 {
		retention = time.Duration(days) * 24 * time.Hour
	}
	submitter, err := dynamotx.New(dynamotx.Config{Client: table, Table: w.outputs["TableName"], Shards: shards, Retention: retention})
	if err != nil {
		t.Fatal(err)
	}
	id := w.run + "-silent"
	items, err := submitter.Items(t.Context(), makegood.Submission{Workflow: "order", ID: id, Input: input(id)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := table.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: items}); err != nil {
		t.Fatal(err)
	}
	tick, err := os.ReadFile("../../../events/supervisor-tick.json")
	if err != nil {
		t.Fatal(err)
	}
	if got := w.invoke(stackName+"-supervisor", tick); strings.TrimSpace(got) != "null" {
		t.Errorf("the Supervisor answers %s, want null", got)
	}
	job := w.wait(id, makegood.Job.AtEnd)
	if want := w.script.Ends(id); job.ProcessState != want {
		t.Errorf("order %s ended %s (%s), want %s", id, job.ProcessState, job.Reason, want)
	}
	w.books(map[string]makegood.ProcessState{id: job.ProcessState})
}

// A message that is none of ours is put into quarantine with the reason, and is not delivered again.
func TestPoisonGoesIntoQuarantine(t *testing.T) {
	w := open(t)
	queues := sqs.NewFromConfig(w.aws)
	events, quarantine := w.outputs["EventsQueueUrl"], w.outputs["QuarantineQueueUrl"]
	poison := "no JSON, of " + w.run
	if _, err := queues.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &events, MessageBody: &poison}); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(endWithin); time.Now().Before(deadline); {
		got, err := queues.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &quarantine, WaitTimeSeconds: 2, MaxNumberOfMessages: 10})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range got.Messages {
			var q sqsbatch.Quarantined
			if err := json.Unmarshal([]byte(*m.Body), &q); err != nil {
				t.Fatalf("in quarantine is %s: %v", *m.Body, err)
			}
			if _, err := queues.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: &quarantine, ReceiptHandle: m.ReceiptHandle}); err != nil {
				t.Fatal(err)
			}
			if q.Body != poison {
				continue // of another run
			}
			if q.Reason == "" || q.Source == "" {
				t.Errorf("got %+v, want the reason, and where it came from", q)
			}
			return
		}
	}
	t.Fatalf("%q is not in quarantine after %s", poison, endWithin)
}

func input(id string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"id":%q,"customer":"c1","total":12.25}`, id))
}
