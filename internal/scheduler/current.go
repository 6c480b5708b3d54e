package scheduler

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/makegood-dev/makegood/internal/store"
)

// currents remembers for CurrentFor which definitions are current, of the workflows that are submitted to: all
// submissions to a workflow would read one item, which DynamoDB gives 3,000 times a second at most.
type currents struct {
	mu    sync.Mutex
	known map[string]current
}

// current is the hash of a definition, and until when it is taken for current.
type current struct {
	hash  string
	until time.Time
}

// current returns the hash of the definition that is current for a workflow's name, or was less than CurrentFor ago. A
// name that is not known is ErrInvalid.
func (s *Scheduler) current(ctx context.Context, workflow string) (string, error) {
	began := s.config.Now()
	if hash, ok := s.currents.get(workflow, began); ok {
		return hash, nil
	}
	hash, err := s.config.Definitions.CurrentDefinition(ctx, workflow)
	if errors.Is(err, store.ErrNotFound) {
		return "", fmt.Errorf("%w: there is no workflow %q", ErrInvalid, workflow)
	}
	if err != nil {
		return "", fmt.Errorf("current definition of %s: %w", workflow, err)
	}
	// From before it was read: a definition that became current during the read is not missed for longer.
	s.currents.put(workflow, current{hash, began.Add(s.config.CurrentFor)})
	return hash, nil
}

func (c *currents) get(workflow string, now time.Time) (hash string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.known[workflow]
	return known.hash, now.Before(known.until)
}

func (c *currents) put(workflow string, known current) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil {
		c.known = make(map[string]current)
	}
	c.known[workflow] = known
}
