//go:build aws && linux

package functions_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/deployed"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/queue/sqsqueue"
	"github.com/makegood-dev/makegood/internal/sample/services"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store/dynamostore"
	"github.com/makegood-dev/makegood/internal/testkit/standin"
	"github.com/makegood-dev/makegood/internal/wire"
	"github.com/makegood-dev/makegood/internal/workflowfile"
	"github.com/makegood-dev/makegood/lab/testkit/iam"
)

// polyglot is an order whose payments are made by the agent in Python. The last step asks it for what
// ends well or not.
const polyglot = `
name: polyglot
onFailure: undo
steps:
  - name: reserve
    agent: inventory
    with: {order: "${ .job.id }", amount: "${ .input.amount }"}
    undo: {action: release}
  - name: charge
    agent: payments
    with: {amount: "${ .input.amount }"}
    undo: {action: refund}
  - name: tip
    agent: payments
    action: %s
`

// repliesQueue is the queue of the registered name listener.
const (
	repliesQueue = "replies-listener"
	listener     = "listener"
)

// world is a deployment on a stand-in: a table, queues, the functions as processes, and an agent in
// Python.
type world struct {
	db          *dynamodb.Client
	table       string
	store       *dynamostore.Store
	queues      *sqsqueue.Queues
	scheduler   *scheduler.Scheduler
	environment []string
	// judge stands between the processes and the stand-ins, and knows each by its role.
	judge *iam.Judge
}

func newWorld(t *testing.T) *world {
	t.Helper()
	tables, queues := standin.DynamoDB(t), standin.SQS(t)
	prefix := fmt.Sprintf("functions-%08x-", rand.Uint32())
	db, mq := dynamodb.NewFromConfig(standin.Config(tables.Endpoint)), sqs.NewFromConfig(standin.Config(queues.Endpoint))
	if err := standin.CreateTable(t.Context(), db, dynamostore.Schema(prefix+"jobs", "CompleteBy")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{deployed.EventsQueue, deployed.QuarantineQueue, deployed.TasksQueue("inventory"), deployed.TasksQueue("payments"), repliesQueue} {
		if _, err := mq.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String(prefix + name)}); err != nil {
			t.Fatalf("create queue %s: %v", name, err)
		}
	}
	store, err := dynamostore.New(dynamostore.Config{Client: db, Table: prefix + "jobs", Index: "CompleteBy"})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{db: db, table: prefix + "jobs", store: store, queues: sqsqueue.New(sqsqueue.Config{Client: mq, Prefix: prefix})}
	w.scheduler = scheduler.New(scheduler.Config{
		Jobs: store, Closings: store, Payloads: store, Definitions: store, Queue: w.queues,
		Events: deployed.EventsQueue, Quarantine: deployed.QuarantineQueue, Tasks: deployed.TasksQueue, Instance: "test",
		Replies: []string{listener}, Asked: []string{listener},
	})
	stack := strings.TrimSuffix(prefix, "-")
	var judge string
	w.judge, judge = iam.Start(t, "../../..", iam.World{
		Region: standin.Region, Account: "000000000000", Stack: stack, Names: map[string]string{"Table": prefix + "jobs", "Payloads": prefix + "payloads"},
	}, map[string]string{"dynamodb": tables.Endpoint, "sqs": queues.Endpoint})
	w.environment = environment(judge, "AWS_DEFAULT_REGION="+standin.Region, "MAKEGOOD_TABLE="+prefix+"jobs", "MAKEGOOD_QUEUE_PREFIX="+prefix, "MAKEGOOD_STACK="+stack)
	return w
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// feeds feeds functions from their queues until the returned function is called, which waits for the last call.
func (w *world) feeds(t *testing.T, from map[string]*lambda) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var feeding sync.WaitGroup
	for name, l := range from {
		feeding.Go(func() {
			if err := w.feed(ctx, name, l); err != nil {
				t.Errorf("feed from %s: %v", name, err)
			}
		})
	}
	return func() {
		cancel()
		feeding.Wait()
	}
}

// define stores a workflow as the current one of its name.
func (w *world) define(t *testing.T, text []byte) *workflowfile.Compiled {
	t.Helper()
	compiled, err := workflowfile.Parse("workflow.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.store.PutDefinition(t.Context(), compiled.Workflow.Name, compiled.Hash, compiled.Definition); err != nil {
		t.Fatal(err)
	}
	return compiled
}

// feed hands what is on a queue to a function, as Lambda's event source mapping does, until ctx ends.
func (w *world) feed(ctx context.Context, name string, l *lambda) error {
	for {
		records, err := w.queues.Receive(ctx, name, 10)
		if errors.Is(err, context.Canceled) {
			return nil
		}
		if err != nil {
			return err
		}
		event, err := json.Marshal(events.SQSEvent{Records: records})
		if err != nil {
			return err
		}
		a, err := l.call(event)
		if err != nil {
			return err
		}
		var response struct{ BatchItemFailures []events.SQSBatchItemFailure }
		if err := json.Unmarshal([]byte(a.body), &response); err != nil || a.kind != "response" || response.BatchItemFailures == nil {
			return fmt.Errorf("%s: the function answers %+v", name, a)
		}
		failed := map[string]bool{}
		for _, f := range response.BatchItemFailures {
			failed[f.ItemIdentifier] = true
		}
		var done []string
		for _, r := range records {
			if !failed[r.MessageId] {
				done = append(done, r.ReceiptHandle)
			}
		}
		if err := w.queues.Delete(context.WithoutCancel(ctx), name, done...); err != nil {
			return err
		}
	}
}

// startPython starts the agent in Python, and stops it when the test ends.
func (w *world) startPython(t *testing.T) {
	t.Helper()
	python := os.Getenv(standin.PythonVariable)
	if python == "" {
		t.Fatalf("%s must name a Python that has boto3: run this with make test-aws", standin.PythonVariable)
	}
	output := &lockedBuffer{}
	process := exec.Command(python, "../../../examples/python-agent/agent.py")
	process.Env, process.Stdout, process.Stderr = append(slices.Clone(w.environment), "PYTHONDONTWRITEBYTECODE=1", iam.Key("paymentsAgentRole")), output, output
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = process.Process.Kill() // It has ended, or it ends now.
		_ = process.Wait()
		if t.Failed() {
			t.Logf("the agent in Python said:\n%s", output)
		}
	})
}

// submit stores a job of the polyglot workflow whose last step asks for this action.
func (w *world) submit(t *testing.T, id, action string) {
	t.Helper()
	compiled := w.define(t, fmt.Appendf(nil, polyglot, action))
	if _, _, err := w.scheduler.Submit(t.Context(), scheduler.Submission{
		ID: id, Definition: compiled.Hash, Input: json.RawMessage(`{"amount":12.5}`), ReplyTo: listener,
	}); err != nil {
		t.Fatal(err)
	}
}

// end waits until a job is finished.
func (w *world) end(t *testing.T, id string) job.Job {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	var j job.Job
	for until := time.Now().Add(patience); time.Now().Before(until); <-tick.C {
		var err error
		if j, err = w.store.Load(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if j.ProcessState.Finished() || j.ProcessState == makegood.JobError {
			return j
		}
	}
	t.Fatalf("job %s is %s after %v, want it finished", id, j.ProcessState, patience)
	return j
}

// wantTold waits until the listener has heard of these ends.
func (w *world) wantTold(t *testing.T, ends map[string]makegood.ProcessState) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	heard := map[string]job.Announcement{}
	for len(ends) > 0 {
		records, err := w.queues.Receive(ctx, repliesQueue, 10)
		if err != nil {
			t.Fatalf("heard %+v, want %v as well: %v", heard, ends, err)
		}
		for _, r := range records {
			job, workflow, a, err := wire.DecodeAnnouncement(r.Body)
			if err != nil || workflow != "polyglot" {
				t.Fatalf("got announcement %s, %v, want one of the workflow polyglot", r.Body, err)
			}
			if a.Seq > heard[job].Seq {
				heard[job] = a
			}
			if heard[job].ProcessState == ends[job] {
				delete(ends, job)
			}
		}
	}
}

// One order ends well, and one is undone: the step that was not done well is refused by the agent in
// Python, which then gives the money back; the agent in Go releases the goods.
func TestOrdersEndWithFunctionsAsProcessesAndAnAgentInPython(t *testing.T) {
	w := newWorld(t)
	shop, err := services.Start("127.0.0.1:0", services.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer shop.Close()
	w.startPython(t)
	moves := start(t, build(t, functions+"scheduler"), append(w.environment, "MAKEGOOD_REPLIES="+listener+"="+repliesQueue)...)
	works := start(t, build(t, functions+"agent"), append(w.environment, "MAKEGOOD_AGENT=inventory", "MAKEGOOD_SHOP="+shop.URL())...)
	sweeps := start(t, build(t, functions+"supervisor"), w.environment...)

	defer w.feeds(t, map[string]*lambda{deployed.EventsQueue: moves, deployed.TasksQueue("inventory"): works})()

	w.submit(t, "good", "charge")
	w.submit(t, "bad", "teleport")
	good, bad := w.end(t, "good"), w.end(t, "bad")
	if good.ProcessState != makegood.JobProcessed {
		t.Errorf("good: got %s (%s), want Processed", good.ProcessState, good.Reason)
	}
	charged, _ := good.Step("charge")
	if got, want := string(charged.Forward.Output.Inline), `{"receipt":"r-good/charge/1","amount":12.5}`; strings.ReplaceAll(got, " ", "") != want {
		t.Errorf("output of charge: got %s, want %s", got, want)
	}
	charged, _ = bad.Step("charge")
	reserved, _ := bad.Step("reserve")
	if bad.ProcessState != makegood.JobUndone || charged.Undo.State != job.Done || reserved.Undo.State != job.Done {
		t.Errorf("bad: got %s, undo of charge %q, undo of reserve %q, want Undone and both done", bad.ProcessState, charged.Undo.State, reserved.Undo.State)
	}
	if !strings.Contains(bad.Reason, `no action 'teleport'`) {
		t.Errorf("bad: got reason %q, want what the agent said", bad.Reason)
	}

	w.wantTold(t, map[string]makegood.ProcessState{"good": makegood.JobProcessed, "bad": makegood.JobUndone})

	if got, want := sweeps.invoke(t, saved(t, "schedule.json")), (answer{"response", "null"}); got != want {
		t.Errorf("a sweep answers %+v, want %+v", got, want)
	}
	// What a process prints arrives in its own time.
	want := `"msg":"swept","function":"f","overdue":0`
	for until := time.Now().Add(patience); !strings.Contains(sweeps.output.String(), want); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("the supervisor logged %s, want %s", sweeps.output, want)
		}
	}
}

// Poison in front of the agent in Python goes into quarantine with a reason, and holds up nothing.
func TestTheAgentInPythonPutsPoisonIntoQuarantine(t *testing.T) {
	w := newWorld(t)
	w.startPython(t)
	if errs := w.queues.Send(t.Context(), deployed.TasksQueue("payments"), queueMessage(`{"v":2,"type":"Task"}`), queueMessage("no JSON"), queueMessage(`{"v":0,"type":"Task"}`)); errs != nil {
		t.Fatal(errs)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var got []string
	for len(got) < 2 {
		records, err := w.queues.Receive(ctx, deployed.QuarantineQueue, 10)
		if err != nil {
			t.Fatalf("got %q in quarantine, want 2 messages: %v", got, err)
		}
		for _, r := range records {
			got = append(got, r.Body)
		}
	}
	for _, body := range got {
		if !strings.Contains(body, `"type": "Quarantined"`) || strings.Contains(body, `"reason": ""`) || strings.Contains(body, `\"v\":2`) {
			t.Errorf("got %s, want a Quarantined with a reason, and not what a newer release wrote", body)
		}
	}
}

func queueMessage(body string) queue.Message { return queue.Message{Body: body} }
