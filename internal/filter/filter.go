// Package filter is the table of filters: the parameters of the API's lists, the flags of the command, and the words of
// both search boxes. store.Filter has their meaning; this package finds no job.
package filter

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/plain"
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

// Read returns a value as the table has it: a value of Values in its own case, and a time that is written as so long
// ago as that time before now, in RFC 3339. Any other text stays as it is, for protocol.ReadFilter to refuse.
func (p Parameter) Read(text string, now time.Time) string {
	if p.Kind == Time {
		if ago, err := makegood.ParseDuration(text); err == nil {
			return domain.Instant(now.Add(-ago.Std())).Format(time.RFC3339Nano)
		}
	}
	if i := slices.IndexFunc(p.Values, func(known string) bool { return strings.EqualFold(known, text) }); i >= 0 {
		return p.Values[i]
	}
	return text
}

// Word is a filter as a person types it: NAME:VALUE.
type Word struct {
	Parameter
	// Text is the value, as it was typed.
	Text string
}

// short are the names that a person may type instead of longer ones.
var short = map[string]string{"id": "id-prefix", "reason": "reason-prefix"}

// Split parts what a person typed into filters, NAME:VALUE, and free words. An error names a filter that is not known,
// and the known one that is nearest.
func Split(text string) (filters []Word, free []string, err error) {
	for word := range strings.FieldsSeq(text) {
		name, value, isFilter := strings.Cut(word, ":")
		if !isFilter {
			free = append(free, word)
			continue
		}
		p, err := Named(name)
		if err != nil {
			return nil, nil, err
		}
		filters = append(filters, Word{p, value})
	}
	return filters, free, nil
}

// Named returns the parameter of a name, which may be a short one. The error names the nearest where there is none.
func Named(name string) (Parameter, error) {
	whole, is := short[name]
	if !is {
		whole = name
	}
	names := slices.Sorted(maps.Keys(short))
	for _, p := range Parameters() {
		if p.Name == whole {
			return p, nil
		}
		names = append(names, p.Name)
	}
	if meant := plain.Nearest(name, names); meant != "" {
		return Parameter{}, fmt.Errorf("unknown filter %.40q: did you mean %q?", name, meant)
	}
	return Parameter{}, fmt.Errorf("unknown filter %.40q: known are %s", name, strings.Join(names, ", "))
}

// Parameters returns all that jobs can be found by.
func Parameters() []Parameter {
	var states []string
	for _, s := range domain.ProcessStates() {
		states = append(states, string(s))
	}
	states = append(states, "waiting") // api.JobWaiting
	return []Parameter{
		{Name: "state", Value: "state", Says: "only jobs in this state; waiting: those that wait for a person's answer", Values: states},
		{Name: "workflow", Value: "workflow", Says: "only jobs of this workflow"},
		{Name: "definition", Value: "hash", Says: "only jobs that keep the definition of this hash"},
		{Name: "paused", Kind: Switch, Says: "only paused jobs, and with no state"},
		{Name: "tenant", Value: "tenant", Says: "only jobs for this tenant"},
		{Name: "label", Kind: Label, Value: "NAME=VALUE", Says: fmt.Sprintf("only jobs with this label; several times, at most %d: with all", limits.MaxLabels)},
		{Name: "step", Value: "step", Says: "only jobs that stand at this step: it failed (Error), or it or its undo is under way, waits, or is to be tried again"},
		{Name: "agent", Value: "agent", Says: "only jobs that stand at a step, or the undo of one, of this agent"},
		{Name: "reason-prefix", Value: "prefix", Says: "only jobs with a reason, or a first one of the round, that begins with this prefix"},
		{Name: "reason-kind", Value: "kind", Says: "only jobs in Error at a step that failed with an error of this kind, such as timeout"},
		{Name: "id-prefix", Value: "prefix", Says: "only jobs with an id that begins with this prefix"},
		{Name: "roots", Kind: Switch, Says: "only jobs that do no step of another job"},
		{Name: "words", Value: "words", Says: "only jobs with a reason, or a first one of the round, that has all of these words, in any case and order"},
		{Name: "since", Kind: Time, Value: "time", Says: "only jobs that were created then or later"},
		{Name: "until", Kind: Time, Value: "time", Says: "only jobs that were created before that"},
		{Name: "late", Kind: Switch, Says: "only unfinished jobs that are overdue: the Supervisor should have looked two minutes ago, or their own timeout, or the time by which they are expected, has passed"},
		{Name: "late-within", Kind: Duration, Value: "duration", Says: "only jobs with a timeout of their own, or a time by which they are expected, that passes within this time, or has passed"},
		{Name: "due-within", Kind: Duration, Value: "duration", Says: "only unfinished jobs with a step or deadline that begins or is due within this time"},
	}
}
