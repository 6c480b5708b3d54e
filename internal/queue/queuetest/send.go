package queuetest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/queue"
)

// Good and bad messages alternate, so that an error told of the wrong message shows. There are more
// than ten, so that it also shows when errors of a second batch are told of the first.
func refusal(t *testing.T, h Harness) {
	bad := []string{
		"",
		strings.Repeat("x", limits.MaxMessageBytes+1),
		"NUL \x00",
		"escape \x1b",
		"not a character \uFFFE",
		"not a character \uFFFF",
		"not UTF-8 \xff",
		"half a surrogate pair \xed\xa0\x80",
	}
	var messages []queue.Message
	var good []string
	for i, body := range bad {
		good = append(good, fmt.Sprintf("good %d", i))
		messages = append(messages, queue.Message{Body: good[i]}, queue.Message{Body: body})
	}
	errs := h.Queues.Send(t.Context(), h.Name, messages...)
	if len(errs) != len(messages) {
		t.Fatalf("got %d errors for %d messages, want one each", len(errs), len(messages))
	}
	for i, err := range errs {
		var refused *queue.RefusedError
		switch isBad := i%2 == 1; {
		case isBad && !errors.As(err, &refused):
			t.Errorf("%.30q: got error %v, want a RefusedError", messages[i].Body, err)
		case isBad && refused.Reason == "":
			t.Errorf("%.30q: refused without a reason", messages[i].Body)
		case !isBad && err != nil:
			t.Errorf("%.30q: got error %v, want it sent", messages[i].Body, err)
		}
	}
	h.receiveAll(t, good...)
}

func theLargestMessage(t *testing.T, h Harness) {
	largest := strings.Repeat("é", limits.MaxMessageBytes/2)
	h.sendBodies(t, "before", largest, "after")
	h.receiveAll(t, "before", largest, "after")
}

func aLargeSendIsSplit(t *testing.T, h Harness) {
	var bodies []string
	for i := range 3*limits.MaxBatch + 1 {
		size := 100
		if i%10 == 0 {
			size = limits.MaxMessageBytes / 2
		}
		bodies = append(bodies, fmt.Sprintf("%d %s", i, strings.Repeat("x", size)))
	}
	h.sendBodies(t, bodies...)
	h.receiveAll(t, bodies...)
}

func nothingIsSent(t *testing.T, h Harness) {
	if errs := h.Queues.Send(t.Context(), h.Name); len(errs) != 0 {
		t.Errorf("got %v, want no errors", errs)
	}
	h.wantDepth(t, 0, 0)
}

func unknownQueue(t *testing.T, h Harness) {
	const unknown = "no-such-queue"
	errs := h.Queues.Send(t.Context(), unknown, queue.Message{Body: "a"}, queue.Message{Body: "b"})
	if len(errs) != 2 {
		t.Fatalf("send of 2 messages: got %d errors, want 2", len(errs))
	}
	_, depthErr := h.Queues.Depth(t.Context(), unknown)
	_, receiveErr := h.Queues.Receive(t.Context(), unknown, 1)
	for call, err := range map[string]error{
		"send the first": errs[0], "send the second": errs[1], "depth": depthErr, "receive": receiveErr,
		"delete": h.Queues.Delete(t.Context(), unknown, "receipt"),
		"return": h.Queues.Return(t.Context(), unknown, 0, "receipt"),
	} {
		if !errors.Is(err, queue.ErrNoQueue) {
			t.Errorf("%s: got %v, want %v", call, err, queue.ErrNoQueue)
		}
	}
}
