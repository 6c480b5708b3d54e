package services

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Each fault is met by the first attempt. What it left behind shows at once, and the second attempt
// finds a shop that works and has one effect in the end.
func TestWhatACallerSeesOfAFault(t *testing.T) {
	for _, row := range []struct {
		fault  Fault
		status int // 0: no answer
		effect int
	}{
		{NoFault, 200, 1},
		{Fails, 500, 0},
		{Busy, 503, 0},
		{Throttled, 429, 0},
		{HangsUp, 0, 0},
		{HangsUpThen, 0, 1},
		{Twice, 200, 1},
	} {
		t.Run(string(row.fault), func(t *testing.T) {
			c := openShop(t, Options{Script: onlyOnce(Charge, row.fault)})
			q := call{action: Charge, order: "1", amount: 5, key: "1/charge/1", attempt: 1}
			status, body, err := c.ask(t.Context(), q)
			if status != row.status || (err != nil) != (row.status == 0) {
				t.Errorf("first attempt: got %d %s %v, want %d", status, body, err, row.status)
			}
			c.want(Charge, row.effect)
			if l := c.shop.Ledger(); row.fault != NoFault && l.Totals.Faults[row.fault] != 1 {
				t.Errorf("faults counted: got %v, want one %q", l.Totals.Faults, row.fault)
			}
			// On a connection of its own: the old one may carry a stray answer.
			c.client.CloseIdleConnections()
			if status, body := c.forward(Charge, 2); status != 200 {
				t.Errorf("second attempt: got %d %s, want 200", status, body)
			}
			c.want(Charge, 1)
		})
	}
}

func TestABusyShopSaysWhenToComeBack(t *testing.T) {
	c := openShop(t, Options{Script: onlyOnce(Charge, Busy)})
	r, err := http.NewRequest(http.MethodPost, c.shop.URL()+Charge.Path(), strings.NewReader(`{"order":"1","amount":1}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Idempotency-Key", "1/charge/1")
	r.Header.Set("Makegood-Attempt", "1")
	answer, err := c.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if got := answer.Header.Get("Retry-After"); answer.StatusCode != 503 || got != "1" {
		t.Errorf("got %d, Retry-After %q, want 503 and 1", answer.StatusCode, got)
	}
}

func TestAHangingRequestIsDealtWithOnceItsCallerHasGone(t *testing.T) {
	for _, row := range []struct {
		fault  Fault
		effect int
	}{{Hangs, 0}, {HangsAfter, 1}, {HangsLate, 1}} {
		t.Run(string(row.fault), func(t *testing.T) {
			c := openShop(t, Options{Script: onlyOnce(Charge, row.fault), Late: 5 * time.Millisecond})
			ctx, leave := context.WithCancel(t.Context())
			gone := make(chan error)
			go func() {
				_, _, err := c.ask(ctx, call{action: Charge, order: "1", amount: 5, key: "1/charge/1", attempt: 1})
				gone <- err
			}()
			c.until("the request has come", func(l Ledger) bool { return l.Totals.Requests == 1 })
			c.want(Charge, 0)
			leave()
			if err := <-gone; !errors.Is(err, context.Canceled) {
				t.Errorf("the caller: got %v, want that it left", err)
			}
			if row.effect > 0 {
				c.until("the effect", func(l Ledger) bool { return l.Totals.Effects == row.effect })
			}
			// Close waits for the handler, so that afterwards nothing can come any more.
			if err := c.shop.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
			c.want(Charge, row.effect)
		})
	}
}

// A server that closes must not wait for its hanging requests, nor do in its last moment what they
// asked for. The leak test in TestMain sees to it that none goes on.
func TestClosingEndsHangingRequestsWithoutEffect(t *testing.T) {
	faults := []Fault{Hangs, HangsAfter, HangsLate}
	c := openShop(t, Options{
		Script: Script{Plan: func(_ string, _ Action, try int) Fault { return faults[(try-1)%len(faults)] }},
		Late:   time.Hour,
	})
	var all sync.WaitGroup
	const n = 30
	for attempt := 1; attempt <= n; attempt++ {
		all.Go(func() {
			q := call{action: Charge, order: "1", amount: 5, key: fmt.Sprintf("k%d", attempt), attempt: attempt}
			if status, _, err := c.ask(context.Background(), q); err == nil {
				t.Errorf("attempt %d: got %d, want no answer", attempt, status)
			}
		})
	}
	c.until("all requests have come", func(l Ledger) bool { return l.Totals.Requests == n })
	if err := c.shop.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	all.Wait()
	c.want(Charge, 0)
}

func TestCloseWaitsForWhatIsBeingDone(t *testing.T) {
	var c caller
	var done atomic.Bool
	begun := make(chan struct{})
	c = openShop(t, Options{Record: func(Effect) {
		close(begun)
		<-c.shop.open.Done()
		time.Sleep(20 * time.Millisecond) // an effect takes its time
		done.Store(true)
	}})
	left := make(chan struct{})
	go func() {
		defer close(left)
		_, _, _ = c.ask(context.Background(), call{action: Charge, order: "1", key: "k", attempt: 1})
	}()
	<-begun
	if err := c.shop.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if !done.Load() {
		t.Error("closed while an effect was being made")
	}
	<-left
}

func TestAStrayAnswerStandsBehindTheFirstOnTheSameConnection(t *testing.T) {
	c := openShop(t, Options{Script: onlyOnce(Charge, Twice)})
	connection, err := net.Dial("tcp", strings.TrimPrefix(c.shop.URL(), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	body := `{"order":"1","amount":5}`
	fmt.Fprintf(connection, "POST %s HTTP/1.1\r\nHost: shop\r\nIdempotency-Key: k\r\nMakegood-Attempt: 1\r\n"+
		"Content-Length: %d\r\n\r\n%s", Charge.Path(), len(body), body)
	reader := bufio.NewReader(connection)
	for i, want := range []int{200, 502} {
		answer, err := http.ReadResponse(reader, nil)
		if err != nil {
			t.Fatalf("answer %d: %v", i+1, err)
		}
		if _, err := io.Copy(io.Discard, answer.Body); err != nil {
			t.Fatalf("answer %d: %v", i+1, err)
		}
		if answer.StatusCode != want || answer.Close {
			t.Errorf("answer %d: got %d, close %t; want %d on a connection kept alive", i+1, answer.StatusCode, answer.Close, want)
		}
	}
}
