package sqsbatch_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/sqsbatch"
)

func said(body, share string) events.SQSMessage {
	return events.SQSMessage{Body: body, MessageAttributes: map[string]events.SQSMessageAttribute{
		queue.AttributeShare: {DataType: "Number", StringValue: &share},
	}}
}

// A record pays its share of the request that sent it, as it says, of the one that received it and of the one that deletes
// it, and of the invocation.
func TestARecordPaysItsShareOfWhatItsBatchCosts(t *testing.T) {
	const one = job.SpentParts
	batch := []events.SQSMessage{said("a", "252"), {Body: "b"}}
	got := sqsbatch.Spent(batch, true)
	if want := (job.Spent{Requests: one/10 + one/2 + one/2, Invocations: one / 2}); got[0] != want {
		t.Errorf("sent with nine others: got %+v, want %+v", got[0], want)
	}
	if want := (job.Spent{Requests: one + one/2 + one/2, Invocations: one / 2}); got[1] != want {
		t.Errorf("sent by one who does not say: got %+v, want %+v", got[1], want)
	}
	if got, want := sqsbatch.Spent(batch[1:], false)[0], (job.Spent{Requests: 3 * one}); got != want {
		t.Errorf("outside of Lambda: got %+v, want %+v", got, want)
	}
}

// Whoever may send may say anything; it is taken if it can be.
func TestAShareThatCannotBeIsNotTaken(t *testing.T) {
	for _, share := range []string{"", "0", "-1", "x", "99999999999999999999", "1e9"} {
		if got, want := sqsbatch.Spent([]events.SQSMessage{said("a", share)}, true)[0].Requests, int64(3*job.SpentParts); got != want {
			t.Errorf("%q: got %d parts, want %d", share, got, want)
		}
	}
}

// A request is billed for each 64 KB of its messages together.
func TestLargeMessagesPayForEach64KB(t *testing.T) {
	batch := []events.SQSMessage{{Body: strings.Repeat("x", 64<<10)}, {Body: strings.Repeat("x", 64<<10)}}
	got := sqsbatch.Spent(batch, true)[0].Requests
	if want := int64(job.SpentParts + 2*job.SpentParts/2 + job.SpentParts/2); got != want {
		t.Errorf("got %d parts, want %d: one sent, half of two received, half of one deleted", got, want)
	}
}
