package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/makegood-dev/makegood/internal/notify"
	"github.com/makegood-dev/makegood/internal/notify/replynotify"
	"github.com/makegood-dev/makegood/internal/notify/webhook"
)

// replyTimeout is how long who is told may take. Who does not answer in time is told again.
const replyTimeout = 5 * time.Second

// replyName is what a registered name may be.
var replyName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,62}$`)

// parseReplies reads --reply NAME=URL. The URLs may hold secrets, and are in no message.
func parseReplies(flags []string) (map[string]string, error) {
	replies := map[string]string{}
	for _, flag := range flags {
		name, address, _ := strings.Cut(flag, "=")
		switch {
		case !replyName.MatchString(name):
			return nil, fmt.Errorf("--reply %.70s: want NAME=URL, the name as %s", name, replyName)
		case !isWebAddress(address):
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
	if address != "" && !isWebAddress(address) {
		return errors.New("--alert: want a URL of http or https")
	}
	return nil
}

func isWebAddress(address string) bool {
	target, err := url.Parse(address)
	return err == nil && target.Host != "" && (target.Scheme == "http" || target.Scheme == "https")
}

// newDevNotifier tells the log of everything, whoever is registered of the jobs that name him, and the
// alert's URL, if there is one, of what an operator must know.
func newDevNotifier(logger *slog.Logger, replies map[string]string, alert string) notify.Notifier {
	client := &http.Client{
		Timeout: replyTimeout,
		// What a redirect leads to was not registered.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	send := func(ctx context.Context, address, body, _ string) error { return post(ctx, client, address, body) }
	all := []notify.Notifier{notify.Log{Logger: logger}, replynotify.Replies{Queues: replies, Send: send}}
	if alert != "" {
		all = append(all, webhook.New(webhook.Config{URL: alert}))
	}
	return notify.All(all...)
}

// post posts JSON. Only an answer of 2xx is success.
func post(ctx context.Context, client *http.Client, address, body string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(body))
	if err != nil {
		return errors.New("the registered URL cannot be asked")
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(request)
	var said *url.Error
	if errors.As(err, &said) {
		return said.Err
	}
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("the answer is %s, want 2xx", answer.Status)
	}
	return nil
}
