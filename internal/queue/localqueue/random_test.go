package localqueue

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/testkit/seed"
)

// seeded returns the random source of a test, and says how to have it again.
func seeded(t *testing.T) (uint64, *rand.Rand) {
	seed := seed.Of(t)
	return seed, rand.New(rand.NewPCG(seed, 1))
}

// modelled is a message as the model knows it.
type modelled struct {
	visibleAt time.Time
	receives  int
	// receipt is that of the latest delivery, old one that serves no more.
	receipt, old string
}

// TestRandomCallsAgreeWithAModel makes random calls and compares each answer with a model that is a
// plain map: a receive takes exactly as many as are visible, up to ten, and none that is not.
func TestRandomCallsAgreeWithAModel(t *testing.T) {
	seed, random := seeded(t)
	synctest.Test(t, func(t *testing.T) {
		q := open(t, Options{Seed: seed, Queues: []Queue{{Name: "main", Visibility: time.Minute}}})
		m := model{q: q, random: random, messages: map[string]*modelled{}}
		for range 20_000 {
			m.call(t)
			// Not always, because it also brings what is visible to light.
			if random.IntN(2) == 0 {
				continue
			}
			if depth, _ := q.Depth(t.Context(), "main"); depth != m.depth() {
				t.Fatalf("depth: got %+v, want %+v", depth, m.depth())
			}
		}
		l := q.lines["main"]
		if stored := len(l.hidden) + l.visible; stored != len(m.messages) || len(l.received) > stored {
			t.Errorf("the line holds %d messages and %d receipts, want %d messages", stored, len(l.received), len(m.messages))
		}
	})
}

type model struct {
	q        *Queues
	random   *rand.Rand
	messages map[string]*modelled
	sent     int
}

func (m *model) depth() (d queue.Depth) {
	for _, message := range m.messages {
		switch {
		case !message.visibleAt.After(time.Now()):
			d.Waiting++
		case message.receives > 0:
			d.InFlight++
		}
	}
	return d
}

// pick returns one of the messages, or nil.
func (m *model) pick() (string, *modelled) {
	body := fmt.Sprint(m.random.IntN(m.sent + 1))
	return body, m.messages[body]
}

func (m *model) call(t *testing.T) {
	after := time.Duration(m.random.IntN(3)) * 40 * time.Second
	body, message := m.pick()
	switch m.random.IntN(6) {
	case 0:
		m.sent++
		body := fmt.Sprint(m.sent)
		send(t, m.q, "main", queue.Message{Body: body, Delay: after})
		m.messages[body] = &modelled{visibleAt: time.Now().Add(after)}
	case 1:
		m.receive(t)
	case 2:
		if message != nil && message.receipt != "" {
			_ = m.q.Delete(t.Context(), "main", message.receipt)
			delete(m.messages, body)
		}
	case 3:
		if message != nil && message.receipt != "" {
			_ = m.q.Return(t.Context(), "main", after, message.receipt)
			if message.visibleAt.After(time.Now()) {
				message.visibleAt = time.Now().Add(after)
			}
		}
	case 4:
		if message != nil && message.old != "" {
			_ = m.q.Delete(t.Context(), "main", message.old)
			_ = m.q.Return(t.Context(), "main", 0, message.old)
		}
	case 5:
		time.Sleep(time.Duration(m.random.IntN(10)) * time.Second)
	}
}

func (m *model) receive(t *testing.T) {
	limit := 1 + m.random.IntN(12)
	want := min(limit, 10, m.depth().Waiting)
	records := receive(t, m.q, "main", limit)
	if len(records) != want {
		t.Fatalf("receive of %d: got %d messages, want %d", limit, len(records), want)
	}
	for _, record := range records {
		message := m.messages[record.Body]
		if message == nil || message.visibleAt.After(time.Now()) {
			t.Fatalf("received %s, which is deleted or hidden: %+v", record.Body, message)
		}
		message.receives++
		if got := record.Attributes["ApproximateReceiveCount"]; got != fmt.Sprint(message.receives) {
			t.Fatalf("%s: got receive count %s, want %d", record.Body, got, message.receives)
		}
		message.old, message.receipt = message.receipt, record.ReceiptHandle
		message.visibleAt = time.Now().Add(time.Minute)
	}
}

// TestEveryMessageReachesAReceiver lets receivers of short and long patience, senders, delays and
// returns run into one another. A wake-up that is lost leaves the messages and the patient receivers
// waiting for one another.
func TestEveryMessageReachesAReceiver(t *testing.T) {
	seed, random := seeded(t)
	synctest.Test(t, func(t *testing.T) {
		const messages, receivers = 2000, 16
		q := open(t, Options{Seed: seed, Queues: []Queue{{Name: "main"}}})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()

		var mu sync.Mutex
		roll := func(n int) int {
			mu.Lock()
			defer mu.Unlock()
			return random.IntN(n)
		}
		var running sync.WaitGroup
		for range receivers {
			running.Go(func() {
				for ctx.Err() == nil {
					impatient, done := context.WithTimeout(ctx, time.Duration(1+roll(5000))*time.Millisecond)
					records, _ := q.Receive(impatient, "main", 1+roll(10))
					done()
					for _, record := range records {
						if roll(4) == 0 {
							_ = q.Return(ctx, "main", time.Duration(roll(3))*time.Second, record.ReceiptHandle)
							continue
						}
						_ = q.Delete(ctx, "main", record.ReceiptHandle)
					}
				}
			})
		}
		for i := range messages {
			send(t, q, "main", queue.Message{Body: fmt.Sprint(i), Delay: time.Duration(roll(3)) * time.Second})
			if roll(10) == 0 {
				time.Sleep(time.Duration(roll(2000)) * time.Millisecond)
			}
		}
		// Every return and every delay is over long before the first visibility timeout is.
		time.Sleep(DefaultVisibility - time.Second)
		cancel()
		running.Wait()
		if counts := q.Counts()["main"]; counts.Sent != messages || counts.Deleted != messages {
			t.Errorf("counts: got %+v, want %d sent and deleted", counts, messages)
		}
	})
}

// BenchmarkSendReceiveDelete has 100,000 delayed and 100,000 in flight messages standing about.
func BenchmarkSendReceiveDelete(b *testing.B) {
	q := open(b, Options{Queues: []Queue{{Name: "main", Visibility: time.Hour}}})
	for i := range 200_000 {
		send(b, q, "main", queue.Message{Body: fmt.Sprint(i), Delay: time.Duration(i%2) * 15 * time.Minute})
	}
	for range 10_000 {
		if _, err := q.Receive(b.Context(), "main", 10); err != nil {
			b.Fatal(err)
		}
	}
	batch := make([]queue.Message, 10)
	for i := range batch {
		batch[i].Body = `{"v":1,"type":"StepSucceeded","job":"order-000001","step":"reserve","attempt":1}`
	}
	b.ReportAllocs()
	for b.Loop() {
		send(b, q, "main", batch...)
		receiveAndDelete(b, q)
	}
	b.ReportMetric(float64(b.N*len(batch))/b.Elapsed().Seconds(), "messages/s")
}

// BenchmarkDrain empties a queue that holds 100,000 messages.
func BenchmarkDrain(b *testing.B) {
	q := open(b, Options{Queues: []Queue{{Name: "main"}}})
	for b.Loop() {
		for i := range 100_000 {
			send(b, q, "main", queue.Message{Body: fmt.Sprint(i)})
		}
		for range 10_000 {
			receiveAndDelete(b, q)
		}
	}
	b.ReportMetric(float64(b.N*100_000)/b.Elapsed().Seconds(), "messages/s")
}

func receiveAndDelete(b *testing.B, q *Queues) {
	records, err := q.Receive(b.Context(), "main", 10)
	if err != nil || len(records) != 10 {
		b.Fatalf("received %d messages, %v, want 10", len(records), err)
	}
	if err := q.Delete(b.Context(), "main", receipts(records)...); err != nil {
		b.Fatal(err)
	}
}
