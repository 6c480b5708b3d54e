package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"github.com/makegood-dev/makegood"
)

// table is how the orders stand, in a file, as their changes tell.
type table struct {
	mu   sync.Mutex
	path string
	// Orders are by their ids.
	Orders map[string]row
	// again is how many received changes were in the table already. full is how many more runs it takes; negative: any.
	again int
	full  atomic.Int64
}

// row is an order: the number of the last change that was taken, and the resulting state.
type row struct {
	Number int
	State  string
}

var errFull = errors.New("the disk is full")

// openTable reads the table, if there is one.
func openTable(path string) (*table, error) {
	t := &table{path: path, Orders: map[string]row{}}
	t.full.Store(-1)
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return t, nil
	}
	if err != nil {
		return nil, err
	}
	return t, json.Unmarshal(text, &t.Orders)
}

// take takes each number of an order once, in order, and returns after it is in the file: a refused change comes
// again.
func (t *table) take(_ context.Context, run makegood.Changes) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.full.Load() == 0 {
		return errFull
	}
	last := t.full.Add(-1) == 0
	is := t.Orders[run.Job]
	for _, c := range run.Changes {
		switch first := c.Number - max(1, c.Lost) + 1; {
		case c.Number <= is.Number:
			t.again++
			continue
		case first > is.Number+1:
			return fmt.Errorf("change %d of %s comes after %d: the next run has what is missing", c.Number, run.Job, is.Number)
		}
		is.Number = c.Number
		if c.Step == "" && c.Lost == 0 {
			is.State = c.To
		}
	}
	t.Orders[run.Job] = is
	if err := t.write(); err != nil || last {
		return errors.Join(err, errFull) // The write was reported as failed, so its changes come again.
	}
	return nil
}

// write replaces the file atomically: a reader finds the table before or after.
func (t *table) write() error {
	text, err := json.Marshal(t.Orders)
	if err != nil {
		return err
	}
	if err := os.WriteFile(t.path+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(t.path+".new", t.path)
}

// String says how many orders there are in each state.
func (t *table) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	counts := map[string]int{}
	for _, o := range t.Orders {
		counts[o.State]++
	}
	return text(counts)
}
