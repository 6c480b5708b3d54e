// Package awsnotify tells AWS services about jobs: an Amazon EventBridge bus of every announcement and every change,
// and an Amazon SNS topic of every alert. The bus alerts no person; its listeners do, by their rules.
package awsnotify

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"

	"github.com/makegood-dev/makegood/internal/notify"
	"github.com/makegood-dev/makegood/internal/wire"
)

// What rules on the bus match.
const (
	// Source is the source of every event.
	Source = "makegood"
	// JobChanged is the detail-type of an announcement, AgentSilent and AgentPaused are those of alerts about agents.
	JobChanged = "Job Changed"
	// Changes is the detail-type of a run of changes of a job (makegood.Changes).
	Changes     = "Changes"
	AgentSilent = "Agent Silent"
	AgentPaused = "Agent Paused"
)

// Bus is an event bus. Both fields must be set; Name is a name or an ARN.
type Bus struct {
	Client *eventbridge.Client
	Name   string
}

var _ notify.Notifier = Bus{}

// Announce puts an event with a message of type Announcement as its detail.
func (b Bus) Announce(ctx context.Context, n notify.Notice) error {
	detail, err := wire.EncodeAnnouncement(n.Job, n.Workflow, n.Announcement)
	if err != nil {
		return err
	}
	return b.put(ctx, JobChanged, detail, &n.At)
}

// AgentAlert puts an event with a message of type AgentSilent or AgentPaused as its detail.
func (b Bus) AgentAlert(ctx context.Context, agent, paused string) error {
	detail, err := wire.EncodeAgentAlert(agent, paused)
	if err != nil {
		return err
	}
	if paused != "" {
		return b.put(ctx, AgentPaused, detail, nil)
	}
	return b.put(ctx, AgentSilent, detail, nil)
}

// put puts one event. An answer of success may still say that the event was not taken.
func (b Bus) put(ctx context.Context, detailType, detail string, at *time.Time) error {
	out, err := b.Client.PutEvents(ctx, &eventbridge.PutEventsInput{Entries: []types.PutEventsRequestEntry{{
		EventBusName: &b.Name, Source: aws.String(Source), DetailType: &detailType, Detail: &detail, Time: at,
	}}})
	if err != nil {
		return fmt.Errorf("put event on bus %s: %w", b.Name, err)
	}
	if out.FailedEntryCount == 0 {
		return nil
	}
	for _, entry := range out.Entries {
		if entry.ErrorCode != nil {
			return fmt.Errorf("put event on bus %s: %s: %s", b.Name, *entry.ErrorCode, aws.ToString(entry.ErrorMessage))
		}
	}
	return fmt.Errorf("put event on bus %s: it was not taken, and not said why", b.Name)
}
