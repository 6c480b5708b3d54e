//go:build aws

package awsnotify_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood/internal/notify/awsnotify"
	"github.com/makegood-dev/makegood/internal/testkit/standin"
)

// A rule on source and detail-type finds the event, with the announcement as its detail.
func TestARuleFindsTheEvent(t *testing.T) {
	name, receive, ok := standin.Bus(t, fmt.Sprintf(`{"source":[%q],"detail-type":[%q],"detail":{"processState":["Processed"]}}`, awsnotify.Source, awsnotify.JobChanged))
	if !ok {
		return
	}
	bus := awsnotify.Bus{Client: newBusClient(os.Getenv(standin.EndpointVariable)), Name: name}
	if err := bus.AgentAlert(t.Context(), "payments", ""); err != nil {
		t.Errorf("alert: got %v, want success", err)
	}
	if err := bus.Announce(t.Context(), notice); err != nil {
		t.Fatalf("announce: got %v, want success", err)
	}
	var got []string
	for range 10 { // seconds
		if got = receive(); len(got) > 0 {
			break
		}
	}
	if len(got) != 1 || !strings.Contains(got[0], "order-1") {
		t.Errorf("got %q, want the one event of the job", got)
	}
}
