package agentrun

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// zombies are the agents that were told to stop, did not, and were given up: they may still reach their remote
// services. The zero value: there are none.
type zombies struct {
	mu   sync.Mutex
	by   map[int]string // their names, and until when
	next int
	gone sync.WaitGroup
}

// add keeps a zombie until it ends, or its attempt does: its later effects are those of a silent attempt.
func (z *zombies) add(who string, until time.Time, done <-chan struct{}) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.by == nil {
		z.by = map[int]string{}
	}
	n := z.next
	z.next++
	z.by[n] = fmt.Sprintf("%s, until %s", who, until.UTC().Format(time.RFC3339))
	z.gone.Go(func() {
		patience := time.NewTimer(time.Until(until))
		defer patience.Stop()
		select {
		case <-done:
		case <-patience.C:
		}
		z.mu.Lock()
		defer z.mu.Unlock()
		delete(z.by, n)
	})
}

// Zombies names the agents that were given up when they were told to stop, and may be at work until their attempts end.
func (r *Runner) Zombies() []string {
	r.zombies.mu.Lock()
	defer r.zombies.mu.Unlock()
	return slices.Sorted(maps.Values(r.zombies.by))
}

// AwaitZombies returns when there are none any more. The caller must begin no task meanwhile.
func (r *Runner) AwaitZombies() { r.zombies.gone.Wait() }
