// Command changes keeps a table of orders by their state, in a file of its own, by receiving every change. Half way
// through, the process ends before the table has taken all changes; a second one goes on, and recognises repeated
// changes. At the end the table matches the jobs.
//
//	go run ./examples/changes
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"testing/fstest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/engine"
)

// orders is how many are submitted; one in every declined is declined.
const (
	orders   = 20
	declined = 5
)

var workflows = fstest.MapFS{"order.yaml": {Data: []byte(`
name: order
onFailure: undo
steps:
  - name: reserve
    agent: shop
    undo: { action: release }
  - name: charge
    agent: shop
    with: { number: "${ .input.number }" }
    retry: { attempts: 1 }
    undo: none
`)}}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "changes:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "changes-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	// The first process takes as many runs as it has orders, and then none: as if its disk were full.
	first, err := openTable(filepath.Join(dir, "orders.json"))
	if err != nil {
		return err
	}
	first.full.Store(orders / 2)
	if _, err := work(ctx, dir, first, 0, orders/2); err != nil {
		return err
	}
	fmt.Fprintf(out, "the first process ends: its table has %d orders, %s\n", len(first.Orders), first)

	second, err := openTable(filepath.Join(dir, "orders.json"))
	if err != nil {
		return err
	}
	jobs, err := work(ctx, dir, second, orders/2, orders)
	if err != nil {
		return err
	}
	if second.again == 0 {
		return errors.New("nothing was heard twice: nothing is shown")
	}
	fmt.Fprintln(out, "the second process was told again what was in the table, and took it once")
	fmt.Fprintf(out, "the table: %s\nthe jobs:  %s\n", second, text(jobs))
	if second.String() != text(jobs) {
		return errors.New("the table is not what the jobs are")
	}
	return nil
}

// work runs an engine until the orders are made good, and, unless its table is full, until the table has taken that.
// It returns how many jobs there are in each state.
func work(ctx context.Context, dir string, t *table, from, to int) (map[string]int, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	eng, err := engine.Open(ctx, engine.Options{
		Dir: filepath.Join(dir, "engine"), Workflows: workflows, Agents: []agent.Handler{shop()}, Notify: engine.Notify{Changes: t.take}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	defer eng.Close()
	go eng.Run(ctx)
	for i := from; i < to; i++ {
		if _, err := eng.Submit(ctx, makegood.Submission{Workflow: "order", ID: id(i), Input: json.RawMessage(fmt.Sprintf(`{"number":%d}`, i))}); err != nil {
			return nil, err
		}
	}
	jobs := map[string]int{}
	for i := range to {
		job, err := eng.Wait(ctx, id(i))
		if err != nil {
			return nil, err
		}
		jobs[string(job.ProcessState)]++
	}
	for t.String() != text(jobs) && t.full.Load() != 0 {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
	return jobs, nil
}

func id(i int) string { return fmt.Sprintf("order-%02d", i) }

// shop reserves anything, and declines some charges.
func shop() agent.Handler {
	nothing := func(context.Context, json.RawMessage) (string, error) { return "", nil }
	return agent.New("shop", agent.Do("reserve", nothing), agent.Do("release", nothing),
		agent.Do("charge", func(_ context.Context, in struct{ Number int }) (string, error) {
			if in.Number%declined == 0 {
				return "", agent.Final(agent.Kind("declined", errors.New("card declined")))
			}
			return "charged", nil
		}))
}

// text says how many there are in each state.
func text(counts map[string]int) string {
	var all []string
	for _, state := range slices.Sorted(maps.Keys(counts)) {
		all = append(all, fmt.Sprintf("%s %d", state, counts[state]))
	}
	return fmt.Sprint(all)
}
