// Command scheduled-items puts many items into an engine, in any order, each with a time of its own; some times are
// equal. Each is done at its time, once, and many at once.
//
//	go run ./examples/scheduled-items
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"sync"
	"testing/fstest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/engine"
)

const (
	items  = 30
	within = 5 * time.Second
)

// item is a piece of work and its time.
type item struct {
	Message string    `json:"message"`
	Time    time.Time `json:"time"`
}

var workflows = fstest.MapFS{"item.yaml": {Data: []byte("name: item\nsteps: [{name: print, agent: printer}]\n")}}

// printer notes which items were done, and how late.
type printer struct {
	mu   sync.Mutex
	out  io.Writer
	done map[string]int
}

func (p *printer) print(_ context.Context, i item) (struct{}, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done[i.Message]++
	fmt.Fprintf(p.out, "%-8s %4d ms after %s\n", i.Message, time.Since(i.Time).Milliseconds(), i.Time.Format("15:04:05.000"))
	return struct{}{}, nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, "", items, within); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run adds many items with times within a while from now, and returns when all are done. With a folder, it also does
// the items that an earlier run has left.
func run(ctx context.Context, out io.Writer, dir string, many int, within time.Duration) error {
	p := &printer{out: out, done: map[string]int{}}
	eng, err := engine.Open(ctx, engine.Options{
		Dir: dir, Workflows: workflows, Agents: []agent.Handler{agent.New("printer", agent.Do("print", p.print))},
	})
	if err != nil {
		return err
	}
	defer eng.Close()
	ran := make(chan error, 1)
	go func() { ran <- eng.Run(ctx) }()
	ids, err := add(ctx, eng, many, within)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if _, err := eng.Wait(ctx, id); err != nil {
			return err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range ids {
		if times := p.done[id]; times != 1 {
			return fmt.Errorf("%s was done %d times", id, times)
		}
	}
	fmt.Fprintf(out, "%d items, each once\n", len(ids))
	return nil
}

// add submits items in an order that is not that of their times; every third has the time of the one before.
func add(ctx context.Context, eng *engine.Engine, many int, within time.Duration) ([]string, error) {
	var ids []string
	var at time.Time
	for n := range many {
		if n%3 != 2 {
			at = time.Now().Add(rand.N(within)).UTC().Truncate(time.Millisecond)
		}
		i := item{Message: fmt.Sprintf("item-%d", n), Time: at}
		input, err := json.Marshal(i)
		if err != nil {
			return nil, err
		}
		if _, err := eng.Submit(ctx, makegood.Submission{Workflow: "item", ID: i.Message, Input: input, StartAt: at}); err != nil {
			return nil, err
		}
		ids = append(ids, i.Message)
	}
	return ids, nil
}
