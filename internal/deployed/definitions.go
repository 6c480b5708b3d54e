package deployed

import (
	"context"
	"errors"
	"io/fs"
	"sync"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// definitions are the workflow files that a process is linked with. With the first batch that its Scheduler handles
// they are published to a stack that lacks their names, so deploying is enough. A name that has a definition keeps it
// until another is published: the current one must not depend on which process started last.
type definitions struct {
	byName map[string]*workflowfile.Compiled

	mu   sync.Mutex
	done bool
}

func newDefinitions(files fs.FS) (*definitions, error) {
	all, err := workflowfile.ReadAll(files, "")
	if err != nil {
		return nil, err
	}
	d := &definitions{byName: map[string]*workflowfile.Compiled{}}
	for _, f := range all {
		d.byName[f.Compiled.Workflow.Name] = f.Compiled
	}
	return d, nil
}

// publish makes one of the definitions current for its name, and its schedules those of the stack; it ignores other
// names.
func (d *definitions) publish(ctx context.Context, to store.Definitions, schedules adopter, name string) error {
	c, ok := d.byName[name]
	if !ok {
		return nil
	}
	return publish(ctx, to, schedules, c)
}

// adopter makes the schedules of a workflow's file those that are kept, and says before why it could not.
type adopter interface {
	MayAdopt(ctx context.Context, workflow string, schedules []makegood.Schedule) error
	Adopt(ctx context.Context, workflow string, schedules []makegood.Schedule) error
}

// publish makes a definition the current one of its name, and then its schedules those of the stack. If the schedules
// cannot be kept, it changes neither. After an error it may be repeated, and goes on.
func publish(ctx context.Context, to store.Definitions, schedules adopter, c *workflowfile.Compiled) error {
	if err := schedules.MayAdopt(ctx, c.Workflow.Name, c.Schedules); err != nil {
		return err
	}
	if err := to.PutDefinition(ctx, c.Workflow.Name, c.Hash, c.Definition); err != nil {
		return err
	}
	return schedules.Adopt(ctx, c.Workflow.Name, c.Schedules)
}

// publishAll makes those known that are not, once. It is done when it has succeeded.
func (d *definitions) publishAll(ctx context.Context, to store.Definitions, schedules adopter) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.done {
		return nil
	}
	for name := range d.byName {
		_, err := to.CurrentDefinition(ctx, name)
		if errors.Is(err, store.ErrNotFound) {
			err = d.publish(ctx, to, schedules, name)
		}
		if err != nil {
			return err
		}
	}
	d.done = true
	return nil
}
