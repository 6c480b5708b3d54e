// Command probe is the agent of the conformance suite, with the Go kit, at the queue of a stack. Its twins in Python and
// TypeScript do the same.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"log"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/onqueue"
)

// given is the input of all actions.
type given struct {
	Message    string `json:"message"`
	Final      bool   `json:"final"`
	NotApplied bool   `json:"notApplied"`
	Ms         int    `json:"ms"`
	Times      int    `json:"times"`
	Bytes      int    `json:"bytes"`
}

func main() {
	probe := agent.New("probe",
		agent.Do("echo", func(_ context.Context, in json.RawMessage) (json.RawMessage, error) { return in, nil }),
		agent.Do("fail", fail),
		agent.Do("deaf", func(_ context.Context, in given) (string, error) {
			time.Sleep(in.duration())
			return "slept", nil
		}),
		agent.Do("sleep", func(ctx context.Context, in given) (string, error) { return "slept", wait(ctx, in.duration()) }),
		agent.Do("heartbeat", heartbeat),
		agent.Do("large", func(_ context.Context, in given) (string, error) { return strings.Repeat("x", in.Bytes), nil }),
	)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := onqueue.Run(ctx, probe, onqueue.Options{Concurrency: 50}); err != nil {
		log.Fatal(err)
	}
}

func (in given) duration() time.Duration { return time.Duration(in.Ms) * time.Millisecond }

func fail(_ context.Context, in given) (any, error) {
	err := errors.New(in.Message)
	if in.Final {
		err = agent.Final(err)
	}
	if in.NotApplied {
		err = agent.NotApplied(err)
	}
	return nil, err
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func heartbeat(ctx context.Context, in given) (map[string]int, error) {
	failed := 0
	for range in.Times {
		if err := wait(ctx, in.duration()); err != nil {
			return nil, err
		}
		switch err := agent.Heartbeat(ctx); {
		case errors.Is(err, agent.ErrWithdrawn):
			return nil, agent.NotApplied(errors.New("withdrawn"))
		case errors.Is(err, agent.ErrOver):
			return nil, err
		case err != nil:
			failed++
		}
	}
	return map[string]int{"failed": failed}, nil
}
