package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/deployed"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/sqsbatch"
	"github.com/makegood-dev/makegood/internal/wire"
	"github.com/makegood-dev/makegood/workflows/order"
)

// The names that saved events bear of account, Region and stack.
const (
	region    = "eu-central-1"
	arnPrefix = "arn:aws:sqs:" + region + ":123456789012:"
	stackName = "makegood-dev"
	// queuesARN is what the ARNs of the stack's queues begin with.
	queuesARN = arnPrefix + stackName + "-"
	// claimant is who held the attempt that a saved reply answers for.
	claimant = "agent:saved"
)

var (
	// savedAt is when all saved events happened.
	savedAt = time.Date(2026, time.November, 20, 10, 0, 0, 0, time.UTC)
	// claimUntil is until when saved tasks can be claimed. Their attempts would be long over by the time that somebody
	// runs them again.
	claimUntil = time.Date(2126, time.November, 20, 10, 0, 0, 0, time.UTC)
)

// sameBytes stand for the random bytes of a job that is there before its event: nonce and secret are the same in each
// run, and so are the tokens made with it.
func sameBytes(n int) []byte { return bytes.Repeat([]byte{0x5a}, n) }

// birth is the nonce of such a job.
const birth = "5a5a5a5a5a5a5a5a"

// token is that of the first attempt of a step of such a job.
func token(step string) string {
	return machine.Token(job.Job{Secret: sameBytes(limits.SecretBytes)}, step, 1)
}

// completion is the completion token of a step of a job, in its first round.
func completion(id, step string) string {
	return machine.CompletionToken(job.Job{ID: id, Round: 1, Secret: sameBytes(limits.SecretBytes)}, step, false)
}

// savedCase is a saved event, with what must be there before it and come of it.
type savedCase struct {
	name     string
	function string // as template.yaml names it
	event    any
	want     outcome
	// workflow is that of the job which the event is about, and job its id; empty: there is none yet.
	workflow, job string
	// drawn are fields of what is sent that are drawn at random, since the job is born in this run.
	drawn []string
}

// outcome is what a function answers, and what it sends.
type outcome struct {
	Answer json.RawMessage `json:"answer"`
	Sends  []sent          `json:"sends"`
}

// sent is a message on a queue. Times, the name of a claim, and what is drawn at random are another in each run, and
// left out of it.
type sent struct {
	Queue string          `json:"queue"`
	Body  json.RawMessage `json:"body"`
}

func (c savedCase) file() string     { return c.name + ".json" }
func (c savedCase) wantFile() string { return c.name + ".want.json" }

// allDone is what a function on a queue answers when no message is to come again.
const allDone = `{"batchItemFailures":[]}`

// cases are all saved events: at least one for each function of the template.
func cases() []savedCase {
	all := []savedCase{submission(), reply(), poisonous(), tick()}
	// The first of the shop's effects in a run: it numbers them.
	all = append(all, task("http", "request",
		`{"body":{"amount":12.5,"order":"saved-http"},"url":"`+order.DefaultShop+`/payments/charge"}`,
		`{"amount":12.5,"action":"charge","number":1,"order":"saved-http"}`))
	for _, a := range []struct{ agent, action string }{{"inventory", "reserve"}, {"payments", "charge"}, {"shipping", "ship"}} {
		id := "saved-" + a.agent
		all = append(all, task(a.agent, a.action, `{"amount":12.5,"order":"`+id+`"}`, string(must(json.Marshal(order.Done{Order: id, Action: a.action})))))
	}
	return append(all, task("hello", "write", `{"name":"Ada"}`, `{"text":"Dear Ada, it works."}`))
}

// submission is of a job that is not there yet: its first task is sent.
func submission() savedCase {
	const id = "saved-submission"
	drawn := []string{"birth", "token", "completion"}
	body := must(wire.EncodeSubmit(wire.Submit{
		Workflow: "order", ID: id, Input: json.RawMessage(`{"id":"` + id + `","customer":"c1","total":12.5}`),
	}))
	first := must(wire.EncodeTask(makegood.Task{
		Job: id, Workflow: "order", Step: "reserve", Round: 1, Attempt: 1, Agent: "inventory", Action: "reserve",
		Input: json.RawMessage(`{"amount":12.5,"order":"` + id + `"}`), Key: id + "/reserve/1",
		Timeout: makegood.Second, ReplyTo: deployed.EventsQueue,
	}))
	return savedCase{
		name: "scheduler-submission", function: "Scheduler", event: batch(deployed.SubmissionsQueue, body),
		want:  outcome{json.RawMessage(allDone), []sent{message(deployed.TasksQueue("inventory"), first, drawn...)}},
		drawn: drawn,
	}
}

// reply is of the agent that has done a job's first step: the task of the second is sent.
func reply() savedCase {
	const id = "saved-reply"
	body := must(wire.EncodeEvent(id, job.StepSucceeded{
		Reply: firstReply(), Output: wire.Inline(json.RawMessage(`{"receipt":17}`)),
	}))
	second := must(wire.EncodeTask(makegood.Task{
		Job: id, Workflow: "saved", Step: "second", Round: 1, Attempt: 1, Agent: "shipping", Action: "ship",
		Input: json.RawMessage(`{"receipt":17}`), Key: id + "/second/1",
		Timeout: 30 * makegood.Second, ReplyTo: deployed.EventsQueue, Birth: birth, Token: token("second"), Completion: completion(id, "second"),
	}))
	return savedCase{
		name: "scheduler-reply", function: "Scheduler", event: batch(deployed.EventsQueue, body),
		want:     outcome{json.RawMessage(allDone), []sent{message(deployed.TasksQueue("shipping"), second)}},
		job:      id,
		workflow: workflow("payments", "charge", "{}") + `  - {name: second, agent: shipping, action: ship, with: {receipt: "${ .steps.first.output.receipt }"}}` + "\n",
	}
}

// poisonous is no message of ours: it is put into quarantine with the reason.
func poisonous() savedCase {
	c := savedCase{name: "scheduler-poison", function: "Scheduler", event: batch(deployed.EventsQueue, "this is no JSON"), want: outcome{Answer: json.RawMessage(allDone)}}
	_, err := wire.DecodeIncoming("this is no JSON")
	record := c.event.(events.SQSEvent).Records[0]
	c.want.Sends = []sent{message(deployed.QuarantineQueue, must(encode(sqsbatch.Quarantined{
		V: wire.Version, Type: sqsbatch.TypeQuarantined, Reason: err.Error(), Source: record.EventSourceARN,
		MessageID: record.MessageId, ReceiveCount: 1, Body: record.Body,
	})))}
	return c
}

// tick is the schedule's: the job that is overdue by then is named to the Scheduler.
func tick() savedCase {
	const id = "saved-overdue"
	// A task that was just sent is looked at when its attempt could be over, had it been claimed at once; but not before
	// the next sweep.
	overdue := job.DeadlinePassed{Key: domain.Instant(savedAt.Add(max(domain.DefaultTimeout.Std(), deployed.SweepPeriod)))}
	return savedCase{
		name: "supervisor-tick", function: "Supervisor",
		event: events.EventBridgeEvent{
			Version: "0", ID: "53dc4d37-cffa-4f76-80c9-8b7d4a4d2eaa", DetailType: "Scheduled Event", Source: "aws.scheduler",
			AccountID: "123456789012", Time: savedAt, Region: region,
			Resources: []string{"arn:aws:scheduler:" + region + ":123456789012:schedule/default/" + stackName + "-sweep"},
			Detail:    json.RawMessage(`"{}"`),
		},
		want:     outcome{json.RawMessage("null"), []sent{message(deployed.EventsQueue, must(wire.EncodeEvent(id, overdue)))}},
		job:      id,
		workflow: workflow("payments", "charge", "{}"),
	}
}

// task is for an agent, which works and replies.
func task(agent, action, input, output string) savedCase {
	id := "saved-" + agent
	body := must(wire.EncodeTask(makegood.Task{
		Job: id, Workflow: "saved", Step: "first", Round: 1, Attempt: 1, Agent: agent, Action: action,
		Input: json.RawMessage(input), Key: id + "/first/1", SentAt: savedAt, StartBy: savedAt.Add(domain.DefaultStartBy.Std()),
		Timeout: 30 * makegood.Second, ReplyTo: deployed.EventsQueue, Birth: birth, ClaimUntil: claimUntil, Token: token("first"),
	}))
	// Alone in its batch: the claim, a message and its invocation.
	spent := job.Spent{Writes: 1, Requests: 3 * job.SpentParts, Invocations: job.SpentParts}
	answer := must(wire.EncodeReply(id, job.StepSucceeded{Reply: firstReply(), Output: wire.Inline(json.RawMessage(output))}, spent))
	return savedCase{
		name: "agent-" + agent + "-task", function: agent + "Agent", event: batch(deployed.TasksQueue(agent), body),
		want: outcome{json.RawMessage(allDone), []sent{message(deployed.EventsQueue, answer)}},
		job:  id, workflow: workflow(agent, action, input),
	}
}

// firstReply is from who held the first attempt of the first step.
func firstReply() job.Reply {
	return job.Reply{Step: "first", Attempt: 1, Token: token("first"), LockedBy: claimant, StartedAt: savedAt}
}

// workflow is a file whose first step is an agent's; more steps may follow.
func workflow(agent, action, with string) string {
	return fmt.Sprintf("name: saved\nsteps:\n  - {name: first, agent: %s, action: %s, with: %s}\n", agent, action, with)
}

// batch is messages as SQS hands them to a function.
func batch(queue string, bodies ...string) events.SQSEvent {
	var e events.SQSEvent
	for i, body := range bodies {
		at := fmt.Sprint(savedAt.UnixMilli() + int64(i))
		e.Records = append(e.Records, events.SQSMessage{
			MessageId: fmt.Sprintf("059f36b4-87a3-44ab-83d2-66197583%04d", i), ReceiptHandle: fmt.Sprintf("receipt-%d", i), Body: body,
			Attributes: map[string]string{
				"ApproximateReceiveCount": "1", "SentTimestamp": at, "ApproximateFirstReceiveTimestamp": at, "SenderId": "AIDAIENQZJOLO23YVJ4VO",
			},
			MessageAttributes: map[string]events.SQSMessageAttribute{},
			EventSource:       "aws:sqs", EventSourceARN: queuesARN + queue, AWSRegion: region,
		})
	}
	return e
}

// message is a sent message, without what is another in each run, drawn among it.
func message(queue, body string, drawn ...string) sent {
	return sent{queue, must(settled([]byte(body), drawn))}
}

// settled leaves out of a message what is another in each run, drawn among it, and puts the rest into one order.
func settled(body []byte, drawn []string) (json.RawMessage, error) {
	var m map[string]any
	if err := json.Unmarshal(body, &m); err != nil {
		return nil, fmt.Errorf("a message that is no JSON object: %w", err)
	}
	for _, name := range append([]string{"sentAt", "startBy", "claimUntil", "lockedBy", "startedAt"}, drawn...) {
		delete(m, name)
	}
	if spent, is := m["spent"].(map[string]any); is {
		delete(spent, "gbMicros") // As long as it took.
	}
	return json.Marshal(m)
}

// compact returns a JSON text without white space.
func compact(text string) (json.RawMessage, error) {
	var b bytes.Buffer
	err := json.Compact(&b, []byte(text))
	return b.Bytes(), err
}

func encode(v any) (string, error) {
	body, err := json.Marshal(v)
	return string(body), err
}

// must is for what is built from constants here: an error is a mistake in this file.
func must[T any](v T, err error) T {
	if err != nil {
		panic(fmt.Sprintf("events: %v", err))
	}
	return v
}
