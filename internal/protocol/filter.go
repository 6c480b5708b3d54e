package protocol

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/limits"
)

func flag(on bool) string {
	if on {
		return "true"
	}
	return ""
}

func instant(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

func length(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}

// ReadFilter reads the parameters that FilterValues wrote, and ignores other parameters. The error is an *InvalidError
// that names the parameter, or the parameters that contradict each other.
func ReadFilter(values url.Values) (f api.Filter, err error) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		for _, value := range values[name] {
			if err := set(&f, name, value); err != nil {
				return api.Filter{}, &api.InvalidError{Message: fmt.Sprintf("%s: %v", name, err)}
			}
		}
	}
	return f, CheckFilter(f)
}

func readFlag(value string) (bool, error) {
	if value != "true" {
		return false, fmt.Errorf("%.40q: want true, or leave it out", value)
	}
	return true, nil
}

func readInstant(value string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, value)
	if err != nil {
		return at, fmt.Errorf("%.40q: want a time as in RFC 3339, such as 2026-01-31T09:00:00Z", value)
	}
	return domain.Instant(at), nil
}

func readLength(value string) (time.Duration, error) {
	d, err := makegood.ParseDuration(value)
	if err == nil && d <= 0 {
		err = fmt.Errorf("%.40q: want more than 0s", value)
	}
	return d.Std(), err
}

// FilterValues returns the filter as parameters of the API's lists.
func FilterValues(f api.Filter) url.Values {
	values := url.Values{}
	set := func(name, value string) {
		if value != "" {
			values.Add(name, value)
		}
	}
	set("state", string(f.State))
	set("workflow", f.Workflow)
	set("definition", f.Definition)
	set("paused", flag(f.Paused))
	set("tenant", f.Tenant)
	for _, name := range slices.Sorted(maps.Keys(f.Labels)) {
		set("label", name+"="+f.Labels[name])
	}
	set("step", f.Step)
	set("agent", f.Agent)
	set("reason-prefix", f.ReasonPrefix)
	set("reason-kind", f.ReasonKind)
	set("id-prefix", f.IDPrefix)
	set("roots", flag(f.Roots))
	set("words", f.Words)
	set("since", instant(f.Since))
	set("until", instant(f.Until))
	set("late", flag(f.Late))
	set("late-within", length(f.LateWithin))
	set("due-within", length(f.DueWithin))
	return values
}

func set(f *api.Filter, name, value string) (err error) {
	texts := map[string]*string{
		"workflow": &f.Workflow, "definition": &f.Definition, "tenant": &f.Tenant, "step": &f.Step, "agent": &f.Agent,
		"reason-prefix": &f.ReasonPrefix, "reason-kind": &f.ReasonKind,
		"id-prefix": &f.IDPrefix, "words": &f.Words,
	}
	if into, is := texts[name]; is {
		*into = value
		return nil
	}
	switch name {
	case "state":
		f.State = makegood.ProcessState(value)
	case "paused":
		f.Paused, err = readFlag(value)
	case "roots":
		f.Roots, err = readFlag(value)
	case "late":
		f.Late, err = readFlag(value)
	case "label":
		err = setLabel(f, value)
	case "since":
		f.Since, err = readInstant(value)
	case "until":
		f.Until, err = readInstant(value)
	case "late-within":
		f.LateWithin, err = readLength(value)
	case "due-within":
		f.DueWithin, err = readLength(value)
	}
	return err
}

func setLabel(f *api.Filter, text string) error {
	name, value, found := strings.Cut(text, "=")
	if !found {
		return fmt.Errorf("%.40q: want NAME=VALUE", text)
	}
	if have, twice := f.Labels[name]; twice && have != value {
		return fmt.Errorf("%s cannot be both %.40q and %.40q", name, have, value)
	}
	if f.Labels == nil {
		f.Labels = map[string]string{}
	}
	f.Labels[name] = value
	return nil
}

// CheckFilter refuses, with an *InvalidError, a filter that can match no job: a name that no job, step or label can
// have, or a contradiction.
func CheckFilter(f api.Filter) error {
	if wrong := wrong(f); wrong != "" {
		return &api.InvalidError{Message: wrong}
	}
	return nil
}

// wrong describes the error in a filter; empty: there is none.
func wrong(f api.Filter) string {
	if f.State != "" && f.State != api.JobWaiting && !slices.Contains(domain.ProcessStates(), f.State) {
		return fmt.Sprintf("there is no state %.40q; there are %v and %s", f.State, domain.ProcessStates(), api.JobWaiting)
	}
	for _, name := range []struct {
		of   limits.NameOf
		text string
	}{
		{limits.WorkflowName, domain.WorkflowOf(f.Workflow)}, // That of the parts of a map has the step, too.
		{limits.StepName, domain.MapStep(f.Workflow)},
		{limits.TenantName, f.Tenant},
		{limits.StepName, f.Step},
		{limits.AgentName, f.Agent},
		{limits.ErrorKind, f.ReasonKind},
	} {
		if err := name.of.Check(name.text); name.text != "" && err != nil {
			return err.Error()
		}
	}
	if err := limits.CheckLabels(f.Labels); err != nil {
		return err.Error()
	}
	if err := domain.CheckJobID(f.IDPrefix + "0"); err != nil && f.IDPrefix != "" {
		return fmt.Sprintf("id-prefix: %.40q begins no job's id: want [A-Za-z0-9._:~-]{1,%d}", f.IDPrefix, makegood.MaxJobIDBytes-1)
	}
	return contradicts(f)
}

// contradicts names the parts of a filter that no job can match at once; empty: there are none.
func contradicts(f api.Filter) string {
	late := f.Late || f.LateWithin != 0 || f.DueWithin != 0
	switch {
	case f.State != "" && f.Paused:
		return "paused: want true, and no state beside it"
	case f.State.Finished() && (late || f.Step != "" || f.Agent != ""):
		return fmt.Sprintf("a job that is %s is at its end: it is not late or due, and stands at no step and with no agent", f.State)
	case f.ReasonKind != "" && f.State != "" && f.State != makegood.JobError:
		return fmt.Sprintf("reason-kind: only a job in Error has one, and not one that is %s", f.State)
	case f.Roots && domain.IsChild(f.IDPrefix):
		return fmt.Sprintf("roots: a job with an id that begins with %.40q does a step of another", f.IDPrefix)
	case f.LateWithin < 0 || f.DueWithin < 0:
		return "late-within and due-within: want more than 0s"
	case len(f.ReasonPrefix) > limits.MaxReasonBytes:
		return fmt.Sprintf("reason-prefix has %d bytes, the limit is %d", len(f.ReasonPrefix), limits.MaxReasonBytes)
	case len(f.Words) > limits.MaxReasonBytes:
		return fmt.Sprintf("words has %d bytes, the limit is %d", len(f.Words), limits.MaxReasonBytes)
	case !f.Since.IsZero() && !f.Until.IsZero() && !f.Since.Before(f.Until):
		return "since: no job was created then or later, and before until"
	}
	return ""
}
