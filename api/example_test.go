package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing/fstest"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/engine"
)

// A function that takes an api.Reader counts the jobs of an engine, of an HTTP address, of a stack, or of a folder.
func ExampleCountAll() {
	greeter := agent.New("greeter", agent.Do("greet", func(_ context.Context, name string) (string, error) { return "hello, " + name, nil }))
	jobs, err := engine.Open(context.Background(), engine.Options{
		Workflows: fstest.MapFS{"hello.yaml": {Data: []byte("name: hello\nsteps: [{name: greet, agent: greeter}]")}},
		Agents:    []agent.Handler{greeter},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	go func() { _ = jobs.Run(context.Background()) }()
	defer func() { _ = jobs.Close() }()
	ctx := context.Background()
	for _, name := range []string{"Ada", "Grace"} {
		input, _ := json.Marshal(name) // a string is JSON
		if _, err := jobs.Submit(ctx, makegood.Submission{Workflow: "hello", ID: name, Input: input}); err != nil {
			fmt.Println(err)
		}
		if _, err := jobs.Wait(ctx, name); err != nil {
			fmt.Println(err)
		}
	}
	groups, err := api.CountAll(ctx, jobs, api.Filter{Workflow: "hello"}, api.ByState)
	for _, g := range groups.Groups {
		fmt.Println(g.Values, g.Jobs, err)
	}
	// Output:
	// [Processed] 2 <nil>
}
