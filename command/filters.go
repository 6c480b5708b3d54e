package command

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/filter"
	"github.com/makegood-dev/makegood/internal/protocol"
)

// filterFlags are the flags of list, and of every verb for more than one job, that select jobs.
type filterFlags struct {
	texts    map[string]*string
	switches map[string]*bool
	labels   []string
	// renamed are the names of flags that are not those of their parameters.
	renamed map[string]string
}

// add gives a verb these flags. o is asked for completions of a workflow's name.
func (f *filterFlags) add(cmd *cobra.Command, o *remote) {
	f.texts, f.switches = map[string]*string{}, map[string]*bool{}
	for _, p := range filter.Parameters() {
		switch p.Kind {
		case filter.Switch:
			f.switches[p.Name] = cmd.Flags().Bool(f.flag(p), false, p.Says)
		case filter.Label:
			cmd.Flags().StringArrayVar(&f.labels, f.flag(p), nil, usage(p))
		case filter.Time, filter.Duration, filter.Text:
			f.texts[p.Name] = cmd.Flags().String(f.flag(p), "", usage(p))
		}
	}
	cmd.MarkFlagsMutuallyExclusive("paused", "state")
	completeFlag(cmd, "state", completeOneOf(domain.ProcessStates()...))
	completeFlag(cmd, "workflow", completeWorkflows(o))
}

// flag is the name of the flag of a parameter: its own, unless the verb uses that for another flag.
func (f *filterFlags) flag(p filter.Parameter) string { return cmp.Or(f.renamed[p.Name], p.Name) }

// usage says what a flag means. The word in quotes is what help shows as its value.
func usage(p filter.Parameter) string {
	says := "`" + p.Value + "`: " + p.Says
	if i := strings.LastIndex(p.Says, " this "+p.Value); i >= 0 {
		says = p.Says[:i] + strings.Replace(p.Says[i:], p.Value, "`"+p.Value+"`", 1)
	}
	switch {
	case p.Kind == filter.Time:
		says += "; as in RFC 3339, or so long ago, such as 2h"
	case p.Values != nil:
		says += fmt.Sprintf(": %v", p.Values)
	}
	return says
}

// given returns the first of these flags that is given; empty: none.
func (f *filterFlags) given(cmd *cobra.Command) string {
	for _, p := range filter.Parameters() {
		if name := f.flag(p); cmd.Flags().Changed(name) {
			return "--" + name
		}
	}
	return ""
}

// narrow sets a default for a filter that the user did not give. It sets no state beside --paused: a paused job can
// be in any state.
func (f *filterFlags) narrow(cmd *cobra.Command, name, value string) {
	if !cmd.Flags().Changed(name) && !(name == "state" && cmd.Flags().Changed("paused")) {
		*f.texts[name] = value
	}
}

// read returns the filter of the flags and of the words typed as NAME:VALUE. It turns an age into an absolute time
// once, so that all pages of a list use the same time.
func (f *filterFlags) read(typed ...filter.Word) (api.Filter, error) {
	values, now := url.Values{"label": f.labels}, time.Now()
	for _, p := range filter.Parameters() {
		if text := f.texts[p.Name]; text != nil && *text != "" {
			value := p.Read(*text, now)
			if _, err := time.Parse(time.RFC3339, value); err != nil && p.Kind == filter.Time {
				return api.Filter{}, fmt.Errorf("--%s %.40q: want so long ago, such as 2h or 7d, or a time as in RFC 3339, such as 2026-01-31T09:00:00Z", f.flag(p), value)
			}
			if p.Values != nil && !slices.Contains(p.Values, value) {
				return api.Filter{}, fmt.Errorf("--%s %s: want one of %v", f.flag(p), value, p.Values)
			}
			values.Set(p.Name, value)
		}
		if on := f.switches[p.Name]; on != nil && *on {
			values.Set(p.Name, "true")
		}
	}
	for _, word := range typed {
		if word.Kind != filter.Label {
			values.Del(word.Name)
		}
		values.Add(word.Name, word.Read(word.Text, now))
	}
	found, err := protocol.ReadFilter(values)
	if invalid, is := errors.AsType[*api.InvalidError](err); is {
		return found, errors.New(invalid.Message)
	}
	return found, err
}
