//go:build aws

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/client/dynamotx"
	"github.com/makegood-dev/makegood/internal/agentrun"
	"github.com/makegood-dev/makegood/internal/deployed"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/testkit/standin"
	"github.com/makegood-dev/makegood/internal/workflowfile"
	"github.com/makegood-dev/makegood/lab/costmeter"
)

// agree fails the test unless a job says what was counted, each unit within 1 %.
func agree(t *testing.T, counted costmeter.Totals, kept job.Spent) {
	t.Helper()
	for _, unit := range []struct {
		what          string
		counted, kept float64
	}{
		{"write units", counted.WriteUnits, float64(kept.Writes)},
		{"read units", counted.ReadUnits, float64(kept.HalfReads) / 2},
		{"requests", float64(counted.SQSRequests), float64(kept.Requests) / job.SpentParts},
		{"invocations", float64(counted.Invocations), float64(kept.Invocations) / job.SpentParts},
	} {
		if math.Abs(unit.counted-unit.kept) > unit.counted/100 {
			t.Errorf("%s: %.2f were counted, and the job says %.2f", unit.what, unit.counted, unit.kept)
		}
	}
}

// What the jobs of the table say that they have cost is what was counted of their requests.
func TestJobsSayWhatTheyHaveCost(t *testing.T) {
	for _, l := range loads() {
		if l.steps > 5 {
			continue // The table itself has them.
		}
		t.Run(l.name, func(t *testing.T) {
			f := measured(t, l)
			agree(t, f.counted(), f.kept)
		})
	}
}

// shape is a job that does not simply go well, or is not of the table.
type shape struct {
	name, workflow string
	// wait: time passes, and a sweep finds the job, when nothing is left in the queues.
	wait bool
	// transacted: the job is born in a transaction of its submitter's own, with an input of so many bytes.
	transacted int
	ends       makegood.ProcessState
}

func shapes() []shape {
	wide := "name: wide\nsteps:\n"
	for i := range 30 {
		wide += fmt.Sprintf("  - {name: branch_%02d, agent: shop, action: work, needs: []}\n", i)
	}
	long := "name: long\nsteps:\n"
	for i := range 60 {
		long += fmt.Sprintf("  - {name: step_%03d, agent: shop, action: work}\n", i)
	}
	two := "name: two\nsteps:\n  - {name: first, agent: shop, action: work}\n  - {name: last, agent: shop, action: work}\n"
	return []shape{
		// The clock of the test passes an hour at once, and the queue's delay is real: the reminder of a short pause would be
		// a request that no save of the job counts. The world draws the pause, always the same, longer than those.
		{name: "fails, and is tried again", workflow: "name: again\nsteps:\n  - {name: first, agent: shop, action: flaky, retry: {attempts: 3, backoff: 1h, max: 1h}}\n", wait: true, ends: makegood.JobProcessed},
		{name: "is undone", workflow: "name: undone\nsteps:\n  - {name: first, agent: shop, action: work, undo: {action: work}}\n  - {name: last, agent: shop, action: fail, retry: {attempts: 1}}\n", ends: makegood.JobUndone},
		{name: "waits", workflow: "name: waits\nsteps:\n  - {name: first, agent: shop, action: work}\n  - {name: pause, agent: wait, with: {for: 365d}}\n  - {name: last, agent: shop, action: work}\n", wait: true, ends: makegood.JobProcessed},
		{name: "is wide", workflow: wide, ends: makegood.JobProcessed},
		{name: "is long", workflow: long, ends: makegood.JobProcessed},
		{name: "has a map", workflow: "name: maps\nsteps:\n  - {name: all, agent: shop, action: work, map: {over: \"${ [range(130)] }\"}}\n", ends: makegood.JobProcessed},
		{name: "is born in a transaction", workflow: two, transacted: 200, ends: makegood.JobProcessed},
		{name: "is born in a transaction with a large input", workflow: two, transacted: 5000, ends: makegood.JobProcessed},
	}
}

// So it is of jobs that fail, are undone, wait, are wide, and of which details lie apart.
func TestJobsOfEveryShapeSayWhatTheyHaveCost(t *testing.T) {
	for _, s := range shapes() {
		t.Run(s.name, func(t *testing.T) {
			w, err := open(t.Context(), at(t), load{name: s.name, steps: 1, batched: true, output: inlineOutput}, true)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := w.close(context.WithoutCancel(t.Context())); err != nil {
					t.Error(err)
				}
			}()
			counted, kept, err := w.runShape(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			agree(t, costmeter.Sum(counted), kept)
			reported(t, counted)
		})
	}
}

// moody is an agent that works, fails, or fails once.
func (w *world) moody() queue.Handler {
	tried := false
	work := agent.New(agentName,
		agent.Do("work", func(context.Context, json.RawMessage) (string, error) { return w.load.answer(), nil }),
		agent.Do("fail", func(context.Context, json.RawMessage) (string, error) {
			return "", agent.NotApplied(agent.Final(errors.New("no")))
		}),
		agent.Do("flaky", func(context.Context, json.RawMessage) (string, error) {
			if tried {
				return w.load.answer(), nil
			}
			tried = true
			return "", errors.New("not yet")
		}))
	return agentrun.New(agentrun.Config{
		Handlers: []agent.Handler{work}, Claims: w.store, Queue: w.queues, Tasks: deployed.TasksQueue(agentName),
		Quarantine: deployed.QuarantineQueue, Instance: instance, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), Now: w.clock.now,
		Counts: true, Clock: untimed(),
	}).HandleSQS
}

// reported fails the test unless the server says of each request what was counted of it.
func reported(t *testing.T, counted []costmeter.Entry) {
	t.Helper()
	compared := 0
	for _, e := range counted {
		if e.Reported != nil {
			compared++
		}
		d := e.Differs()
		if d != "" && (e.Operation == "GetItem" || e.Operation == "Query") && strings.HasPrefix(standin.DynamoDB(t).Product, "MiniStack") {
			t.Log("deviates: says that a GetItem or a Query costs one read unit, whatever the size of the items")
			continue
		}
		if d != "" {
			t.Error(d)
		}
	}
	if compared == 0 {
		t.Error("the server has reported nothing")
	}
}

// runShape runs a job to its end, and returns what was counted of its requests and what it says.
func (w *world) runShape(ctx context.Context, s shape) (counted []costmeter.Entry, kept job.Spent, err error) {
	compiled, err := workflowfile.Parse("shape.yaml", []byte(s.workflow))
	if err != nil {
		return counted, kept, err
	}
	if err := w.store.PutDefinition(ctx, compiled.Workflow.Name, compiled.Hash, compiled.Definition); err != nil {
		return counted, kept, err
	}
	w.meter.Take()
	const id = "shape-000000"
	if err := w.submit(ctx, s, compiled, id); err != nil {
		return counted, kept, err
	}
	entries := w.meter.Take()
	work := w.moody()
	for turns := 0; ; turns++ {
		tasks, err := w.drain(ctx, deployed.TasksQueue(agentName), work)
		if err != nil {
			return counted, kept, err
		}
		replies, err := w.drain(ctx, deployed.EventsQueue, w.scheduler.HandleSQS)
		if err != nil {
			return counted, kept, err
		}
		entries = append(entries, asked(w.meter.Take())...)
		j, err := w.store.Load(ctx, id)
		w.meter.Take()
		if err != nil {
			return counted, kept, err
		}
		if j.ProcessState == s.ends {
			kept, err := w.spent(ctx, id)
			return entries, kept, errors.Join(err, sure(entries))
		}
		if turns > 500 || j.ProcessState.Finished() {
			return counted, kept, fmt.Errorf("after %d turns the job is %s, want %s: %s", turns, j.ProcessState, s.ends, j.Reason)
		}
		if tasks+replies == 0 && s.wait {
			w.clock.pass(waitLasts)
			if _, err := w.supervisor.Sweep(ctx); err != nil {
				return counted, kept, err
			}
			// What a sweep asks is the stack's; that it tells of a job, the job pays.
			for _, e := range w.meter.Take() {
				if strings.HasPrefix(e.Operation, "SendMessage") {
					entries = append(entries, e)
				}
			}
		}
	}
}

// spent adds up the counts of a job and of the jobs that do its steps.
func (w *world) spent(ctx context.Context, id string) (kept job.Spent, err error) {
	ids, err := w.ids(ctx, id)
	for _, id := range ids {
		j, loadErr := w.store.Load(ctx, id)
		kept, err = kept.Plus(j.Spent), errors.Join(err, loadErr)
	}
	return kept, err
}

// submit submits the job of a shape, by the Scheduler or as its submitter.
func (w *world) submit(ctx context.Context, s shape, compiled *workflowfile.Compiled, id string) error {
	if s.transacted == 0 {
		_, _, err := w.scheduler.Submit(ctx, scheduler.Submission{ID: id, Definition: compiled.Hash, Input: w.load.input(0)})
		return err
	}
	submitter, err := dynamotx.New(dynamotx.Config{Client: w.db, Table: w.table, Shards: w.load.shards(), Retention: dynamotx.Forever})
	if err != nil {
		return err
	}
	input := json.RawMessage(`{"text":"` + strings.Repeat("x", s.transacted) + `"}`)
	items, err := submitter.Items(ctx, makegood.Submission{Workflow: compiled.Workflow.Name, ID: id, Input: input})
	if err != nil {
		return err
	}
	if _, err := w.db.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: items}); err != nil {
		return err
	}
	return submitter.Committed(ctx, func(ctx context.Context, body string) error {
		return errors.Join(w.queues.Send(ctx, deployed.EventsQueue, queue.Message{Body: body})...)
	}, id)
}
