// Package webhook alerts operators by an HTTP request: of a job that came into Error, and of an agent
// that claims nothing. It tells of nothing else, and repeats nothing: the core does.
package webhook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/notify"
	"github.com/makegood-dev/makegood/internal/wire"
)

// DefaultTimeout is how long a request may take where Config says nothing.
const DefaultTimeout = 5 * time.Second

// maxAnswerBytes is how much of an answer is read, so that its connection can be used again.
const maxAnswerBytes = 64 << 10

// Config is what a Webhook needs. URL must be set; it is the operator's and may hold a secret, so it
// is never shown.
type Config struct {
	URL string
	// Timeout is for the whole of a request.
	Timeout time.Duration
}

// Webhook posts alerts as JSON.
type Webhook struct {
	url    string
	client *http.Client
}

var _ notify.Notifier = (*Webhook)(nil)

// New makes a Webhook.
func New(c Config) *Webhook {
	if c.Timeout <= 0 {
		c.Timeout = DefaultTimeout
	}
	return &Webhook{url: c.URL, client: &http.Client{
		Timeout: c.Timeout,
		// A redirect is a wrong address in the configuration, and what it leads to was not chosen.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Announce posts an Error, as a message of type Announcement. An answer other than 2xx is an error.
func (w *Webhook) Announce(ctx context.Context, n notify.Notice) error {
	if n.ProcessState != makegood.Error {
		return nil
	}
	body, err := wire.EncodeAnnouncement(n.Job, n.Workflow, n.Announcement)
	if err != nil {
		return err
	}
	return w.post(ctx, body)
}

// AgentSilent posts a message of type AgentSilent.
func (w *Webhook) AgentSilent(ctx context.Context, agent string) error {
	body, err := wire.EncodeAgentSilent(agent)
	if err != nil {
		return err
	}
	return w.post(ctx, body)
}

func (w *Webhook) post(ctx context.Context, body string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, strings.NewReader(body))
	if err != nil {
		return fmt.Errorf("webhook: %w", withoutURL(err))
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := w.client.Do(request)
	if err != nil {
		return fmt.Errorf("webhook: %w", withoutURL(err))
	}
	defer response.Body.Close()
	_, _ = io.CopyN(io.Discard, response.Body, maxAnswerBytes) // What it says does not matter.
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return fmt.Errorf("webhook: the answer is %s, want 2xx", response.Status)
	}
	return nil
}

// withoutURL takes the address out of an error of net/http.
func withoutURL(err error) error {
	var said *url.Error
	if errors.As(err, &said) {
		return said.Err
	}
	return err
}
