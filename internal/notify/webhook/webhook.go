// Package webhook alerts operators by an HTTP request: of a job that came into Error, and of an agent
// that claims nothing. It tells of nothing else, and repeats nothing: the core does.
package webhook

import (
	"context"
	"fmt"

	"github.com/makegood-dev/makegood/internal/notify"
	"github.com/makegood-dev/makegood/internal/wire"
)

// Webhook posts alerts as JSON. URL must be set; it may hold a secret, so at most its scheme and host are
// ever shown.
type Webhook struct{ URL string }

var _ notify.Notifier = Webhook{}

// Announce posts an Error, as a message of type Announcement. An answer other than 2xx is an error.
func (w Webhook) Announce(ctx context.Context, n notify.Notice) error {
	if !n.ForOperator() {
		return nil
	}
	body, err := wire.EncodeAnnouncement(n.Job, n.Workflow, n.Announcement)
	if err != nil {
		return err
	}
	return w.post(ctx, body)
}

// AgentSilent posts a message of type AgentSilent.
func (w Webhook) AgentSilent(ctx context.Context, agent string) error {
	body, err := wire.EncodeAgentSilent(agent)
	if err != nil {
		return err
	}
	return w.post(ctx, body)
}

func (w Webhook) post(ctx context.Context, body string) error {
	if err := Post(ctx, w.URL, body); err != nil {
		return fmt.Errorf("webhook: %w", err)
	}
	return nil
}
