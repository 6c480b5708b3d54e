package onlambda_test

import (
	"context"
	"testing/fstest"

	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/onlambda"
)

// What a project links into its functions; the files are an embed.FS there.
var (
	files = fstest.MapFS{"greet.yaml": {Data: []byte("name: greet\nsteps: [{name: greet, agent: post}]\n")}}
	post  = agent.New("post", agent.Do("greet", func(_ context.Context, name string) (string, error) {
		return "Dear " + name, nil
	}))
)

// The whole main of functions/scheduler. None of these examples is run: each waits for Lambda.
func ExampleScheduler() { onlambda.Scheduler(files) }

// The whole main of functions/scheduler where it runs the inline steps of an agent itself.
func ExampleScheduler_inline() { onlambda.Scheduler(files, post) }

// The whole main of functions/agent: one program for all agents, of which MAKEGOOD_AGENT names one.
func ExampleAgent() { onlambda.Agent(post) }

// The whole main of functions/supervisor.
func ExampleSupervisor() { onlambda.Supervisor() }

// The whole main of functions/door.
func ExampleDoor() { onlambda.Door(files) }
