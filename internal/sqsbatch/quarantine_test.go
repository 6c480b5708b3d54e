package sqsbatch

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/queue"
)

// outbox keeps the last message that was sent.
type outbox struct {
	queue string
	body  string
	err   error
}

func (o *outbox) Send(_ context.Context, name string, messages ...queue.Message) []error {
	o.queue, o.body = name, messages[0].Body
	if o.err != nil {
		return []error{o.err}
	}
	return nil
}

func (o *outbox) Depth(context.Context, string) (queue.Depth, error) { return queue.Depth{}, nil }

func poison(body string) events.SQSMessage {
	return events.SQSMessage{
		MessageId: "id", Body: body, EventSourceARN: "arn:aws:sqs:local:000000000000:events",
		Attributes: map[string]string{"ApproximateReceiveCount": "3"},
	}
}

func TestQuarantineKeepsTheMessageAndItsReason(t *testing.T) {
	var sent outbox
	if err := Quarantine(t.Context(), &sent, "poison", poison(`{"v":<2>}`), "version 2, want 1"); err != nil {
		t.Fatal(err)
	}
	want := `{"v":1,"type":"Quarantined","reason":"version 2, want 1",` +
		`"source":"arn:aws:sqs:local:000000000000:events","messageId":"id","receiveCount":3,"body":"{\"v\":<2>}"}`
	if sent.queue != "poison" || sent.body != want {
		t.Errorf("sent to %s:\ngot  %s\nwant %s", sent.queue, sent.body, want)
	}
}

// Whatever the body is made of, the message in quarantine is as long as it may be and not longer,
// and says how long the body was.
func TestABodyThatIsTooLongForQuarantineIsCut(t *testing.T) {
	for name, character := range map[string]string{
		"four bytes": "😀", "refused ones": "\uFFFE", "mixed": "a\"é\x01\n",
	} {
		t.Run(name, func(t *testing.T) {
			body := strings.Repeat(character, limits.MaxMessageBytes/len(character))
			var sent outbox
			if err := Quarantine(t.Context(), &sent, "poison", poison(body), "too long"); err != nil {
				t.Fatal(err)
			}
			if got, limit := len(sent.body), limits.MaxMessageBytes; got > limit || got < limit-30 {
				t.Errorf("%d bytes sent, want %d or a few less", got, limit)
			}
			var q Quarantined
			if err := json.Unmarshal([]byte(sent.body), &q); err != nil {
				t.Fatal(err)
			}
			if q.CutFrom != len(body) {
				t.Errorf("cutFrom: got %d, want %d", q.CutFrom, len(body))
			}
			if !strings.HasPrefix(body, q.Body) || q.Body == "" {
				t.Errorf("the body that was kept, %d bytes, is not the beginning of the message", len(q.Body))
			}
		})
	}
}

func TestABodyThatJustFitsIsNotCut(t *testing.T) {
	var sent outbox
	send := func(bodyBytes int) (q Quarantined) {
		t.Helper()
		if err := Quarantine(t.Context(), &sent, "poison", poison(strings.Repeat("a", bodyBytes)), "r"); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(sent.body), &q); err != nil {
			t.Fatal(err)
		}
		return q
	}
	send(0)
	fits := limits.MaxMessageBytes - len(sent.body)
	if q := send(fits); q.CutFrom != 0 || len(q.Body) != fits {
		t.Errorf("body of %d bytes: kept %d, cutFrom %d, want all of it", fits, len(q.Body), q.CutFrom)
	}
	if q := send(fits + 1); q.CutFrom != fits+1 || len(q.Body) >= fits {
		t.Errorf("body of %d bytes: kept %d, cutFrom %d, want it cut", fits+1, len(q.Body), q.CutFrom)
	}
}

// A reason may quote what was escaped in the body. Were it sent raw, the quarantine would be refused
// and the poison would go round for ever.
func TestQuarantineSendsOnlyCharactersThatAQueueTakes(t *testing.T) {
	var sent outbox
	reason := "unknown field \"\uFFFE\uFFFF\x00\xff\""
	if err := Quarantine(t.Context(), &sent, "poison", poison("\uFFFF\x00"), reason); err != nil {
		t.Fatal(err)
	}
	for _, r := range sent.body {
		if r < 0x20 || r == 0xFFFE || r == 0xFFFF {
			t.Errorf("sent %U in %q", r, sent.body)
		}
	}
	var q Quarantined
	if err := json.Unmarshal([]byte(sent.body), &q); err != nil {
		t.Fatal(err)
	}
	if want := "unknown field \"\uFFFD\uFFFD\x00\uFFFD\""; q.Reason != want || q.Body != "\uFFFF\x00" {
		t.Errorf("got reason %q, body %q, want %q and the body", q.Reason, q.Body, want)
	}
}

func TestQuarantineSaysWhenItCouldNotSend(t *testing.T) {
	sent := outbox{err: queue.ErrNoQueue}
	err := Quarantine(t.Context(), &sent, "poison", poison("x"), "r")
	if !errors.Is(err, queue.ErrNoQueue) || !strings.Contains(err.Error(), "message id to quarantine poison") {
		t.Errorf("got %v, want one that names the message, the queue and %v", err, queue.ErrNoQueue)
	}
}
