//go:build aws && linux

package lambda

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/deployed"
	"github.com/makegood-dev/makegood/internal/sample/services"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/wire"
	"github.com/makegood-dev/makegood/lab/testkit/iam"
	"github.com/makegood-dev/makegood/lab/testkit/lambdahost"
	"github.com/makegood-dev/makegood/onlambda"
	"github.com/makegood-dev/makegood/workflows/order"
)

const (
	// linkedTimeout is that of the Scheduler's function which links agents: an inline attempt may have what is left of it
	// but for five seconds. It is below the visibility of its queues.
	linkedTimeout = 10 * time.Second
	// unhurried is that of one which is not killed: however slow the machine is, enough is left for an inline attempt.
	unhurried = 2 * time.Minute
	// linked is the agent of an inline step that no function of the fleet runs.
	linked = "payments"
)

// linkedOrder is an order of inline steps. Its shipment has an amount of its own, which the shop refuses below nought.
const linkedOrder = `
name: linked
onFailure: undo
steps:
  - {name: reserve, agent: inventory, inline: true, timeout: 2s, with: &line {order: "${ .job.id }", amount: 3}, undo: {action: release}}
  - {name: charge, agent: payments, inline: true, timeout: 2s, with: *line, undo: {action: refund}}
  - {name: ship, agent: shipping, inline: true, timeout: 2s, with: {order: "${ .job.id }", amount: "${ .input.amount }"}, undo: {action: cancel, with: *line}}
`

// linkedScheduler is a Scheduler's function that links the agents of an order.
func linkedScheduler() {
	client := &http.Client{Transport: deadly{http.DefaultTransport}}
	chained := strings.NewReplacer("name: linked", "name: chained", "inline: true", "inline: true, exclusive: false").Replace(linkedOrder)
	onlambda.Scheduler(fstest.MapFS{"linked.yaml": {Data: []byte(linkedOrder)}, "chained.yaml": {Data: []byte(chained)}}, order.Agents(os.Getenv("MAKEGOOD_SHOP"), client)...)
}

// deadly kills its process in the middle of the attempt that the id of a job names: before its request, as in
// before-charge-1, or after it.
type deadly struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (d deadly) RoundTrip(r *http.Request) (*http.Response, error) {
	job, attempt, _ := strings.Cut(r.Header.Get("Idempotency-Key"), "/")
	when, named, _ := strings.Cut(job, "-")
	named, _, _ = strings.Cut(named, ".")
	kill := func(now string) {
		if when == now && named == strings.ReplaceAll(attempt, "/", "-") {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	kill("before")
	response, err := d.RoundTripper.RoundTrip(r)
	kill("after")
	return response, err
}

// Orders of inline steps come by message, and the Scheduler's function is killed in the middle of a step or of an undo,
// before and after its effect. Every order ends as it should, and the shop has each effect once, or undone. Without a
// kill no task is sent at all.
func TestInlineStepsInTheSchedulersFunctionUnderKills(t *testing.T) { killLinked(t, "linked") }

// The same with the steps in a chain: a kill leaves all of them with an unknown outcome, and so does a failure the step
// that failed. Such a step may reach the shop twice in an attempt that went by a queue: it is not exclusive.
func TestChainsInTheSchedulersFunctionUnderKills(t *testing.T) { killLinked(t, "chained") }

// killLinked plays orders of a workflow with linked agents.
func killLinked(t *testing.T, workflow string) {
	w := open(t, options{})
	w.link(unhurried)
	ends := map[string]makegood.ProcessState{}
	submit := func(id string, end makegood.ProcessState) {
		ends[id] = end
		w.message(workflow, id, end == makegood.JobUndone)
	}
	for i := range 5 {
		submit(fmt.Sprint("quiet-", i), makegood.JobProcessed)
		submit(fmt.Sprint("refused-", i), makegood.JobUndone)
	}
	w.endAs(ends)
	for _, name := range []string{"inventory", linked, "shipping"} {
		if n := w.functions[name].Counts.Invocations.Load(); n > 0 {
			t.Errorf("%s: got %d invocations before the first kill, want no task at all", name, n)
		}
	}

	w.link(linkedTimeout)
	deaths := &w.functions["scheduler"].Counts.Deaths
	kills := int64(0)
	for _, when := range []string{"before-", "after-"} {
		for _, attempt := range []string{"reserve-1", "charge-1", "ship-1", "charge-1.refused", "charge-1-undo.refused", "reserve-1-undo.refused"} {
			end := makegood.JobProcessed
			if strings.HasSuffix(attempt, ".refused") {
				end = makegood.JobUndone
			}
			submit("beside-"+when+attempt, makegood.JobProcessed)
			submit(when+attempt, end)
			kills++
			w.waitFor("the kill "+when+attempt, func() bool { return deaths.Load() >= kills })
		}
	}
	w.endAs(ends)
	t.Logf("%d orders, %d kills\n%s", len(ends), kills, w.said())
	for _, v := range services.Check(w.shop.Ledger(), ends) {
		if workflow != "chained" || !strings.Contains(v, "reached the shop") {
			t.Error(v)
		}
	}
}

// link puts a Scheduler's function that links agents, with this timeout, in the place of the one before, and feeds the
// function of one agent more.
func (w *world) link(limit time.Duration) {
	w.t.Helper()
	program, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	replace := func(name string, timeout time.Duration, role string, environment []string, queues ...string) {
		w.functions[name] = w.host.Function(lambdahost.Config{
			Name: name, Command: []string{program}, Timeout: timeout,
			Environment: append(append(w.environment[:len(w.environment):len(w.environment)], iam.Key(role)), environment...),
		})
		for _, queue := range queues {
			if m := w.mappings[queue]; m != nil {
				m.Stop()
			}
			w.mappings[queue] = &lambdahost.Mapping{Client: w.queues, QueueURL: w.queue(queue), Function: w.functions[name], MaximumConcurrency: 4}
			w.mappings[queue].Start()
		}
	}
	replace(linked, timeout, linked+"AgentRole", []string{"MAKEGOOD_AGENT=" + linked}, deployed.TasksQueue(linked))
	replace("scheduler", limit, "SchedulerRole", nil, deployed.EventsQueue, deployed.SubmissionsQueue)
}

// message submits an order by a message. The shop refuses the shipment of one that is refused.
func (w *world) message(workflow, id string, refused bool) {
	w.t.Helper()
	amount := 3
	if refused {
		amount = -1
	}
	body, err := wire.EncodeSubmit(wire.Submit{Workflow: workflow, ID: id, Input: json.RawMessage(fmt.Sprintf(`{"amount":%d}`, amount))})
	if err != nil {
		w.t.Fatal(err)
	}
	queue := w.queue(deployed.SubmissionsQueue)
	if _, err := w.queues.SendMessage(w.t.Context(), &sqs.SendMessageInput{QueueUrl: &queue, MessageBody: &body}); err != nil {
		w.t.Fatal(err)
	}
}

// endAs waits until every job has ended, and compares the ends.
func (w *world) endAs(ends map[string]makegood.ProcessState) {
	w.t.Helper()
	w.waitFor("the births", func() bool { return w.born(ends) })
	for id, j := range w.ends(slices.Sorted(maps.Keys(ends))) {
		if j.ProcessState != ends[id] {
			w.t.Errorf("%s: got %s (%s), want %s", id, j.ProcessState, j.Reason, ends[id])
		}
	}
}

// born reports whether all jobs are stored.
func (w *world) born(ends map[string]makegood.ProcessState) bool {
	w.t.Helper()
	for id := range ends {
		_, err := w.store.Load(w.t.Context(), id)
		if errors.Is(err, store.ErrNotFound) {
			return false
		}
		if err != nil {
			w.t.Fatal(err)
		}
	}
	return true
}
