// Command soak keeps an engine in this process under a steady load, a share of the capacity that it first measures, and
// prints its sizes every minute: heap, file, log, goroutines, jobs under way. At the end it fails unless they are flat
// over the last half. make soak-real calls it. The test of this package plays a day in virtual time instead: make soak.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync/atomic"
	"time"

	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/engine"
)

// options are those of a run.
type options struct {
	minutes, load int
	// period is a minute, and probe how long the capacity is measured; shorter in a test.
	period, probe time.Duration
	dir           string
}

func main() {
	o := options{period: time.Minute, probe: 20 * time.Second}
	flag.IntVar(&o.minutes, "minutes", 60, "last so many minutes")
	flag.IntVar(&o.load, "load", 70, "submit this percentage of the measured capacity")
	flag.StringVar(&o.dir, "data", "", "keep the engine's folder here; empty: a temporary one")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

// run soaks an engine on a folder of its own.
func run(ctx context.Context, out io.Writer, o options) (err error) {
	if o.minutes < 2 || o.load < 1 || o.load > 100 {
		return fmt.Errorf("-minutes %d -load %d: want at least 2 minutes, and 1 to 100 percent", o.minutes, o.load)
	}
	if o.dir == "" {
		if o.dir, err = os.MkdirTemp("", "soak-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(o.dir)) }()
	}
	var tries atomic.Int64
	eng, err := engine.Open(ctx, engine.Options{
		Dir: o.dir, Workflows: workflows, Agents: []agent.Handler{crew(&tries)}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- eng.Run(running) }()
	defer func() {
		stop()
		err = errors.Join(err, <-ended, eng.Close())
	}()
	l := &load{jobs: eng, waits: make(chan struct{}, mostUnderWay)}
	capacity, err := l.capacity(ctx, o.probe)
	if err != nil {
		return err
	}
	perSecond := capacity * float64(o.load) / 100
	fmt.Fprintf(out, "%.0f jobs/s at most here; %d %% are %.0f jobs/s, for %d minutes\n%s\n", capacity, o.load, perSecond, o.minutes, header)
	all, err := l.soak(ctx, out, o, perSecond)
	if err != nil {
		return err
	}
	if err := flat(all); err != nil {
		return err
	}
	fmt.Fprintln(out, "flat")
	return nil
}
