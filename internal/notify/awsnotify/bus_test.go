package awsnotify_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/notify"
	"github.com/makegood-dev/makegood/internal/notify/awsnotify"
)

func newBusClient(endpoint string) *eventbridge.Client {
	return eventbridge.New(eventbridge.Options{
		Region: "eu-central-1", BaseEndpoint: aws.String(endpoint), RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	})
}

var notice = notify.Notice{Job: "order-1", Workflow: "order", Announcement: job.Announcement{
	Seq: 2, ProcessState: makegood.JobProcessed, At: time.Unix(1000, 0).UTC(),
}}

// serve returns a bus that answers with this, and what it was last asked.
func serve(t *testing.T, answer string) (awsnotify.Bus, *string) {
	t.Helper()
	asked := new(string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request struct{ Entries []map[string]any }
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
			t.Error(err)
		}
		*asked = fmt.Sprint(request.Entries)
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		fmt.Fprint(w, answer)
	}))
	t.Cleanup(server.Close)
	return awsnotify.Bus{Client: newBusClient(server.URL), Name: "jobs"}, asked
}

func TestEverythingIsPutOnTheBus(t *testing.T) {
	bus, asked := serve(t, `{"FailedEntryCount":0,"Entries":[{"EventId":"1"}]}`)
	if err := bus.Announce(t.Context(), notice); err != nil {
		t.Errorf("announce: got %v, want success", err)
	}
	for _, want := range []string{"EventBusName:jobs", "Source:makegood", "DetailType:Job Changed", `"job":"order-1"`, "Time:1000"} {
		if !strings.Contains(*asked, want) {
			t.Errorf("put %s, want %q in it", *asked, want)
		}
	}
	if err := bus.AgentAlert(t.Context(), "payments", ""); err != nil {
		t.Errorf("alert: got %v, want success", err)
	}
	for _, want := range []string{"DetailType:Agent Silent", `"agent":"payments"`} {
		if !strings.Contains(*asked, want) {
			t.Errorf("put %s, want %q in it", *asked, want)
		}
	}
}

// PutEvents answers with success and says inside that it was none.
func TestAnEventThatWasNotTakenIsAnError(t *testing.T) {
	for answer, want := range map[string]string{
		`{"FailedEntryCount":1,"Entries":[{"ErrorCode":"ThrottlingException","ErrorMessage":"slow down"}]}`: "ThrottlingException: slow down",
		`{"FailedEntryCount":1,"Entries":[]}`: "not taken",
	} {
		bus, _ := serve(t, answer)
		if err := bus.Announce(t.Context(), notice); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error with %q", answer, err, want)
		}
	}
}
