package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/client"
	"github.com/makegood-dev/makegood/engine"
	"github.com/makegood-dev/makegood/workflows"
)

// What the README shows of an engine in a server of one's own: a job through it, and the API beside what the server
// serves otherwise.
func Example_embedded() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	data, err := os.MkdirTemp("", "makegood-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(data)
	mux := http.NewServeMux()

	eng, err := engine.Open(ctx, engine.Options{Dir: data, Workflows: workflows.Files, Agents: workflows.Agents(os.Getenv)})
	if err != nil {
		fmt.Println(err)
		return
	}
	ended := make(chan error, 1)
	go func() { ended <- eng.Run(ctx) }() // until ctx ends; it returns why it stopped
	mux.Handle("/makegood/", http.StripPrefix("/makegood", eng.Handler()))

	job, err := eng.Submit(ctx, makegood.Submission{Workflow: "hello", ID: "h-1", Input: json.RawMessage(`{"name":"Ada"}`)})
	if err == nil {
		job, err = eng.Wait(ctx, job.ID) // its end, or Error
	}
	fmt.Println(job.ProcessState, err)

	server := httptest.NewServer(mux)
	defer server.Close()
	remote, err := client.New(server.URL + "/makegood")
	if err != nil {
		fmt.Println(err)
		return
	}
	seen, err := remote.Get(ctx, "h-1")
	fmt.Println(seen.ProcessState, err)

	stop()                                  // ends ctx, and so Run
	err = errors.Join(<-ended, eng.Close()) // Close once Run has returned
	fmt.Println(err)
	// Output:
	// Processed <nil>
	// Processed <nil>
	// <nil>
}
