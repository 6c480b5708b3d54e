//go:build aws

package sqsqueue_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/makegood-dev/makegood/internal/queue/queuetest"
	"github.com/makegood-dev/makegood/internal/queue/sqsqueue"
	"github.com/makegood-dev/makegood/internal/testkit/standin"
)

// What a stand-in does otherwise than SQS is listed in internal/testkit/standin.
func TestConformance(t *testing.T) {
	client := sqs.NewFromConfig(standin.SQS(t).Config(t))
	queuetest.Run(t, func(t *testing.T) queuetest.Harness { return harness(t, client) })
}

func harness(t *testing.T, client *sqs.Client) queuetest.Harness {
	const visibility, maxReceives = 2, 4
	prefix := fmt.Sprintf("suite-%08x-", rand.Uint32())
	dead := create(t, client, prefix+"dead", map[string]string{"VisibilityTimeout": fmt.Sprint(visibility)})
	create(t, client, prefix+"q", map[string]string{
		"VisibilityTimeout": fmt.Sprint(visibility), "MaximumMessageSize": "1048576",
		"RedrivePolicy": fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":%d}`, dead, maxReceives),
	})
	return queuetest.Harness{
		Queues: sqsqueue.New(sqsqueue.Config{Client: client, Prefix: prefix}),
		Name:   "q", DeadLetter: "dead", MaxReceives: maxReceives,
		Visibility: visibility * time.Second, Unit: time.Second, Patience: 10 * time.Second,
	}
}

// create makes a queue that is deleted after the test, and returns its ARN.
func create(t *testing.T, client *sqs.Client, name string, attributes map[string]string) string {
	t.Helper()
	made, err := client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes})
	if err != nil {
		t.Fatalf("create queue %s: %v", name, err)
	}
	t.Cleanup(func() {
		if _, err := client.DeleteQueue(context.WithoutCancel(t.Context()), &sqs.DeleteQueueInput{QueueUrl: made.QueueUrl}); err != nil {
			t.Errorf("delete queue %s: %v", name, err)
		}
	})
	out, err := client.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{
		QueueUrl: made.QueueUrl, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameQueueArn},
	})
	if err != nil {
		t.Fatalf("ARN of queue %s: %v", name, err)
	}
	return out.Attributes["QueueArn"]
}
