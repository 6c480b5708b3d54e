//go:build aws && linux

package lambda

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/deployed"
	"github.com/makegood-dev/makegood/lab/testkit/iam"
	"github.com/makegood-dev/makegood/lab/testkit/lambdahost"
	"github.com/makegood-dev/makegood/onlambda"
	"github.com/makegood-dev/makegood/workflows"
)

const (
	// fragile is an agent of which one task kills the process that runs it.
	fragile = "fragile"
	// killer is the id of the job whose task that is.
	killer = "killer"
	// company is how many jobs are in its batch.
	company = 10
	// granted is how many attempts each step has.
	granted = 1
)

// TestMain makes this test's program functions as well: with a Runtime API it is that of the agent which its environment
// names, or else the Scheduler's with linked agents.
func TestMain(m *testing.M) {
	switch {
	case os.Getenv("AWS_LAMBDA_RUNTIME_API") == "":
		os.Exit(m.Run())
	case os.Getenv("MAKEGOOD_AGENT") != "":
		onlambda.Agent(append(workflows.Agents(os.Getenv), frail())...)
	default:
		linkedScheduler()
	}
}

// frail is the agent. In company the killer waits until all others are under way, and those wait to be killed; alone each
// does what it does at once.
func frail() agent.Handler {
	var under atomic.Int64
	return agent.New(fragile, agent.Do("work", func(ctx context.Context, _ json.RawMessage) (string, error) {
		task := agent.TaskOf(ctx)
		under.Add(1)
		defer under.Add(-1)
		for !task.Alone && under.Load() < company && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		if task.Job == killer {
			os.Exit(137)
		}
		if !task.Alone {
			<-ctx.Done()
			return "", ctx.Err()
		}
		return "worked", nil
	}))
}

// A task kills its process, with nine others of its batch under way, at each of its attempts. It uses up its own, and is
// in front of a person; the nine lose none of theirs.
func TestATaskThatKillsItsProcessCostsItsNeighboursNoAttempt(t *testing.T) {
	w := open(t, options{})
	of := w.define([]byte(fmt.Sprintf(`
name: frail
onFailure: stop
steps:
  - {name: work, agent: %s, timeout: 4s, retry: {attempts: %d, backoff: 1s, max: 1s}}
`, fragile, granted)))
	ids := []string{killer}
	for i := range company - 1 {
		ids = append(ids, fmt.Sprint("neighbour-", i))
	}
	queue := w.queue(deployed.TasksQueue(fragile))
	for _, id := range ids {
		if err := w.submit(of, id); err != nil {
			t.Fatal(err)
		}
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	w.functions[fragile] = w.host.Function(lambdahost.Config{
		Name: fragile, Command: []string{program}, Timeout: timeout, Environment: append(w.environment[:len(w.environment):len(w.environment)], "MAKEGOOD_AGENT="+fragile, iam.Key(fragile+"AgentRole")),
	})
	w.mappings[fragile] = &lambdahost.Mapping{Client: w.queues, QueueURL: queue, Function: w.functions[fragile], MaximumConcurrency: 2}
	w.mappings[fragile].Start()
	ended := w.ends(ids)
	t.Log(w.said())
	for _, id := range ids[1:] {
		a := ended[id].Steps[0].Forward
		if ended[id].ProcessState != makegood.JobProcessed || a.Tries != 1 || a.FailureCount != 1 || a.Attempt != 2 {
			t.Errorf("%s: got %s after %d attempts, %d of them counted, want Processed by the second, which is the first that counts",
				id, ended[id].ProcessState, a.Attempt, a.Tries)
		}
	}
	a := ended[killer].Steps[0].Forward
	if ended[killer].ProcessState != makegood.JobError || a.Tries != granted || a.Attempt != granted+1 {
		t.Errorf("the killer: got %s after %d attempts, %d of them counted, want Error after one more than the %d granted",
			ended[killer].ProcessState, a.Attempt, a.Tries, granted)
	}
	if deaths := w.functions[fragile].Counts.Deaths.Load(); deaths != granted+1 {
		t.Errorf("got %d deaths, want %d: the first in company, the others alone", deaths, granted+1)
	}
}
