package main

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// gate lets those through that come to it, once as many are there as it was opened for.
type gate struct {
	mu   sync.Mutex
	left int
	all  chan struct{}
}

// open readies the gate for the next n. Nobody may be waiting at it.
func (g *gate) open(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.left, g.all = n, make(chan struct{})
}

// pass waits until all are there. It fails when ctx ends before, or after gateLimit.
func (g *gate) pass(ctx context.Context) error {
	g.mu.Lock()
	g.left--
	if g.left == 0 {
		close(g.all)
	}
	all := g.all
	g.mu.Unlock()
	patience := time.NewTimer(gateLimit)
	defer patience.Stop()
	select {
	case <-all:
		return nil
	case <-patience.C:
		return fmt.Errorf("the other attempts of the batch did not come within %s", gateLimit)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
