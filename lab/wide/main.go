// Command wide does a map of many items in an engine that is killed (SIGKILL) in the middle. It prints how long that
// took, and how much memory each process had at most, and fails unless each item was done. make wide calls it.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing/fstest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/engine"
)

// options are those of a run. works: this is the process that works. halts: it stands still at nine tenths of the
// items, so that it is never done before it is killed, however long that takes.
type options struct {
	items, concurrency int
	dir                string
	works, halts       bool
}

func main() {
	var o options
	flag.IntVar(&o.items, "items", 100_000, "do so many items")
	flag.IntVar(&o.concurrency, "concurrency", 1000, "so many at once")
	flag.StringVar(&o.dir, "data", "", "keep the engine's folder here; empty: a temporary one")
	flag.BoolVar(&o.works, "works", false, "be the process that works")
	flag.BoolVar(&o.halts, "halts", false, "stand still at nine tenths of the items")
	flag.Parse()
	err := run(context.Background(), os.Stdout, os.Args[0], o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "wide:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, program string, o options) (err error) {
	if o.works {
		return work(ctx, o)
	}
	if o.dir == "" {
		if o.dir, err = os.MkdirTemp("", "wide-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(o.dir)) }()
	}
	began := time.Now()
	args := []string{"-works", "-data", o.dir, "-items", fmt.Sprint(o.items), "-concurrency", fmt.Sprint(o.concurrency)}
	first := exec.CommandContext(ctx, program, append(slices.Clone(args), "-halts")...)
	first.Stderr = os.Stderr
	if err := first.Start(); err != nil {
		return err
	}
	for done := 0; done < o.items/2; time.Sleep(50 * time.Millisecond) {
		if done, _, err = effects(o.dir); err != nil {
			return err
		}
	}
	if err := first.Process.Kill(); err != nil {
		return err
	}
	_ = first.Wait() // It was killed.
	half, _, err := effects(o.dir)
	if err != nil {
		return err
	}
	second := exec.CommandContext(ctx, program, args...)
	second.Stderr = os.Stderr
	if err := second.Run(); err != nil {
		return err
	}
	keys, calls, err := effects(o.dir)
	if err != nil {
		return err
	}
	took := time.Since(began)
	fmt.Fprintf(out, "%d items, killed after %d: %.1f s, %.0f items/s, at most %d MB and %d MB of memory, %d calls\n",
		keys, half, took.Seconds(), float64(keys)/took.Seconds(), memory(first), memory(second), calls)
	if keys != o.items || half == o.items {
		return fmt.Errorf("%d of %d items were done, %d of them before the kill", keys, o.items, half)
	}
	return nil
}

// memory is how much a process had at most, in MB.
func memory(c *exec.Cmd) int64 {
	usage, ok := c.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	return usage.Maxrss >> 10
}

// work does the map, or goes on with it.
func work(ctx context.Context, o options) (err error) {
	file, err := os.OpenFile(filepath.Join(o.dir, "effects"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	var begun atomic.Int64
	stock := agent.New("stock", agent.Do("reserve", func(ctx context.Context, item int) (int, error) {
		if begun.Add(1) > int64(o.items*9/10) && o.halts {
			<-ctx.Done()
			return 0, ctx.Err()
		}
		_, err := file.WriteString(agent.TaskOf(ctx).Key + "\n")
		return item, err
	}))
	eng, err := engine.Open(ctx, engine.Options{
		Dir: filepath.Join(o.dir, "engine"), Agents: []agent.Handler{stock}, Logger: slog.New(slog.DiscardHandler),
		Workflows: fstest.MapFS{"wide.yaml": {Data: fmt.Appendf(nil, `
name: wide
steps:
  - {name: reserve, agent: stock, map: {over: "${ [range(%d)] }", concurrency: %d, outputs: manifest}, undo: none}
`, o.items, o.concurrency)}},
	})
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- eng.Run(running) }()
	defer func() {
		stop()
		err = errors.Join(err, <-ended, eng.Close(), file.Close())
	}()
	if _, err := eng.Submit(ctx, makegood.Submission{ID: "wide", Workflow: "wide", Input: json.RawMessage("{}")}); err != nil {
		return err
	}
	j, err := eng.Wait(ctx, "wide")
	if err == nil && j.ProcessState != makegood.JobProcessed {
		err = fmt.Errorf("the job is %s: %s", j.ProcessState, j.Reason)
	}
	return err
}

// effects counts the keys under which effects were made, and the calls. A line that the kill has cut off is none.
func effects(dir string) (keys, calls int, err error) {
	file, err := os.Open(filepath.Join(dir, "effects"))
	if errors.Is(err, os.ErrNotExist) {
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	seen := map[string]bool{}
	for r := bufio.NewReader(file); ; {
		line, err := r.ReadString('\n')
		if err != nil {
			return len(seen), calls, nil
		}
		calls++
		seen[strings.TrimSpace(line)] = true
	}
}
