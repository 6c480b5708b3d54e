package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/notify"
	"github.com/makegood-dev/makegood/internal/notify/groupnotify"
	"github.com/makegood-dev/makegood/internal/notify/replynotify"
	"github.com/makegood-dev/makegood/internal/notify/webhook"
	"github.com/makegood-dev/makegood/internal/quiet"
)

// parseReplies reads --reply NAME=URL. The URLs may hold secrets, and are in no message.
func parseReplies(flags []string) (map[string]string, error) {
	replies := map[string]string{}
	for _, flag := range flags {
		name, address, _ := strings.Cut(flag, "=")
		switch {
		case limits.ReplyName.Check(name) != nil:
			return nil, fmt.Errorf("--reply %.70s: want NAME=URL, the name as %s", name, limits.ReplyName.Pattern())
		case !webhook.IsAddress(address):
			return nil, fmt.Errorf("--reply %s: want NAME=URL, and a URL of http or https", name)
		case replies[name] != "":
			return nil, fmt.Errorf("--reply %s: the name is there twice", name)
		}
		replies[name] = address
	}
	return replies, nil
}

// checkAlert refuses an --alert that is not a URL. It may hold a secret, and is in no message.
func checkAlert(address string) error {
	if address != "" && !webhook.IsAddress(address) {
		return errors.New("--alert: want a URL of http or https")
	}
	return nil
}

// newDevListener notifies the registered listeners of the jobs that name them, and asks them the questions of
// workflows.
func newDevListener(replies map[string]string) replynotify.Replies {
	send := func(ctx context.Context, address, body, _ string) error { return webhook.Post(ctx, address, body) }
	return replynotify.Replies{Queues: replies, Send: send}
}

// newDevNotifier sends notices for operators to the log, and to the alert's URL, if there is one: once for many jobs.
func newDevNotifier(logger *slog.Logger, alert string, where func() notify.Where) notify.Notifier {
	to := []notify.Alerter{notify.AlertLog{Logger: quiet.Loud(logger)}}
	if alert != "" {
		to = append(to, webhook.Webhook{URL: alert})
	}
	return notify.All(groupnotify.New(groupnotify.Config{To: to, Places: groupnotify.NewPlaces(), Where: where}))
}
