package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/agentctx"
)

type Reservation struct {
	SKU      string `json:"sku"`
	Quantity int    `json:"quantity"`
}

type Reserved struct {
	ID string `json:"id"`
}

func reserve(ctx context.Context, in Reservation) (Reserved, error) {
	if in.Quantity > 10 {
		return Reserved{}, agent.Final(agent.NotApplied(fmt.Errorf("%d of %s: only 10 are left", in.Quantity, in.SKU)))
	}
	// The key is the same over all attempts, so the warehouse reserves once.
	return Reserved{ID: "r-" + agent.TaskOf(ctx).Key}, nil
}

func release(ctx context.Context, in Reservation, done *Reserved) error {
	if done == nil {
		fmt.Println("release whatever was reserved under", agent.TaskOf(ctx).Undo.ForwardKey)
		return nil
	}
	fmt.Println("release", done.ID)
	return nil
}

func Example() {
	inventory := agent.New("inventory",
		agent.Do("reserve", reserve).Undo("release", release),
	)

	ctx := context.Background()
	task := makegood.Task{Action: "reserve", Key: "order-1/reserve/1", Input: json.RawMessage(`{"sku":"tea","quantity":2}`)}
	output, err := inventory.Handle(ctx, task)
	fmt.Println(string(output), err)

	task.Input = json.RawMessage(`{"sku":"tea","quantity":12}`)
	_, err = inventory.Handle(ctx, task)
	failure := agent.Failure(err)
	fmt.Println(failure.Message, failure.Retryable, failure.Applied)

	undo := task
	undo.Action = "release"
	undo.Undo = &makegood.UndoTask{ForwardKey: task.Key, Outcome: makegood.OutcomeDone, Output: output}
	_, _ = inventory.Handle(ctx, undo)
	undo.Undo = &makegood.UndoTask{ForwardKey: task.Key, Outcome: makegood.OutcomeUnknown}
	_, _ = inventory.Handle(ctx, undo)
	// Output:
	// {"id":"r-order-1/reserve/1"} <nil>
	// 12 of tea: only 10 are left false no
	// release r-order-1/reserve/1
	// release whatever was reserved under order-1/reserve/1
}

func ExampleFailure() {
	broken := errors.New("connection reset")
	for _, err := range []error{
		broken, // try again; it may have happened
		agent.NotApplied(broken),
		agent.RetryAfter(2*time.Second, broken),
		agent.Final(broken),
	} {
		failure := agent.Failure(err)
		fmt.Println(failure.Retryable, failure.Applied, failure.RetryAfter)
	}
	// Output:
	// true unknown 0s
	// true no 0s
	// true unknown 2s
	// false unknown 0s
}

// withdrawn stands for the runner of an attempt whose job was cancelled meanwhile.
type withdrawn struct{}

func (withdrawn) CompleteBy() time.Time                           { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }
func (withdrawn) Heartbeat(context.Context) error                 { return agent.ErrWithdrawn }
func (withdrawn) Progress(context.Context, json.RawMessage) error { return agent.ErrWithdrawn }

// printed stands for a runner that shows what is reported.
type printed struct{ withdrawn }

func (printed) Progress(_ context.Context, value json.RawMessage) error {
	fmt.Println(string(value))
	return nil
}

func ExampleProgress() {
	importer := agent.New("importer", agent.Do("import", func(ctx context.Context, pages int) (int, error) {
		for page := range pages {
			if err := agent.Progress(ctx, map[string]int{"page": page + 1, "of": pages}); err != nil {
				return page, err
			}
		}
		return pages, nil
	}))

	task := makegood.Task{Action: "import", Input: json.RawMessage("2")}
	_, err := importer.Handle(agentctx.NewContext(context.Background(), task, printed{}), task)
	fmt.Println(err)
	// Output:
	// {"of":2,"page":1}
	// {"of":2,"page":2}
	// <nil>
}

func ExampleKeepAlive() {
	render := func(ctx context.Context, film string) (string, error) {
		stop := agent.KeepAlive(ctx) // the call below takes hours, and cannot say that it goes on
		defer stop()
		return "s3://films/" + film, ctx.Err()
	}

	studio := agent.New("studio", agent.Do("render", render))
	task := makegood.Task{Action: "render", Input: json.RawMessage(`"voyage"`)}
	output, err := studio.Handle(context.Background(), task)
	fmt.Println(string(output), err)
	// Output: "s3://films/voyage" <nil>
}

func ExampleHeartbeat() {
	importer := agent.New("importer", agent.Do("import", func(ctx context.Context, pages int) (int, error) {
		for page := range pages {
			if err := agent.Heartbeat(ctx); errors.Is(err, agent.ErrWithdrawn) {
				// Nothing is kept before the last page, so nothing was applied.
				return 0, agent.NotApplied(fmt.Errorf("page %d of %d: %w", page+1, pages, err))
			}
		}
		return pages, nil
	}))

	task := makegood.Task{Action: "import", Input: json.RawMessage("3")}
	_, err := importer.Handle(agentctx.NewContext(context.Background(), task, withdrawn{}), task)
	fmt.Println(err)
	// Output: page 1 of 3: withdrawn: the result is not wanted any more
}
