package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/makegood-dev/makegood/internal/deployed"
)

// A slow step waits for its agent, and is under way when somebody looks after it for the first time: when its timeout
// has passed since it was sent, and not yet since it was claimed.
const (
	slowTimeout = 2 * time.Minute
	slowWaits   = 30 * time.Second
	slowLooked  = slowTimeout - slowWaits + 10*time.Second
)

// hop is how long a message waits until it is handled. A job keeps its times, so that its size, and what it costs,
// would differ from run to run by the clock of the machine.
const hop = 100 * time.Millisecond

// clock is the time of a world, which passes with its messages.
type clock struct{ passed atomic.Int64 }

func (c *clock) now() time.Time {
	return time.Date(2026, time.November, 20, 10, 0, 0, 0, time.UTC).Add(time.Duration(c.passed.Load()))
}

func (c *clock) pass(d time.Duration) { c.passed.Add(int64(d)) }

// handled is what a handler gives.
type handled struct {
	response events.SQSEventResponse
	err      error
}

// work hands a batch to the agent. The attempts of a batch wait for each other, and slow ones until somebody has looked
// after them.
func (w *world) work(ctx context.Context, event events.SQSEvent) (events.SQSEventResponse, error) {
	n := len(event.Records)
	if !w.load.slow {
		w.gate.open(n, nil)
		return w.agent(ctx, event)
	}
	looked := make(chan struct{})
	w.clock.pass(slowWaits)
	gathered := w.gate.open(n, looked)
	done := make(chan handled, 1)
	go func() {
		response, err := w.agent(ctx, event)
		done <- handled{response, err}
	}()
	err := w.lookAfter(ctx, gathered, n)
	close(looked)
	did := <-done
	return did.response, errors.Join(err, did.err)
}

// lookAfter sweeps while n attempts are under way, and hands to the Scheduler what it is told of them.
func (w *world) lookAfter(ctx context.Context, gathered <-chan struct{}, n int) error {
	select {
	case <-gathered:
	case <-time.After(gateLimit):
		return fmt.Errorf("not all of %d attempts were begun within %s", n, gateLimit)
	}
	w.clock.pass(slowLooked)
	w.counted = append(w.counted, w.meter.Take()...)
	result, err := w.supervisor.Sweep(ctx)
	if err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	if result.Sent != n {
		return fmt.Errorf("a sweep told of %d of %d steps that are slow", result.Sent, n)
	}
	// What a sweep asks whether it finds something or not is in what a stack costs idle.
	for _, e := range w.meter.Take() {
		if strings.HasPrefix(e.Operation, "SendMessage") {
			w.counted = append(w.counted, e)
		}
	}
	return w.feed(ctx, deployed.EventsQueue, n, w.scheduler.HandleSQS)
}
