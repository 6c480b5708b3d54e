package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"testing/fstest"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/client"
	"github.com/makegood-dev/makegood/engine"
)

// Jobs of an engine, asked over HTTP: submitted, waited for, listed, and refused what cannot be.
func Example() {
	greeter := agent.New("greeter", agent.Do("greet", func(_ context.Context, name string) (string, error) { return "hello, " + name, nil }))
	eng, err := engine.Open(context.Background(), engine.Options{
		Workflows: fstest.MapFS{"hello.yaml": {Data: []byte("name: hello\nsteps: [{name: greet, agent: greeter}]")}},
		Agents:    []agent.Handler{greeter},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	go func() { _ = eng.Run(context.Background()) }()
	defer func() { _ = eng.Close() }()
	server := httptest.NewServer(eng.Handler())
	defer server.Close()

	ctx := context.Background()
	var jobs api.Jobs
	if jobs, err = client.New(server.URL); err != nil {
		fmt.Println(err)
		return
	}
	if _, err = jobs.Submit(ctx, makegood.Submission{Workflow: "hello", ID: "h-1", Input: json.RawMessage(`"Ada"`)}); err != nil {
		fmt.Println(err)
	}
	job, err := jobs.Wait(ctx, "h-1")
	fmt.Println(job.ProcessState, string(job.Steps[0].Output), err)
	for listed, err := range jobs.List(ctx, api.Filter{Workflow: "hello"}) {
		fmt.Println(listed.ID, err)
	}
	_, err = jobs.Request(ctx, "h-1", api.Request{Verb: makegood.VerbCancel, Reason: "too late"})
	var refused *api.RefusedError
	fmt.Println(errors.As(err, &refused), refused.Reason)
	// Output:
	// Processed "hello, Ada" <nil>
	// h-1 <nil>
	// true it is Processed; undo takes it back
}
