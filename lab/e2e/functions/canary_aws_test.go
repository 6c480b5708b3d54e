//go:build aws && linux

package functions_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/deployed"
	"github.com/makegood-dev/makegood/internal/sample/services"
	"github.com/makegood-dev/makegood/internal/scheduler"
)

// secrets is a workflow whose payloads hold the canary wherever there is one: in the input, small and
// large, in what is sent to an agent, in what it answers, and in why it fails.
const secrets = `
name: secrets
onFailure: undo
steps:
  - name: reserve
    agent: inventory
    with: {order: "${ .job.id }", amount: 1, card: "${ .input.card }"}
    retry: {attempts: 1}
    undo: {action: release}
  - name: bad
    agent: inventory
    action: reserve
    with: "${ .input.order }"
    retry: {attempts: 1}
    undo: none
  - name: never
    agent: inventory
    with: "${ .input.card + 1 }"
`

// No payload is in any log line or metric of a run of all three functions: of jobs that end well, that
// fail with what they were given in the error, whose expressions fail on it, and of messages in quarantine.
func TestNoLogShowsAPayload(t *testing.T) {
	w := newWorld(t)
	shop, err := services.Start("127.0.0.1:0", services.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer shop.Close()
	loud := append(w.environment, "MAKEGOOD_LOG_LEVEL=DEBUG", "MAKEGOOD_STACK=prod")
	moves := start(t, build(t, functions+"scheduler"), append(loud, "MAKEGOOD_REPLIES="+listener+"="+repliesQueue)...)
	works := start(t, build(t, functions+"agent"), append(loud, "MAKEGOOD_AGENT=inventory", "MAKEGOOD_SHOP="+shop.URL())...)
	sweeps := start(t, build(t, functions+"supervisor"), loud...)
	defer w.feeds(t, map[string]*lambda{deployed.EventsQueue: moves, deployed.TasksQueue("inventory"): works})()
	compiled := w.define(t, []byte(secrets))
	ends := map[string]makegood.ProcessState{}
	for i, order := range []any{canary, map[string]any{"order": "x", "amount": canary}, map[string]any{"order": "b", "amount": 1}} {
		id := fmt.Sprint("secret-", i)
		input, err := json.Marshal(map[string]any{"card": canary, "order": order, "long": strings.Repeat(canary, 100)})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := w.scheduler.Submit(t.Context(), scheduler.Submission{ID: id, Definition: compiled.Hash, Input: input, ReplyTo: listener}); err != nil {
			t.Fatal(err)
		}
		ends[id] = makegood.JobUndone
	}
	ends["secret-2"] = makegood.JobError // Its expression fails, which is a mistake of the workflow.
	for id, want := range ends {
		if job := w.end(t, id); job.ProcessState != want || job.Reason == "" {
			t.Errorf("%s: got %s (%s), want %s and a reason", id, job.ProcessState, job.Reason, want)
		}
	}
	if errs := w.queues.Send(t.Context(), deployed.EventsQueue, queueMessage(canary), queueMessage(`{"v":1,"type":"`+canary+`"}`)); errs != nil {
		t.Fatal(errs)
	}
	sweeps.invoke(t, saved(t, "schedule.json"))
	total := map[string]float64{}
	sum := func() map[string]float64 {
		clear(total)
		for _, l := range []*lambda{moves, works, sweeps} {
			whole := l.output.String()
			for _, line := range metricLines(t, whole[:strings.LastIndexByte(whole, '\n')+1]) {
				if line.stack != "prod" {
					t.Errorf("got metrics of the stack %q, want prod", line.stack)
				}
				for name, value := range line.values {
					total[name] += value
				}
			}
		}
		return total
	}
	// What a process prints arrives in its own time.
	for until := time.Now().Add(patience); sum()["Poison"] < 2 || total["Swept"] < 1; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("got the metrics %v, want two of Poison and one of Swept", total)
		}
	}
	for _, name := range []string{"Applied", "Saved", "Tasks", "Claimed", "Succeeded"} {
		if total[name] == 0 {
			t.Errorf("got the metrics %v, want some of %s", total, name)
		}
	}
	for name, l := range map[string]*lambda{"scheduler": moves, "agent": works, "supervisor": sweeps} {
		for line := range strings.Lines(l.output.String()) {
			if strings.Contains(line, canary) {
				t.Errorf("%s shows a payload: %s", name, line)
			}
		}
	}
}
