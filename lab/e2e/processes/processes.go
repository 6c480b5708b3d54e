//go:build linux

// Package processes runs a stack on a stand-in without deploying it: a table and queues of its own, and the functions,
// each in processes of the program that asks for it, behind a stand-in for Lambda (lab/testkit/lambdahost). Its
// main must call Serve first.
//
// It knows no template: queues have the settings that matter here, and nothing asks for rights. The sweep comes each
// second.
package processes

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/client"
	"github.com/makegood-dev/makegood/client/doors"
	"github.com/makegood-dev/makegood/internal/deployed"
	"github.com/makegood-dev/makegood/internal/httpapi"
	"github.com/makegood-dev/makegood/internal/protocol"
	"github.com/makegood-dev/makegood/internal/store/dynamostore"
	"github.com/makegood-dev/makegood/internal/testkit/functionurl"
	"github.com/makegood-dev/makegood/internal/testkit/standin"
	"github.com/makegood-dev/makegood/lab/testkit/lambdahost"
	"github.com/makegood-dev/makegood/onlambda"
)

// roleVariable says which function a process is.
const roleVariable = "MAKEGOOD_PROCESS"

// The functions.
const (
	Scheduler  = "scheduler"
	Supervisor = "supervisor"
	door       = "door"
	agents     = "agent"
)

const (
	// invocationLimit is how long a function may take.
	invocationLimit = 10 * time.Second
	// visibility is how long a message is out of sight while a function has it, in seconds; the message of one that was
	// killed comes back after that.
	visibility = "10"
	// memoryMB is what each function has.
	memoryMB = "256"
	// operator is who knocks at the doors.
	operator = "arn:aws:iam::000000000000:user/operator"
	index    = "CompleteBy"
)

// Serve runs the process as the function that it was started as, and does not return then.
func Serve(files fs.FS, all ...agent.Handler) {
	switch os.Getenv(roleVariable) {
	case "":
		return
	case Scheduler:
		onlambda.Scheduler(files)
	case Supervisor:
		onlambda.Supervisor()
	case door:
		onlambda.Door(files)
	case agents:
		onlambda.Agent(all...)
	}
	os.Exit(2) // None of them returns.
}

// Config says what a stack is. DynamoDB and SQS are endpoints of stand-ins.
type Config struct {
	DynamoDB, SQS string
	// Agents are the names of the agents that Serve has, but for http.
	Agents []string
	// Environment is what the functions see beside what a template gives.
	Environment []string
	// Tables are made, too, with names that begin with the stack's Prefix, which PrefixVariable tells the functions.
	Tables []*dynamodb.CreateTableInput
}

// PrefixVariable is how a function of a stack knows what the names of its tables begin with.
const PrefixVariable = "MAKEGOOD_TABLE_PREFIX"

// Stack is a stack that runs.
type Stack struct {
	// Name is the stack's, and Prefix begins the names of its tables and queues.
	Name, Prefix string
	// DB and Jobs are its table, and the store on it.
	DB   *dynamodb.Client
	Jobs *dynamostore.Store
	// Client knocks at its doors.
	Client *client.Client
	// Functions are by their names; those of agents have the agents'.
	Functions map[string]*lambdahost.Function

	config    Config
	addresses doors.Addresses
	aws       aws.Config
	host      *lambdahost.Host
	servers   []*httptest.Server
	mappings  []*lambdahost.Mapping
	schedule  *lambdahost.Schedule
	variables []string
	runs      bool
}

// Open makes a stack and starts it. Close must be called, whatever it returns.
func Open(ctx context.Context, c Config) (*Stack, error) {
	s := &Stack{
		Name: "mg-" + strings.ToLower(rand.Text()[:10]), config: c, Functions: map[string]*lambdahost.Function{},
		aws: standin.Config(c.SQS),
	}
	s.Prefix = s.Name + "-"
	s.DB = dynamodb.NewFromConfig(standin.Config(c.DynamoDB))
	for _, table := range append([]*dynamodb.CreateTableInput{dynamostore.Schema("jobs", index)}, c.Tables...) {
		made := *table
		made.TableName = aws.String(s.Prefix + aws.ToString(table.TableName))
		if err := standin.CreateTable(ctx, s.DB, &made); err != nil {
			return s, err
		}
	}
	var err error
	if s.Jobs, err = dynamostore.New(dynamostore.Config{Client: s.DB, Table: s.Prefix + "jobs", Index: index}); err != nil {
		return s, err
	}
	if s.host, err = lambdahost.New(); err != nil {
		return s, err
	}
	s.variables = append([]string{
		"AWS_REGION=" + standin.Region, "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE=" + memoryMB,
		"AWS_ENDPOINT_URL=" + c.SQS, "AWS_ENDPOINT_URL_DYNAMODB=" + c.DynamoDB, PrefixVariable + "=" + s.Prefix,
		deployed.VarTable + "=" + s.Prefix + "jobs", deployed.VarIndex + "=" + index, deployed.VarShards + "=" + strconv.Itoa(dynamostore.DefaultShards),
		deployed.VarQueuePrefix + "=" + s.Prefix, deployed.VarRetention + "=30", deployed.VarLogLevel + "=WARN", deployed.VarStack + "=" + s.Name,
	}, c.Environment...)
	if err := s.open(ctx); err != nil {
		return s, err
	}
	s.start()
	return s, nil
}

// open makes the queues, the functions and the doors.
func (s *Stack) open(ctx context.Context) error {
	if _, err := s.queue(ctx, deployed.QuarantineQueue); err != nil {
		return err
	}
	scheduler := s.function(Scheduler, Scheduler)
	for _, name := range []string{deployed.EventsQueue, deployed.SubmissionsQueue} {
		if err := s.feed(ctx, name, scheduler); err != nil {
			return err
		}
	}
	for _, name := range s.config.Agents {
		if err := s.feed(ctx, deployed.TasksQueue(name), s.function(name, agents, deployed.VarAgent+"="+name)); err != nil {
			return err
		}
	}
	s.schedule = &lambdahost.Schedule{Function: s.function(Supervisor, Supervisor), Every: time.Second, Event: []byte(`{"source":"aws.scheduler"}`)}
	urls := map[httpapi.Door]string{}
	for _, name := range httpapi.Doors() {
		f := s.function("door-"+string(name), door, deployed.VarDoor+"="+string(name))
		server := httptest.NewServer(f.URL(standin.Region, map[string]functionurl.Key{"test": {Secret: "test", ARN: operator}}))
		s.servers = append(s.servers, server)
		urls[name] = server.URL + "/"
	}
	s.addresses = doors.Addresses{Submit: urls[httpapi.Submit], Read: urls[httpapi.Read], Operate: urls[httpapi.Operate]}
	var err error
	s.Client, err = doors.New(doors.Config{AWS: s.aws, Stack: s.Name, Addresses: s.addresses})
	return err
}

func (s *Stack) function(name, role string, more ...string) *lambdahost.Function {
	program, err := os.Executable()
	if err != nil {
		program = os.Args[0]
	}
	s.Functions[name] = s.host.Function(lambdahost.Config{
		Name: s.Prefix + name, Command: []string{program}, Timeout: invocationLimit,
		Environment: append(append([]string{roleVariable + "=" + role}, s.variables...), more...),
	})
	return s.Functions[name]
}

// queue makes a queue.
func (s *Stack) queue(ctx context.Context, name string) (url string, err error) {
	made, err := sqs.NewFromConfig(s.aws).CreateQueue(ctx, &sqs.CreateQueueInput{
		QueueName: aws.String(s.Prefix + name), Attributes: map[string]string{"VisibilityTimeout": visibility},
	})
	if err != nil {
		return "", fmt.Errorf("create queue %s: %w", name, err)
	}
	return aws.ToString(made.QueueUrl), nil
}

// feed makes a queue that feeds a function.
func (s *Stack) feed(ctx context.Context, name string, f *lambdahost.Function) error {
	url, err := s.queue(ctx, name)
	s.mappings = append(s.mappings, &lambdahost.Mapping{Client: sqs.NewFromConfig(s.aws), QueueURL: url, Function: f})
	return err
}

func (s *Stack) start() {
	s.runs = true
	s.schedule.Start()
	for _, m := range s.mappings {
		m.Start()
	}
}

// Environment is what a command of an operator sees: the stack is found by its name, as CloudFormation tells it.
func (s *Stack) Environment() []string {
	return []string{
		"AWS_REGION=" + standin.Region, "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test",
		"AWS_ENDPOINT_URL=" + s.config.SQS, "AWS_ENDPOINT_URL_DYNAMODB=" + s.config.DynamoDB,
	}
}

// Announce makes a stack of CloudFormation whose outputs say where the doors are. Of the stand-ins MiniStack has it.
func (s *Stack) Announce(ctx context.Context) error {
	output := func(value string) map[string]string { return map[string]string{"Value": value} }
	template, err := json.Marshal(map[string]any{
		"Resources": map[string]any{"Nothing": map[string]any{"Type": "AWS::SQS::Queue"}},
		"Outputs": map[string]any{
			protocol.SubmitOutput: output(s.addresses.Submit), protocol.ReadOutput: output(s.addresses.Read), protocol.OperateOutput: output(s.addresses.Operate),
		},
	})
	if err != nil {
		return err
	}
	_, err = cloudformation.NewFromConfig(s.aws).CreateStack(ctx, &cloudformation.CreateStackInput{StackName: &s.Name, TemplateBody: aws.String(string(template))})
	if err != nil {
		return fmt.Errorf("tell CloudFormation of the stack: %w", err)
	}
	for ctx.Err() == nil {
		if _, err = doors.Find(ctx, s.aws, s.Name); err == nil {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return errors.Join(err, ctx.Err())
}

// Said is what the functions have logged.
func (s *Stack) Said() string {
	var all strings.Builder
	for name, f := range s.Functions {
		if said := f.Output(); said != "" {
			fmt.Fprintf(&all, "%s:\n%s\n", name, said)
		}
	}
	return all.String()
}

// Close stops the functions. Tables and queues go with the stand-in.
func (s *Stack) Close() error {
	for _, server := range s.servers {
		server.Close()
	}
	if s.runs {
		s.schedule.Stop()
		for _, m := range s.mappings {
			m.Stop()
		}
	}
	if s.host == nil {
		return nil
	}
	return s.host.Close()
}
