package awsnotify_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sns"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/notify"
	"github.com/makegood-dev/makegood/internal/notify/awsnotify"
)

func newTopicClient(endpoint string) *sns.Client {
	return sns.New(sns.Options{
		Region: "eu-central-1", BaseEndpoint: aws.String(endpoint), RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	})
}

func alert() notify.Alert {
	return notify.Alert{
		Cause: notify.Cause{Kind: notify.AlertStopped, Workflow: "order", Step: "charge", ErrorKind: "declinéd"}, Count: 1,
		Jobs: []notify.AlertedJob{{ID: strings.Repeat("j", makegood.MaxJobIDBytes), Reason: "no stock"}},
	}
}

// A subject of SNS is short, and ASCII; what a step's error is called may be neither.
func TestAnAlertHasASubjectATextAndAttributes(t *testing.T) {
	var got []url.Values
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			t.Error(err)
		}
		got = append(got, r.PostForm)
		fmt.Fprint(w, `<PublishResponse><PublishResult><MessageId>m</MessageId></PublishResult></PublishResponse>`)
	}))
	defer server.Close()
	topic := awsnotify.Topic{Client: newTopicClient(server.URL), ARN: "arn:aws:sns:eu-central-1:1:alerts"}
	if err := topic.Alert(t.Context(), alert()); err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 {
		t.Fatalf("got %d requests, want 1", len(got))
	}
	if subject := got[0].Get("Subject"); subject != "Makegood: a job of order stopped at charge (declin?d)" {
		t.Errorf("got subject %q", subject)
	}
	if text := got[0].Get("Message"); !strings.Contains(text, "\nWhy: no stock\n") || !strings.Contains(text, "\nRunbook: https://") {
		t.Errorf("got message %s, want the reason and the runbook", text)
	}
	attributes := map[string]string{}
	for i := 1; i <= 2; i++ {
		attributes[got[0].Get(fmt.Sprintf("MessageAttributes.entry.%d.Name", i))] = got[0].Get(fmt.Sprintf("MessageAttributes.entry.%d.Value.StringValue", i))
	}
	if want := map[string]string{"kind": "stopped", "workflow": "order"}; !maps.Equal(attributes, want) {
		t.Errorf("got attributes %v, want %v", attributes, want)
	}
}

func TestARefusalOfTheTopicIsAnError(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `<ErrorResponse><Error><Code>AuthorizationError</Code><Message>no</Message></Error></ErrorResponse>`)
	}))
	defer server.Close()
	topic := awsnotify.Topic{Client: newTopicClient(server.URL), ARN: "arn:alerts"}
	if err := topic.Alert(t.Context(), alert()); err == nil || !strings.Contains(err.Error(), "AuthorizationError") {
		t.Errorf("got %v, want an error that names the code", err)
	}
}
