package engine

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/makegood-dev/makegood/internal/notify"
	"github.com/makegood-dev/makegood/internal/notify/groupnotify"
	"github.com/makegood-dev/makegood/internal/notify/webhook"
)

// checkAlerts refuses alerts that cannot be sent, or have links that lead nowhere.
func checkAlerts(o Options) error {
	a := o.Notify.Alerts
	switch {
	case a == Alerts{}:
		return nil
	case a.Webhook == "":
		return errors.New("Options.Notify.Alerts.Webhook is empty: want the URL to which alerts are posted")
	case !webhook.IsAddress(a.Webhook):
		return errors.New("Options.Notify.Alerts.Webhook: the URL cannot be read: want http or https, and a host") // It is a secret.
	case o.Notify.Operator != nil || o.Notify.AgentSilent != nil || o.Notify.AgentPaused != nil:
		return errors.New("Options.Notify.Alerts: Operator, AgentSilent and AgentPaused are told instead, want one or the other")
	}
	for name, text := range map[string]string{"PageURL": a.PageURL, "RunbookURL": a.RunbookURL} {
		if u, err := url.Parse(text); text != "" && (err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.RawQuery != "" || u.Fragment != "") {
			return fmt.Errorf("Options.Notify.Alerts.%s: %q is no URL that a link can begin with: want one such as https://jobs.shop.example", name, text)
		}
	}
	return nil
}

// flags returns the flags with which the command reaches this engine; empty: its address is not known.
func (o Options) flags() string {
	if o.Notify.Alerts.PageURL == "" {
		return ""
	}
	return "--addr " + strings.TrimSuffix(o.Notify.Alerts.PageURL, "/")
}

// alerts returns the notifier for the webhook and, without the reasons of jobs, the log.
func (o Options) alerts() notify.Notifier {
	where := notify.Where{Name: o.where(), Page: strings.TrimSuffix(o.Notify.Alerts.PageURL, "/"), Runbook: o.Notify.Alerts.RunbookURL}
	where.Flags = o.flags()
	to := []notify.Alerter{notify.AlertLog{Logger: o.logger()}, webhook.Webhook{URL: o.Notify.Alerts.Webhook}}
	return notify.All(groupnotify.New(groupnotify.Config{To: to, Places: groupnotify.NewPlaces(), Where: func() notify.Where { return where }}))
}

// operator informs the functions that are set, and the log in place of the others.
type operator struct{ options Options }

// Announce implements notify.Notifier.
func (o operator) Announce(ctx context.Context, n notify.Notice) error {
	if o.options.Notify.Operator == nil || !n.ForOperator() {
		return notify.Log{Logger: o.options.logger()}.Announce(ctx, n)
	}
	return o.options.Notify.Operator(ctx, noticeOf(n))
}

// AgentAlert implements notify.Notifier.
func (o operator) AgentAlert(ctx context.Context, agent, paused string) error {
	n := o.options.Notify
	switch {
	case paused == "" && n.AgentSilent != nil:
		return n.AgentSilent(ctx, agent)
	case paused != "" && n.AgentPaused != nil:
		return n.AgentPaused(ctx, agent, paused)
	}
	return notify.Log{Logger: o.options.logger()}.AgentAlert(ctx, agent, paused)
}

// listeners informs the listener that is registered under the job's ReplyTo.
type listeners map[string]func(context.Context, Notice) error

// Announce implements notify.Notifier.
func (l listeners) Announce(ctx context.Context, n notify.Notice) error {
	tell, ok := l[n.ReplyTo]
	switch {
	case n.ReplyTo == "":
		return nil
	case !ok:
		return fmt.Errorf("no receiver is registered as %q in this engine", n.ReplyTo)
	}
	return tell(ctx, noticeOf(n))
}

func noticeOf(n notify.Notice) Notice {
	return Notice{
		Job: n.Job, Workflow: n.Workflow, Seq: n.Seq, ProcessState: n.ProcessState, Reason: n.Reason, At: n.At, ReplyTo: n.ReplyTo, ExpectBy: n.ExpectBy,
	}
}

// AgentAlert returns nil: listeners get only the changes of their jobs.
func (listeners) AgentAlert(context.Context, string, string) error { return nil }

// askers asks the receiver that is registered under the name in the question.
type askers map[string]func(context.Context, Question) error

// Ask implements notify.Asker.
func (a askers) Ask(ctx context.Context, name string, q notify.Question) error {
	tell, ok := a[name]
	if !ok {
		return fmt.Errorf("no receiver is registered as %q in this engine", name)
	}
	return tell(ctx, Question(q))
}
