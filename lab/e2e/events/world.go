package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/makegood-dev/makegood/internal/deployed"
	"github.com/makegood-dev/makegood/internal/queue/localqueue"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store/dynamostore"
	"github.com/makegood-dev/makegood/internal/testkit/standin"
	"github.com/makegood-dev/makegood/internal/workflowfile"
	"github.com/makegood-dev/makegood/workflows/order"
)

const (
	indexName = "CompleteBy"
	shards    = 4
)

// world is where functions run: tables and queues are made at AWS's API as it answers here, and shop is where
// the functions find the services of the sample.
type world struct {
	db     *dynamodb.Client
	mq     *sqs.Client
	prefix string
	shop   string
	// variables are set for every function, beside those of a case.
	variables map[string]string
}

// queueNames are those of all queues that a function may send to.
func queueNames() []string {
	names := []string{deployed.EventsQueue, deployed.SubmissionsQueue, deployed.QuarantineQueue}
	for _, agent := range []string{"inventory", "payments", "shipping", "http", "hello"} {
		names = append(names, deployed.TasksQueue(agent))
	}
	return names
}

// run runs one case on a table and queues of its own.
func (w *world) run(ctx context.Context, folder string, c savedCase, invoke invoker) error {
	event, want, err := saved(folder, c)
	if err != nil {
		return err
	}
	prefix := w.prefix + c.name + "-"
	urls, err := w.prepare(ctx, prefix, c)
	if err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	variables := maps.Clone(w.variables)
	maps.Copy(variables, map[string]string{
		deployed.VarTable: prefix + "jobs", deployed.VarIndex: indexName, deployed.VarShards: fmt.Sprint(shards),
		deployed.VarQueuePrefix: prefix,
	})
	// An address that only a laptop has: here the shop has another.
	event = bytes.ReplaceAll(event, []byte(order.DefaultShop), []byte(w.shop))
	// The queues have other names here, too.
	event = bytes.ReplaceAll(event, []byte(queuesARN), []byte(arnPrefix+prefix))
	answer, err := invoke(ctx, c.function, event, variables)
	if err != nil {
		return err
	}
	// sam prints it in its own way.
	plainAnswer, err := compact(answer)
	if err != nil {
		return fmt.Errorf("the function answers %q: %w", answer, err)
	}
	got := outcome{Answer: plainAnswer}
	for _, name := range slices.Sorted(maps.Keys(urls)) {
		bodies, err := w.receive(ctx, urls[name])
		if err != nil {
			return fmt.Errorf("receive from %s: %w", name, err)
		}
		for _, body := range bodies {
			plain, err := settled([]byte(strings.ReplaceAll(body, arnPrefix+prefix, queuesARN)), c.drawn)
			if err != nil {
				return err
			}
			got.Sends = append(got.Sends, sent{name, plain})
		}
	}
	// A stand-in that cut an answer off was asked again: the message is there twice, which readers allow for.
	got.Sends = slices.CompactFunc(got.Sends, func(a, b sent) bool { return a.Queue == b.Queue && bytes.Equal(a.Body, b.Body) })
	return compare(got, want)
}

// compare fails when a function did not do what is saved.
func compare(got, want outcome) error {
	have, err := json.Marshal(got)
	if err != nil {
		return err
	}
	expected, err := json.Marshal(want)
	if err != nil {
		return err
	}
	if !bytes.Equal(have, expected) {
		return fmt.Errorf("got  %s\nwant %s", have, expected)
	}
	return nil
}

// prepare makes table and queues, and the job that the event is about; it returns the queues' addresses.
func (w *world) prepare(ctx context.Context, prefix string, c savedCase) (map[string]string, error) {
	if err := standin.CreateTable(ctx, w.db, dynamostore.Schema(prefix+"jobs", indexName)); err != nil {
		return nil, err
	}
	urls := map[string]string{}
	for _, name := range queueNames() {
		made, err := w.mq.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String(prefix + name)})
		if err != nil {
			return nil, fmt.Errorf("create queue %s: %w", name, err)
		}
		urls[name] = aws.ToString(made.QueueUrl)
	}
	if c.job == "" {
		return urls, nil
	}
	store, err := dynamostore.New(dynamostore.Config{Client: w.db, Table: prefix + "jobs", Index: indexName, Shards: shards})
	if err != nil {
		return nil, err
	}
	return urls, born(ctx, store, c)
}

// born stores a case's job as it was when its event happened. What its Scheduler sends is dropped: the saved
// event stands for it.
func born(ctx context.Context, store *dynamostore.Store, c savedCase) error {
	compiled, err := workflowfile.Parse("saved.yaml", []byte(c.workflow))
	if err != nil {
		return err
	}
	if err := store.PutDefinition(ctx, compiled.Workflow.Name, compiled.Hash, compiled.Definition); err != nil {
		return err
	}
	var dropped []localqueue.Queue
	for _, name := range queueNames() {
		dropped = append(dropped, localqueue.Queue{Name: name})
	}
	queues, err := localqueue.New(localqueue.Options{Queues: dropped})
	if err != nil {
		return err
	}
	s := scheduler.New(scheduler.Config{
		Jobs: store, Closings: store, Payloads: store, Definitions: store, Queue: queues, Events: deployed.EventsQueue, Quarantine: deployed.QuarantineQueue,
		Tasks: deployed.TasksQueue, Instance: "saved", Now: func() time.Time { return savedAt }, Bytes: sameBytes, Period: deployed.SweepPeriod, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	_, _, err = s.Submit(ctx, scheduler.Submission{ID: c.job, Definition: compiled.Hash, Input: json.RawMessage(`{}`)})
	return err
}

// receive returns all that is on a queue. Nobody else takes from it, and a stand-in keeps all of it in one place,
// so that an empty answer says that there is no more.
func (w *world) receive(ctx context.Context, url string) ([]string, error) {
	var bodies []string
	for {
		got, err := w.mq.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 10, VisibilityTimeout: 600})
		if err != nil {
			return nil, err
		}
		if len(got.Messages) == 0 {
			return bodies, nil
		}
		for _, m := range got.Messages {
			if m.Body == nil {
				return nil, errors.New("a message without a body")
			}
			bodies = append(bodies, *m.Body)
		}
	}
}
