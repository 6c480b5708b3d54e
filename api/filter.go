package api

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/limits"
)

// JobWaiting is a State of a Filter, and of no job: the job has not ended or stopped, and an approval of it waits for an answer.
const JobWaiting makegood.ProcessState = "waiting"

// Filter narrows a list: a job must be all that it says. Empty fields match everything.
type Filter struct {
	// State is the ProcessState, or Waiting; Workflow the name of the workflow, Definition the hash of the definition that the job keeps.
	State      makegood.ProcessState
	Workflow   string
	Definition string
	// Paused: only paused jobs, whatever the state under the pause; with no State.
	Paused bool
	// Tenant is that of the submission; of Labels the job has every one, with this value.
	Tenant string
	Labels map[string]string
	// Step is one at which the job stands: in Error the one that failed first, otherwise one that is sent, waits, or is to be
	// tried again, or whose undo is. Agent is whom such a step, or its undo, is with.
	Step, Agent string
	// ReasonPrefix begins the job's Reason. ReasonKind is the kind of the error by which the step failed at which a job in
	// Error has stopped (makegood.StepError.Kind).
	ReasonPrefix, ReasonKind string
	// IDPrefix begins the job's id.
	IDPrefix string
	// Words are all in the job's Reason, in any case and order; spaces part them. At most 1,024 bytes.
	Words string
	// Since and Until bound when the job was created: not before Since, and before Until.
	Since, Until time.Time
	// Late: it is unfinished, and the Supervisor should have looked at it (CompleteBy) two minutes ago, or, while it goes forward and is not
	// paused, its own timeout has passed, or the time by which its workflow expects it (makegood.Job.ExpectBy). LateWithin: the
	// timeout or that time passes within this time, or has passed. DueWithin: something of it begins or is due within this time.
	Late                  bool
	LateWithin, DueWithin time.Duration
}

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

// ReadFilter reads what Values wrote. What is none of a filter's parameters it leaves out. The error is an *InvalidError
// that names the parameter, or what contradicts what.
func ReadFilter(values url.Values) (f Filter, err error) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		for _, value := range values[name] {
			if err := f.set(name, value); err != nil {
				return Filter{}, &InvalidError{Message: fmt.Sprintf("%s: %v", name, err)}
			}
		}
	}
	return f, f.Check()
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
		err = fmt.Errorf("%.40q: want more than nothing", value)
	}
	return d.Std(), err
}

// Values returns the filter as parameters of the API's lists.
func (f Filter) Values() url.Values {
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
	set("words", f.Words)
	set("since", instant(f.Since))
	set("until", instant(f.Until))
	set("late", flag(f.Late))
	set("late-within", length(f.LateWithin))
	set("due-within", length(f.DueWithin))
	return values
}

func (f *Filter) set(name, value string) (err error) {
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
	case "late":
		f.Late, err = readFlag(value)
	case "label":
		err = f.label(value)
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

func (f *Filter) label(text string) error {
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

// Check refuses, with an *InvalidError, a filter that can match nothing: a name that no job, step or label can have, and
// what contradicts itself.
func (f Filter) Check() error {
	if wrong := f.wrong(); wrong != "" {
		return &InvalidError{Message: wrong}
	}
	return nil
}

// wrong says what is wrong with a filter; empty: nothing.
func (f Filter) wrong() string {
	if f.State != "" && f.State != JobWaiting && !slices.Contains(domain.ProcessStates(), f.State) {
		return fmt.Sprintf("there is no state %.40q; there are %v and %s", f.State, domain.ProcessStates(), JobWaiting)
	}
	for _, name := range []struct {
		of   limits.NameOf
		text string
	}{
		{limits.WorkflowName, f.Workflow},
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
	if err := makegood.CheckJobID(f.IDPrefix + "0"); err != nil && f.IDPrefix != "" {
		return fmt.Sprintf("id-prefix: %.40q begins no job's id: want [A-Za-z0-9._:-]{1,%d}", f.IDPrefix, makegood.MaxJobIDBytes-1)
	}
	return f.contradicts()
}

// contradicts says what of a filter no job can be at once; empty: nothing.
func (f Filter) contradicts() string {
	late := f.Late || f.LateWithin != 0 || f.DueWithin != 0
	switch {
	case f.State != "" && f.Paused:
		return "paused: want true, and no state beside it"
	case f.State.Finished() && (late || f.Step != "" || f.Agent != ""):
		return fmt.Sprintf("a job that is %s is at its end: it is not late or due, and stands at no step and with no agent", f.State)
	case f.ReasonKind != "" && f.State != "" && f.State != makegood.JobError:
		return fmt.Sprintf("reason-kind: only a job in Error has one, and not one that is %s", f.State)
	case f.LateWithin < 0 || f.DueWithin < 0:
		return "late-within and due-within: want more than nothing"
	case len(f.ReasonPrefix) > limits.MaxReasonBytes:
		return fmt.Sprintf("reason-prefix has %d bytes, the limit is %d", len(f.ReasonPrefix), limits.MaxReasonBytes)
	case len(f.Words) > limits.MaxReasonBytes:
		return fmt.Sprintf("words has %d bytes, the limit is %d", len(f.Words), limits.MaxReasonBytes)
	case !f.Since.IsZero() && !f.Until.IsZero() && !f.Since.Before(f.Until):
		return "since: no job was created then or later, and before until"
	}
	return ""
}
