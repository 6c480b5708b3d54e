// Package makegoodtest tests workflows and their agents in a go test: the shipped engine, with the store, the queues
// and the deadlines that it has in production, in a testing/synctest bubble, so that retries, backoffs, timeouts and
// waits pass at once. Remote services are fakes in the same process.
//
// It tests the user's own part. The promises of the engine are tested elsewhere; no engine can promise that the
// services are asked with the right key, and honour it.
//
// # A case
//
// A Case is a workflow, an input, and a function that makes the services afresh for every run, with the agents that
// call them and with what must hold at the end:
//
//	var order = makegoodtest.Case{
//		YAML:  orderYAML,
//		Input: map[string]any{"id": "o-1", "total": 9.5},
//		Services: func() makegoodtest.Services {
//			shop := makegoodtest.NewFake("shop")
//			return makegoodtest.Services{
//				Agents: Agents("http://shop", makegoodtest.Client(shop)),
//				HTTP:   shop, // for the built-in http agent
//				Ledger: shop.Ledger,
//				Check: func(job makegoodtest.Job) error {
//					if n := shop.Stands("charge"); job.ProcessState == makegood.JobProcessed && n != 1 {
//						return fmt.Errorf("the customer was charged %d times", n)
//					}
//					return nil
//				},
//			}
//		},
//	}
//
// Run runs it once, to the end of its job. CrashEverywhere runs it again for every call that the engine makes to its
// store and queues: with the engine killed just before the call or just after it, and with the call failing without
// effect or after it. Chaos runs it on bad days that are made of a seed. Start gives a running job to a test that
// wants to go through its time by hand.
//
// # Checks
//
// Check is asked at the end of each run, after any faults on the way. It checks the services: a job that is Processed
// has had each effect once, one that is Undone or Cancelled has left none. Where steps may use up their attempts,
// Undone and Error are ends like others. A job that does not end is a violation by itself.
//
// # Real and fake parts
//
// Workflow file, expressions, the Scheduler, agents, the Supervisor, claims, SQLite and the queues in memory are
// those of the embedded engine. Killing it means that no later call reaches its store or its queues, that the
// contexts of its agents end, and that a new engine opens the same folder. A service survives that, as a remote one
// does: a request that it has taken in goes on.
//
// A bubble allows no network, so agents must reach their services by a function call or by Client. Code that waits
// must wait in ways that a bubble knows: channels, timers and contexts, but no mutex and no socket.
package makegoodtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/engine"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

const (
	// JobID is the id of the job of every run.
	JobID = "job"
	// defaultWithin is the default of Case.Within, how long a job may take.
	defaultWithin = 24 * time.Hour
)

// Case is a job to be tested: a workflow, an input and the services.
type Case struct {
	// YAML is the workflow file. Empty: Workflow is the workflow.
	YAML []byte
	// Workflow is the workflow as built in Go.
	Workflow makegood.Workflow
	// Children are the workflow files of the jobs that do steps (agent: workflow) of this one or of each other.
	Children [][]byte
	// Input is the input of the job: whatever encoding/json writes, as json.RawMessage or a map.
	Input any
	// Services makes the services as they are before the job. It is called at the start of every run, and
	// must give new ones each time.
	Services func() Services
	// Within is how long the job may take, in the time that is skipped. Of much more than the default, the Supervisor looks
	// round less often than twice a second. Default: 24 hours.
	Within time.Duration
}

// Services are what a job meets outside Makegood.
type Services struct {
	// Agents do the steps.
	Agents []agent.Handler
	// HTTP, if set, is whatever the built-in http agent reaches, at any address; the Host of a request
	// says which was meant. The request is made, and its answer read, by that agent.
	HTTP http.Handler
	// Secrets are the values of ${ secret("name") }, by name.
	Secrets map[string]string
	// Ask, if set, gets the questions of a workflow, each at least once; after an error it gets the question again. Name
	// is the addressee.
	Ask func(name string, q engine.Question) error
	// Completions, if set, are the completions of steps that wait, from a person or a service outside. Each is sent until
	// the engine has answered, over its deaths, as a remote service would; the answer is dropped. Make the channel in
	// Services.
	Completions <-chan Completion
	// Check, if set, returns a violation by the services, or by the job, at the end of a run.
	Check func(job Job) error
	// Ledger, if set, says what the services did. It stands in the report of a violation.
	Ledger func() string
}

// Completion is an answer from outside to a step that waits.
type Completion struct {
	// Token is the step's completion token, as its task had it, or the question.
	Token string
	// Output is what the step gave: whatever encoding/json writes. Err, if set, is why it failed; see agent.Final and the
	// others.
	Output any
	Err    error
	// Request names the asking; empty: its content does.
	Request string
}

// Job is what became of a job.
type Job struct {
	// Job is the job as its users see it: ProcessState, Reason, FailureCount, and of each step its state, its output,
	// its undo and its error.
	makegood.Job
	// Children are the jobs that do steps of the job or of each other, in the order of their ids.
	Children []makegood.Job
	// Attempts are those that came to an agent, in the order in which they began, undos and those of its children too.
	Attempts []Attempt
}

// Output returns the output of a step, which is null while there is none.
func (j Job) Output(step string) json.RawMessage {
	for _, s := range j.Steps {
		if s.Name == step && s.Output != nil {
			return s.Output
		}
	}
	return json.RawMessage("null")
}

// Order returns the actions in the order in which their attempts began: "reserve charge refund release".
func (j Job) Order() string {
	actions := make([]string, len(j.Attempts))
	for i, a := range j.Attempts {
		actions[i] = a.Action
	}
	return strings.Join(actions, " ")
}

// Attempt is one try at a step, or at its undo, as the agent saw it.
type Attempt struct {
	// Task is what the agent was asked for: Step, Action, Attempt, Key, Input, and Undo for an undo.
	makegood.Task
	// At is when it began, from the start of the run on, in the time that is skipped.
	At time.Duration
	// Life is which life of the engine it began in; the first is 1.
	Life int
	// Answer is the agent's answer: "done", or "failed: " and why. Empty: none yet.
	Answer string
}

// Run runs a job to its end, asks Check, and returns the job. The test fails, at once, if the case is wrong,
// and when the job has not ended Within its time.
func Run(t *testing.T, c Case) Job {
	t.Helper()
	var job Job
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		job = Start(t, c).Wait()
	})
	return job
}

// compiled reads the case, and returns an error where it is wrong. The last of the workflows is that of the job.
func (c Case) compiled() ([]*workflowfile.Compiled, json.RawMessage, error) {
	if c.Services == nil {
		return nil, nil, errors.New("the case has no Services")
	}
	input, err := json.Marshal(c.Input)
	if err != nil {
		return nil, nil, fmt.Errorf("input of the case: %w", err)
	}
	var all []*workflowfile.Compiled
	for i, source := range c.Children {
		child, err := workflowfile.Parse(fmt.Sprintf("Children[%d]", i), source)
		if err != nil {
			return nil, nil, fmt.Errorf("workflow of a child of the case: %w", err)
		}
		all = append(all, child)
	}
	var compiled *workflowfile.Compiled
	if len(c.YAML) > 0 {
		compiled, err = workflowfile.Parse("YAML", c.YAML)
	} else {
		compiled, err = workflowfile.FromWorkflow(c.Workflow)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("workflow of the case: %w", err)
	}
	all = append(all, compiled)
	if absent := workflowfile.Absent(all...); absent != nil {
		return nil, nil, fmt.Errorf("the children of the case: %w", errors.Join(absent...))
	}
	return all, input, nil
}

func (c Case) within() time.Duration {
	if c.Within == 0 {
		return defaultWithin
	}
	return c.Within
}
