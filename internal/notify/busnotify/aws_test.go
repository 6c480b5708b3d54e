//go:build aws

package busnotify_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	bustypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/makegood-dev/makegood/e2e/aws/standin"
	"github.com/makegood-dev/makegood/internal/notify/busnotify"
)

// A rule on source and detail-type finds the event, with the announcement as its detail.
func TestARuleFindsTheEvent(t *testing.T) {
	queues := standin.SQS(t)
	endpoint := os.Getenv(standin.EndpointVariable)
	if endpoint == "" {
		t.Logf("deviates: %s has no EventBridge", queues.Product)
		return
	}
	mq := sqs.NewFromConfig(standin.Config(endpoint))
	client := newClient(endpoint)
	name := fmt.Sprintf("jobs-%08x", rand.Uint32())
	q, err := mq.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name})
	if err != nil {
		t.Fatal(err)
	}
	attributes, err := mq.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{
		QueueUrl: q.QueueUrl, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameQueueArn},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CreateEventBus(t.Context(), &eventbridge.CreateEventBusInput{Name: &name}); err != nil {
		t.Fatal(err)
	}
	pattern := fmt.Sprintf(`{"source":[%q],"detail-type":[%q],"detail":{"processState":["Processed"]}}`, busnotify.Source, busnotify.JobChanged)
	if _, err := client.PutRule(t.Context(), &eventbridge.PutRuleInput{Name: &name, EventBusName: &name, EventPattern: &pattern}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.PutTargets(t.Context(), &eventbridge.PutTargetsInput{
		Rule: &name, EventBusName: &name, Targets: []bustypes.Target{{Id: aws.String("q"), Arn: aws.String(attributes.Attributes["QueueArn"])}},
	}); err != nil {
		t.Fatal(err)
	}
	bus := busnotify.Bus{Client: client, Name: name}
	if err := bus.AgentSilent(t.Context(), "payments"); err != nil {
		t.Errorf("alert: got %v, want success", err)
	}
	if err := bus.Announce(t.Context(), notice); err != nil {
		t.Fatalf("announce: got %v, want success", err)
	}
	got, err := mq.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: q.QueueUrl, WaitTimeSeconds: 10, MaxNumberOfMessages: 10})
	if err != nil || len(got.Messages) != 1 || !strings.Contains(*got.Messages[0].Body, "order-1") {
		t.Errorf("got %+v, %v, want the one event of the job", got, err)
	}
}
