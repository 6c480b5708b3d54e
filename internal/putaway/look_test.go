package putaway_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood/internal/putaway"
)

// By their ids some messages are meant, wherever they lie, and a queue that is not there is passed over.
func TestMessagesAreMeantByTheirIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for range 3 {
			w.put("events-dead", reply())
		}
		queues := []string{"tasks-gone-dead", "events-dead"}
		all := w.open(queues, putaway.Wanted{}, 10)
		if len(all.Messages) != 3 {
			t.Fatalf("got %d messages, want three", len(all.Messages))
		}
		check(t, all.Close(t.Context()))
		id := all.Messages[1].ID
		some := w.open(queues, putaway.Wanted{IDs: []string{id, "none"}}, 10)
		if len(some.Messages) != 1 || some.Messages[0].ID != id {
			t.Errorf("got %+v, want the one of id %s", some.Messages, id)
		}
		check(t, some.Close(t.Context()))
		began := time.Now()
		one := w.open(queues[1:], putaway.Wanted{IDs: []string{id}}, 10)
		if took := time.Since(began); took != 0 || len(one.Messages) != 1 {
			t.Errorf("got %d messages after %v, want one, and that no others are waited for", len(one.Messages), took)
		}
		check(t, one.Close(t.Context()))
	})
}

// A look that takes longer than its messages are hidden sees some of them again, and shows each once.
func TestAMessageThatComesAgainIsShownOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for range 35 {
			w.put("events-dead", reply())
		}
		w.queues.slow = putaway.Hold - 10*time.Second
		b := w.open([]string{"events-dead"}, putaway.Wanted{}, 100)
		seen := map[string]bool{}
		for _, l := range b.Messages {
			if seen[l.ID] {
				t.Errorf("message %s is shown twice", l.ID)
			}
			seen[l.ID] = true
		}
		if len(seen) < 20 {
			t.Errorf("got %d messages, want most of them", len(seen))
		}
		check(t, b.Close(t.Context()))
	})
}

// After a look that failed nothing is held: what was taken out before is there for others at once.
func TestALookThatFailsHoldsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.put("events-dead", reply())
		w.queues.fail = "receive submissions-dead"
		if _, err := w.office.Open(t.Context(), []string{"events-dead", "submissions-dead"}, putaway.Wanted{}, 10); !errors.Is(err, errDown) {
			t.Errorf("got %v, want %v", err, errDown)
		}
		if n := w.waiting("events-dead"); n != 1 {
			t.Errorf("%d can be had, want the one", n)
		}
	})
}

// A look whose time has ended is no look at an empty queue, and what it held is given back all the same.
func TestALookThatIsCutOffIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.put("events-dead", reply())
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if _, err := w.office.Open(ctx, []string{"events-dead"}, putaway.Wanted{}, 10); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want that the time has ended", err)
		}
		if n := w.waiting("events-dead"); n != 1 {
			t.Errorf("%d can be had, want the one", n)
		}
	})
}

// A message that cannot be hidden from others is not shown.
func TestALookThatCannotHideIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.put("events-dead", reply())
		w.queues.fail = "return"
		if _, err := w.office.Open(t.Context(), []string{"events-dead"}, putaway.Wanted{}, 10); !errors.Is(err, errDown) {
			t.Errorf("got %v, want %v", err, errDown)
		}
	})
}

// Of a dead letter it is known where it came from, when it was sent, and how often it was received.
func TestADeadLetterSaysWhereItCameFrom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.put("events-dead", reply())
		sent := time.Now().UTC()
		b := w.open([]string{"events-dead"}, putaway.Wanted{}, 10)
		want := putaway.Message{
			ID: b.Messages[0].ID, Queue: "events-dead", Source: "events", Type: "StepSucceeded", Job: "j", Step: "charge", Attempt: 2,
			Reason: "no function came to an end over it", Deliveries: 1, SentAt: sent, Body: reply(),
		}
		if b.Messages[0] != want {
			t.Errorf("got %+v, want %+v", b.Messages[0], want)
		}
		check(t, b.Close(t.Context()))
	})
}

func TestWhatCannotBeGivenBackIsToldOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.put("events-dead", reply())
		b := w.open([]string{"events-dead"}, putaway.Wanted{}, 10)
		w.queues.fail = "return"
		if err := b.Close(t.Context()); !errors.Is(err, errDown) {
			t.Errorf("got %v, want %v", err, errDown)
		}
		if err := b.Close(t.Context()); err != nil {
			t.Errorf("a second time: got %v, want none, since nothing is held", err)
		}
	})
}

// Of more messages than may be held at once the others stay where they are, and a look says that there are more.
func TestNoMoreMessagesAreHeldThanTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for range putaway.Max + 5 {
			w.put("events-dead", "x")
		}
		b := w.open([]string{"events-dead"}, putaway.Wanted{Job: "none"}, 20)
		if n := w.waiting("events-dead"); n != 5 || !b.More || len(b.Messages) != 0 {
			t.Errorf("%d can be had by others, %d were meant, more: %v; want 5, none, and more", n, len(b.Messages), b.More)
		}
		check(t, b.Close(t.Context()))
	})
}

// Of the messages of one batch so many are meant as were asked for.
func TestOfABatchNoMoreIsMeantThanWasAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for range 5 {
			w.put("events-dead", "x")
		}
		b := w.open([]string{"events-dead"}, putaway.Wanted{}, 3)
		if len(b.Messages) != 3 || !b.More {
			t.Errorf("%d were meant, more: %v; want 3, and more", len(b.Messages), b.More)
		}
		check(t, b.Close(t.Context()))
	})
}

// A message is meant only if it came from the queue that is asked for.
func TestOfQuarantineOneSourceCanBeMeant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.quarantine("events", reply(), "because")
		w.quarantine("submissions", submission(), "because")
		b := w.open([]string{putaway.Quarantine}, putaway.Wanted{Reason: "because", Source: "events"}, 10)
		if len(b.Messages) != 1 || b.Messages[0].Source != "events" {
			t.Errorf("got %+v, want the one from events", b.Messages)
		}
		check(t, b.Close(t.Context()))
	})
}

// A message in quarantine that the engine did not put there is shown as it is, and says so.
func TestWhatSomebodyElsePutIntoQuarantineIsShownAsItIs(t *testing.T) {
	for _, body := range []string{"hello", submission()} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.put(putaway.Quarantine, body)
			b := w.open([]string{putaway.Quarantine}, putaway.Wanted{}, 10)
			if l := b.Messages[0]; l.Body != body || l.Source != "" || !strings.Contains(l.Reason, "another program sent it") {
				t.Errorf("got %+v, want %s, and that it has no envelope", l, body)
			}
			check(t, b.Close(t.Context()))
		})
	}
}
