//go:build aws

// Package stack runs the whole engine on DynamoDB's and SQS's API: the same handlers as in the Lambda
// functions, fed by pollers, against whatever stand-in the environment names.
package stack

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/client/dynamotx"
	"github.com/makegood-dev/makegood/internal/agentrun"
	"github.com/makegood-dev/makegood/internal/httpagent"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/queue/localqueue"
	"github.com/makegood-dev/makegood/internal/queue/sqsqueue"
	"github.com/makegood-dev/makegood/internal/sample/services"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/sqsbatch"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/dynamostore"
	"github.com/makegood-dev/makegood/internal/supervisor"
	"github.com/makegood-dev/makegood/internal/testkit/standin"
	"github.com/makegood-dev/makegood/internal/wire"
	"github.com/makegood-dev/makegood/internal/workflowfile"
	"github.com/makegood-dev/makegood/workflows/order"
)

// stack is a table and queues of a test's own, and the engine on them.
type stack struct {
	t         *testing.T
	db        *dynamodb.Client
	table     string
	store     *dynamostore.Store
	queues    *sqsqueue.Queues
	scheduler *scheduler.Scheduler
	shop      *services.Server
	compiled  *workflowfile.Compiled
}

func open(t *testing.T, script services.Script) *stack {
	t.Helper()
	prefix := "mg" + strings.ToLower(rand.Text()[:10])
	s := &stack{t: t, table: prefix + "-jobs", db: dynamodb.NewFromConfig(standin.Config(standin.DynamoDB(t).Endpoint))}
	if err := standin.CreateTable(t.Context(), s.db, dynamostore.Schema(s.table, "due")); err != nil {
		t.Fatal(err)
	}
	var err error
	if s.store, err = dynamostore.New(dynamostore.Config{Client: s.db, Table: s.table, Index: "due", Shards: 4}); err != nil {
		t.Fatal(err)
	}
	s.queues = makeQueues(t, prefix)
	if s.shop, err = services.Start("127.0.0.1:0", services.Options{Script: script}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.shop.Close() })
	yaml := bytes.ReplaceAll(order.YAML, []byte(order.DefaultShop), []byte(s.shop.URL()))
	// Every request to a stand-in is some milliseconds on this machine, so an attempt gets more time.
	yaml = bytes.ReplaceAll(yaml, []byte("timeout: 1s"), []byte("timeout: 3s"))
	if s.compiled, err = workflowfile.Parse("order.yaml", yaml); err != nil {
		t.Fatal(err)
	}
	if err := s.store.PutDefinition(t.Context(), s.compiled.Workflow.Name, s.compiled.Hash, s.compiled.Definition); err != nil {
		t.Fatal(err)
	}
	s.run()
	return s
}

func makeQueues(t *testing.T, prefix string) *sqsqueue.Queues {
	c := sqs.NewFromConfig(standin.Config(standin.SQS(t).Endpoint))
	urls := map[string]string{}
	for _, name := range []string{"events", "submissions", "quarantine", "tasks-inventory", "tasks-payments", "tasks-shipping", "tasks-http"} {
		out, err := c.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String(prefix + "-" + name)})
		if err != nil {
			t.Fatal(err)
		}
		urls[name] = *out.QueueUrl
	}
	return sqsqueue.New(sqsqueue.Config{Client: c, URLs: urls})
}

// run starts what the three Lambda functions and their event sources are, until the test ends.
func (s *stack) run() {
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	s.scheduler = scheduler.New(scheduler.Config{
		Jobs: s.store, Closings: s.store, Payloads: s.store, Definitions: s.store, Queue: s.queues,
		Events: "events", Quarantine: "quarantine", Tasks: func(agent string) string { return "tasks-" + agent },
		Instance: "e2e", Reminders: true, Period: time.Second, Submissions: "submissions", Logger: log,
	})
	web, err := httpagent.New(httpagent.Policy{AllowPrivate: true})
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	poll := func(name string, h queue.Handler) {
		p := localqueue.Poller{
			Receiver: s.queues, Queue: name, Concurrency: 4, Logger: log,
			Handler: sqsbatch.Backoff(h, s.queues, name, sqsbatch.BackoffOptions{Logger: log}),
		}
		running.Go(func() {
			if err := p.Run(ctx); err != nil {
				s.t.Errorf("poll %s: %v", name, err)
			}
		})
	}
	poll("events", s.scheduler.HandleSQS)
	poll("submissions", s.scheduler.HandleSubmissions)
	for _, a := range append(order.Agents(s.shop.URL(), http.DefaultClient), agent.Handler(web)) {
		r := agentrun.New(agentrun.Config{
			Handlers: []agent.Handler{a}, Claims: s.store, Queue: s.queues, Tasks: "tasks-" + a.Name(), Quarantine: "quarantine",
			Instance: "e2e-" + a.Name(), Logger: log,
		})
		poll("tasks-"+a.Name(), r.HandleSQS)
	}
	running.Go(func() {
		sweeper := supervisor.New(supervisor.Config{Index: s.store, Queue: s.queues, Events: "events", Logger: log})
		for tick := time.NewTicker(time.Second); ctx.Err() == nil; {
			select {
			case <-ctx.Done():
			case <-tick.C:
				_, _ = sweeper.Sweep(ctx) // the next one makes up for it
			}
		}
	})
	s.t.Cleanup(func() {
		stop()
		running.Wait()
		web.Close()
	})
}

// ends waits until every job is at its end, or in front of a person.
func (s *stack) ends(ids []string) map[string]makegood.ProcessState {
	s.t.Helper()
	ends := map[string]makegood.ProcessState{}
	for deadline := time.Now().Add(5 * time.Minute); len(ends) < len(ids); time.Sleep(200 * time.Millisecond) {
		for _, id := range ids {
			if _, ok := ends[id]; ok {
				continue
			}
			j, err := s.store.Load(s.t.Context(), id)
			if err != nil && !errors.Is(err, store.ErrNotFound) {
				s.t.Fatal(err)
			}
			if j.ProcessState.Finished() || j.ProcessState == makegood.JobError {
				ends[id] = j.ProcessState
			}
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("%d of %d jobs are at their end", len(ends), len(ids))
		}
	}
	return ends
}

// Orders against a shop with faults, on DynamoDB and SQS: every order ends as the shop's script has it,
// and the ledger agrees.
func TestOrdersEndAsTheyShouldOnDynamoDBAndSQS(t *testing.T) {
	const orders = 40
	script := services.Script{Profile: services.FaultsSome, Seed: 11}
	s := open(t, script)
	var ids []string
	for i := range orders {
		id := fmt.Sprintf("o-%03d", i)
		ids = append(ids, id)
		input := fmt.Sprintf(`{"id":%q,"customer":"c","total":%d}`, id, i)
		if _, _, err := s.scheduler.Submit(t.Context(), scheduler.Submission{ID: id, Definition: s.compiled.Hash, Input: json.RawMessage(input)}); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	ends := s.ends(ids)
	t.Logf("%d orders in %v", orders, time.Since(began).Round(time.Millisecond))
	for _, v := range services.Check(s.shop.Ledger(), ends) {
		t.Error(v)
	}
	for id, state := range ends {
		if want := script.Ends(id); state != want {
			t.Errorf("order %s: got %s, want %s", id, state, want)
		}
	}
}

// A job that was submitted in the caller's own transaction is there if and only if the caller's record is, and
// runs without a further call.
func TestAJobInTheCallersOwnTransaction(t *testing.T) {
	s := open(t, services.Script{Profile: services.FaultsNone})
	submitter, err := dynamotx.New(dynamotx.Config{Client: s.db, Table: s.table, Shards: 4, Retention: dynamotx.Forever})
	if err != nil {
		t.Fatal(err)
	}
	place := func(id string, record types.TransactWriteItem) error {
		input := fmt.Appendf(nil, `{"id":%q,"customer":%q,"total":3}`, id, strings.Repeat("c", 500))
		items, err := submitter.Items(t.Context(), makegood.Submission{Workflow: "order", ID: id, Input: input})
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.db.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: append(items, record)})
		return dynamotx.Refused(err, id)
	}
	if err := place("kept", s.record("kept", "attribute_not_exists(PK)")); err != nil {
		t.Fatal(err)
	}
	if err := place("lost", s.record("lost", "attribute_exists(PK)")); err == nil || errors.Is(err, dynamotx.ErrExists) {
		t.Errorf("the record's condition fails: got %v, want the transaction refused for it", err)
	}
	if err := place("kept", s.record("kept again", "attribute_not_exists(PK)")); !errors.Is(err, dynamotx.ErrExists) {
		t.Errorf("the same id again: got %v, want ErrExists", err)
	}
	if state := s.ends([]string{"kept"})["kept"]; state != makegood.JobProcessed {
		t.Errorf("got %s, want Processed", state)
	}
	if _, err := s.store.Load(t.Context(), "lost"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a job without its record: got %v, want not found", err)
	}
	told := ""
	if err := submitter.Committed(t.Context(), func(_ context.Context, body string) error { told = body; return nil }, "kept"); err != nil {
		t.Fatal(err)
	}
	if id, e, err := wire.DecodeEvent(told); err != nil || id != "kept" || e != (job.Submitted{}) {
		t.Errorf("Committed sent %q: %v", told, err)
	}
}

// record is the caller's own: in the same table here, for want of another.
func (s *stack) record(id, condition string) types.TransactWriteItem {
	return types.TransactWriteItem{Put: &types.Put{
		TableName: &s.table, ConditionExpression: &condition,
		Item: map[string]types.AttributeValue{
			"PK": &types.AttributeValueMemberS{Value: "order " + id}, "SK": &types.AttributeValueMemberS{Value: "order"},
		},
	}}
}

// A job submitted by a message, and one whose message is poison.
func TestASubmissionByMessage(t *testing.T) {
	s := open(t, services.Script{Profile: services.FaultsNone})
	body, err := wire.EncodeSubmit(wire.Submit{Workflow: "order", ID: "by-message", Input: json.RawMessage(`{"id":"by-message","customer":"c","total":1}`)})
	if err != nil {
		t.Fatal(err)
	}
	unknown, err := wire.EncodeSubmit(wire.Submit{Workflow: "unheard-of", ID: "x", Input: json.RawMessage(`{}`)})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range s.queues.Send(t.Context(), "submissions", queue.Message{Body: body}, queue.Message{Body: unknown}, queue.Message{Body: body}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if state := s.ends([]string{"by-message"})["by-message"]; state != makegood.JobProcessed {
		t.Errorf("got %s, want Processed", state)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	poison, err := s.queues.Receive(ctx, "quarantine", 1)
	if err != nil || len(poison) != 1 || !strings.Contains(poison[0].Body, "unheard-of") {
		t.Errorf("quarantine: got %v, %v, want the submission to an unknown workflow", poison, err)
	}
}
