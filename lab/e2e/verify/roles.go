package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/wire"
	"github.com/makegood-dev/makegood/lab/e2e/sam"
	"github.com/makegood-dev/makegood/lab/e2e/verify/probed"
)

// roles deploys the probe under three of the stack's roles, and compares what they are refused with what they
// should be.
func (w *world) roles(ctx context.Context) ([]string, error) {
	var arns []string
	for parameter, resource := range map[string]string{"SchedulerRole": "SchedulerRole", "SupervisorRole": "SupervisorRole", "AgentRole": "inventoryAgentRole"} {
		arn, err := w.role(ctx, resource)
		if err != nil {
			return nil, err
		}
		arns = append(arns, parameter+"="+arn)
	}
	probes := sam.Stack{Template: "lab/e2e/verify/probes.yaml", Name: stackName + "-probes", Parameters: append([]string{w.architecture()}, arns...)}
	if err := w.put(ctx, probes); err != nil {
		return nil, err
	}
	event, err := w.event(ctx)
	if err != nil {
		return nil, err
	}
	answers := make([]map[string]string, 3)
	for i, probe := range []string{"SchedulerProbe", "AgentProbe", "SupervisorProbe"} {
		out, err := probes.Invoke(ctx, probe, event)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(out, &answers[i]); err != nil {
			return nil, fmt.Errorf("%s answers %.500s: %w", probe, out, err)
		}
	}
	if w.options.rehearse {
		// Only that every try is one that can be allowed; nothing would deny it.
		all := map[string][3]bool{}
		for try := range probed.May() {
			all[try] = [3]bool{true, true, true}
		}
		found, wrong := compared(answers, all)
		return append(found, "", "This stand-in enforces no IAM: on AWS most of these must be denied."), errors.Join(wrong...)
	}
	found, wrong := compared(answers, probed.May())
	return found, errors.Join(wrong...)
}

// compared makes a table of what the probes were told, and says what should be otherwise.
func compared(answers []map[string]string, allowed map[string][3]bool) (found []string, wrong []error) {
	return table([]string{"Scheduler", "agent", "Supervisor"}, answers, allowed)
}

// role returns the ARN of a role of the stack.
func (w *world) role(ctx context.Context, resource string) (string, error) {
	c := cloudformation.NewFromConfig(w.config)
	name := stackName
	stacks, err := c.DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: &name})
	if err != nil {
		return "", err
	}
	out, err := c.DescribeStackResource(ctx, &cloudformation.DescribeStackResourceInput{StackName: &name, LogicalResourceId: &resource})
	if err != nil {
		return "", err
	}
	partition, account, err := owner(aws.ToString(stacks.Stacks[0].StackId))
	return "arn:" + partition + ":iam::" + account + ":role/" + aws.ToString(out.StackResourceDetail.PhysicalResourceId), err
}

// event tells the probe where everything is.
func (w *world) event(ctx context.Context) ([]byte, error) {
	outputs, err := w.outputs(ctx, stackName)
	if err != nil {
		return nil, err
	}
	const nobody = "makegood-verify-nobody"
	tasks, err := sqs.NewFromConfig(w.config).GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String(stackName + "-tasks-payments")})
	if err != nil {
		return nil, err
	}
	event, err := wire.EncodeEvent(nobody, job.DeadlinePassed{Key: domain.Instant(time.Now())})
	if err != nil {
		return nil, err
	}
	task, err := wire.EncodeTask(makegood.Task{
		Job: nobody, Workflow: "order", Step: "charge", Round: 1, Attempt: 1, Agent: "payments", Action: "charge", Input: json.RawMessage("{}"),
		Key: nobody + "/charge/1", Timeout: makegood.Minute, ReplyTo: "events", Birth: "b", Token: "none", ClaimUntil: domain.Instant(time.Now()),
	})
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string]string{
		"Table": outputs["TableName"], "Index": outputs["IndexName"], "EventsURL": outputs["EventsQueueUrl"], "TasksURL": aws.ToString(tasks.QueueUrl),
		"EventBody": event, "TaskBody": task,
	})
}
