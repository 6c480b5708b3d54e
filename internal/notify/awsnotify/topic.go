package awsnotify

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sns/types"

	"github.com/makegood-dev/makegood/internal/notify"
)

// Topic is an Amazon SNS topic for alerts. An alert has a subject and a text for people, and attributes by which a
// subscription can filter. Both fields must be set.
type Topic struct {
	Client *sns.Client
	ARN    string
}

var _ notify.Alerter = Topic{}

// Alert publishes an alert. Its attributes are kind, and workflow or agent.
func (t Topic) Alert(ctx context.Context, a notify.Alert) error {
	subject := a.Subject()
	attributes := map[string]types.MessageAttributeValue{}
	for name, value := range map[string]string{"kind": string(a.Kind), "workflow": a.Workflow, "agent": a.Agent} {
		if value != "" {
			attributes[name] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String(value)}
		}
	}
	if _, err := t.Client.Publish(ctx, &sns.PublishInput{
		TopicArn: &t.ARN, Subject: aws.String(subject), Message: aws.String(a.Text()), MessageAttributes: attributes,
	}); err != nil {
		return fmt.Errorf("publish an alert to %s: %w", t.ARN, err)
	}
	return nil
}
