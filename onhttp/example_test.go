package onhttp_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http/httptest"
	"os"
	"os/signal"
	"syscall"
	"testing/fstest"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/engine"
	"github.com/makegood-dev/makegood/onhttp"
)

var harbour = agent.New("harbour", agent.Do("load", func(_ context.Context, crates int) (string, error) {
	return fmt.Sprintf("%d crates on board", crates), nil
}))

// The whole main of a process that runs an agent beside `makegood dev --outside harbour`. The example is not run: it takes
// tasks until it is told to stop.
func Example() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := onhttp.Run(ctx, harbour, onhttp.Options{URL: "http://127.0.0.1:4777"}); err != nil {
		log.Fatal(err)
	}
}

// What cannot be is said before anything is asked of the engine.
func ExampleRun() {
	err := onhttp.Run(context.Background(), harbour, onhttp.Options{URL: "127.0.0.1:4777"})
	fmt.Println(err, errors.Is(err, agent.ErrOptions))
	// Output: cannot begin: "127.0.0.1:4777" is not the URL of an engine: want one such as http://127.0.0.1:4777 true
}

// An engine gives its agents' part alone to who shows a token, and the agent does a job's step from elsewhere.
func ExampleOptions() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	eng, err := engine.Open(ctx, engine.Options{
		Workflows: fstest.MapFS{"cargo.yaml": {Data: []byte("name: cargo\nsteps: [{name: load, agent: harbour}]\n")}},
		Outside:   []engine.Outside{{Name: "harbour", Token: "a long secret"}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	door := httptest.NewServer(eng.AgentHandler())
	ends := make(chan error, 2)
	go func() { ends <- eng.Run(ctx) }()
	go func() {
		ends <- onhttp.Run(ctx, harbour, onhttp.Options{URL: door.URL, Token: "a long secret", Concurrency: 4, Instance: "crane-1"})
	}()

	if _, err := eng.Submit(ctx, makegood.Submission{Workflow: "cargo", ID: "c-1", Input: []byte("3")}); err != nil {
		fmt.Println(err)
	}
	job, err := eng.Wait(ctx, "c-1")
	fmt.Println(job.ProcessState, string(job.Steps[0].Output), err)
	stop()
	fmt.Println(<-ends, <-ends, eng.Close())
	door.Close()
	// Output:
	// Processed "3 crates on board" <nil>
	// <nil> <nil> <nil>
}
