//go:build aws && linux

// Package lambda runs the shipped Lambda functions as Lambda does: their real bootstraps as processes on a
// lambdahost, fed from a stand-in's queues, and killed. Each of their requests is judged by the policies of template.yaml (package iam).
package lambda

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/deployed"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/queue/sqsqueue"
	"github.com/makegood-dev/makegood/internal/sample/services"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/dynamostore"
	"github.com/makegood-dev/makegood/internal/testkit/standin"
	"github.com/makegood-dev/makegood/internal/workflowfile"
	"github.com/makegood-dev/makegood/lab/e2e/release"
	"github.com/makegood-dev/makegood/lab/testkit/iam"
	"github.com/makegood-dev/makegood/lab/testkit/lambdahost"
	"github.com/makegood-dev/makegood/workflows/order"
)

const (
	// timeout is that of each function, visibility twice as long: on AWS it is six times, which here would only
	// make tests wait. Ten receives are what template.yaml has for tasks.
	timeout     = 6 * time.Second
	visibility  = "12"
	maxReceives = 10
	// patience is how long a test waits for what must come.
	patience = 3 * time.Minute
)

// agents are those of the sample workflow.
var agents = []string{"inventory", "shipping", "http"}

// world is a deployment on a stand-in.
type world struct {
	*fleet
	t           *testing.T
	store       *dynamostore.Store
	scheduler   *scheduler.Scheduler
	shop        *services.Server
	queues      *sqs.Client
	prefix      string
	urls        map[string]string // of the queues, by name
	host        *lambdahost.Host
	environment []string
	options     options
}

// fleet is the functions of a deployment as one release has them, with what feeds them.
type fleet struct {
	functions map[string]*lambdahost.Function
	mappings  map[string]*lambdahost.Mapping
	schedule  *lambdahost.Schedule
	runs      bool
}

// options are what tests differ in.
type options struct {
	// terminate is RecursiveLoop removed.
	terminate bool
	// traced: messages carry the X-Ray header, as SQS stores it. Without it each message starts a chain.
	traced bool
	// ticks says how often the n-th tick of the schedule comes. Nil: once.
	ticks func(n int) int
	// release is what the functions are built of; none: this tree.
	release release.Release
	// bus is where every change is published; empty: nowhere.
	bus string
	// environment is what the functions are told beside.
	environment []string
	// sns is the URL that alerts to the topic are published at; empty: they go nowhere.
	sns string
}

// open deploys, and starts polling and the schedule.
func open(t *testing.T, o options) *world {
	t.Helper()
	tables, queues := standin.DynamoDB(t), standin.SQS(t)
	prefix := fmt.Sprintf("lambda-%08x-", rand.Uint32())
	db, mq := dynamodb.NewFromConfig(standin.Config(tables.Endpoint)), sqs.NewFromConfig(standin.Config(queues.Endpoint))
	if err := standin.CreateTable(t.Context(), db, dynamostore.Schema(prefix+"jobs", "CompleteBy")); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, options: o, queues: mq, prefix: prefix, urls: map[string]string{}}
	var err error
	if w.store, err = dynamostore.New(dynamostore.Config{Client: db, Table: prefix + "jobs", Index: "CompleteBy"}); err != nil {
		t.Fatal(err)
	}
	if w.shop, err = services.Start("127.0.0.1:0", services.Options{Script: services.Script{Profile: services.FaultsNone}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.shop.Close() })
	w.scheduler = scheduler.New(scheduler.Config{
		Jobs: w.store, Closings: w.store, Payloads: w.store, Definitions: w.store, Queue: sqsqueue.New(sqsqueue.Config{Client: mq, Prefix: prefix}),
		Events: deployed.EventsQueue, Quarantine: deployed.QuarantineQueue, Tasks: deployed.TasksQueue, Instance: "test",
	})
	if w.host, err = lambdahost.New(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.host.Close(); err != nil {
			t.Error(err)
		}
	})
	sqsEndpoint := queues.Endpoint
	if o.traced {
		if sqsEndpoint, err = w.host.Tracing(queues.Endpoint); err != nil {
			t.Fatal(err)
		}
	}
	_, judge := iam.Start(t, "../../..", iam.World{
		Region: standin.Region, Account: "000000000000", Stack: strings.TrimSuffix(prefix, "-"), Agents: []string{fragile},
		Names: map[string]string{"Table": prefix + "jobs", "Bus": o.bus, "AlertTopic": "alerts"},
	}, map[string]string{"dynamodb": tables.Endpoint, "sqs": sqsEndpoint, "events": os.Getenv(standin.EndpointVariable), "sns": o.sns})
	w.environment = []string{
		"AWS_REGION=" + standin.Region, "AWS_SECRET_ACCESS_KEY=test", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE=256", "AWS_ENDPOINT_URL=" + judge,
		"MAKEGOOD_TABLE=" + prefix + "jobs", "MAKEGOOD_INDEX=CompleteBy", "MAKEGOOD_QUEUE_PREFIX=" + prefix,
		"MAKEGOOD_SHOP=" + w.shop.URL(), "MAKEGOOD_HTTP_ALLOW=127.0.0.1", "MAKEGOOD_LOG_LEVEL=WARN",
	}
	if o.bus != "" {
		w.environment = append(w.environment, deployed.VarChangesBus+"="+o.bus)
	}
	w.environment = append(w.environment, o.environment...)
	w.queue(deployed.QuarantineQueue)
	from := o.release
	if from.Name == "" {
		from = need(release.This())(t)
	}
	w.fleet = w.deploy(from)
	w.start()
	return w
}

// deploy makes the functions of a release, and what feeds them. Nothing of it runs before its start.
func (w *world) deploy(from release.Release) *fleet {
	w.t.Helper()
	f := &fleet{functions: map[string]*lambdahost.Function{}, mappings: map[string]*lambdahost.Mapping{}}
	built := w.t.TempDir()
	function := func(name, program string, more ...string) *lambdahost.Function {
		environment := append(w.environment[:len(w.environment):len(w.environment)], more...)
		f.functions[name] = w.host.Function(lambdahost.Config{
			Name: name, Command: []string{build(w.t, from, built, program)}, Environment: append(environment, iam.Key(iam.Role(program, environment))),
			Timeout: timeout, Terminate: w.options.terminate,
		})
		return f.functions[name]
	}
	f.schedule = &lambdahost.Schedule{Function: function("supervisor", "supervisor"), Every: time.Second, Event: []byte(`{"source":"aws.scheduler"}`), Times: w.options.ticks}
	feed := func(queue string, function *lambdahost.Function) {
		f.mappings[queue] = &lambdahost.Mapping{Client: w.queues, QueueURL: w.queue(queue), Function: function, MaximumConcurrency: 4}
	}
	feed(deployed.EventsQueue, function("scheduler", "scheduler"))
	feed(deployed.SubmissionsQueue, f.functions["scheduler"])
	for _, name := range agents {
		feed(deployed.TasksQueue(name), function(name, "agent", "MAKEGOOD_AGENT="+name))
	}
	w.t.Cleanup(f.stop)
	return f
}

func (f *fleet) start() {
	f.runs = true
	f.schedule.Start()
	for _, m := range f.mappings {
		m.Start()
	}
}

// stop waits for what is under way. A fleet that was stopped can be started again.
func (f *fleet) stop() {
	if !f.runs {
		return
	}
	f.runs = false
	f.schedule.Stop()
	for _, m := range f.mappings {
		m.Stop()
	}
}

// build builds a function for this machine, once for a fleet.
func build(t *testing.T, from release.Release, folder, program string) string {
	t.Helper()
	bootstrap := filepath.Join(folder, program)
	if _, err := os.Stat(bootstrap); err == nil {
		return bootstrap
	}
	if _, err := from.Build("functions/"+program, bootstrap, "-tags", "lambda.norpc"); err != nil {
		t.Fatal(err)
	}
	return bootstrap
}

// queue returns the URL of a queue, which it makes when it is asked for it the first time.
func (w *world) queue(name string) string {
	w.t.Helper()
	if w.urls[name] == "" {
		w.urls[name] = create(w.t, w.queues, w.prefix+name)
	}
	return w.urls[name]
}

func create(t *testing.T, mq *sqs.Client, name string) string {
	t.Helper()
	dead, err := mq.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String(name + "-dead")})
	if err != nil {
		t.Fatal(err)
	}
	of, err := mq.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{
		QueueUrl: dead.QueueUrl, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameQueueArn},
	})
	if err != nil {
		t.Fatal(err)
	}
	made, err := mq.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: map[string]string{
		"VisibilityTimeout": visibility,
		"RedrivePolicy":     fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":%d}`, of.Attributes["QueueArn"], maxReceives),
	}})
	if err != nil {
		t.Fatal(err)
	}
	return *made.QueueUrl
}

// define stores a workflow.
func (w *world) define(yaml []byte) *workflowfile.Compiled {
	w.t.Helper()
	compiled, err := workflowfile.Parse("workflow.yaml", yaml)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.store.PutDefinition(w.t.Context(), compiled.Workflow.Name, compiled.Hash, compiled.Definition); err != nil {
		w.t.Fatal(err)
	}
	return compiled
}

// order is the sample workflow, its shop this one, with other limits for each step. Its steps are tried again as long as by
// default, where the sample says ten seconds: kills and a loaded machine may cost a step more than that.
func (w *world) order(limits string) *workflowfile.Compiled {
	w.t.Helper()
	yaml := bytes.ReplaceAll(order.YAML, []byte(order.DefaultShop), []byte(w.shop.URL()))
	yaml = bytes.ReplaceAll(yaml, []byte("for: 10s, "), nil)
	return w.define(bytes.ReplaceAll(yaml, []byte("timeout: 1s"), []byte(limits)))
}

func (w *world) submit(of *workflowfile.Compiled, id string) error {
	input := json.RawMessage(fmt.Sprintf(`{"id":%q,"customer":"c","total":3}`, id))
	_, _, err := w.scheduler.Submit(w.t.Context(), scheduler.Submission{ID: id, Definition: of.Hash, Input: input})
	return err
}

// ends waits until every job is at its end, or in front of a person.
func (w *world) ends(ids []string) map[string]job.Job {
	w.t.Helper()
	ended := map[string]job.Job{}
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); ; <-tick.C {
		for _, id := range ids {
			if _, ok := ended[id]; ok {
				continue
			}
			j, err := w.store.Load(w.t.Context(), id)
			if err != nil && !errors.Is(err, store.ErrNewer) {
				w.t.Fatal(err)
			}
			if !j.ProcessState.Finished() && j.ProcessState != makegood.JobError {
				break // Those behind it can wait for the next look.
			}
			ended[id] = j
		}
		if len(ended) == len(ids) {
			return ended
		}
		if time.Now().After(deadline) {
			w.t.Errorf("after %v the first %d of %d jobs are at their end, and the next is not", patience, len(ended), len(ids))
			w.t.Fatal(w.said())
		}
	}
}

// said is how often which function did what.
func (w *world) said() string {
	var lines []string
	for name, f := range w.functions {
		c := &f.Counts
		if output := f.Output(); w.t.Failed() && output != "" {
			lines = append(lines, "the end of what "+name+" said: "+output[max(0, len(output)-2000):])
		}
		lines = append(lines, fmt.Sprintf("%s: %d invocations, %d cold starts, %d deaths, %d timeouts, %d throttled, %d recursive",
			name, c.Invocations.Load(), c.ColdStarts.Load(), c.Deaths.Load(), c.Timeouts.Load(), c.Throttled.Load(), c.Recursive.Load()))
	}
	return strings.Join(lines, "\n")
}

// violations are what is wrong with jobs that ended, and with what the shop saw of them. An attempt that was made
// without a failure before it would mean that the step was advanced twice. A failure without an attempt after it is
// a silence whose late success came before the next attempt was due.
func (w *world) violations(jobs map[string]job.Job) error {
	var wrong []error
	ends := map[string]makegood.ProcessState{}
	for id, j := range jobs {
		ends[id] = j.ProcessState
		retries := 0
		for _, step := range j.Steps {
			retries += step.Attempt - 1
			if step.Forward.State != job.Done {
				wrong = append(wrong, fmt.Errorf("job %s: step %s is %q, want done", id, step.Name, step.Forward.State))
			}
		}
		if j.ProcessState != makegood.JobProcessed || retries > j.FailureCount {
			wrong = append(wrong, fmt.Errorf("job %s: %s (%s) after %d failures and %d retries, want Processed, and no retry without a failure", id, j.ProcessState, j.Reason, j.FailureCount, retries))
		}
	}
	for _, v := range services.Check(w.shop.Ledger(), ends) {
		wrong = append(wrong, errors.New(v))
	}
	return errors.Join(wrong...)
}
