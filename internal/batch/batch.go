// Package batch runs a file of inputs through one workflow on an embedded engine, to the end of every
// job. It submits, waits and counts; everything else is the engine's. It also reads the files of many jobs, inputs and
// submissions: it checks their lines, and gives an id to each line that has none.
package batch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

const (
	// submitters is how many submissions are made at once: their writes share a flush.
	submitters = 64
	// window is how many jobs may be under way at once. More would only wait in the queues, where
	// their startBy runs.
	window = 4000
	// headStart is how long the jobs of an earlier run have the processors to themselves, before the file is read.
	headStart = 200 * time.Millisecond
)

// Summary counts the jobs of a file by their ends.
type Summary struct {
	Jobs      int     `json:"jobs"`
	Processed int     `json:"processed"`
	Undone    int     `json:"undone"`
	Cancelled int     `json:"cancelled"`
	Error     int     `json:"error"`
	Seconds   float64 `json:"seconds"`
	// The ids of the jobs that did not end Processed, by their ends, sorted; left out where there are none.
	UndoneIDs    []string `json:"undoneIds,omitempty"`
	CancelledIDs []string `json:"cancelledIds,omitempty"`
	ErrorIDs     []string `json:"errorIds,omitempty"`
	// Reasons say why jobs were undone or cancelled, those of most jobs first.
	Reasons []Reason `json:"-"`
	// Problems are the jobs in Error, sorted by id.
	Problems []Problem `json:"-"`
}

// Problem is a job that waits for a person.
type Problem struct{ Job, Reason string }

// Reason is why so many jobs ended in a state. It begins with the step; a job's own id in it is written ID.
type Reason struct {
	State  makegood.ProcessState
	Reason string
	Jobs   int
}

// Ended is how many jobs are at an end, or wait for a person.
func (s Summary) Ended() int { return s.Processed + s.Undone + s.Cancelled + s.Error }

// InputError is the reason for which none of the lines of a file was submitted.
type InputError struct{ Err error }

func (e *InputError) Error() string { return e.Err.Error() }
func (e *InputError) Unwrap() error { return e.Err }

// Run is a file on its way through a workflow. Make it with New, hand its Saved to the engine, then call Do.
type Run struct {
	inputs   *Inputs
	progress func(ended, jobs int)

	mu   sync.Mutex
	jobs map[string]*tracked
	// nested: child jobs do steps of the jobs of the file. below has these children, at any depth.
	nested bool
	below  map[string]*tracked
	// checked: all lines are right, so there are no jobs besides those in jobs.
	checked bool
	count   map[makegood.ProcessState]int
	ended   int
	done    chan struct{}
	closed  bool
	slots   chan struct{}
}

// tracked is the state of a job of the file.
type tracked struct {
	rev int64
	// own is the state of the job as saved, and state the one that the run counts (Run.end).
	own, state        makegood.ProcessState
	ownReason, reason string
	work              work
	// slot: it holds a place in the window.
	slot bool
}

// New makes a run of a file. progress, if set, is told how many of its jobs have ended.
func New(inputs *Inputs, progress func(ended, jobs int)) *Run {
	return &Run{
		inputs: inputs, progress: progress, jobs: map[string]*tracked{}, below: map[string]*tracked{},
		count: map[makegood.ProcessState]int{}, done: make(chan struct{}), slots: make(chan struct{}, window),
	}
}

// Saved is to see every job that the engine saves.
func (r *Run) Saved(j job.Job) {
	r.mu.Lock()
	defer r.mu.Unlock()
	root := rootOf(j.ID)
	counts, ok := r.jobs[root]
	if !ok {
		return
	}
	t := counts
	if root != j.ID {
		t = r.trackedBelow(j.ID)
	}
	if j.Rev < t.rev {
		// Saves are seen in no order; an older one adds no information.
		return
	}
	t.rev, t.own, t.ownReason = j.Rev, j.ProcessState, j.Reason
	if r.nested {
		t.work = workOf(j)
	}
	r.recount(counts)
}

// recount counts a job of the file anew. The caller holds mu.
func (r *Run) recount(t *tracked) {
	was := atEnd(t.state)
	if was {
		r.count[t.state]--
	}
	t.state, t.reason = r.end(t)
	is := atEnd(t.state)
	if is {
		r.count[t.state]++
	}
	if was && !is { // A job that waited for a child in Error is turned round by its own timeout.
		r.ended--
	}
	if was || !is {
		return
	}
	if t.slot {
		t.slot = false
		<-r.slots
	}
	r.ended++
	if r.progress != nil {
		r.progress(r.ended, len(r.jobs))
	}
	r.closeDone()
}

// closeDone closes done if every job of the file is at an end. The caller holds mu.
func (r *Run) closeDone() {
	if !r.checked || r.ended < len(r.jobs) || r.closed {
		return
	}
	r.closed = true
	close(r.done)
}

// atEnd: the job does not move on by itself.
func atEnd(s makegood.ProcessState) bool { return s.Finished() || s == makegood.JobError }

// Do lets the engine work, submits every line, and waits until every job is at an end. The file is read and checked
// while the engine works on the jobs that it has, so a run that was killed goes on at once, however long the file is.
// After an *InputError no line was submitted. When ctx ends, Do stops and returns its error, with what there is by
// then; the rest goes on when it is run again.
func (r *Run) Do(ctx context.Context, e *embedded.Engine, c *workflowfile.Compiled) (Summary, error) {
	started := time.Now()
	r.nested = slices.ContainsFunc(c.Workflow.Steps, func(s makegood.Step) bool { return s.Agent == makegood.AgentWorkflow })
	running, stop := context.WithCancel(ctx)
	defer stop()
	engine := make(chan error, 1)
	go func() { engine <- e.Run(running) }()
	fed := make(chan error, 1)
	go func() { fed <- r.feed(running, e, c) }()

	var err error
	waiting := fed
	for live := true; live; {
		select {
		case <-r.done:
			live = false
		case err = <-engine:
			engine <- nil
			live = false
		case err = <-waiting:
			waiting = nil
			live = err == nil
		case <-ctx.Done():
			live = false
		}
	}
	stop()
	if waiting != nil {
		// Only so that no goroutine uses the engine after this; its error is that it was stopped.
		<-waiting
	}
	err = errors.Join(err, <-engine)
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return r.summary(time.Since(started)), err
}

// feed submits the lines of the file for which there is no job, if all lines are right.
func (r *Run) feed(ctx context.Context, e *embedded.Engine, c *workflowfile.Compiled) error {
	select {
	case <-e.Recovered():
	case <-time.After(headStart):
	case <-ctx.Done():
	}
	lines, err := r.inputs.within(ctx)
	if err == nil {
		r.track(lines)
		lines, err = r.check(ctx, e, lines, c.Workflow.Name)
	}
	if err != nil {
		return &InputError{err}
	}
	r.mu.Lock()
	r.checked = true
	r.closeDone()
	r.mu.Unlock()
	return r.submit(ctx, e, lines, c.Hash)
}

// track waits for the ends of the jobs of lines.
func (r *Run) track(lines []Line) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range lines {
		r.jobs[l.ID] = &tracked{}
	}
}

// check returns the lines whose jobs are not at an end in the engine's store. It refuses a file with a line that is in
// the store with other content, naming up to MaxErrors.
func (r *Run) check(ctx context.Context, e *embedded.Engine, lines []Line, workflow string) (left []Line, _ error) {
	var problems []error
	for _, l := range lines {
		j, err := e.Job(ctx, l.ID)
		switch {
		case errors.Is(err, store.ErrNotFound):
			left = append(left, l)
			continue
		case err != nil && !errors.Is(err, store.ErrDamaged):
			return nil, fmt.Errorf("look up job %s: %w", l.ID, err)
		}
		hash, err := scheduler.ContentHash(workflow, l.Input)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", r.inputs.name, l.Number, err)
		}
		if j.InputHash != "" && j.InputHash != hash {
			mismatch := &scheduler.MismatchError{Job: l.ID, Have: j.InputHash, Got: hash}
			problems = append(problems, fmt.Errorf("%s:%d: %w", r.inputs.name, l.Number, mismatch))
		}
		if len(problems) == MaxErrors {
			break
		}
		if r.Saved(j); atEnd(j.ProcessState) {
			continue
		}
		left = append(left, l)
		if !r.nested {
			continue
		}
		if err := r.seeBelow(ctx, e, j); err != nil {
			return nil, err
		}
	}
	return left, errors.Join(problems...)
}

// submit submits lines, in order, with at most window under way at a time. A job that is there is answered as it is.
func (r *Run) submit(ctx context.Context, e *embedded.Engine, left []Line, definition string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	lines := make(chan Line)
	var wg sync.WaitGroup
	for range min(submitters, len(left)) {
		wg.Go(func() {
			for l := range lines {
				j, _, err := e.Submit(ctx, scheduler.Submission{ID: l.ID, Definition: definition, Input: l.Input})
				if err != nil {
					cancel(fmt.Errorf("submit job %s: %w", l.ID, err))
					return
				}
				r.Saved(j)
			}
		})
	}
feed:
	for _, l := range left {
		select {
		case r.slots <- struct{}{}:
			r.hold(l.ID)
		case <-ctx.Done():
			break feed
		}
		select {
		case lines <- l:
		case <-ctx.Done():
			break feed
		}
	}
	close(lines)
	wg.Wait()
	return context.Cause(ctx)
}

// hold notes that a job has a place in the window, unless it is at its end already.
func (r *Run) hold(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.jobs[id]
	if atEnd(t.state) {
		<-r.slots
		return
	}
	t.slot = true
}

func (r *Run) summary(took time.Duration) Summary {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := Summary{
		Jobs: len(r.jobs), Processed: r.count[makegood.JobProcessed], Undone: r.count[makegood.JobUndone],
		Cancelled: r.count[makegood.JobCancelled], Error: r.count[makegood.JobError],
		Seconds: took.Round(time.Millisecond).Seconds(),
	}
	for _, id := range slices.Sorted(maps.Keys(r.jobs)) {
		switch t := r.jobs[id]; t.state {
		case makegood.JobError:
			s.ErrorIDs = append(s.ErrorIDs, id)
			s.Problems = append(s.Problems, Problem{Job: id, Reason: t.reason})
		case makegood.JobUndone:
			s.UndoneIDs = append(s.UndoneIDs, id)
		case makegood.JobCancelled:
			s.CancelledIDs = append(s.CancelledIDs, id)
		}
	}
	s.Reasons = r.reasons()
	return s
}

// shortestID is how long an id must be to be looked for in a reason: a shorter one may stand in any word.
const shortestID = 4

// ofChild is what differs between the children of a step, in the id of each: the attempt and the birth of its parent.
var ofChild = regexp.MustCompile(domain.ChildMark + `\d+` + domain.ChildMark + `[0-9a-f]+`)

// reasons groups the jobs that were turned round by why.
func (r *Run) reasons() []Reason {
	groups := map[Reason]int{}
	for id, t := range r.jobs {
		if t.state != makegood.JobUndone && t.state != makegood.JobCancelled {
			continue
		}
		reason := t.reason
		if len(id) >= shortestID {
			reason = strings.ReplaceAll(reason, id, "ID")
		}
		groups[Reason{State: t.state, Reason: ofChild.ReplaceAllString(reason, "")}]++
	}
	all := make([]Reason, 0, len(groups))
	for group, jobs := range groups {
		group.Jobs = jobs
		all = append(all, group)
	}
	slices.SortFunc(all, func(a, b Reason) int {
		return cmp.Or(b.Jobs-a.Jobs, strings.Compare(a.Reason, b.Reason), strings.Compare(string(a.State), string(b.State)))
	})
	return all
}
