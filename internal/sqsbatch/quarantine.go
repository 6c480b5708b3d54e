package sqsbatch

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"

	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/wire"
)

// TypeQuarantined is the type of a message in a quarantine queue.
const TypeQuarantined = "Quarantined"

// Quarantined is a message in a quarantine queue: a poison message, kept for a person with its reason.
type Quarantined struct {
	// V is wire.Version, Type is TypeQuarantined.
	V    int    `json:"v"`
	Type string `json:"type"`
	// Reason says why the message can never be understood; at most limits.MaxReasonBytes.
	Reason string `json:"reason"`
	// Source is the ARN of the queue that the message came from.
	Source string `json:"source"`
	// MessageID is the id that the message had there, ReceiveCount how often it was delivered.
	MessageID    string `json:"messageId"`
	ReceiveCount int    `json:"receiveCount"`
	// CutFrom is the size in bytes that the body had, where it was cut to fit; else zero.
	CutFrom int `json:"cutFrom,omitempty"`
	// Body is the message as it came, or its beginning where CutFrom is set.
	Body string `json:"body"`
}

// Quarantine sends a poison message to a quarantine queue, with the reason. The body is cut where the
// whole would be above limits.MaxMessageBytes, and CutFrom then says how long it was.
//
// After nil the record can be deleted, so it must not be reported as failed. After an error it is
// unknown whether the message was sent: let the record fail, so that it is delivered again. It may
// then be in quarantine twice, with the same MessageID.
func Quarantine(ctx context.Context, sender queue.Sender, queueName string, record events.SQSMessage, reason string) error {
	body, err := encodeFitting(Quarantined{
		V: wire.Version, Type: TypeQuarantined,
		Reason: limits.Clip(reason), Source: record.EventSourceARN,
		MessageID: record.MessageId, ReceiveCount: ReceiveCount(record), Body: record.Body,
	})
	if err != nil {
		return fmt.Errorf("encode message %s for quarantine: %w", record.MessageId, err)
	}
	for _, err := range sender.Send(ctx, queueName, queue.Message{Body: body}) {
		if err != nil {
			return fmt.Errorf("send message %s to quarantine %s: %w", record.MessageId, queueName, err)
		}
	}
	return nil
}

// encodeFitting encodes q, with as much of its body as a message can hold.
func encodeFitting(q Quarantined) (string, error) {
	whole, err := encode(q)
	if err != nil || len(whole) <= limits.MaxMessageBytes {
		return whole, err
	}
	body := strings.ToValidUTF8(q.Body, "\uFFFD")
	q.CutFrom, q.Body = len(q.Body), ""
	rest, err := encode(q)
	if err != nil {
		return "", err
	}
	if q.Body, err = beginning(body, limits.MaxMessageBytes-len(rest)); err != nil {
		return "", err
	}
	return encode(q)
}

// beginning returns the beginning of body that takes at most room bytes in JSON. How much a character
// grows there depends on it, so body is measured piece by piece, in large pieces and then in small.
func beginning(body string, room int) (string, error) {
	kept := 0
	for _, step := range []int{4 << 10, utf8.UTFMax} {
		for kept < len(body) {
			piece := limits.Cut(body[kept:], step)
			text, err := encode(piece)
			if err != nil {
				return "", err
			}
			size := len(text) - len(`""`)
			if size > room {
				break
			}
			room -= size
			kept += len(piece)
		}
	}
	return body[:kept], nil
}

// encode writes JSON in characters that a queue takes. JSON escapes the control characters but not these
// two, and a reason may quote them from a body in which they were escaped.
func encode(value any) (string, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	// A body that is JSON or HTML should be readable in the console, and not grow more than it must.
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return "", err
	}
	text := strings.TrimSuffix(buffer.String(), "\n")
	return strings.NewReplacer("\uFFFE", `\ufffe`, "\uFFFF", `\uffff`).Replace(text), nil
}
