package services

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// patience is how long a condition may take to come true before a test gives up.
const patience = 2 * time.Minute

// caller asks a shop for things, and never sends a request twice.
type caller struct {
	t      testing.TB
	shop   *Server
	client *http.Client
}

func openShop(t testing.TB, o Options) caller {
	t.Helper()
	shop, err := Start("127.0.0.1:0", o)
	if err != nil {
		t.Fatalf("open the shop: %v", err)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 100}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		if err := shop.Close(); err != nil {
			t.Errorf("close the shop: %v", err)
		}
	})
	return caller{t, shop, &http.Client{Transport: transport}}
}

// onlyOnce plans one fault for the first try at an action.
func onlyOnce(action Action, fault Fault) Script {
	return Script{Plan: func(_ string, a Action, try int) Fault {
		if a == action && try == 1 {
			return fault
		}
		return NoFault
	}}
}

// forward asks for an action of order 1 under the key 1/ACTION/1.
func (c caller) forward(action Action, attempt int) (int, string) {
	c.t.Helper()
	return c.must(c.ask(context.Background(), call{
		action: action, order: "1", amount: 13912, key: "1/" + string(action) + "/1", attempt: attempt,
	}))
}

// undo asks for the undo of what forward asked for.
func (c caller) undo(action Action, attempt int) (int, string) {
	c.t.Helper()
	forward := "1/" + string(action.Undoes()) + "/1"
	return c.must(c.ask(context.Background(), call{
		action: action, order: "1", key: forward + "/undo", attempt: attempt, forwardKey: forward,
	}))
}

func (c caller) must(status int, body string, err error) (int, string) {
	c.t.Helper()
	if err != nil {
		c.t.Fatalf("ask the shop: %v", err)
	}
	return status, body
}

func (c caller) ask(ctx context.Context, q call) (int, string, error) {
	body, err := json.Marshal(map[string]any{"order": q.order, "amount": q.amount, "sku": "not read"})
	if err != nil {
		return 0, "", err
	}
	// A body of a type that net/http does not know: it cannot send the request again by itself,
	// which it otherwise does with one that carries an Idempotency-Key.
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.shop.URL()+q.action.Path(),
		struct{ io.Reader }{strings.NewReader(string(body))})
	if err != nil {
		return 0, "", err
	}
	r.ContentLength = int64(len(body))
	r.Header.Set("Idempotency-Key", q.key)
	r.Header.Set("Makegood-Attempt", fmt.Sprint(q.attempt))
	if q.forwardKey != "" {
		r.Header.Set("Makegood-Forward-Key", q.forwardKey)
		r.Header.Set("Makegood-Outcome", "unknown")
	}
	answer, err := c.client.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(text), err
}

// until waits for a condition on the ledger.
func (c caller) until(what string, is func(Ledger) bool) Ledger {
	c.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		l := c.shop.Ledger()
		if is(l) {
			return l
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("not seen within %s: %s; totals %+v", patience, what, l.Totals)
		}
	}
}

func (c caller) want(action Action, times int) {
	c.t.Helper()
	if got := c.shop.Ledger().Orders["1"].Counts[action]; got != times {
		c.t.Errorf("effects of %s: got %d, want %d", action, got, times)
	}
}
