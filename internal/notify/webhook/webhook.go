// Package webhook delivers alerts by an HTTP request, in the form of Slack's incoming webhooks and compatible
// services. It never retries: the core does.
package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/makegood-dev/makegood/internal/notify"
)

// Webhook posts alerts as JSON. URL must be set; it may hold a secret, so at most its scheme and host are
// ever shown.
type Webhook struct{ URL string }

var _ notify.Alerter = Webhook{}

// message is the posted content: a text for people, and the same for programs, which chat services leave alone.
type message struct {
	Text  string `json:"text"`
	Alert alert  `json:"alert"`
}

type alert struct {
	Kind      notify.AlertKind `json:"kind"`
	Workflow  string           `json:"workflow,omitempty"`
	Step      string           `json:"step,omitempty"`
	ErrorKind string           `json:"reasonKind,omitempty"`
	Agent     string           `json:"agent,omitempty"`
	Count     int              `json:"count,omitempty"`
	Jobs      []string         `json:"jobs,omitempty"`
	Since     time.Time        `json:"since,omitzero"`
	Page      string           `json:"page,omitempty"`
	Runbook   string           `json:"runbook"`
}

// Alert posts an alert. An answer other than 2xx is an error.
func (w Webhook) Alert(ctx context.Context, a notify.Alert) error {
	m := message{Text: escaped(a.Text()), Alert: alert{
		Kind: a.Kind, Workflow: a.Workflow, Step: a.Step, ErrorKind: a.ErrorKind, Agent: a.Agent,
		Count: a.Count, Since: a.Since, Page: a.Link(), Runbook: a.RunbookLink(),
	}}
	for _, j := range a.Jobs {
		m.Alert.Jobs = append(m.Alert.Jobs, j.ID)
	}
	body, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("webhook: %w", err)
	}
	if err := Post(ctx, w.URL, string(body)); err != nil {
		return fmt.Errorf("webhook: %w", err)
	}
	return nil
}

// escaped returns a text in which a chat service finds no mention and no link from the author of a reason: <!channel>
// calls all members.
func escaped(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
}
