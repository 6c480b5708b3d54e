package agentrun

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/limits"
)

// Check refuses a user's own agents that could never get a task: nil, badly named, given twice, or under the name of
// the built-in one.
func Check(handlers []agent.Handler) error {
	var wrong []error
	seen := map[string]bool{}
	for i, h := range handlers {
		if isNil(h) {
			wrong = append(wrong, fmt.Errorf("the agent at %d is nil", i))
			continue
		}
		wrong = append(wrong, checkName(h.Name(), seen))
	}
	return errors.Join(wrong...)
}

// checkName refuses a name with which an agent could never get a task, and adds it to those that were seen.
func checkName(name string, seen map[string]bool) error {
	err := limits.AgentName.Check(name)
	switch {
	case err != nil:
	case name == makegood.HTTPAgent || !domain.GetsTasks(name):
		err = fmt.Errorf("%q is built in; give yours another name", name)
	case seen[name]:
		err = fmt.Errorf("the agent %q is given twice", name)
	}
	seen[name] = true
	return err
}

// CheckRun refuses the concurrency and the grace time of a run that limits.MaxAgentConcurrency or limits.MaxGrace
// forbids.
func CheckRun(concurrency int, grace time.Duration) error {
	switch {
	case concurrency < 1 || concurrency > limits.MaxAgentConcurrency:
		return fmt.Errorf("concurrency %d is out of range: 1 to %d", concurrency, limits.MaxAgentConcurrency)
	case grace < 0 || grace > limits.MaxGrace:
		return fmt.Errorf("grace %v is out of range: 0 to %v", grace, limits.MaxGrace)
	}
	return nil
}

// CheckOutside refuses names of agents in other processes that could never get a task: badly named, given twice, built
// in, or those of agents that are here.
func CheckOutside(names []string, here []agent.Handler) error {
	var wrong []error
	seen := map[string]bool{}
	for _, h := range here {
		if !isNil(h) {
			seen[h.Name()] = true
		}
	}
	for _, name := range names {
		wrong = append(wrong, checkName(name, seen))
	}
	return errors.Join(wrong...)
}

// isNil reports whether there is no agent: none at all, or a nil pointer to one.
func isNil(h agent.Handler) bool {
	v := reflect.ValueOf(h)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}
