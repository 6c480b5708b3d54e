package command

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/client"
	"github.com/makegood-dev/makegood/internal/filter"
)

// filterFlags are the flags of every verb that is about more than one job: what jobs can be found by.
type filterFlags struct {
	texts    map[string]*string
	switches map[string]*bool
	labels   []string
}

// newFilterFlags adds these flags to a verb. What is said of a workflow is completed by what o asks.
func newFilterFlags(cmd *cobra.Command, o *remote) *filterFlags {
	f := &filterFlags{texts: map[string]*string{}, switches: map[string]*bool{}}
	for _, p := range filter.Parameters() {
		// The word in quotes is what help shows as the value.
		says := strings.Replace(p.Says, p.Value, "`"+p.Value+"`", 1)
		if !strings.Contains(says, "`") && p.Value != "" {
			says = "`" + p.Value + "`: " + says
		}
		switch p.Kind {
		case filter.Switch:
			f.switches[p.Name] = cmd.Flags().Bool(p.Name, false, p.Says)
			continue
		case filter.Label:
			cmd.Flags().StringArrayVar(&f.labels, p.Name, nil, says)
			continue
		case filter.Time:
			says += "; as in RFC 3339, or so long ago, such as 2h"
		case filter.Duration, filter.Text:
		}
		if p.Values != nil {
			says += fmt.Sprintf(": %v", p.Values)
		}
		f.texts[p.Name] = cmd.Flags().String(p.Name, "", says)
	}
	completeFlag(cmd, "state", completeStates)
	completeFlag(cmd, "workflow", completeWorkflows(o))
	return f
}

// any reports whether one of the flags is given.
func (f *filterFlags) any(cmd *cobra.Command) bool {
	return slices.ContainsFunc(filter.Parameters(), func(p filter.Parameter) bool { return cmd.Flags().Changed(p.Name) })
}

// filter returns what the flags say. A time that is said as so long ago is counted from now, once, so that all pages of a
// list are of one list.
func (f *filterFlags) filter(now time.Time) (client.Filter, error) {
	values := url.Values{"label": f.labels}
	for _, p := range filter.Parameters() {
		if text := f.texts[p.Name]; text != nil && *text != "" {
			value := readAs(p, *text, now)
			if p.Values != nil && !slices.Contains(p.Values, value) {
				return client.Filter{}, exit(codeUsage, fmt.Errorf("--%s %s: want one of %v", p.Name, value, p.Values))
			}
			values.Set(p.Name, value)
		}
		if on := f.switches[p.Name]; on != nil && *on {
			values.Set(p.Name, "true")
		}
	}
	found, err := client.ReadFilter(values)
	if invalid, is := errors.AsType[*client.InvalidError](err); is {
		return found, exit(codeUsage, errors.New(invalid.Message))
	}
	return found, err
}

// readAs returns a value as the table has it: a state in its own case, and a time that is so long ago as a time.
func readAs(p filter.Parameter, text string, now time.Time) string {
	if p.Kind == filter.Time {
		if ago, err := makegood.ParseDuration(text); err == nil {
			return makegood.Instant(now.Add(-ago.Std())).Format(time.RFC3339Nano)
		}
	}
	for _, value := range p.Values {
		if strings.EqualFold(text, value) {
			return value
		}
	}
	return text
}
