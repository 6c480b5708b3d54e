package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/sample/services"
)

// giftID is the order with a refund that can never succeed, and giftTotal its price.
const (
	giftID    = "gift-1"
	giftTotal = 42.5
)

// submit writes a file of orders, submits it, and waits until all orders have stopped.
func (s *stage) submit(ctx context.Context) error {
	fmt.Printf("\nThe shop is open at %s, and an engine at %s.\n", s.shop, s.engine)
	fmt.Printf("In order.yaml somebody has written %s where it is %s.\nNobody has noticed yet, and %d orders come in:\n", wrong, right, s.orders)
	file, err := os.Create(filepath.Join(s.dir, "orders.jsonl"))
	if err != nil {
		return err
	}
	out := bufio.NewWriter(file)
	for i := range s.orders {
		fmt.Fprintf(out, `{"workflow":"order","id":"o-%05d","input":{"id":"o-%05d","customer":"c-%d","total":%d.%02d}}`+"\n", i, i, i%997, 1+i%200, i%100)
	}
	if err := out.Flush(); err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	if err := s.makegood(ctx, "submit", "--input", "orders.jsonl"); err != nil {
		return err
	}
	return s.until(ctx, "order", makegood.JobPending, makegood.JobProcessing)
}

// repair looks at the waiting orders, corrects the definition, and has all orders go on.
func (s *stage) repair(ctx context.Context) error {
	fmt.Println("\nAll of them have stopped. What waits for a person?")
	began := time.Now()
	if err := s.makegood(ctx, "errors"); err != nil {
		return err
	}
	before, err := s.definition(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("\nIt is one thing. order.yaml is corrected: %s is %s now.\n", wrong, right)
	if err := s.define(right); err != nil {
		return err
	}
	for now := before; now == before; time.Sleep(lookEvery) {
		if now, err = s.definition(ctx); err != nil {
			return err
		}
	}
	fmt.Println("The engine has read it. The jobs keep the definition that they began with, until they are given the new one:")
	if err := s.makegood(ctx, "resubmit", "--state", "Error", "--workflow", "order", "--definition", "current", "--reason", "typing error in the address", "--yes"); err != nil {
		return err
	}
	if err := s.until(ctx, "order", makegood.JobPending, makegood.JobProcessing); err != nil {
		return err
	}
	s.took = time.Since(began)
	fmt.Printf("\nAll are at their end, %.1f s after the first of the two commands.\n", s.took.Seconds())
	return nil
}

// definition is the hash of the current definition of an order.
func (s *stage) definition(ctx context.Context) (string, error) {
	workflows, err := s.jobs.Workflows(ctx)
	if err != nil {
		return "", err
	}
	at := slices.IndexFunc(workflows, func(w api.Workflow) bool { return w.Name == "order" })
	if at < 0 {
		return "", fmt.Errorf("the engine knows no workflow order: %v", workflows)
	}
	return workflows[at].Definition, nil
}

// settle has a job stop at a refund that can never succeed; the money goes back by hand, and the rest is undone.
func (s *stage) settle(ctx context.Context) error {
	fmt.Println("\nNow a gift to an island that nobody ships to, and whose refund the shop will never take as it is asked for.")
	input := fmt.Sprintf(`{"id":%q,"total":%g}`, giftID, giftTotal)
	if err := s.makegood(ctx, "submit", "gift", "--id", giftID, "--input", input); err != nil {
		return err
	}
	if err := s.until(ctx, "gift", makegood.JobPending, makegood.JobProcessing, makegood.JobUndoing); err != nil {
		return err
	}
	if err := s.makegood(ctx, "get", giftID); err != nil {
		return err
	}
	fmt.Println("\nNo attempt at that refund can succeed. So a person sends the money by bank transfer, which the shop books,")
	fmt.Println("and says so. What is left to undo, the reservation, is undone then.")
	if err := s.transfer(ctx); err != nil {
		return err
	}
	if err := s.makegood(ctx, "settle", giftID, "charge", "--undo", "--done", "--reason", "bank transfer 4711"); err != nil {
		return err
	}
	if err := s.until(ctx, "gift", makegood.JobError, makegood.JobProcessing, makegood.JobUndoing); err != nil {
		return err
	}
	return s.makegood(ctx, "get", giftID)
}

// transfer books the refund at the shop, which a person has made.
func (s *stage) transfer(ctx context.Context) error {
	body := fmt.Sprintf(`{"order":%q,"amount":%g}`, giftID, giftTotal)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.shop+services.Refund.Path(), strings.NewReader(body))
	if err != nil {
		return err
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Idempotency-Key": "bank-transfer-4711", "Makegood-Attempt": "1",
		"Makegood-Forward-Key": giftID + "/charge/1",
	} {
		r.Header.Set(name, value)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	var booked struct {
		Action string `json:"action"`
		Error  string `json:"error"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&booked); err != nil || booked.Action != string(services.Refund) {
		return fmt.Errorf("the shop has not booked the transfer: %s, %+v, %w", answer.Status, booked, err)
	}
	return nil
}

// check compares the shop's ledger with the jobs.
func (s *stage) check(ctx context.Context) error {
	ends := map[string]makegood.ProcessState{}
	for job, err := range s.jobs.List(ctx, api.Filter{}) {
		if err != nil {
			return err
		}
		ends[job.ID] = job.ProcessState
	}
	ledger, err := services.ReadLedger(ctx, s.shop)
	if err != nil {
		return err
	}
	found := append(services.Check(ledger, ends), s.violations(ledger, ends)...)
	services.PrintViolations(os.Stdout, found)
	if len(found) > 0 {
		return fmt.Errorf("the ledger does NOT agree: %d violations", len(found))
	}
	fmt.Printf(`
The shop's ledger, compared with the jobs, line by line:
  ok  each of %d orders is Processed: reserved, charged and shipped exactly once
  ok  no step was repeated: the shop had %d requests, 3 of each order and 4 of the gift, and no key came twice
  ok  %s is Undone: charged once, refunded once by hand, its reservation released; nothing stands
`, s.orders, ledger.Totals.Requests, giftID)
	return nil
}

// violations are the faults beyond the rules of any shop: here each action was asked for once.
func (s *stage) violations(l services.Ledger, ends map[string]makegood.ProcessState) []string {
	var found []string
	want := func(id string, state makegood.ProcessState, actions ...services.Action) {
		if ends[id] != state {
			found = append(found, fmt.Sprintf("order %s: it is %q, want %s", id, ends[id], state))
		}
		for _, action := range services.Actions() {
			times := 0
			if slices.Contains(actions, action) {
				times = 1
			}
			if got := l.Orders[id].Counts[action]; got != times {
				found = append(found, fmt.Sprintf("order %s: %s took effect %d times, want %d", id, action, got, times))
			}
		}
	}
	for i := range s.orders {
		want(fmt.Sprintf("o-%05d", i), makegood.JobProcessed, services.Reserve, services.Charge, services.Ship)
	}
	want(giftID, makegood.JobUndone, services.Reserve, services.Charge, services.Refund, services.Release)
	if len(ends) != s.orders+1 {
		found = append(found, fmt.Sprintf("there are %d jobs, want %d", len(ends), s.orders+1))
	}
	if requests := 3*s.orders + 4; l.Totals.Requests != requests || l.Totals.DuplicatesRefused != 0 || len(l.Effects) != requests {
		found = append(found, fmt.Sprintf("the shop had %d requests, %d of them again, and %d effects, want %d, none and as many", l.Totals.Requests, l.Totals.DuplicatesRefused, len(l.Effects), requests))
	}
	for _, key := range slices.Sorted(maps.Keys(l.Requests)) {
		if n := len(l.Requests[key]); n != 1 {
			found = append(found, fmt.Sprintf("%d attempts came under the key %s, want 1", n, key))
		}
	}
	return found
}
