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
		target, err := url.Parse(address)
		switch {
		case !replyName.MatchString(name):
			return nil, fmt.Errorf("--reply %.70s: want NAME=URL, the name as %s", name, replyName)
		case err != nil || target.Host == "" || target.Scheme != "http" && target.Scheme != "https":
			return nil, fmt.Errorf("--reply %s: want NAME=URL, and a URL of http or https", name)
		case replies[name] != "":
			return nil, fmt.Errorf("--reply %s: the name is there twice", name)
		}
		replies[name] = address
	}
	return replies, nil
}

// newDevNotifier tells the log of everything, and whoever is registered of the jobs that name him.
func newDevNotifier(logger *slog.Logger, replies map[string]string) notify.Notifier {
	client := &http.Client{
		Timeout: replyTimeout,
		// What a redirect leads to was not registered.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	send := func(ctx context.Context, address, body, _ string) error { return post(ctx, client, address, body) }
	return notify.All(notify.Log{Logger: logger}, replynotify.Replies{Queues: replies, Send: send})
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
