package services

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/testkit/leaks"
)

func TestMain(m *testing.M) {
	// net/http's client logs every stray answer, and these tests send many.
	log.SetOutput(io.Discard)
	leaks.Main(m)
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

// The lines of an order are reserved each by itself: each meets faults of its own, and has its own effect. Of an order
// that is out of stock the first line is refused.
func TestEachLineIsReservedByItself(t *testing.T) {
	script := Script{Profile: FaultsNasty, Seed: 1}
	n := 0
	for script.fate(orderID(n)) != outOfStock {
		n++
	}
	order, met := orderID(n), map[string]bool{}
	script.Plan = func(id string, _ Action, try int) Fault {
		met[fmt.Sprint(id, " ", try)] = true
		return NoFault
	}
	c := openShop(t, Options{Script: script})
	for line, want := range []int{http.StatusUnprocessableEntity, 200, 200} {
		q := call{action: Reserve, order: order, line: line, key: fmt.Sprint(line), attempt: 1}
		if status, body := c.must(c.ask(t.Context(), q)); status != want {
			t.Errorf("line %d: got %d %s, want %d", line, status, body, want)
		}
	}
	l := c.shop.Ledger()
	if len(met) != 3 || !met[order+" 1"] || !met[order+"/2 1"] || l.Orders[order].Reserved != 2 || l.Effects[1].Line != 2 {
		t.Errorf("faults were drawn for %v, and the ledger has %+v", met, l.Effects)
	}
	ends := map[string]makegood.ProcessState{order: makegood.JobUndone}
	if found := Check(l, ends); len(found) != 1 {
		t.Errorf("undone with two lines reserved: got %q, want this alone", found)
	}
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

func TestARequestThatSaysTooLittleIsRefused(t *testing.T) {
	c := openShop(t, Options{})
	good := call{action: Refund, order: "1", key: "k/undo", attempt: 1, forwardKey: "k"}
	for name, spoil := range map[string]func(*call){
		"order: want":                func(q *call) { q.order = "" },
		"line: want":                 func(q *call) { q.line = -1 },
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
