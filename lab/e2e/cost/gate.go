package main

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// gate lets those through that come to it, once as many are there as it was opened for, and once nothing holds them.
type gate struct {
	mu   sync.Mutex
	left int
	all  chan struct{}
	held <-chan struct{}
}

// open readies the gate for the next n, who are held until a channel is closed; nil: they are not. It returns the
// channel that is closed when all are there. Nobody may be waiting at the gate.
func (g *gate) open(n int, held <-chan struct{}) (gathered <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.left, g.all, g.held = n, make(chan struct{}), held
	if held == nil {
		g.held = g.all
	}
	return g.all
}

// pass waits until all are there and nothing holds them. It fails when ctx ends before, or after gateLimit.
func (g *gate) pass(ctx context.Context) error {
	g.mu.Lock()
	g.left--
	if g.left == 0 {
		close(g.all)
	}
	all, held := g.all, g.held
	g.mu.Unlock()
	patience := time.NewTimer(gateLimit)
	defer patience.Stop()
	for _, until := range []<-chan struct{}{all, held} {
		select {
		case <-until:
		case <-patience.C:
			return fmt.Errorf("the other attempts of the batch did not come within %s", gateLimit)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
