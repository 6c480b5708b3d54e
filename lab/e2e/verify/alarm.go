package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

const (
	// rung is the alarm that is set off: nothing of a good run sets it off by itself.
	rung = "EventsDead"
	// heardQueue is the queue that hears of it.
	heardQueue = stackName + "-heard"
	// heardWithin is how long an alarm may take to be told, and rehearsedWithin how long a stand-in is given.
	heardWithin     = 2 * time.Minute
	rehearsedWithin = 10 * time.Second
	// listenFor is how long one request listens.
	listenFor = 5 * time.Second
)

// errUnheard: the alarm was set off, and nobody was told.
var errUnheard = errors.New("the alarm was not told to who listens to the alert topic: see the policies of topic and key")

// alarm sets one of the stack's alarms off, and wants it to be told to a queue that listens to the alert topic. The
// topic is encrypted, and so is the way there: whether CloudWatch may use the key shows here only.
func (w *world) alarm(ctx context.Context) (found []string, err error) {
	outputs, err := w.outputs(ctx, stackName)
	if err != nil {
		return nil, err
	}
	queue, forget, err := w.listen(ctx, outputs["AlertTopicArn"])
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, forget(context.WithoutCancel(ctx))) }()
	resource, name := rung, stackName
	alarm, err := cloudformation.NewFromConfig(w.config).DescribeStackResource(ctx, &cloudformation.DescribeStackResourceInput{StackName: &name, LogicalResourceId: &resource})
	if err != nil {
		return nil, fmt.Errorf("alarm %s: %w", rung, err)
	}
	began := time.Now()
	if err := w.ring(ctx, aws.ToString(alarm.StackResourceDetail.PhysicalResourceId)); err != nil {
		return nil, err
	}
	within := heardWithin
	if w.options.rehearse {
		within = rehearsedWithin
	}
	err = w.heard(ctx, queue, within)
	if errors.Is(err, errUnheard) && w.options.rehearse {
		return []string{"This stand-in takes the alarm, and tells nobody of it."}, nil
	}
	if err != nil {
		return nil, err
	}
	return []string{fmt.Sprintf("The alarm %s was told %.0f s after it was set off.", rung, time.Since(began).Seconds())}, nil
}

// ring puts an alarm into ALARM until CloudWatch looks at its metric again.
func (w *world) ring(ctx context.Context, alarm string) error {
	_, err := w.monitoring(ctx, url.Values{
		"Action": {"SetAlarmState"}, "AlarmName": {alarm}, "StateValue": {"ALARM"}, "StateReason": {"make aws-verify wants to hear it"},
	})
	return err
}

// listen makes a queue that hears what the topic is told, and returns its address and what takes both away.
func (w *world) listen(ctx context.Context, topic string) (string, func(context.Context) error, error) {
	queues, topics := sqs.NewFromConfig(w.config), sns.NewFromConfig(w.config)
	partition, account, err := owner(topic)
	if err != nil {
		return "", nil, err
	}
	arn := fmt.Sprintf("arn:%s:sqs:%s:%s:%s", partition, w.config.Region, account, heardQueue)
	policy := fmt.Sprintf(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"sns.amazonaws.com"},"Action":"sqs:SendMessage","Resource":%q,"Condition":{"ArnEquals":{"aws:SourceArn":%q}}}]}`, arn, topic)
	made, err := queues.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String(heardQueue), Attributes: map[string]string{string(types.QueueAttributeNamePolicy): policy}})
	if err != nil {
		return "", nil, fmt.Errorf("queue %s: %w", heardQueue, err)
	}
	deleteQueue := func(ctx context.Context) error {
		_, err := queues.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: made.QueueUrl})
		return err
	}
	heard, err := topics.Subscribe(ctx, &sns.SubscribeInput{TopicArn: &topic, Protocol: aws.String("sqs"), Endpoint: &arn})
	if err != nil {
		return "", nil, errors.Join(fmt.Errorf("subscribe to %s: %w", topic, err), deleteQueue(ctx))
	}
	return aws.ToString(made.QueueUrl), func(ctx context.Context) error {
		_, err := topics.Unsubscribe(ctx, &sns.UnsubscribeInput{SubscriptionArn: heard.SubscriptionArn})
		return errors.Join(err, deleteQueue(ctx))
	}, nil
}

// heard waits for the message about the alarm.
func (w *world) heard(ctx context.Context, queue string, within time.Duration) error {
	queues := sqs.NewFromConfig(w.config)
	for until := time.Now().Add(within); time.Now().Before(until); {
		got, err := queues.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &queue, WaitTimeSeconds: int32(listenFor / time.Second)})
		if err != nil {
			return fmt.Errorf("listen to the alert topic: %w", err)
		}
		for _, m := range got.Messages {
			if strings.Contains(aws.ToString(m.Body), rung) {
				return nil
			}
		}
	}
	return errUnheard
}
