package snsnotify_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sns"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/notify"
	"github.com/makegood-dev/makegood/internal/notify/snsnotify"
)

func newClient(endpoint string) *sns.Client {
	return sns.New(sns.Options{
		Region: "eu-central-1", BaseEndpoint: aws.String(endpoint), RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	})
}

func notice(id string, state makegood.ProcessState) notify.Notice {
	return notify.Notice{Job: id, Workflow: "order", Announcement: job.Announcement{
		Seq: 2, ProcessState: state, Reason: "no stock", At: time.Unix(0, 0).UTC(),
	}}
}

func TestOnlyAlertsArePublished(t *testing.T) {
	var got []url.Values
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			t.Error(err)
		}
		got = append(got, r.PostForm)
		fmt.Fprint(w, `<PublishResponse><PublishResult><MessageId>m</MessageId></PublishResult></PublishResponse>`)
	}))
	defer server.Close()
	topic := snsnotify.Topic{Client: newClient(server.URL), ARN: "arn:aws:sns:eu-central-1:1:alerts"}
	for _, state := range makegood.ProcessStates() {
		if err := topic.Announce(t.Context(), notice(strings.Repeat("j", makegood.MaxJobIDBytes), state)); err != nil {
			t.Errorf("%s: got %v, want success", state, err)
		}
	}
	if err := topic.AgentSilent(t.Context(), "payments"); err != nil {
		t.Errorf("agent: got %v, want success", err)
	}
	if len(got) != 2 {
		t.Fatalf("got %d requests, want 2: an Error and an agent", len(got))
	}
	if subject := got[0].Get("Subject"); len(subject) > 99 || !strings.HasPrefix(subject, "Makegood: job jjj") {
		t.Errorf("got subject %q of %d bytes, want at most 99 that name the job", subject, len(subject))
	}
	if body := got[0].Get("Message"); !strings.Contains(body, `"type":"Announcement"`) || !strings.Contains(body, `"reason":"no stock"`) {
		t.Errorf("got message %s, want the announcement", body)
	}
	want := []string{"arn:aws:sns:eu-central-1:1:alerts", "Makegood: nobody claims the tasks of agent payments", `{"v":1,"type":"AgentSilent","agent":"payments"}`}
	if got := []string{got[1].Get("TopicArn"), got[1].Get("Subject"), got[1].Get("Message")}; !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestARefusalOfTheTopicIsAnError(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `<ErrorResponse><Error><Code>AuthorizationError</Code><Message>no</Message></Error></ErrorResponse>`)
	}))
	defer server.Close()
	topic := snsnotify.Topic{Client: newClient(server.URL), ARN: "arn:alerts"}
	if err := topic.Announce(t.Context(), notice("a", makegood.Error)); err == nil || !strings.Contains(err.Error(), "AuthorizationError") {
		t.Errorf("got %v, want an error that names the code", err)
	}
}
