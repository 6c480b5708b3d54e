//go:build aws && linux

package lambda

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/sample/services"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/testkit/seed"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// An order that is charged by a job of its own, which then rests as long as the input says.
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

// split stores the two workflows, and returns that of the order: without a timeout, and with one of ten seconds.
func (w *world) split() (patient, hasty *workflowfile.Compiled) {
	w.t.Helper()
	w.define([]byte(strings.ReplaceAll(paying, "SHOP", w.shop.URL())))
	return w.define([]byte(splitOrder)), w.define([]byte(strings.Replace(splitOrder, "name: split\n", "name: hasty\ntimeout: 10s\nonFailure: undo\n", 1)))
}

// pays submits an order. The shop refuses to ship less than nought.
func (w *world) pays(of *workflowfile.Compiled, id, rest string, amount int) {
	w.t.Helper()
	input := json.RawMessage(fmt.Sprintf(`{"rest":%q,"amount":%d}`, rest, amount))
	if _, _, err := w.scheduler.Submit(w.t.Context(), scheduler.Submission{ID: id, Definition: of.Hash, Input: input, Tenant: "acme"}); err != nil {
		w.t.Fatal(err)
	}
}

// paid waits for the ends of orders, and compares them, those of their children (by the end of the parent, but for those that
// are told), and what the shop has.
func (w *world) paid(ends, children map[string]makegood.ProcessState) {
	w.t.Helper()
	for id, j := range w.ends(slices.Sorted(maps.Keys(ends))) {
		child, err := w.child(id)
		if err != nil {
			w.t.Fatal(err)
		}
		want, told := children[id]
		if !told {
			want = ends[id]
		}
		if j.ProcessState != ends[id] || child.ProcessState != want || child.Tenant != "acme" {
			w.t.Errorf("%s: got %s (%s) and its child %s (%s) of %q, want %s and %s", id, j.ProcessState, j.Reason, child.ProcessState, child.Reason, child.Tenant, ends[id], want)
		}
	}
	w.t.Log(w.said())
	for _, v := range services.Check(w.shop.Ledger(), ends) {
		w.t.Error(v)
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

// A job and the job that does a step of it go through the functions: to their end, undone when the last step fails, and
// undone while the child is under way, by a person and by the timeout of the parent, which the Scheduler's function alone
// acts on. The shop has each effect once, or undone.
func TestAJobAndItsChildGoThroughTheFunctions(t *testing.T) {
	w := open(t, options{})
	patient, hasty := w.split()
	w.pays(patient, "well", "1s", 3)
	w.pays(patient, "refused", "1s", -1)
	w.pays(patient, "cancelled", "1h", 3)
	w.pays(hasty, "late", "1h", 3)
	w.waitFor("the rest of the child that is cancelled", func() bool {
		child, err := w.child("cancelled")
		return err == nil && child.Steps[1].Forward.State == job.Waiting
	})
	if _, v, err := w.scheduler.Request(t.Context(), "cancelled", job.Requested{Verb: makegood.VerbCancel, Reason: "not wanted"}); err != nil {
		t.Fatalf("cancel: %+v, %v", v, err)
	}
	w.paid(map[string]makegood.ProcessState{
		"well": makegood.JobProcessed, "refused": makegood.JobUndone, "cancelled": makegood.JobCancelled, "late": makegood.JobUndone,
	}, map[string]makegood.ProcessState{"late": makegood.JobCancelled})
}

// The same while processes are killed, the Scheduler's most of all: no child is born twice or left behind, and the shop has
// each effect once, or undone.
func TestJobsAndTheirChildrenUnderKills(t *testing.T) {
	const jobs, kills = 60, 20
	w := open(t, options{})
	patient, _ := w.split()
	random := rand.New(rand.NewPCG(seed.Of(t), 0)) // which process is struck when depends on the machine too
	ends := map[string]makegood.ProcessState{}
	for i := range jobs {
		id, amount := fmt.Sprint("o-", i), 3-4*(i%2)
		ends[id] = makegood.JobProcessed
		if amount < 0 {
			ends[id] = makegood.JobUndone
		}
		w.pays(patient, id, "100ms", amount)
		if i%(jobs/kills) == 0 {
			w.strike(syscall.SIGKILL, random)
		}
	}
	w.paid(ends, nil)
	deaths := int64(0)
	for _, f := range w.functions {
		deaths += f.Counts.Deaths.Load()
	}
	// A process may have answered in the moment in which it was struck.
	if deaths < kills/2 {
		t.Errorf("got %d deaths in an invocation, want %d at least", deaths, kills/2)
	}
}
