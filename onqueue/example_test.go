package onqueue_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os/signal"
	"syscall"
	"time"

	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/onqueue"
)

// A film takes hours. Its step says "timeout: 12h" and "heartbeat: 1m".
func render(ctx context.Context, film string) (string, error) {
	defer agent.KeepAlive(ctx)()
	for reel := range 9 {
		if err := agent.Progress(ctx, map[string]int{"reel": reel + 1, "of": 9}); err != nil {
			return "", err
		}
		// ... hours pass ...
	}
	return "s3://films/" + film, nil
}

// The whole main of a container that runs an agent. The example is not run: it takes tasks until it is told to stop.
func Example() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	studio := agent.New("studio", agent.Do("render", render))
	err := onqueue.Run(ctx, studio, onqueue.Options{Stack: "films-prod", Concurrency: 2, Grace: 10 * time.Minute, Health: ":8080"})
	if err != nil {
		log.Fatal(err)
	}
}

// What cannot be is said before anything is asked of AWS.
func ExampleRun() {
	studio := agent.New("studio", agent.Do("render", render))
	err := onqueue.Run(context.Background(), studio, onqueue.Options{Stack: "films-prod", Concurrency: 5000})
	fmt.Println(err, errors.Is(err, agent.ErrOptions))
	// Output: cannot begin: concurrency 5000 is out of range: 1 to 1000 true
}
