package sqsqueue_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/queue/sqsqueue"
)

func bodies(texts ...string) []queue.Message {
	messages := make([]queue.Message, len(texts))
	for i, text := range texts {
		messages[i].Body = text
	}
	return messages
}

// words says of each error what kind it is.
func words(errs []error) []string {
	all := make([]string, len(errs))
	for i, err := range errs {
		var refused *queue.RefusedError
		switch {
		case err == nil:
			all[i] = "sent"
		case errors.As(err, &refused):
			all[i] = "refused"
		default:
			all[i] = "unknown"
		}
	}
	return all
}

// One entry is at fault, one is throttled twice, one is refused by a key: each is told of its own
// message, though messages before them were never sent at all.
func TestAPartialFailureIsToldOfItsOwnMessage(t *testing.T) {
	s := serve(t)
	s.entry = func(_ request, e entry, try int) *refusal {
		switch {
		case e.MessageBody == "at fault":
			return &refusal{"InvalidMessageContents", true}
		case e.MessageBody == "busy" && try < 3:
			return &refusal{"RequestThrottled", true}
		case e.MessageBody == "no key":
			return &refusal{"KMS.DisabledException", true}
		}
		return nil
	}
	got := words(s.queues(sqsqueue.Config{}).Send(t.Context(), "q",
		bodies("a", "", "at fault", "busy", "no\x00good", "no key", "b")...))
	want := []string{"sent", "refused", "refused", "sent", "refused", "unknown", "sent"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	slices.Sort(s.taken)
	if want := []string{"a", "b", "busy"}; !slices.Equal(s.taken, want) {
		t.Errorf("SQS took %q, want %q, each once", s.taken, want)
	}
	if s.tries["at fault"] != 1 {
		t.Errorf("the message at fault was sent %d times, want once", s.tries["at fault"])
	}
}

func TestAnEntryIsTriedABoundedNumberOfTimes(t *testing.T) {
	s := serve(t)
	s.entry = func(request, entry, int) *refusal { return &refusal{"InternalError", false} }
	errs := s.queues(sqsqueue.Config{}).Send(t.Context(), "q", bodies("a")...)
	if got := words(errs); got[0] != "unknown" || !strings.Contains(errs[0].Error(), "InternalError") {
		t.Errorf("got %v, want an error that names the code", errs)
	}
	if got := len(s.of("SendMessageBatch")); got != 5 {
		t.Errorf("got %d requests, want 5", got)
	}
}

func TestTriesEndWithTheContext(t *testing.T) {
	s := serve(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s.entry = func(request, entry, int) *refusal {
		cancel()
		return &refusal{"InternalError", false}
	}
	if got := words(s.queues(sqsqueue.Config{}).Send(ctx, "q", bodies("a", "b")...)); !slices.Equal(got, []string{"unknown", "unknown"}) {
		t.Errorf("got %v, want both unknown", got)
	}
	if got := len(s.of("SendMessageBatch")); got > 1 {
		t.Errorf("got %d requests after the end of the context, want 1 at most", got)
	}
}

func TestAnEntryThatTheAnswerForgetsIsNotSent(t *testing.T) {
	s := serve(t)
	s.forget = map[string]bool{"b": true}
	if got, want := words(s.queues(sqsqueue.Config{}).Send(t.Context(), "q", bodies("a", "b")...)), []string{"sent", "unknown"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// The first request is throttled, and the answer of the second is lost after it was carried out: the
// SDK asks again, so the message is sent twice and that is a success.
func TestThrottlingAndALostAnswerEndInASend(t *testing.T) {
	s := serve(t)
	s.whole = func(w http.ResponseWriter, r request, try int) bool {
		if r.Operation != "SendMessageBatch" {
			return false
		}
		switch try {
		case 1:
			says(w, http.StatusBadRequest, "RequestThrottled")
			return true
		case 2:
			s.answer(r)
			panic(http.ErrAbortHandler)
		}
		return false
	}
	if errs := s.queues(sqsqueue.Config{}).Send(t.Context(), "q", bodies("a")...); errs != nil {
		t.Errorf("got %v, want it sent", errs)
	}
	if want := []string{"a", "a"}; !slices.Equal(s.taken, want) {
		t.Errorf("SQS took %q, want %q", s.taken, want)
	}
}

func TestARequestThatFailsAsAWholeFailsItsBatchAlone(t *testing.T) {
	s := serve(t)
	s.whole = func(w http.ResponseWriter, r request, _ int) bool {
		if len(r.Entries) == 0 || r.Entries[0].MessageBody != "10" {
			return false
		}
		says(w, http.StatusForbidden, "AccessDeniedException")
		return true
	}
	var texts, want []string
	for i := range 25 {
		texts = append(texts, fmt.Sprint(i))
		want = append(want, map[bool]string{true: "unknown", false: "sent"}[i/10 == 1])
	}
	if got := words(s.queues(sqsqueue.Config{}).Send(t.Context(), "q", bodies(texts...)...)); !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestABatchKeepsTheLimitsOfCountAndSize(t *testing.T) {
	s := serve(t)
	var texts []string
	for i := range 40 {
		size := 10
		if i%3 == 0 {
			size = limits.MaxMessageBytes/4 + 1
		}
		texts = append(texts, fmt.Sprintf("%02d%s", i, strings.Repeat("x", size)))
	}
	texts = append(texts, strings.Repeat("y", limits.MaxMessageBytes))
	if errs := s.queues(sqsqueue.Config{}).Send(t.Context(), "q", bodies(texts...)...); errs != nil {
		t.Fatalf("got %v, want all sent", errs)
	}
	for i, r := range s.of("SendMessageBatch") {
		size := 0
		for _, e := range r.Entries {
			size += len(e.MessageBody)
		}
		if len(r.Entries) > limits.MaxBatch || size > limits.MaxMessageBytes {
			t.Errorf("batch %d has %d messages and %d bytes, want at most %d and %d", i, len(r.Entries), size, limits.MaxBatch, limits.MaxMessageBytes)
		}
	}
	if !slices.Equal(s.taken, texts) {
		t.Errorf("got %d messages in another order or number, want the %d in theirs", len(s.taken), len(texts))
	}
}

func TestADelayIsRoundedUpAndAGroupIsPassedOn(t *testing.T) {
	s := serve(t)
	s.queues(sqsqueue.Config{}).Send(t.Context(), "q",
		queue.Message{Body: "a", Delay: time.Millisecond, Group: "job-1"},
		queue.Message{Body: "b", Delay: 15 * time.Minute}, queue.Message{Body: "c"})
	var got []string
	for _, e := range s.of("SendMessageBatch")[0].Entries {
		got = append(got, fmt.Sprintf("%s %d %s", e.MessageBody, e.DelaySeconds, e.MessageGroupID))
	}
	if want := []string{"a 1 job-1", "b 900 ", "c 0 "}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestNothingToSendAsksNothing(t *testing.T) {
	s := serve(t)
	if errs := s.queues(sqsqueue.Config{URLs: map[string]string{"q": s.URL}}).Send(t.Context(), "q", bodies("")...); words(errs)[0] != "refused" {
		t.Errorf("got %v, want it refused", errs)
	}
	if len(s.requests) > 0 {
		t.Errorf("got requests %+v, want none", s.requests)
	}
}
