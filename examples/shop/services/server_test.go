package services

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// net/http's client logs every stray answer, and these tests send many.
	log.SetOutput(io.Discard)
	goleak.VerifyTestMain(m)
}

// patience is how long a condition may take to come true before a test gives up.
const patience = 10 * time.Second

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

func TestAKeySeenBeforeGetsTheSameAnswerAndNoSecondEffect(t *testing.T) {
	c := openShop(t, Options{})
	status, first := c.forward(Charge, 1)
	again, second := c.forward(Charge, 2)
	if status != 200 || again != 200 || first != second {
		t.Errorf("got %d %q and then %d %q, want the same twice", status, first, again, second)
	}
	c.want(Charge, 1)
	if got := c.shop.Ledger().Totals.DuplicatesRefused; got != 1 {
		t.Errorf("duplicates refused: got %d, want 1", got)
	}
}

func TestManyRequestsAtOnceUnderOneKeyHaveOneEffect(t *testing.T) {
	c := openShop(t, Options{})
	const n = 50
	var all sync.WaitGroup
	for attempt := 1; attempt <= n; attempt++ {
		all.Go(func() {
			status, _, err := c.ask(t.Context(), call{
				action: Charge, order: "1", amount: 5, key: "1/charge/1", attempt: attempt,
			})
			if status != 200 || err != nil {
				t.Errorf("attempt %d: got %d, %v", attempt, status, err)
			}
		})
	}
	all.Wait()
	c.want(Charge, 1)
	if got := c.shop.Ledger().Totals; got.DuplicatesRefused != n-1 || got.Requests != n {
		t.Errorf("totals: got %+v, want %d requests and %d duplicates", got, n, n-1)
	}
}

func TestAForwardCallAfterItsUndoIsRefused(t *testing.T) {
	for _, first := range []int{0, 1} {
		c := openShop(t, Options{})
		for attempt := range first {
			c.forward(Charge, attempt+1)
		}
		if status, body := c.undo(Refund, 7); status != 200 {
			t.Errorf("undo after %d calls: got %d %s, want 200", first, status, body)
		}
		if status, body := c.forward(Charge, 2); status != http.StatusConflict {
			t.Errorf("forward after the undo: got %d %s, want 409", status, body)
		}
		c.want(Charge, first)
		c.want(Refund, first)
		l := c.shop.Ledger()
		if l.Totals.TombstoneRefusals != 1 || l.Totals.NothingToUndo != 1-first {
			t.Errorf("after %d calls: totals %+v", first, l.Totals)
		}
	}
}

func TestAnUndoGivesBackWhatWasDoneOnce(t *testing.T) {
	c := openShop(t, Options{})
	c.forward(Charge, 1)
	for attempt := 2; attempt <= 4; attempt++ {
		c.undo(Refund, attempt)
	}
	c.want(Refund, 1)
	if o := c.shop.Ledger().Orders["1"]; o.Charged != 0 || o.Amount != 0 {
		t.Errorf("after the refund: got %d charges and %d cents, want none", o.Charged, o.Amount)
	}
	if e := c.shop.Ledger().Effects[1]; e.Amount != 13912 || e.Attempt != 2 || e.Key != "1/charge/1/undo" {
		t.Errorf("the refund in the ledger: got %+v", e)
	}
}

func TestWhatWasUndoneIsNotUndoneAgainUnderAnotherKey(t *testing.T) {
	c := openShop(t, Options{})
	c.forward(Charge, 1)
	c.undo(Refund, 2)
	status, _, err := c.ask(t.Context(), call{
		action: Refund, order: "1", key: "another", attempt: 3, forwardKey: "1/charge/1",
	})
	if status != 200 || err != nil {
		t.Errorf("second undo: got %d, %v, want 200", status, err)
	}
	c.want(Refund, 1)
}

// An undo's attempts go on counting where the step's ended; its first one is still its first try.
func TestTriesAreCountedByWhatTheShopHasSeen(t *testing.T) {
	c := openShop(t, Options{Script: onlyOnce(Refund, Fails)})
	c.forward(Charge, 6)
	for _, row := range []struct{ attempt, status int }{{7, 500}, {7, 500}, {9, 200}} {
		if status, _ := c.undo(Refund, row.attempt); status != row.status {
			t.Errorf("refund, attempt %d: got %d, want %d", row.attempt, status, row.status)
		}
	}
}

func TestAnotherRoundMayDoWhatWasUndone(t *testing.T) {
	c := openShop(t, Options{})
	c.forward(Charge, 1)
	c.undo(Refund, 2)
	status, _, err := c.ask(t.Context(), call{action: Charge, order: "1", amount: 1, key: "1/charge/2", attempt: 3})
	if status != 200 || err != nil {
		t.Errorf("charge in round 2: got %d, %v", status, err)
	}
	c.want(Charge, 2)
}

func TestAShopThatOnlyCountsDoesEverythingThatItIsAskedFor(t *testing.T) {
	c := openShop(t, Options{CountOnly: true})
	c.forward(Charge, 1)
	c.forward(Charge, 1)
	c.undo(Refund, 2)
	c.forward(Charge, 3)
	c.want(Charge, 3)
	c.want(Refund, 1)
}

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

func TestARequestThatSaysTooLittleIsRefused(t *testing.T) {
	c := openShop(t, Options{})
	good := call{action: Refund, order: "1", key: "k/undo", attempt: 1, forwardKey: "k"}
	for name, spoil := range map[string]func(*call){
		"order: want":                func(q *call) { q.order = "" },
		"amount: want":               func(q *call) { q.amount = -1 },
		"Idempotency-Key: want":      func(q *call) { q.key = "" },
		"Idempotency-Key: want 1 to": func(q *call) { q.key = strings.Repeat("k", maxKey+1) },
		"Makegood-Attempt: want":     func(q *call) { q.attempt = 0 },
		"Makegood-Forward-Key: want": func(q *call) { q.forwardKey = "" },
	} {
		q := good
		spoil(&q)
		status, body, err := c.ask(t.Context(), q)
		if status != 400 || err != nil || !strings.Contains(body, name) {
			t.Errorf("%s: got %d %s %v, want 400 and that it says so", name, status, body, err)
		}
	}
	for _, body := range []string{"", "{", `{"order":1}`, `{"order":"1","amount":"5"}`, `{"order":"1","amount":0.001}`} {
		answer, err := c.client.Post(c.shop.URL()+Charge.Path(), "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != 400 {
			t.Errorf("body %q: got %d, want 400", body, answer.StatusCode)
		}
	}
	if got := c.shop.Ledger().Totals.Requests; got != 0 {
		t.Errorf("requests counted: got %d, want 0", got)
	}
}

func TestTheLedgerIsReadAndResetOverHTTP(t *testing.T) {
	c := openShop(t, Options{Script: onlyOnce(Charge, Fails)})
	c.forward(Reserve, 1)
	c.forward(Charge, 1)
	c.forward(Charge, 2)
	l, err := ReadLedger(t.Context(), c.shop.URL())
	if err != nil {
		t.Fatal(err)
	}
	got, want := fmt.Sprint(l), fmt.Sprint(c.shop.Ledger())
	if got != want {
		t.Errorf("read over HTTP: got\n%s\nwant\n%s", got, want)
	}
	if o := l.Orders["1"]; o.Amount != 13912 || o.Charged != 1 || o.Reserved != 1 || o.Shipped != 0 {
		t.Errorf("order 1: got %+v", o)
	}
	if n := l.Requests["1/charge/1"]; len(n) != 2 || n[1] != 1 || n[2] != 1 {
		t.Errorf("requests under 1/charge/1: got %v, want one an attempt", n)
	}

	answer, err := c.client.Post(c.shop.URL()+"/reset", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if l := c.shop.Ledger(); len(l.Orders)+len(l.Effects)+len(l.Requests)+l.Totals.Requests != 0 {
		t.Errorf("after a reset: got %+v, want nothing", l)
	}
	if status, _ := c.forward(Charge, 1); status != 500 {
		t.Errorf("the first attempt after a reset: got %d, want its fault again", status)
	}
}

func TestEveryEffectIsRecordedInOrder(t *testing.T) {
	var recorded []Effect
	c := openShop(t, Options{Record: func(e Effect) { recorded = append(recorded, e) }})
	c.forward(Reserve, 1)
	c.forward(Reserve, 2)
	c.undo(Release, 3)
	if got, want := fmt.Sprint(recorded), fmt.Sprint(c.shop.Ledger().Effects); got != want || len(recorded) != 2 {
		t.Errorf("recorded: got %s, want %s", got, want)
	}
}

func TestTheShopOpensOnLoopbackOnly(t *testing.T) {
	for _, addr := range []string{":0", "0.0.0.0:0", "[::]:0", "192.0.2.1:0", "example.com:0", "127.0.0.1"} {
		if s, err := Start(addr, Options{}); err == nil {
			t.Errorf("%s: opened at %s, want an error", addr, s.URL())
			s.Close()
		}
	}
}

func TestAmountsAreWholeCents(t *testing.T) {
	for text, want := range map[string]Amount{
		"0": 0, "139.12": 13912, "22.2": 2220, "239": 23900, "77183.6": 7718360, "1e2": 10000, "0.1": 10, "4.35": 435,
	} {
		var got Amount
		if err := json.Unmarshal([]byte(text), &got); err != nil || got != want {
			t.Errorf("%s: got %d, %v, want %d", text, got, err, want)
		}
		back, err := json.Marshal(want)
		if err != nil || (string(back) != text && text != "1e2") {
			t.Errorf("%d: written %s, %v, want %s", want, back, err, text)
		}
	}
	for _, text := range []string{"0.001", "1e300", `"5"`, "true"} {
		var got Amount
		if err := json.Unmarshal([]byte(text), &got); err == nil {
			t.Errorf("%s: got %d, want an error", text, got)
		}
	}
}
