package queuetest

import (
	"strconv"
	"testing"
	"time"

	"github.com/makegood-dev/makegood/internal/queue"
)

func aMessageComesBack(t *testing.T, h Harness) {
	h.sendBodies(t, "a")
	receipts := map[string]bool{}
	var id string
	begun := time.Now()
	for count := 1; count <= minReceives-1; count++ {
		record := h.receiveAll(t, "a")["a"]
		least := time.Duration(count-1)*h.Visibility - h.Unit
		if waited := time.Since(begun); waited < least {
			t.Errorf("delivery %d: came after %v, want at least %v", count, waited, least)
		}
		if got := record.Attributes["ApproximateReceiveCount"]; got != strconv.Itoa(count) {
			t.Errorf("delivery %d: got receive count %q", count, got)
		}
		if count > 1 && record.MessageId != id {
			t.Errorf("delivery %d: got id %q, want %q as before", count, record.MessageId, id)
		}
		id = record.MessageId
		receipts[record.ReceiptHandle] = true
		if len(receipts) != count {
			t.Errorf("delivery %d: its receipt %q is not new", count, record.ReceiptHandle)
		}
	}
}

func aDeletedMessageStaysAway(t *testing.T, h Harness) {
	h.sendBodies(t, "a", "b", "c")
	first := h.receiveAll(t, "a", "b", "c")
	h.delete(t, first["a"].ReceiptHandle, first["c"].ReceiptHandle)
	again := h.receiveAll(t, "b")
	h.delete(t, again["b"].ReceiptHandle)
	h.receiveNothing(t, h.Name, h.Patience, "all was deleted")
}

func deleteIsIdempotent(t *testing.T, h Harness) {
	h.delete(t)
	h.sendBodies(t, "a")
	receipt := h.receiveAll(t, "a")["a"].ReceiptHandle
	h.delete(t, receipt)
	h.delete(t, receipt)
	h.delete(t, receipt, receipt)
}

// What the expired receipt does to its own message is left open, as SQS does.
func anExpiredReceiptDeletesNoOther(t *testing.T, h Harness) {
	h.sendBodies(t, "a", "b")
	old := h.receiveAll(t, "a", "b")
	now := h.receiveAll(t, "a", "b")
	h.delete(t, old["a"].ReceiptHandle)
	h.giveBack(t, 0, now["b"].ReceiptHandle)
	b := h.receiveAll(t, "b")["b"]
	h.delete(t, b.ReceiptHandle, now["a"].ReceiptHandle)
	h.receiveNothing(t, h.Name, h.Patience, "both were deleted by their latest receipts")
}

func returnAtOnce(t *testing.T, h Harness) {
	h.giveBack(t, 0)
	h.sendBodies(t, "a", "b", "c")
	received := h.receiveAll(t, "a", "b", "c")
	// Hidden for longer than any rule waits, so that a message that comes was returned, however late.
	for _, record := range received {
		h.giveBack(t, h.long(), record.ReceiptHandle)
	}
	h.giveBack(t, 0, received["a"].ReceiptHandle, received["c"].ReceiptHandle)
	again := h.receiveAll(t, "a", "c")
	for body, record := range again {
		if got := record.Attributes["ApproximateReceiveCount"]; got != "2" {
			t.Errorf("%s: got receive count %q, want 2", body, got)
		}
	}
}

// The time may be shorter or longer than the visibility timeout; it counts in its place.
func returnForLater(t *testing.T, h Harness) {
	for _, after := range []time.Duration{h.Unit, h.Visibility + 2*h.Unit} {
		h.sendBodies(t, "a")
		record := h.receiveAll(t, "a")["a"]
		begun := time.Now()
		h.giveBack(t, after, record.ReceiptHandle)
		patient := h
		patient.Patience += 2 * h.Unit
		record = patient.receiveAll(t, "a")["a"]
		if waited := time.Since(begun); waited < after-h.Unit/2 {
			t.Errorf("returned for %v later: came after %v", after, waited)
		}
		h.delete(t, record.ReceiptHandle)
	}
}

func aDelayIsKept(t *testing.T, h Harness) {
	begun := time.Now()
	delay := 2 * h.Unit
	h.send(t, queue.Message{Body: "late", Delay: delay}, queue.Message{Body: "soon"})
	soon := h.receiveAll(t, "soon")["soon"]
	h.delete(t, soon.ReceiptHandle)
	h.receiveAll(t, "late")
	if waited := time.Since(begun); waited < delay-h.Unit/2 {
		t.Errorf("delayed by %v: came after %v", delay, waited)
	}
}

func deadLetter(t *testing.T, h Harness) {
	h.sendBodies(t, "bad")
	var id string
	for range h.MaxReceives {
		record := h.receiveAll(t, "bad")["bad"]
		id = record.MessageId
		h.giveBack(t, 0, record.ReceiptHandle)
	}
	h.sendBodies(t, "good")
	h.delete(t, h.receiveAll(t, "good")["good"].ReceiptHandle)
	h.receiveNothing(t, h.Name, h.Visibility/2, "the message was received too often")
	record := h.receiveFrom(t, h.DeadLetter, "bad")["bad"]
	if record.MessageId != id {
		t.Errorf("id of the dead letter: got %q, want %q as before", record.MessageId, id)
	}
}
