package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing/fstest"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/engine"
)

// A travel agency of fifteen lines: what it has booked it gives back, when the rest cannot be had.
func Example() {
	files := fstest.MapFS{"trip.yaml": {Data: []byte(`
name: trip
steps:
  - {name: flight, agent: travel, undo: {action: cancel_flight}}
  - {name: hotel, agent: travel, retry: {attempts: 1}}
`)}}
	travel := agent.New("travel",
		agent.Do("flight", func(_ context.Context, who string) (string, error) { return "seat 7A for " + who, nil }).
			Undo("cancel_flight", func(_ context.Context, who string, seat *string) error {
				fmt.Println("given back:", *seat)
				return nil
			}),
		agent.Do("hotel", func(context.Context, string) (string, error) {
			return "", agent.Final(agent.NotApplied(fmt.Errorf("no room")))
		}),
	)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	eng, err := engine.Open(ctx, engine.Options{Workflows: files, Agents: []agent.Handler{travel}})
	if err != nil {
		fmt.Println(err)
		return
	}
	ended := make(chan error)
	go func() { ended <- eng.Run(ctx) }()

	_, err = eng.Submit(ctx, makegood.Submission{Workflow: "trip", ID: "t-1", Input: json.RawMessage(`"Ada"`)})
	if err != nil {
		fmt.Println(err)
	}
	job, err := eng.Wait(ctx, "t-1")
	fmt.Println(job.ProcessState, job.Reason, err)
	stop()
	fmt.Println(<-ended, eng.Close())
	// Output:
	// given back: seat 7A for Ada
	// Undone step hotel failed: no room <nil>
	// <nil> <nil>
}

// The API in a server of one's own.
func ExampleEngine_Handler() {
	eng, err := engine.Open(context.Background(), engine.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	mux := http.NewServeMux()
	mux.Handle("/makegood/", http.StripPrefix("/makegood", eng.Handler()))
	fmt.Println(eng.Close())
	// Output: <nil>
}
