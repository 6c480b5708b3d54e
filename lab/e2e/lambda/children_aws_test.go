//go:build aws && linux

package lambda

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/sample/services"
	"github.com/makegood-dev/makegood/internal/scheduler"
)

// An order that is charged by a job of its own, which then rests as long as the input says, and one that has a few seconds
// for that.
const (
	splitOrder = `
name: split
steps:
  - {name: reserve, agent: inventory, with: {order: "${ .job.id }", amount: 3}, undo: {action: release}}
  - {name: pay, agent: workflow, action: paying, with: {order: "${ .job.id }", rest: "${ .input.rest }"}}
  - {name: ship, agent: shipping, with: {order: "${ .job.id }", amount: "${ .input.amount }"}, undo: none}
`
	paying = `
name: paying
steps:
  - name: charge
    agent: http
    with: {url: SHOP/payments/charge, body: {order: "${ .input.order }", amount: 3, customer: c}}
    undo: {with: {url: SHOP/payments/refund, body: {order: "${ .input.order }", amount: 3}}}
  - {name: rest, agent: wait, with: {for: "${ .input.rest }"}}
`
)

// A job and the job that does a step of it go through the functions: to their end, undone when the last step fails, and
// undone while the child is under way, by a person and by the timeout of the parent, which the Scheduler's function alone
// acts on. The shop has each effect once, or undone.
func TestAJobAndItsChildGoThroughTheFunctions(t *testing.T) {
	w := open(t, options{})
	w.define([]byte(strings.ReplaceAll(paying, "SHOP", w.shop.URL())))
	split := w.define([]byte(splitOrder))
	hasty := w.define([]byte(strings.Replace(splitOrder, "name: split\n", "name: hasty\ntimeout: 10s\nonFailure: undo\n", 1)))
	ends := map[string]makegood.ProcessState{}
	for _, o := range []struct {
		id, rest   string
		amount     int
		definition string
		end        makegood.ProcessState
	}{
		{"well", "1s", 3, split.Hash, makegood.JobProcessed},
		{"refused", "1s", -1, split.Hash, makegood.JobUndone},
		{"cancelled", "1h", 3, split.Hash, makegood.JobCancelled},
		{"late", "1h", 3, hasty.Hash, makegood.JobUndone},
	} {
		input := json.RawMessage(fmt.Sprintf(`{"rest":%q,"amount":%d}`, o.rest, o.amount))
		if _, _, err := w.scheduler.Submit(t.Context(), scheduler.Submission{ID: o.id, Definition: o.definition, Input: input, Tenant: "acme"}); err != nil {
			t.Fatal(err)
		}
		ends[o.id] = o.end
	}
	w.waitFor("the rest of the child that is cancelled", func() bool {
		child, err := w.child("cancelled")
		return err == nil && child.Steps[1].Forward.State == job.Waiting
	})
	if _, v, err := w.scheduler.Request(t.Context(), "cancelled", job.Requested{Verb: makegood.VerbCancel, Reason: "not wanted"}); err != nil {
		t.Fatalf("cancel: %+v, %v", v, err)
	}
	for id, j := range w.ends(slices.Sorted(maps.Keys(ends))) {
		child, err := w.child(id)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]makegood.ProcessState{"cancelled": makegood.JobCancelled, "late": makegood.JobCancelled, "refused": makegood.JobUndone, "well": makegood.JobProcessed}[id]
		if j.ProcessState != ends[id] || child.ProcessState != want || child.Tenant != "acme" {
			t.Errorf("%s: got %s (%s) and its child %s (%s) of %q, want %s and %s", id, j.ProcessState, j.Reason, child.ProcessState, child.Reason, child.Tenant, ends[id], want)
		}
	}
	t.Log(w.said())
	for _, v := range services.Check(w.shop.Ledger(), ends) {
		t.Error(v)
	}
}

// child loads the child of a job of splitOrder.
func (w *world) child(id string) (job.Job, error) {
	w.t.Helper()
	parent, err := w.store.Load(w.t.Context(), id)
	if err != nil {
		return job.Job{}, err
	}
	pay, _ := parent.Step("pay")
	return w.store.Load(w.t.Context(), domain.ChildID(id, parent.Birth, "pay", pay.Forward.Attempt))
}
