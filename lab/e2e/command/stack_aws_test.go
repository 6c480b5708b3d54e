//go:build aws && linux

package command_test

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/deployed"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/httpapi"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/protocol"
	"github.com/makegood-dev/makegood/internal/queue/sqsqueue"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/dynamostore"
	"github.com/makegood-dev/makegood/internal/testkit/functionurl"
	"github.com/makegood-dev/makegood/internal/testkit/standin"
	"github.com/makegood-dev/makegood/internal/wire"
	"github.com/makegood-dev/makegood/lab/testkit/iam"
	"github.com/makegood-dev/makegood/lab/testkit/lambdahost"
)

// The exit codes of the command.
const (
	codeUsage     = 1
	codeOtherwise = 2
)

// deployedStack is a table and queues at the stand-ins, the doors as processes, a CloudFormation that knows where they
// are, and the command as a process.
type deployedStack struct {
	name        string
	binary      string
	environment []string
	store       *dynamostore.Store
	queues      *sqsqueue.Queues
	functions   []*lambdahost.Function
}

// newDeployedStack makes one, with this bucket for payloads if there is one. Each request of its functions and of the command is judged: the
// functions may what template.yaml says, the key test what docs/dead-letters.md shows, and the key reader what docs/doors.md does.
func newDeployedStack(t *testing.T, bucket ...string) *deployedStack {
	t.Helper()
	tables, mq := standin.DynamoDB(t), standin.SQS(t)
	s := &deployedStack{name: "mg" + strings.ToLower(rand.Text()[:10]), binary: filepath.Join(t.TempDir(), "makegood")}
	if out, err := exec.Command("go", "build", "-o", s.binary, "../../../cmd/makegood").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	db := dynamodb.NewFromConfig(standin.Config(tables.Endpoint))
	if err := standin.CreateTable(t.Context(), db, dynamostore.Schema(s.name+"-jobs", "CompleteBy")); err != nil {
		t.Fatal(err)
	}
	var err error
	if s.store, err = dynamostore.New(dynamostore.Config{Client: db, Table: s.name + "-jobs", Index: "CompleteBy"}); err != nil {
		t.Fatal(err)
	}
	sender := sqs.NewFromConfig(standin.Config(mq.Endpoint))
	for _, name := range []string{deployed.EventsQueue, deployed.QuarantineQueue, "tasks-inventory", "tasks-http", "tasks-shipping"} {
		if _, err := sender.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String(s.name + "-" + name)}); err != nil {
			t.Fatal(err)
		}
	}
	s.queues = sqsqueue.New(sqsqueue.Config{Client: sender, Prefix: s.name + "-"})
	names := map[string]string{"Table": s.name + "-jobs"}
	upstream := map[string]string{"dynamodb": tables.Endpoint, "sqs": mq.Endpoint}
	if len(bucket) > 0 {
		names["Payloads"], upstream["s3"] = bucket[0], standin.S3(t).Endpoint
	}
	judge, address := iam.Start(t, "../../..", iam.World{
		Region: standin.Region, Account: "000000000000", Stack: s.name, Names: names, Agents: []string{"press", "warehouse"},
	}, upstream)
	s.mayAsShown(t, judge.Policies)
	s.environment = append(os.Environ(),
		"AWS_REGION="+standin.Region, "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "AWS_ENDPOINT_URL="+address, "MAKEGOOD_STACK="+s.name)
	if len(bucket) > 0 {
		s.environment = append(s.environment, deployed.VarPayloads+"="+bucket[0]+"/"+s.name, deployed.VarPayloadDays+"=60")
	}
	upstream["cloudformation"] = s.cloudFormation(t, s.doors(t))
	return s
}

// mayAsShown gives those who type commands the policies that the docs show.
func (s *deployedStack) mayAsShown(t *testing.T, policies *iam.Policies) {
	t.Helper()
	for role, shown := range map[string]struct{ page, heading string }{
		"test": {"../../../docs/dead-letters.md", "## Who may"}, "reader": {"../../../docs/doors.md", "For a submitter, a reader, or an operator, with that door in place of `submit`:"},
	} {
		page, err := os.ReadFile(shown.page)
		if err != nil {
			t.Fatal(err)
		}
		here := strings.NewReplacer("shop-prod", s.name, "123456789012", policies.Account).Replace(string(page))
		if err := policies.Shown(role, here, shown.heading); err != nil {
			t.Fatal(err)
		}
	}
	// They ask for a stack that is not there, too.
	if err := policies.Add("test", `[{"Effect": "Allow", "Action": "cloudformation:DescribeStacks", "Resource": "*"}]`); err != nil {
		t.Fatal(err)
	}
}

const (
	operatorARN = "arn:aws:iam::000000000000:user/operator"
	readerARN   = "arn:aws:iam::000000000000:user/reader"
)

// doors starts the door's function as a process for each of the three, behind a URL that asks for a signature. The key
// test may knock at all of them; the key reader may read.
func (s *deployedStack) doors(t *testing.T) map[string]string {
	t.Helper()
	starts := functionsOf(t, "door")
	urls := map[string]string{}
	for door, output := range map[httpapi.Door]string{httpapi.Submit: protocol.SubmitOutput, httpapi.Read: protocol.ReadOutput, httpapi.Operate: protocol.OperateOutput} {
		f := starts(s, string(door), "MAKEGOOD_DOOR="+string(door), "MAKEGOOD_REPLIES=shop=replies-shop")
		server := httptest.NewServer(f.URL(standin.Region, map[string]functionurl.Key{
			"test": {Secret: "test", ARN: operatorARN}, "reader": {Secret: "reads", ARN: readerARN, Denied: door != httpapi.Read},
		}))
		t.Cleanup(server.Close)
		urls[output] = server.URL + "/"
	}
	return urls
}

// functionsOf builds a function, and returns what starts it as a process for a stack, under a name behind the stack's.
func functionsOf(t *testing.T, folder string) func(s *deployedStack, name string, environment ...string) *lambdahost.Function {
	t.Helper()
	bootstrap := filepath.Join(t.TempDir(), "bootstrap")
	if out, err := exec.Command("go", "build", "-tags", "lambda.norpc", "-o", bootstrap, "../../../functions/"+folder).CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	host, err := lambdahost.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := host.Close(); err != nil {
			t.Error(err)
		}
	})
	return func(s *deployedStack, name string, environment ...string) *lambdahost.Function {
		environment = slices.Concat(s.environment, s.places(), environment)
		f := host.Function(lambdahost.Config{
			Name: s.name + "-" + name, Command: []string{bootstrap}, Timeout: 30 * time.Second,
			Environment: append(environment, iam.Key(iam.Role(folder, environment))),
		})
		s.functions = append(s.functions, f)
		return f
	}
}

// said is what the functions have logged.
func (s *deployedStack) said() string {
	var all strings.Builder
	for _, f := range s.functions {
		all.WriteString(f.Output())
	}
	return all.String()
}

// cloudFormation answers as CloudFormation does, for this stack. Not every stand-in has one.
func (s *deployedStack) cloudFormation(t *testing.T, urls map[string]string) string {
	t.Helper()
	var outputs strings.Builder
	for key, value := range urls {
		fmt.Fprintf(&outputs, "<member><OutputKey>%s</OutputKey><OutputValue>%s</OutputValue></member>", key, value)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/xml")
		if r.FormValue("Action") != "DescribeStacks" || r.FormValue("StackName") != s.name {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, "<ErrorResponse><Error><Type>Sender</Type><Code>ValidationError</Code><Message>Stack with id "+r.FormValue("StackName")+" does not exist</Message></Error></ErrorResponse>")
			return
		}
		fmt.Fprintf(w, `<DescribeStacksResponse><DescribeStacksResult><Stacks><member><StackName>%s</StackName><Outputs>%s</Outputs></member></Stacks></DescribeStacksResult></DescribeStacksResponse>`, s.name, &outputs)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// run runs a verb as a process, and wants this exit code.
func (s *deployedStack) run(t *testing.T, code int, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, errs strings.Builder
	command := exec.CommandContext(t.Context(), s.binary, args...)
	command.Env, command.Stdout, command.Stderr = s.environment, &out, &errs
	_ = command.Run() // The exit code says it.
	if got := command.ProcessState.ExitCode(); got != code {
		t.Fatalf("makegood %v: got exit code %d, want %d\n%s%s", args, got, code, &out, &errs)
	}
	return out.String(), errs.String()
}

// job runs a verb with --json and reads the job that it prints.
func (s *deployedStack) job(t *testing.T, args ...string) makegood.Job {
	t.Helper()
	out, _ := s.run(t, 0, append(args, "--json")...)
	var job makegood.Job
	if err := json.Unmarshal([]byte(out), &job); err != nil {
		t.Fatalf("makegood %v: got %q: %v", args, out, err)
	}
	return job
}

// ids runs list with --json, until it lists these jobs: an index may lag behind.
func (s *deployedStack) wantListed(t *testing.T, want []string, scan bool, args ...string) {
	t.Helper()
	var got struct {
		Jobs []api.Listed
		Scan bool
	}
	for until := time.Now().Add(2 * time.Minute); ; {
		out, stderr := s.run(t, 0, append([]string{"list", "--json"}, args...)...)
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Fatalf("list %v: got %q: %v", args, out, err)
		}
		if strings.Contains(stderr, "whole table") != scan || got.Scan != scan {
			t.Fatalf("list %v: got scan %t and %q, want %t", args, got.Scan, stderr, scan)
		}
		ids := []string{}
		for _, l := range got.Jobs {
			ids = append(ids, l.ID)
		}
		if slices.Sort(ids); slices.Equal(ids, want) {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("list %v: got %v, want %v", args, ids, want)
		}
	}
}

// task receives the next task of an agent.
func (s *deployedStack) task(t *testing.T, agent string) makegood.Task {
	t.Helper()
	records, err := s.queues.Receive(t.Context(), deployed.TasksQueue(agent), 1)
	if err != nil {
		t.Fatal(err)
	}
	task, err := wire.DecodeTask(records[0].Body)
	if err != nil {
		t.Fatal(err)
	}
	return task
}

// fail puts a job into Error, as its Scheduler would.
func (s *deployedStack) fail(t *testing.T, id string) {
	t.Helper()
	j, err := s.store.Load(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	seen := j.CompleteBy
	j.ProcessState, j.Reason, j.CompleteBy = makegood.JobError, "no more goods", domain.Instant(time.Now().Add(limits.FarKey))
	j.Steps[0].Forward = job.Activity{State: job.Failed, Attempt: 1, Tries: 1, FailureCount: 1}
	if err := s.store.Save(t.Context(), store.Change{Job: j, Seen: seen}); err != nil {
		t.Fatal(err)
	}
}

// Every verb on a deployed stack, as an operator uses them: what is asked is stored when the verb
// returns, and what it makes due is on the agents' queues.
func TestTheVerbsWorkOnADeployedStack(t *testing.T) {
	s := newDeployedStack(t)
	input := `{"id":"o-1","customer":"c-1","total":9.5}`

	submitted := s.job(t, "submit", "order", "--id", "o-1", "--input", input)
	if submitted.ProcessState != makegood.JobPending || submitted.Workflow != "order" {
		t.Errorf("submitted: got %+v, want it Pending", submitted)
	}
	if task := s.task(t, "inventory"); task.Job != "o-1" || task.Step != "reserve" {
		t.Errorf("got the task %+v, want the first of o-1", task)
	}
	if _, stderr := s.run(t, 0, "submit", "order", "--id", "o-1", "--input", input); !strings.Contains(stderr, "there already") {
		t.Errorf("submitted again: got %q, want it to be there already", stderr)
	}
	s.run(t, codeUsage, "submit", "order", "--id", "o-1", "--input", "{}")
	s.run(t, codeUsage, "submit", "nothing", "--input", "{}")
	s.run(t, codeUsage, "get", "o-9")
	if job := s.job(t, "get", "o-1"); string(job.Input) != `{"customer":"c-1","id":"o-1","total":9.5}` {
		t.Errorf("get: got the input %s", job.Input)
	}

	s.job(t, "submit", "order", "--id", "o-2", "--input", `{"id":"o-2","customer":"c-1","total":1}`)
	if job := s.job(t, "pause", "o-2", "--reason", "stocktaking"); !job.Paused {
		t.Errorf("paused: got %+v", job)
	}
	s.wantListed(t, []string{"o-2"}, false, "--paused")
	s.wantListed(t, []string{}, false, "--paused", "--workflow", "other")
	if job := s.job(t, "resume", "o-2"); job.Paused {
		t.Errorf("resumed: got %+v", job)
	}
	s.wantListed(t, []string{}, false, "--paused")

	s.fail(t, "o-1")
	s.wantListed(t, []string{"o-1"}, false, "--state", "Error")
	s.wantListed(t, []string{"o-2"}, false, "--state", "Pending")
	if job := s.job(t, "resubmit", "o-1"); job.ProcessState != makegood.JobProcessing {
		t.Errorf("resubmitted: got %+v, want it Processing", job)
	}
	s.wantListed(t, []string{}, false, "--state", "Error")
	s.run(t, codeUsage, "resubmit", "o-1")

	// Nothing of it was done, so it is Cancelled at once; what is to be told waits for the stack.
	s.job(t, "submit", "order", "--id", "o-3", "--reply-to", "shop", "--input", `{"id":"o-3","customer":"c-1","total":1}`)
	if job := s.job(t, "cancel", "o-3"); job.ProcessState != makegood.JobCancelled {
		t.Errorf("cancelled: got %+v", job)
	}
	if _, err := s.store.Load(t.Context(), "o-3"); err != nil {
		t.Fatal(err)
	}
	if j, _ := s.store.Load(t.Context(), "o-3"); len(j.Untold) == 0 || j.CompleteBy.IsZero() || time.Until(j.CompleteBy) > 2*limits.TellAgain {
		t.Errorf("cancelled: got untold %v and CompleteBy %s, want it told within about a minute", j.Untold, j.CompleteBy)
	}
	if job := s.job(t, "undo", "o-2"); job.Desired != makegood.JobUndone {
		t.Errorf("undone: got %+v", job)
	}
	s.run(t, codeUsage, "submit", "order", "--reply-to", "nobody")
	s.wantListed(t, []string{"o-1", "o-2", "o-3"}, true)
	s.wantListed(t, []string{"o-3"}, true, "--state", "Cancelled")
	if out, _ := s.run(t, codeOtherwise, "watch", "o-3"); !strings.Contains(out, "o-3  order  Cancelled") {
		t.Errorf("watch: got %q", out)
	}
	s.run(t, codeUsage, "get", "o-1", "--stack", "elsewhere")
}

// A definition that was published is the one that new jobs run by; those that are there keep theirs.
func TestAPublishedDefinitionIsForNewJobs(t *testing.T) {
	s := newDeployedStack(t)
	before := s.job(t, "submit", "order", "--id", "o-1", "--input", `{"id":"o-1","customer":"c","total":1}`)
	file := filepath.Join(t.TempDir(), "order.yaml")
	if err := os.WriteFile(file, []byte("name: order\nsteps:\n  - name: reserve\n    agent: warehouse\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _ := s.run(t, 0, "publish", file, "--json")
	after := s.job(t, "submit", "order", "--id", "o-2", "--input", "{}")
	if after.Definition == before.Definition || !strings.Contains(out, after.Definition) {
		t.Errorf("got %s before, %s after, %q published, want a new one", before.Definition, after.Definition, out)
	}
	if job := s.job(t, "get", "o-1"); job.Definition != before.Definition {
		t.Errorf("o-1: got the definition %s, want %s as before", job.Definition, before.Definition)
	}
	s.run(t, codeUsage, "publish", "stack_test.go")
	// Nobody made the queue of the warehouse's tasks: the job is stored, and the door's log says that it waits.
	s.run(t, 0, "submit", "order", "--id", "o-3", "--input", "{}")
	if _, stderr := s.run(t, 0, "cancel", "o-3"); stderr != "" {
		t.Errorf("cancelled: got %q, want nothing", stderr)
	}
	for until := time.Now().Add(2 * time.Minute); !strings.Contains(s.said(), "the due work waits"); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("submitted without a queue: the doors say %s, want that tasks wait", s.said())
		}
	}
	if strings.Contains(s.said(), "tells it") {
		t.Errorf("the doors complain that they told nobody: %s", s.said())
	}
}

// A reader reads, and changes nothing; who asked is kept with the job and logged, as IAM knows them.
func TestAReaderIsLetInToReadAlone(t *testing.T) {
	s := newDeployedStack(t)
	s.job(t, "submit", "order", "--id", "o-1", "--input", `{"id":"o-1","customer":"c","total":1}`)
	if job := s.job(t, "pause", "o-1"); job.RequestedBy == nil || *job.RequestedBy != operatorARN {
		t.Errorf("paused: got it asked by %v, want %s", job.RequestedBy, operatorARN)
	}
	s.environment = append(s.environment, "AWS_ACCESS_KEY_ID=reader", "AWS_SECRET_ACCESS_KEY=reads")
	if job := s.job(t, "get", "o-1"); job.RequestedBy == nil || *job.RequestedBy != operatorARN {
		t.Errorf("got it asked by %v, want %s", job.RequestedBy, operatorARN)
	}
	s.wantListed(t, []string{"o-1"}, false, "--paused")
	for door, args := range map[string][]string{
		"submit": {"submit", "order", "--id", "o-2", "--input", "{}"}, "operate": {"resume", "o-1"},
	} {
		stdout, stderr := s.run(t, codeUsage, args...)
		if stdout != "" || !strings.Contains(stderr, "lambda:InvokeFunction on the function "+s.name+"-"+door) {
			t.Errorf("%v: got %q, %q, want to be told which policy is missing", args, stdout, stderr)
		}
	}
	if _, stderr := s.run(t, codeUsage, "publish", "../../../workflows/order/order.yaml"); !strings.Contains(stderr, s.name+"-operate") {
		t.Errorf("publish: got %q, want to be told which policy is missing", stderr)
	}
	if j, err := s.store.Load(t.Context(), "o-1"); err != nil || !j.Paused() {
		t.Errorf("got %+v, %v, want it paused still", j.ProcessState, err)
	}
	if _, err := s.store.Load(t.Context(), "o-2"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("got %v, want no job", err)
	}
	for until := time.Now().Add(2 * time.Minute); !strings.Contains(s.said(), `"by":"`+readerARN+`"`) || !strings.Contains(s.said(), `"location":"/api/jobs/o-1"`); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("the doors say %s, want who knocked, and what was submitted", s.said())
		}
	}
}
