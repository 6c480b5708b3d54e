package replynotify_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/notify"
	"github.com/makegood-dev/makegood/internal/notify/replynotify"
)

func notice(replyTo string) notify.Notice {
	return notify.Notice{Job: "order-1", Workflow: "order", ReplyTo: replyTo, Announcement: job.Announcement{
		Seq: 2, ProcessState: makegood.JobUndone, Reason: "no stock", At: time.Unix(0, 0).UTC(),
	}}
}

func TestAnAnnouncementGoesToTheQueueOfItsNameAndToNoOther(t *testing.T) {
	var sent []string
	r := replynotify.Replies{
		Queues: map[string]string{"shop": "replies-shop", "other": "replies-other"},
		Send: func(_ context.Context, queue, body, group string) error {
			sent = append(sent, queue, body, group)
			return nil
		},
	}
	for _, name := range []string{"", "shop"} {
		if err := r.Announce(t.Context(), notice(name)); err != nil {
			t.Errorf("reply to %q: got %v, want success", name, err)
		}
	}
	if err := r.AgentAlert(t.Context(), "payments", ""); err != nil {
		t.Errorf("alert: got %v, want success", err)
	}
	for _, unknown := range []string{"gone", "https://sqs.example/1/replies-shop", "replies-shop"} {
		if err := r.Announce(t.Context(), notice(unknown)); err == nil || !strings.Contains(err.Error(), unknown) {
			t.Errorf("reply to %q: got %v, want an error that names it", unknown, err)
		}
	}
	want := []string{
		"replies-shop",
		`{"v":1,"type":"Announcement","job":"order-1","workflow":"order","seq":2,"processState":"Undone","reason":"no stock","at":"1970-01-01T00:00:00Z"}`,
		"order-1",
	}
	if !slices.Equal(sent, want) {
		t.Errorf("sent %q\nwant %q", sent, want)
	}
}

func TestAReplyThatCouldNotBeSentIsAnError(t *testing.T) {
	down := errors.New("down")
	r := replynotify.Replies{
		Queues: map[string]string{"shop": "replies-shop"},
		Send:   func(context.Context, string, string, string) error { return down },
	}
	if err := r.Announce(t.Context(), notice("shop")); !errors.Is(err, down) {
		t.Errorf("got %v, want %v", err, down)
	}
}
