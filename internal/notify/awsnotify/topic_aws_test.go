//go:build aws

package awsnotify_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/makegood-dev/makegood/internal/notify/awsnotify"
	"github.com/makegood-dev/makegood/internal/testkit/standin"
)

// An alert arrives at what is subscribed to the topic.
func TestAnAlertArrives(t *testing.T) {
	queues := standin.SQS(t)
	endpoint := os.Getenv(standin.EndpointVariable)
	if endpoint == "" {
		t.Logf("deviates: %s has no SNS", queues.Product)
		return
	}
	mq := sqs.NewFromConfig(standin.Config(endpoint))
	client := newTopicClient(endpoint)
	name := fmt.Sprintf("alerts-%08x", rand.Uint32())
	q, err := mq.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name})
	if err != nil {
		t.Fatal(err)
	}
	attributes, err := mq.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: q.QueueUrl, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameQueueArn}})
	if err != nil {
		t.Fatal(err)
	}
	topic, err := client.CreateTopic(t.Context(), &sns.CreateTopicInput{Name: &name})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Subscribe(t.Context(), &sns.SubscribeInput{
		TopicArn: topic.TopicArn, Protocol: aws.String("sqs"), Endpoint: aws.String(attributes.Attributes["QueueArn"]),
	}); err != nil {
		t.Fatal(err)
	}
	alerts := awsnotify.Topic{Client: client, ARN: *topic.TopicArn}
	if err := alerts.Alert(t.Context(), alert()); err != nil {
		t.Fatalf("alert: got %v, want success", err)
	}
	got, err := mq.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: q.QueueUrl, WaitTimeSeconds: 10})
	if err != nil || len(got.Messages) != 1 || !strings.Contains(*got.Messages[0].Body, "a job of order stopped at charge") {
		t.Errorf("got %+v, %v, want one message with the subject", got, err)
	}
	if err := (awsnotify.Topic{Client: client, ARN: *topic.TopicArn + "-gone"}).Alert(t.Context(), alert()); err == nil {
		t.Error("publish to a topic that is not there: got success, want an error")
	}
}
