//go:build aws && linux

package lambda

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/sample/services"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/testkit/seed"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

const (
	// mapped is how many items a map has: ten parts of 100, three of which are under way.
	mapped = 1000
	// missing is how many of them are out of stock; as many may be.
	missing = 20
	// lines reserves each line of an order. An attempt that was killed is made again when its time is up.
	lines = `
name: lines
steps:
  - name: reserve
    map: {over: "${ [range(.input.lines)] }", concurrency: 300, tolerate: {items: 20}}
    agent: inventory
    with: {order: '${ .input.order + "-" + (.index | tostring) }', amount: 3}
    timeout: 3s
    retry: {attempts: 10, backoff: 100ms, max: 1s}
    undo: {action: release, timeout: 3s, retry: {attempts: 10, backoff: 100ms, max: 1s}}
`
)

// stock is in front of the shop, and has no goods for some orders while it is empty.
type stock struct {
	empty atomic.Bool
	shop  atomic.Pointer[httputil.ReverseProxy]
}

func (s *stock) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var line struct{ Order string }
	if s.empty.Load() && json.Unmarshal(text, &line) == nil && soldOut(line.Order) {
		http.Error(w, "out of stock", http.StatusConflict)
		return
	}
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader(string(text))), int64(len(text))
	s.shop.Load().ServeHTTP(w, r)
}

// soldOut reports whether the goods of a line are missing: each fiftieth of them.
func soldOut(order string) bool {
	_, index, _ := strings.Cut(order, "-")
	n := 0
	_, err := fmt.Sscan(index, &n)
	return err == nil && n%(mapped/missing) == 7
}

// A job reserves 1,000 lines while processes are killed, tolerates those that are out of stock, and reserves these when
// it is redriven, all under their keys; another does so with ten lines a task. A third is cancelled in the middle, and
// its lines are released. At the end no job is under way, and the shop has each effect once.
func TestAMapOf1000ItemsUnderKillsRedrivenAndCancelled(t *testing.T) {
	var s stock
	s.empty.Store(true)
	front := httptest.NewServer(&s)
	t.Cleanup(front.Close)
	w := open(t, options{environment: []string{"MAKEGOOD_SHOP=" + front.URL}})
	shop, err := url.Parse(w.shop.URL())
	if err != nil {
		t.Fatal(err)
	}
	s.shop.Store(httputil.NewSingleHostReverseProxy(shop))
	of := w.define([]byte(lines))
	random := rand.New(rand.NewPCG(seed.Of(t), 0)) // which process is struck when depends on the machine too

	began := time.Now()
	took := func(what string) { t.Logf("%s after %v", what, time.Since(began).Round(time.Second)) }
	w.keeps(&s, of, "kept", 8, random)
	took("done and redriven")
	w.keeps(&s, w.define([]byte(strings.Replace(lines, "concurrency: 300", "concurrency: 300, batch: 10", 1))), "tens", 4, random)
	took("done and redriven, ten a task")

	w.reserves(of, "dropped")
	w.waitFor("the lines before the cancel", func() bool { return w.reserved("dropped") >= 150 })
	if _, v, err := w.scheduler.Request(t.Context(), "dropped", job.Requested{Verb: makegood.VerbCancel, Reason: "not wanted"}); err != nil {
		t.Fatalf("cancel: %+v, %v", v, err)
	}
	w.strike(syscall.SIGKILL, random)
	if j := w.ends([]string{"dropped"})["dropped"]; j.ProcessState != makegood.JobCancelled {
		t.Errorf("cancelled, it is %s (%s)", j.ProcessState, j.Reason)
	}
	took("cancelled")
	t.Log(w.said())
	w.allEnded()
	w.linesOnce()
}

// keeps reserves the lines of an order while processes are killed, without those that are out of stock, and reserves
// these when it is redriven.
func (w *world) keeps(s *stock, of *workflowfile.Compiled, order string, kills int, random *rand.Rand) {
	w.t.Helper()
	s.empty.Store(true)
	w.reserves(of, order)
	for n := range kills {
		w.waitFor("the lines before the next kill", func() bool { return w.reserved(order) >= n*640/kills })
		w.strike(syscall.SIGKILL, random)
	}
	j := w.ends([]string{order})[order]
	if failed := j.Steps[0].Forward.FailureCount; j.ProcessState != makegood.JobProcessed || failed != missing || w.reserved(order) != mapped-missing {
		w.t.Fatalf("%s (%s), %d items have failed and %d lines are reserved, want Processed, %d and %d\n%s",
			j.ProcessState, j.Reason, failed, w.reserved(order), missing, mapped-missing, w.said())
	}
	s.empty.Store(false)
	if _, v, err := w.scheduler.Request(w.t.Context(), order, job.Requested{Verb: makegood.VerbRedrive, Reason: "the goods have come"}); err != nil {
		w.t.Fatalf("redrive: %+v, %v", v, err)
	}
	w.waitFor("the failed lines", func() bool { return w.reserved(order) == mapped })
	j = w.ends([]string{order})[order]
	if j.ProcessState != makegood.JobProcessed || j.Steps[0].Forward.FailureCount != 0 {
		w.t.Errorf("redriven, it is %s (%s) with %d failed items, want Processed with none", j.ProcessState, j.Reason, j.Steps[0].Forward.FailureCount)
	}
}

// reserves submits an order.
func (w *world) reserves(of *workflowfile.Compiled, id string) {
	w.t.Helper()
	input := json.RawMessage(fmt.Sprintf(`{"order":%q,"lines":%d}`, id, mapped))
	if _, _, err := w.scheduler.Submit(w.t.Context(), scheduler.Submission{ID: id, Definition: of.Hash, Input: input}); err != nil {
		w.t.Fatal(err)
	}
}

// reserved is how many lines of an order stand.
func (w *world) reserved(order string) (n int) {
	for id, o := range w.shop.Ledger().Orders {
		if strings.HasPrefix(id, order+"-") {
			n += o.Reserved
		}
	}
	return n
}

// allEnded looks at every job of the table: the orders, and the jobs that do their items.
func (w *world) allEnded() {
	w.t.Helper()
	n := 0
	for cursor := ""; ; {
		page, next, err := w.store.AuditPage(w.t.Context(), cursor, 100)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, a := range page {
			if n++; !a.ProcessState.Finished() {
				w.t.Errorf("job %s is %s", a.Job, a.ProcessState)
			}
		}
		if cursor = next; cursor == "" {
			break
		}
	}
	if least := 3 + 3 + 2*mapped/100; n < least {
		w.t.Errorf("the table has %d jobs, want at least %d", n, least)
	}
}

// linesOnce holds the shop to the lines: those of the orders that were kept are reserved, each by one effect under its
// key, and those of the third are not. No attempt came twice.
func (w *world) linesOnce() {
	w.t.Helper()
	ledger := w.shop.Ledger()
	dropped := map[string]makegood.ProcessState{}
	for id, o := range ledger.Orders {
		if strings.HasPrefix(id, "kept-") || strings.HasPrefix(id, "tens-") {
			if o.Counts[services.Reserve] != 1 || o.Counts[services.Release] != 0 {
				w.t.Errorf("line %s was reserved %d times and released %d times", id, o.Counts[services.Reserve], o.Counts[services.Release])
			}
			delete(ledger.Orders, id)
			continue
		}
		dropped[id] = makegood.JobCancelled
	}
	ledger.Effects = slices.DeleteFunc(ledger.Effects, func(e services.Effect) bool { return dropped[e.Order] == "" })
	if len(dropped) == 0 {
		w.t.Error("nothing was undone")
	}
	for _, v := range services.Check(ledger, dropped) {
		w.t.Error(v)
	}
}
