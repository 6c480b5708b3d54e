package standin

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	bustypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// Bus makes a bus of EventBridge, and a queue behind a rule on it. It returns the bus's name and what receives, and so
// deletes, the bodies of up to ten messages, for which it waits a second. ok is false where the stand-ins have no
// EventBridge; the test has then said that it deviates.
func Bus(t *testing.T, pattern string) (name string, receive func() []string, ok bool) {
	t.Helper()
	endpoint := os.Getenv(EndpointVariable)
	if endpoint == "" {
		t.Logf("deviates: %s has no EventBridge", SQS(t).Product)
		return "", nil, false
	}
	buses, queues := eventbridge.NewFromConfig(Config(endpoint)), sqs.NewFromConfig(Config(endpoint))
	name = fmt.Sprintf("bus-%08x", rand.Uint32())
	q, err := queues.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name})
	if err != nil {
		t.Fatal(err)
	}
	attributes, err := queues.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{
		QueueUrl: q.QueueUrl, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameQueueArn},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := buses.CreateEventBus(t.Context(), &eventbridge.CreateEventBusInput{Name: &name}); err != nil {
		t.Fatal(err)
	}
	if _, err := buses.PutRule(t.Context(), &eventbridge.PutRuleInput{Name: &name, EventBusName: &name, EventPattern: &pattern}); err != nil {
		t.Fatal(err)
	}
	if _, err := buses.PutTargets(t.Context(), &eventbridge.PutTargetsInput{
		Rule: &name, EventBusName: &name, Targets: []bustypes.Target{{Id: aws.String("q"), Arn: aws.String(attributes.Attributes["QueueArn"])}},
	}); err != nil {
		t.Fatal(err)
	}
	return name, func() (bodies []string) {
		got, err := queues.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: q.QueueUrl, WaitTimeSeconds: 1, MaxNumberOfMessages: 10})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range got.Messages {
			bodies = append(bodies, *m.Body)
			if _, err := queues.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: q.QueueUrl, ReceiptHandle: m.ReceiptHandle}); err != nil {
				t.Fatal(err)
			}
		}
		return bodies
	}, true
}
