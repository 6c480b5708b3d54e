package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"reflect"
	"slices"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
)

// check refuses what an engine could only stumble over later: all that is wrong, at once.
func (o Options) check() error {
	return errors.Join(checkDir(o.Dir), checkWorkflows(o.Workflows), checkAgents(o.Agents), checkListeners(o))
}

func checkDir(dir string) error {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return fmt.Errorf("Options.Dir: %s is a file, want a folder, or what can become one", dir)
	}
	return nil
}

func checkWorkflows(files fs.FS) error {
	if files == nil {
		return nil
	}
	if _, err := fs.Stat(files, "."); err != nil {
		return fmt.Errorf("Options.Workflows: the files cannot be read: %w", err)
	}
	return nil
}

func checkAgents(agents []agent.Handler) error {
	var wrong []error
	seen := map[string]bool{}
	for i, h := range agents {
		if isNil(h) {
			wrong = append(wrong, fmt.Errorf("Options.Agents: the agent at %d is nil", i))
			continue
		}
		name := h.Name()
		err := makegood.AgentName.Check(name)
		switch {
		case err != nil:
			wrong = append(wrong, fmt.Errorf("Options.Agents: %w", err))
		case name == makegood.HTTPAgent:
			wrong = append(wrong, fmt.Errorf("Options.Agents: %q is built in; give yours another name", name))
		case seen[name]:
			wrong = append(wrong, fmt.Errorf("Options.Agents: the agent %q is given twice", name))
		}
		seen[name] = true
	}
	return errors.Join(wrong...)
}

// isNil reports whether there is no agent: none at all, or a nil pointer to one.
func isNil(h agent.Handler) bool {
	v := reflect.ValueOf(h)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}

func checkListeners(o Options) error {
	var wrong []error
	for _, name := range slices.Sorted(maps.Keys(o.Listeners)) {
		if err := makegood.ReplyName.Check(name); err != nil {
			wrong = append(wrong, fmt.Errorf("Options.Listeners: %w", err))
		}
		if o.Listeners[name] == nil {
			wrong = append(wrong, fmt.Errorf("Options.Listeners: %q is nil", name))
		}
	}
	return errors.Join(wrong...)
}
