package agentrun

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/makegood-dev/makegood/internal/queue"
)

// all takes everything.
type all struct{ sent []string }

func (a *all) Send(_ context.Context, _ string, messages ...queue.Message) []error {
	for _, m := range messages {
		a.sent = append(a.sent, m.Body)
	}
	return nil
}

func (*all) Depth(context.Context, string) (queue.Depth, error) { return queue.Depth{}, nil }

// A goroutine may be kept from running for as long as it likes. Even then a reply whose time has
// passed does not travel along with one whose time has not.
func TestAReplyWhoseTimeHasPassedIsNotSent(t *testing.T) {
	var sender all
	var b outbox
	b.open(&sender, 2)
	late := &envelope{queue: "events", message: [1]queue.Message{{Body: "late"}}, until: time.Now()}
	early := &envelope{queue: "events", message: [1]queue.Message{{Body: "early"}}, until: time.Now().Add(time.Minute)}
	b.waiting = []*envelope{late, early}
	b.flush(t.Context())
	if got := late.err; !errors.Is(got, errTooLate) {
		t.Errorf("the late one: got %v, want %v", got, errTooLate)
	}
	if got := early.err; got != nil || !early.answered || len(sender.sent) != 1 || sender.sent[0] != "early" {
		t.Errorf("the early one: got %v, and sent were %q, want it alone", got, sender.sent)
	}
}
