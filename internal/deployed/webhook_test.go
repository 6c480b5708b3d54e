package deployed

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/makegood-dev/makegood/internal/notify"
)

// parameters answers as SSM does, and counts how often it was asked.
type parameters struct {
	value string
	err   error
	asked int
}

func (p *parameters) GetParameter(_ context.Context, in *ssm.GetParameterInput, _ ...func(*ssm.Options)) (*ssm.GetParameterOutput, error) {
	p.asked++
	if p.err != nil {
		return nil, p.err
	}
	if !aws.ToBool(in.WithDecryption) || aws.ToString(in.Name) != "arn:webhook" {
		return nil, errors.New("asked for something else")
	}
	return &ssm.GetParameterOutput{Parameter: &types.Parameter{Value: &p.value}}, nil
}

// The address of the webhook stands in no variable of the function. It is read when there is something to alert of,
// kept for a while, and read anew after that, so that a changed one is taken up without a deployment.
func TestTheWebhooksAddressIsReadWhenThereIsAnAlert(t *testing.T) {
	var posted [2]int
	hooks := make([]string, 2)
	for i := range hooks {
		server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { posted[i]++ }))
		defer server.Close()
		hooks[i] = server.URL + "/secret"
	}
	kept, now := &parameters{value: hooks[0]}, time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	k := &keptWebhook{ssm: kept, parameter: "arn:webhook", now: func() time.Time { return now }}
	alert := func() {
		t.Helper()
		if err := k.Alert(t.Context(), notify.Alert{Cause: notify.Cause{Kind: notify.AlertStopped, Workflow: "w"}, Count: 1}); err != nil {
			t.Fatal(err)
		}
	}
	alert()
	alert()
	kept.value, now = hooks[1], now.Add(addressKept)
	alert()
	if kept.asked != 2 || posted != [2]int{2, 1} {
		t.Errorf("SSM was asked %d times, posted were %v; want 2, and [2 1]", kept.asked, posted)
	}
}

// Without the address the alert is told again later, and what stood there is not shown: it may be a secret.
func TestAWebhookWithoutAnAddressIsAnErrorThatShowsNoValue(t *testing.T) {
	for name, kept := range map[string]*parameters{
		"no address": {value: "xoxb-token"},
		"no answer":  {err: errors.New("no access")},
	} {
		k := &keptWebhook{ssm: kept, parameter: "arn:webhook", now: time.Now}
		err := k.Alert(t.Context(), notify.Alert{})
		if err == nil || strings.Contains(err.Error(), "xoxb") || !strings.Contains(err.Error(), "arn:webhook") {
			t.Errorf("%s: got %v, want an error with the parameter's name and not its value", name, err)
		}
	}
}
