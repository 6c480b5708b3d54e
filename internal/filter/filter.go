// Package filter is the table of what jobs can be found by: the parameters of the API's lists and the flags of the command
// are made of it, so that both doors take the same. What each means says store.Filter; this package finds nothing.
package filter

import (
	"fmt"

	"github.com/makegood-dev/makegood"
)

// Kind is how the value of a parameter is written.
type Kind int

// The kinds. A Switch is there, as "true", or it is not; a Label is NAME=VALUE, and may be there several times.
const (
	Text Kind = iota
	Switch
	Time
	Duration
	Label
)

// Parameter is something that jobs can be found by.
type Parameter struct {
	// Name is that of the parameter, and of the flag.
	Name string
	Kind Kind
	// Value says what it takes, in a word; empty for a Switch.
	Value string
	// Says which jobs are meant.
	Says string
	// Values are all that it may be; nil: anything.
	Values []string
}

// Parameters returns all that jobs can be found by.
func Parameters() []Parameter {
	var states []string
	for _, s := range makegood.ProcessStates() {
		states = append(states, string(s))
	}
	return []Parameter{
		{Name: "state", Value: "state", Says: "only jobs in this state", Values: states},
		{Name: "workflow", Value: "workflow", Says: "only jobs of this workflow"},
		{Name: "definition", Value: "hash", Says: "only jobs that keep the definition of this hash"},
		{Name: "paused", Kind: Switch, Says: "only paused jobs, and with no state"},
		{Name: "tenant", Value: "tenant", Says: "only jobs for this tenant"},
		{Name: "label", Kind: Label, Value: "NAME=VALUE", Says: fmt.Sprintf("only jobs with this label; several times, at most %d: with all of them", makegood.MaxLabels)},
		{Name: "step", Value: "step", Says: "only jobs that stand at this step: it failed (Error), or it or its undo is under way, waits, or is to be tried again"},
		{Name: "agent", Value: "agent", Says: "only jobs that stand at a step, or the undo of one, of this agent"},
		{Name: "reason-prefix", Value: "prefix", Says: "only jobs whose reason begins with this prefix"},
		{Name: "reason-kind", Value: "kind", Says: "only jobs in Error at a step that failed with an error of this kind, such as timeout"},
		{Name: "since", Kind: Time, Value: "time", Says: "only jobs that were created then or later"},
		{Name: "until", Kind: Time, Value: "time", Says: "only jobs that were created before that"},
		{Name: "late", Kind: Switch, Says: "only unfinished jobs of which something is overdue: the Supervisor should have looked, or their own timeout, or the time by which they are expected, has passed"},
		{Name: "late-within", Kind: Duration, Value: "duration", Says: "only jobs whose own timeout, or the time by which they are expected, passes within this time, or has passed"},
		{Name: "due-within", Kind: Duration, Value: "duration", Says: "only unfinished jobs of which something begins or is due within this time"},
	}
}
