package store

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

// Lister lists jobs for people to look at. Lists carry no payloads and may be a little old.
type Lister interface {
	// ListJobs returns a page of at most limit jobs that match, newest first where the store can, after the page that gave
	// cursor; empty: from the start. A page may be short, or empty, before the end. A cursor that no page of such a list
	// gave is ErrNotFound.
	//
	// Between two pages jobs may be added, end, and be deleted: no job comes twice, and none is missed that matched all the
	// time. There are two exceptions. Where a list goes by the keys of the index (Late, LateWithin and DueWithin; on
	// DynamoDB also the states of unfinished jobs but Error), a job whose key is moved meanwhile may come again. Where it
	// goes by the jobs that operators were told about (WantsWarned), a job may be missed about which they are told
	// meanwhile.
	ListJobs(ctx context.Context, filter Filter, cursor string, limit int) (Page, error)
}

// Totaler counts jobs by their state, and reads none for it.
type Totaler interface {
	// Totals returns how many jobs there are in each state, none where there is none. It may be a little old.
	Totals(ctx context.Context) (map[makegood.ProcessState]int, error)
}

// Page is a page of a list.
type Page struct {
	Jobs []Listed
	// Cursor is that of the next page; empty at the end.
	Cursor string
	// Scanned: no index leads to such jobs, and others were read, and passed over, to find them.
	Scanned bool
}

// Filter narrows a list: a job must match every field. Empty fields match every job. A job that cannot be decoded has
// only the fields that stand beside its data (state, workflow, key), and that it was parked; other fields of a filter
// find it empty.
type Filter struct {
	// State is the ProcessState, Workflow the name of the workflow, Definition the hash of the definition the job keeps.
	State      makegood.ProcessState
	Workflow   string
	Definition string
	// Waiting: the job has neither ended nor stopped, and one of its approvals waits for an answer.
	Waiting bool `json:",omitempty"`
	// Paused: only paused jobs, whatever the state under the pause.
	Paused bool
	// Tenant is that of the submission; of Labels the job has every one, with this value.
	Tenant string
	Labels map[string]string
	// Step is one at which the job stands: see Listed.Stands. Agent is the agent of such a step, or of its undo, by the
	// job's definition.
	Step, Agent string
	// ReasonPrefix begins the job's reason, or the first of its round; ReasonKind is the kind of the error by which the
	// step failed at which a job in Error has stopped: see Listed.Kind.
	ReasonPrefix, ReasonKind string
	// IDPrefix begins the job's id.
	IDPrefix string
	// Roots: the job is no child of another, which its id says.
	Roots bool `json:",omitempty"`
	// Words are all in the job's reason, or all in the first of its round, in any case and order; spaces part them.
	Words string
	// Since and Until bound when the job was created: not before Since, and before Until.
	Since, Until time.Time
	// Late: the job is unfinished, and its key (CompleteBy: the Supervisor should have looked) has passed by
	// limits.LateGrace at Now or, while it goes forward and is not paused, its own timeout or the time by which its
	// workflow expects it (job.Job.Expected).
	Late bool
	// LateWithin: that timeout, or that time, passes, or has passed, by that long after Now.
	LateWithin time.Duration
	// DueWithin: the job's key is at most that long after Now: an event of the job is due then, such as its start, a retry,
	// a look at an attempt.
	DueWithin time.Duration
	// Now is what the three above are counted from. It is no part of what a list is: pages may have later ones.
	Now time.Time
}

// Listed is a job in a list: the fields that lists show and filters look at.
type Listed struct {
	ID           string
	Workflow     string
	Definition   string
	ProcessState makegood.ProcessState
	FailureCount int
	CompleteBy   time.Time
	CreatedAt    time.Time
	Deadline     time.Time
	Paused       bool
	Tenant       string
	Labels       map[string]string
	Reason       string
	FirstReason  string
	// Stands are the steps at which the job stands: in Error the one that failed first of those for which it stopped, none
	// where it stopped for another reason; unfinished otherwise those that are sent, wait, or are to be tried again. At its
	// end: none.
	Stands []Standing
	// Agents are those that these steps are with, each once; none if the definition is not there.
	Agents []string
	// Kind is the kind of the error by which the step failed at which a job in Error stands (makegood.StepError.Kind);
	// empty: the error has none, or there is none.
	Kind string
	// StoppedAt is when that step failed; of a job that is paused when that was asked for; zero: not so, or not known.
	StoppedAt time.Time
	// Job is the job as its own item has it: details that lie apart may be missing. A damaged job has only the fields that
	// stand beside its data.
	Job job.Job
}

// Steps returns the names of the steps at which the job stands, each once.
func (l Listed) Steps() []string {
	steps := make([]string, 0, len(l.Stands))
	for _, at := range l.Stands {
		if !slices.Contains(steps, at.Step) {
			steps = append(steps, at.Step)
		}
	}
	return steps
}

// Standing is a step of a job, or its undo.
type Standing struct {
	Step string
	Undo bool
}

// ListedOf returns what a list has of a job.
func ListedOf(j job.Job) Listed {
	l := Listed{
		ID: j.ID, Workflow: j.Workflow, Definition: j.Definition, ProcessState: j.ProcessState, FailureCount: j.FailureCount,
		CompleteBy: j.CompleteBy, CreatedAt: j.CreatedAt, Deadline: j.Deadline, Paused: j.Paused(),
		Tenant: j.Tenant, Labels: j.Labels, Reason: j.Reason, FirstReason: j.FirstReason, StoppedAt: j.PausedAt, Job: j,
	}
	switch {
	case j.ProcessState == makegood.JobError:
		l.stopped(j)
	case !j.ProcessState.Finished():
		l.Stands = open(j)
	}
	return l
}

// stopped finds the step for which a job is in Error. A step that fails while the job is in Error fails later, and
// changes neither step nor kind.
func (l *Listed) stopped(j job.Job) {
	undo := j.Desired != makegood.JobProcessed
	var first *job.Activity
	for i := range j.Steps {
		a := &j.Steps[i].Forward
		if undo {
			a = &j.Steps[i].Undo
		}
		if a.State == job.Failed && (first == nil || a.FinishedAt.Before(first.FinishedAt)) {
			first, l.Stands = a, []Standing{{Step: j.Steps[i].Name, Undo: undo}}
		}
	}
	if first == nil {
		return
	}
	l.StoppedAt = first.FinishedAt
	if first.Error != nil {
		l.Kind = first.Error.Kind
	}
}

// open returns the steps of an unfinished job that are under way or wait.
func open(j job.Job) []Standing {
	var all []Standing
	for i := range j.Steps {
		s := &j.Steps[i]
		for _, of := range []struct {
			activity *job.Activity
			undo     bool
		}{{&s.Forward, false}, {&s.Undo, true}} {
			switch of.activity.State {
			case job.Dispatched, job.Backoff, job.Waiting:
				all = append(all, Standing{Step: s.Name, Undo: of.undo})
			}
		}
	}
	return all
}

// Shows reports whether a job matches the filter in all but Agent, which a job does not know: see Sieve.
func (f Filter) Shows(l Listed) bool {
	return f.isOf(l) && f.isLabelled(l) && f.stands(l) && f.isAbout(l)
}

func (f Filter) isOf(l Listed) bool {
	return strings.HasPrefix(l.ID, f.IDPrefix) && !(f.Roots && domain.IsChild(l.ID)) && (f.State == "" || l.ProcessState == f.State) && (f.Workflow == "" || l.Workflow == f.Workflow) &&
		(f.Definition == "" || l.Definition == f.Definition) && (!f.Paused || l.Paused && !l.ProcessState.Finished())
}

func (f Filter) isLabelled(l Listed) bool {
	if f.Tenant != "" && l.Tenant != f.Tenant {
		return false
	}
	for name, value := range f.Labels {
		if has, ok := l.Labels[name]; !ok || has != value {
			return false
		}
	}
	return true
}

func (f Filter) stands(l Listed) bool {
	if f.ReasonKind != "" && l.Kind != f.ReasonKind || !strings.HasPrefix(l.Reason, f.ReasonPrefix) && !strings.HasPrefix(l.FirstReason, f.ReasonPrefix) {
		return false
	}
	if f.Words != "" && !says(l.Reason, f.Words) && !says(l.FirstReason, f.Words) {
		return false
	}
	return f.Step == "" || slices.ContainsFunc(l.Stands, func(s Standing) bool { return s.Step == f.Step })
}

// says reports whether a reason has all of the words, in any case and order.
func says(reason, words string) bool {
	reason = strings.ToLower(reason)
	for word := range strings.FieldsSeq(strings.ToLower(words)) {
		if !strings.Contains(reason, word) {
			return false
		}
	}
	return true
}

// isAbout reports whether the times of a job are those that the filter wants.
func (f Filter) isAbout(l Listed) bool {
	passed := func(at time.Time, by time.Duration) bool { return !at.IsZero() && !at.After(f.Now.Add(by)) }
	forward := !l.Paused && (l.ProcessState == makegood.JobPending || l.ProcessState == makegood.JobProcessing)
	finished := l.ProcessState.Finished()
	overdue := func(by time.Duration) bool {
		return forward && passed(l.Deadline, by) || l.Job.Expected() && passed(l.Job.ExpectBy, by)
	}
	switch {
	case !f.Since.IsZero() && l.CreatedAt.Before(f.Since), !f.Until.IsZero() && !l.CreatedAt.Before(f.Until):
		return false
	case f.Late && (finished || !passed(l.CompleteBy, -limits.LateGrace) && !overdue(0)):
		return false
	case f.LateWithin > 0 && !overdue(f.LateWithin):
		return false
	case f.DueWithin > 0 && (finished || !passed(l.CompleteBy, f.DueWithin)):
		return false
	}
	return true
}

// WantsWarned reports whether jobs that are warned of (job.Job.Warned) can match whatever their keys are.
func (f Filter) WantsWarned() bool {
	return f.DueWithin == 0 && !f.InError() && !f.Paused && (f.Late || f.LateWithin > 0)
}

// KeyBy returns the time after which no job that matches can have its key, which is never later than the earliest
// moment at which an event of the job is due; zero: there is none. Jobs that are warned of are another matter: see
// WantsWarned.
func (f Filter) KeyBy() time.Time {
	var by time.Time
	lower := func(asked bool, within time.Duration) {
		if at := f.Now.Add(within); asked && (by.IsZero() || at.Before(by)) {
			by = at
		}
	}
	if f.DueWithin > 0 {
		// A late job may have its key later than that, if it is warned of.
		return f.Now.Add(f.DueWithin)
	}
	lower(f.Late, 0)
	lower(f.LateWithin > 0, f.LateWithin)
	return by
}

// InError reports whether none but jobs in Error can match.
func (f Filter) InError() bool { return f.State == makegood.JobError || f.ReasonKind != "" }

// Unfinished reports whether none but jobs that are not at their end can match, whatever State says.
func (f Filter) Unfinished() bool {
	return f.InError() || f.Paused || f.Waiting || f.Step != "" || f.Agent != "" || f.Late || f.LateWithin > 0 || f.DueWithin > 0
}

// Sieve holds jobs against a filter. It is for one goroutine.
type Sieve struct {
	filter     Filter
	definition func(hash string) ([]byte, error)
	agents     map[string]map[Standing]string
}

// NewSieve returns the sieve of a filter. definition reads a stored definition by its hash, once for each name that
// jobs have; one that is ErrNotFound, or cannot be read, has no agents.
func NewSieve(filter Filter, definition func(hash string) ([]byte, error)) *Sieve {
	return &Sieve{filter: filter, definition: definition, agents: map[string]map[Standing]string{}}
}

// Shows reports whether a job matches the filter, and then notes the agents of the steps at which it stands. The error
// is that of the definition that could not be read.
func (s *Sieve) Shows(l *Listed) (bool, error) {
	if !s.filter.Shows(*l) {
		return false, nil
	}
	var err error
	l.Agents, err = s.agentsOf(*l)
	if s.filter.Waiting && !s.asks(*l) {
		return false, err
	}
	return s.filter.Agent == "" || slices.Contains(l.Agents, s.filter.Agent), err
}

// agentsOf returns the agents of the steps at which a job stands, each once.
func (s *Sieve) agentsOf(l Listed) ([]string, error) {
	if len(l.Stands) == 0 {
		return nil, nil
	}
	of, known := s.agents[l.Definition]
	if !known {
		part, mapped := domain.MapRefOf(l.Definition)
		if !mapped {
			part.Definition = l.Definition
		}
		definition, err := s.definition(part.Definition)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return nil, fmt.Errorf("definition %s: %w", l.Definition, err)
		}
		of = agentsIn(definition, part)
		s.agents[l.Definition] = of
	}
	var all []string
	for _, at := range l.Stands {
		if agent := of[at]; agent != "" && !slices.Contains(all, agent) {
			all = append(all, agent)
		}
	}
	return all, nil
}

// asks reports whether an approval of a job waits for an answer. agentsOf has read the job's agents.
func (s *Sieve) asks(l Listed) bool {
	if l.ProcessState == makegood.JobError {
		return false
	}
	return slices.ContainsFunc(l.Stands, func(at Standing) bool {
		step, _ := l.Job.Step(at.Step)
		a := step.Forward
		if at.Undo {
			a = step.Undo
		}
		return a.State == job.Waiting && s.agents[l.Definition][at] == makegood.AgentApproval
	})
}

// agentsIn returns the agents of the steps of a definition, and of their undos, which name their own; or those of the
// steps of a part of it. It reads no other field, so a definition that a later release wrote is readable.
func agentsIn(definition []byte, part domain.MapRef) map[Standing]string {
	type step struct {
		Name, Agent string
		Undo        struct{ Agent string }
		Map         struct{ Item *step }
	}
	var workflow struct{ Steps []step }
	of := map[Standing]string{}
	if json.Unmarshal(definition, &workflow) != nil {
		return of
	}
	note := func(name string, s step) {
		of[Standing{Step: name}] = s.Agent
		of[Standing{Step: name, Undo: true}] = s.Undo.Agent
	}
	size := domain.PartSize(part.Items)
	for _, s := range workflow.Steps {
		if part.Step == "" {
			note(s.Name, s)
			continue
		}
		if part.Step != s.Name || s.Map.Item == nil {
			continue
		}
		if size == 1 {
			s = *s.Map.Item
		}
		for i := 0; i*size < part.Items; i++ {
			note(domain.ItemStep(i, size), s)
		}
	}
	return of
}

// Seal returns the cursor of a place in the list of this filter; that of the empty place is empty. A cursor names its
// list, and is opaque to its holder.
func (f Filter) Seal(place string) string {
	if place == "" {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(append(f.mark(), place...))
}

// Open returns the place that a cursor holds; empty: the start. ErrNotFound: no page of this list gave it.
func (f Filter) Open(cursor string) (place string, err error) {
	if cursor == "" {
		return "", nil
	}
	mark := f.mark()
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	switch {
	case err != nil || len(raw) <= len(mark):
		return "", fmt.Errorf("%.40q is no cursor: %w", cursor, ErrNotFound)
	case string(raw[:len(mark)]) != string(mark):
		return "", fmt.Errorf("the cursor %.40q is of another list, or of another release: begin again without one: %w", cursor, ErrNotFound)
	}
	return string(raw[len(mark):]), nil
}

// mark distinguishes lists.
func (f Filter) mark() []byte {
	f.Now, f.Since, f.Until = time.Time{}, domain.Instant(f.Since), domain.Instant(f.Until)
	if len(f.Labels) == 0 {
		f.Labels = nil
	}
	text, err := json.Marshal(f)
	if err != nil {
		// A year that JSON does not know; the two that there can be are as good as none.
		text = fmt.Appendf(nil, "%+v", f)
	}
	h := fnv.New64a()
	_, _ = h.Write(text) // a hash never fails
	return binary.BigEndian.AppendUint64(nil, h.Sum64())
}
