// Package snsnotify alerts operators through an Amazon SNS topic: of a job that came into Error, and
// of an agent that claims nothing. It tells of nothing else.
package snsnotify

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"

	"github.com/makegood-dev/makegood/internal/notify"
	"github.com/makegood-dev/makegood/internal/wire"
)

// maxSubject is how long the subject of a message may be.
const maxSubject = 99

// Topic is an alert topic. Both fields must be set.
type Topic struct {
	Client *sns.Client
	ARN    string
}

var _ notify.Notifier = Topic{}

// Announce publishes an Error, as a message of type Announcement under a subject that people can read.
func (t Topic) Announce(ctx context.Context, n notify.Notice) error {
	if !n.ForOperator() {
		return nil
	}
	body, err := wire.EncodeAnnouncement(n.Job, n.Workflow, n.Announcement)
	if err != nil {
		return err
	}
	return t.publish(ctx, fmt.Sprintf("Makegood: job %s is in Error", n.Job), body)
}

// AgentSilent publishes a message of type AgentSilent.
func (t Topic) AgentSilent(ctx context.Context, agent string) error {
	body, err := wire.EncodeAgentSilent(agent)
	if err != nil {
		return err
	}
	return t.publish(ctx, fmt.Sprintf("Makegood: nobody claims the tasks of agent %s", agent), body)
}

func (t Topic) publish(ctx context.Context, subject, body string) error {
	// Names and ids are ASCII, so the cut is at a character's edge.
	subject = subject[:min(len(subject), maxSubject)]
	if _, err := t.Client.Publish(ctx, &sns.PublishInput{
		TopicArn: &t.ARN, Subject: aws.String(subject), Message: aws.String(body),
	}); err != nil {
		return fmt.Errorf("publish %q to %s: %w", subject, t.ARN, err)
	}
	return nil
}
