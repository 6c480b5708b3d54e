package localqueue

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/makegood-dev/makegood/internal/queue"
)

// arnPrefix stands before the name of a queue in its ARN.
const arnPrefix = "arn:aws:sqs:local:000000000000:"

// ARN is what messages of a queue say of where they came from.
func ARN(name string) string { return arnPrefix + name }

// message is a message on a line. Body, group, id and sentAt never change after it was sent.
type message struct {
	id, body, group string
	delay           time.Duration
	sentAt          time.Time
	// sent is sentAt as text.
	sent string

	// receives counts the deliveries on all queues, as SQS does, and here those on this one.
	receives, here int
	// receipt is that of the latest delivery, and first that of the first one.
	receipt, first string
	// source is the name of the queue that it was a dead letter of.
	source string

	// visibleAt is when a hidden message shows.
	visibleAt time.Time
	// index is its place among the hidden, notHidden otherwise.
	index int
	// gone: deleted while it was visible; it is passed over when its turn comes.
	gone bool
}

// notHidden is the index of a message that is visible or gone.
const notHidden = -1

func newMessage(m queue.Message) *message {
	return &message{body: m.Body, group: m.Group, delay: m.Delay, index: notHidden}
}

// stamp gives a message its id, which looks as those of SQS do, the receipt of its first delivery, and the time of its
// sending: their texts share memory.
func (m *message) stamp(random *rand.Rand, now time.Time) {
	var raw [16]byte
	binary.LittleEndian.PutUint64(raw[:8], random.Uint64())
	binary.LittleEndian.PutUint64(raw[8:], random.Uint64())
	var text [36 + len(firstDelivery) + 20]byte
	hex.Encode(text[:8], raw[:4])
	hex.Encode(text[9:13], raw[4:6])
	hex.Encode(text[14:18], raw[6:8])
	hex.Encode(text[19:23], raw[8:10])
	hex.Encode(text[24:36], raw[10:])
	text[8], text[13], text[18], text[23] = '-', '-', '-', '-'
	all := string(strconv.AppendInt(append(text[:36], firstDelivery...), now.UnixMilli(), 10))
	m.id, m.first, m.sent = all[:36], all[:36+len(firstDelivery)], all[36+len(firstDelivery):]
	m.sentAt = now
}

// firstDelivery is the end of the receipt of a first delivery.
const firstDelivery = "#1"

// delivery is what one delivery of a message says beyond what never changes.
type delivery struct {
	*message
	receipt  string
	receives int
	source   string
}

// render writes deliveries as SQS does, but for the digest of the body and the time of the first delivery: no handler
// reads them, and each costs every message. It reads only immutable fields, so it needs no lock.
func (l *line) render(taken []delivery) []events.SQSMessage {
	records := make([]events.SQSMessage, len(taken))
	for i, d := range taken {
		attributes := make(map[string]string, 4)
		attributes["ApproximateReceiveCount"] = strconv.Itoa(d.receives)
		attributes["SentTimestamp"] = d.sent
		if d.group != "" {
			attributes["MessageGroupId"] = d.group
		}
		if d.source != "" {
			attributes["DeadLetterQueueSourceArn"] = ARN(d.source)
		}
		records[i] = events.SQSMessage{
			MessageId: d.id, ReceiptHandle: d.receipt, Body: d.body, Attributes: attributes,
			EventSource: "aws:sqs", EventSourceARN: l.arn, AWSRegion: "local",
		}
	}
	return records
}
