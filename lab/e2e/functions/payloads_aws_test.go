//go:build aws && linux

package functions_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/deployed"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/testkit/standin"
	"github.com/makegood-dev/makegood/internal/wire"
)

// printing is a job whose report goes from step to step by reference.
const printing = `
name: printing
steps:
  - {name: print, agent: payments, with: "${ .input }", retry: {attempts: 1}}
  - {name: read, agent: payments, with: "${ .steps.print.output }", retry: {attempts: 1}}
`

// memoryLimit is how much memory the agent's process may have had, in kB: 100 MB go through it twice.
const memoryLimit = 96 << 10

// press has the functions of a stack with a bucket, in front of which deny may stand.
func press(t *testing.T, deny http.HandlerFunc) (w *world, definition string) {
	w = newWorld(t)
	kept := standin.S3(t)
	bucket := strings.TrimSuffix(w.table, "jobs") + "payloads"
	client := s3.NewFromConfig(kept.Config(t), func(o *s3.Options) { o.UsePathStyle = true })
	in := &s3.CreateBucketInput{Bucket: &bucket, CreateBucketConfiguration: &types.CreateBucketConfiguration{LocationConstraint: standin.Region}}
	if _, err := client.CreateBucket(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	w.judge.Upstream["s3"] = kept.Endpoint
	environment := append(w.environment[:len(w.environment):len(w.environment)],
		"MAKEGOOD_PAYLOADS="+bucket+"/"+w.judge.Policies.Stack, "MAKEGOOD_PAYLOAD_DAYS=60", "MAKEGOOD_RETENTION_DAYS=30")
	agents := environment
	if deny != nil {
		server := httptest.NewServer(deny)
		t.Cleanup(server.Close)
		agents = append(environment[:len(environment):len(environment)], "AWS_ENDPOINT_URL_S3="+server.URL)
	}
	moves := start(t, build(t, functions+"scheduler"), environment...)
	works := start(t, build(t, "./testdata/press"), append(agents[:len(agents):len(agents)], "MAKEGOOD_AGENT=payments")...)
	submissions := strings.TrimSuffix(w.table, "jobs") + deployed.SubmissionsQueue
	if _, err := sqs.NewFromConfig(standin.SQS(t).Config(t)).CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &submissions}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.feeds(t, map[string]*lambda{deployed.EventsQueue: moves, deployed.SubmissionsQueue: moves, deployed.TasksQueue("payments"): works}))
	compiled := w.define(t, []byte(printing))
	return w, compiled.Hash
}

// 100 MB are written by one attempt and read by the next, in functions as processes, and messages carry a reference.
func TestAHundredMegabytesGoThroughFunctions(t *testing.T) {
	w, definition := press(t, nil)
	size := strconv.Itoa(makegood.MaxLargePayloadBytes)
	if _, _, err := w.scheduler.Submit(t.Context(), scheduler.Submission{ID: "p-1", Definition: definition, Input: json.RawMessage(size)}); err != nil {
		t.Fatal(err)
	}
	j := w.end(t, "p-1")
	if j.ProcessState != makegood.JobProcessed {
		t.Fatalf("got %s: %s, want it processed", j.ProcessState, j.Reason)
	}
	for _, name := range []string{"print", "read"} {
		s, _ := j.Step(name)
		var output struct {
			Report makegood.Payload
			Peak   string
		}
		if err := json.Unmarshal(s.Forward.Output.Inline, &output); err != nil || output.Report.Bytes != makegood.MaxLargePayloadBytes || output.Report.By != "payments" {
			t.Errorf("%s: got %s, %v", name, s.Forward.Output.Inline, err)
		}
		if kB, err := strconv.Atoi(output.Peak); err != nil || kB > memoryLimit {
			t.Errorf("%s: the process has had %s kB, want at most %d", name, output.Peak, memoryLimit)
		}
		t.Logf("%s: the process has had %s kB", name, output.Peak)
	}
}

// What the store denies an agent is final: a person hears of it, and not ten attempts.
func TestAnAgentThatMayNotWriteIsHeardOfAtOnce(t *testing.T) {
	w, definition := press(t, func(rw http.ResponseWriter, _ *http.Request) {
		rw.WriteHeader(http.StatusForbidden)
		_, _ = rw.Write([]byte("<Error><Code>AccessDenied</Code><Message>no</Message></Error>"))
	})
	if _, _, err := w.scheduler.Submit(t.Context(), scheduler.Submission{ID: "p-2", Definition: definition, Input: json.RawMessage("300000")}); err != nil {
		t.Fatal(err)
	}
	j := w.end(t, "p-2")
	s, _ := j.Step("print")
	if j.ProcessState != makegood.JobError || s.Forward.Attempt != 1 || s.Forward.Error == nil || !strings.Contains(s.Forward.Error.Message, "access to the payload store is denied") {
		t.Errorf("got %s after attempt %d: %+v, want Error, at once, because of denied access", j.ProcessState, s.Forward.Attempt, s.Forward.Error)
	}
}

// A submission by message that refers to what nobody wrote is put away with the reason, and there is no job.
func TestAReferenceToNothingIsRefused(t *testing.T) {
	w, _ := press(t, nil)
	missing, err := json.Marshal(makegood.Payload{SHA256: strings.Repeat("ab", 32), Bytes: 10})
	if err != nil {
		t.Fatal(err)
	}
	body, err := wire.EncodeSubmit(wire.Submit{ID: "p-3", Workflow: "printing", Input: missing})
	if err != nil {
		t.Fatal(err)
	}
	if errs := w.queues.Send(t.Context(), deployed.SubmissionsQueue, queue.Message{Body: body}); errs != nil {
		t.Fatal(errs)
	}
	refused := w.receive(t, deployed.QuarantineQueue, func(body string) bool { return strings.Contains(body, "p-3") })
	if !strings.Contains(refused, "is not there for this job") {
		t.Errorf("quarantine says %s", refused)
	}
}
