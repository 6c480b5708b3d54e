package deployed

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// definitions are the workflow files that a process is linked with. They become the current ones of a
// stack with the first batch that a Scheduler of that build handles: deploying is all that it takes.
type definitions struct {
	byName map[string]*workflowfile.Compiled

	mu   sync.Mutex
	done bool
}

func newDefinitions(files [][]byte) (*definitions, error) {
	d := &definitions{byName: map[string]*workflowfile.Compiled{}}
	for i, file := range files {
		c, err := workflowfile.Parse(fmt.Sprintf("workflow file %d", i+1), file)
		if err != nil {
			return nil, err
		}
		d.byName[c.Workflow.Name] = c
	}
	return d, nil
}

// publish makes one of them the current definition of its name; of another name it does nothing.
func (d *definitions) publish(ctx context.Context, to store.Definitions, name string) error {
	c, ok := d.byName[name]
	if !ok {
		return nil
	}
	return to.PutDefinition(ctx, name, c.Hash, c.Definition)
}

// publishAll makes all of them current, once. It is done when it has succeeded.
func (d *definitions) publishAll(ctx context.Context, to store.Definitions) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.done {
		return nil
	}
	for name, c := range d.byName {
		current, err := to.CurrentDefinition(ctx, name)
		if err == nil && current == c.Hash {
			continue
		}
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		if err := d.publish(ctx, to, name); err != nil {
			return err
		}
	}
	d.done = true
	return nil
}
