package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// workload is what is asked of a world.
type workload struct {
	workflows []*workflowfile.Compiled
	// corrections are corrected definitions, by the names of their workflows.
	corrections map[string][]*workflowfile.Compiled
	jobs        []order
}

// order is a job that is submitted, and what else is asked of it.
type order struct {
	id       string
	workflow *workflowfile.Compiled
	input    json.RawMessage
	at       time.Duration
	startAt  time.Duration
	replyTo  string
	// byMessage: submitted by a message on the events queue.
	byMessage bool
	// once: it is sent until the queue has taken it, and never again: the queue promises to deliver it.
	once bool
	// again are further submissions of the same, other one of the same id with another input.
	again    []time.Duration
	other    time.Duration
	requests []request
	// doc is what the input refers to, and dangling when somebody submits it with a reference to nothing.
	doc      string
	dangling time.Duration
}

type request struct {
	at   time.Duration
	verb makegood.Verb
	// startAt is when a job that is rescheduled is to start.
	startAt time.Duration
	// again is when the same is asked for once more; zero: never.
	again time.Duration
	// some: a redrive names every some-th item that has failed by then; zero: none.
	some int
	// edit has the new figures of a map; nil: it is not of a map.
	edit *job.MapEdit
}

// ordered reports whether somebody has asked for a job.
func (w *world) ordered(id string) bool {
	if c, is := domain.ChildOf(id); is {
		return w.ordered(c.Parent)
	}
	_, fired := w.fire(id)
	return fired || slices.ContainsFunc(w.load.jobs, func(o order) bool { return o.id == id })
}

// publish makes a definition the current one of its workflow.
func (w *world) publish(c *workflowfile.Compiled) {
	w.definitions[c.Hash] = c.Workflow
	_ = w.store.PutDefinition(context.Background(), c.Workflow.Name, c.Hash, c.Definition) // memory never fails
}

// newWorkload rolls workflows, jobs, and what operators and hasty submitters ask for.
func newWorkload(c chance, o Options) workload {
	w := workload{corrections: map[string][]*workflowfile.Compiled{}}
	r := c.of("workload")
	workflows, jobs, steps := 1+r.IntN(2), 1+r.IntN(3), 1+r.IntN(5)
	if o.Limits {
		jobs += 2
	}
	if o.Breakers {
		jobs += 8 // Failures of fewer trip no breaker.
	}
	if o.storm() {
		jobs += 8
	}
	if o.jobs > 0 {
		jobs = min(jobs, o.jobs)
	}
	if o.steps > 0 {
		steps = min(steps, o.steps)
	}
	for i := range workflows {
		name := strconv.Itoa(i)
		rolled := rollRounds(c.of("rounds", name), rollWorkflow(c.of("workflow", name), "w"+name, steps))
		rolled = rollExpect(c.of("expect", name), rolled)
		rolled = rollInline(c.of("inline", name), rolled)
		if o.Waits {
			rolled = rollApprovals(c.of("approvals", name), rolled)
		}
		w.workflows = append(w.workflows, rolled)
		w.corrections[rolled.Workflow.Name] = rollCorrections(c.of("corrections", name), rolled)
	}
	if o.Children {
		parent := rollChildren(c.of("children"), rollWorkflow(c.of("workflow", "parent"), "parent", steps), w.workflows[0])
		// It comes first, so that it is not rolled too seldom.
		w.workflows = append([]*workflowfile.Compiled{parent, parent}, w.workflows...)
	}
	if o.Maps {
		m := rollMap(c.of("map"), rollWorkflow(c.of("workflow", "mapped"), "mapped", steps), w.workflows[0], o.items)
		w.workflows = append([]*workflowfile.Compiled{m, m}, w.workflows...)
	}
	for i := range jobs {
		w.jobs = append(w.jobs, rollOrder(c, "j"+strconv.Itoa(i), w.workflows, o))
	}
	if o.items > 0 {
		w.jobs = []order{largeMap(w.workflows[0], o.items)}
	}
	return w
}

func rollOrder(c chance, id string, workflows []*workflowfile.Compiled, o Options) order {
	r := c.of("job", strings.TrimPrefix(id, "j"))
	one := order{
		id: id, workflow: pick(r, workflows...), at: between(r, 0, 20*time.Second),
		input: json.RawMessage(fmt.Sprintf(`{"n":%d,"pad":%q}`, r.IntN(6), strings.Repeat("x", pick(r, 0, 0, 300)))),
	}
	if o.Breakers {
		one.at += spread(c, id)
	}
	if oneIn(r, 6) {
		one.startAt = between(r, time.Second, 6*time.Minute)
	}
	if oneIn(r, 3) {
		one.replyTo = "shop"
	}
	one.byMessage = oneIn(r, 5)
	for oneIn(r, 3) {
		one.again = append(one.again, one.at+between(r, 0, pick(r, 20*time.Millisecond, time.Minute)))
	}
	if oneIn(r, 8) {
		one.other = one.at + between(r, 0, pick(r, 20*time.Millisecond, time.Minute))
	}
	for oneIn(r, 2) {
		verb := pick(r, makegood.VerbCancel, makegood.VerbUndo, makegood.VerbResubmit, makegood.VerbPause, makegood.VerbResume)
		at := one.at + between(r, 0, pick(r, 100*time.Millisecond, 10*time.Second, 3*time.Minute))
		if !o.quietOperators {
			one.requests = append(one.requests, request{at: at, verb: verb})
		}
	}
	// A stream of its own: what is rolled beside it stays as it is.
	if r := c.of("reschedule", id); one.startAt > 0 && oneIn(r, 2) && !o.quietOperators {
		at := one.at + between(r, 0, 3*time.Minute)
		one.requests = append(one.requests, request{at: at, verb: makegood.VerbReschedule, startAt: between(r, time.Second, 10*time.Minute)})
	}
	if r := c.of("around", id); oneIn(r, 6) && !o.quietOperators {
		at := one.at + between(r, 0, pick(r, 10*time.Second, 3*time.Minute, 10*time.Minute))
		one.requests = append(one.requests, request{at: at, verb: pick(r, makegood.VerbRedo, makegood.VerbForward)})
	}
	if o.Maps && !o.quietOperators {
		one.requests = append(one.requests, rollRedrives(c.of("redrives", id), one.at)...)
		one.requests = append(one.requests, rollEdits(c.of("edits", id), one.at, one.workflow)...)
	}
	if one.once = one.byMessage && c.of("once", id).IntN(2) == 0; one.once {
		one.again, one.other = nil, 0
	}
	return one
}

// rollWorkflow makes a workflow that the door would let in.
func rollWorkflow(r *rand.Rand, name string, steps int) *workflowfile.Compiled {
	w := makegood.Workflow{Name: name}
	if oneIn(r, 4) {
		w.Timeout = makegood.Duration(between(r, 20*time.Second, 5*time.Minute).Truncate(time.Second))
	}
	undoes := !oneIn(r, 4)
	for i := range steps {
		w.Steps = append(w.Steps, rollStep(r, i, undoes))
	}
	policy := pick(r, "", "", "", "stop", "wait 30s")
	if undoes && oneIn(r, 2) {
		policy = "undo"
	}
	if policy != "" {
		if err := w.OnFailure.UnmarshalText([]byte(policy)); err != nil {
			panic(err)
		}
	}
	c, err := workflowfile.FromWorkflow(w)
	if err != nil && policy == "undo" {
		// No step happened to have an undo.
		w.OnFailure = makegood.OnFailure{}
		c, err = workflowfile.FromWorkflow(w)
	}
	if err != nil {
		panic(fmt.Sprintf("a workflow that was rolled is refused: %v", err))
	}
	return c
}

// rollRounds lets some of the workflows that undo try again from the start.
func rollRounds(r *rand.Rand, c *workflowfile.Compiled) *workflowfile.Compiled {
	if !domain.HasUndo(c.Workflow) || !oneIn(r, 5) {
		return c
	}
	w := c.Workflow
	wait := makegood.Duration(between(r, 50*time.Millisecond, pick(r, time.Second, 30*time.Second, 4*time.Minute)).Truncate(time.Millisecond))
	w.OnFailure = makegood.OnFailure{Action: makegood.FailureRestart, Rounds: 2 + r.IntN(3), Wait: wait}
	c, err := workflowfile.FromWorkflow(w)
	if err != nil {
		panic(fmt.Sprintf("a workflow that was rolled is refused: %v", err))
	}
	return c
}

// rollExpect lets some of the workflows expect their jobs within a time.
func rollExpect(r *rand.Rand, c *workflowfile.Compiled) *workflowfile.Compiled {
	if !oneIn(r, 3) {
		return c
	}
	w := c.Workflow
	w.Expect = makegood.Duration(between(r, time.Second, pick(r, 10*time.Second, time.Minute, 5*time.Minute)).Truncate(time.Millisecond))
	if w.Timeout > 0 && w.Expect >= w.Timeout {
		w.Expect = w.Timeout / 2
	}
	c, err := workflowfile.FromWorkflow(w)
	if err != nil {
		panic(fmt.Sprintf("a workflow that was rolled is refused: %v", err))
	}
	return c
}

func rollStep(r *rand.Rand, i int, undoes bool) makegood.Step {
	s := makegood.Step{
		Name: "s" + strconv.Itoa(i), Agent: pick(r, agents...), Needs: []string{},
		StartBy: makegood.Duration(between(r, 2*time.Second, pick(r, time.Minute, time.Minute, 8*time.Minute)).Truncate(time.Second)),
		Timeout: makegood.Duration(between(r, 500*time.Millisecond, 20*time.Second).Truncate(time.Millisecond)),
		Shared:  oneIn(r, 10),
		Retry: makegood.Retry{
			Attempts: 1 + r.IntN(4), Backoff: makegood.Duration(between(r, 50*time.Millisecond, 2*time.Second).Truncate(time.Millisecond)),
			Max: makegood.Duration(10 * time.Second),
		},
	}
	if s.Timeout%(4*makegood.Millisecond) == 0 && !s.Shared {
		// Not rolled, so that every seed goes on rolling what it did.
		s.Heartbeat, s.Timeout = s.Timeout, 4*s.Timeout
	}
	for n := range i {
		if oneIn(r, i) || n == i-1 && oneIn(r, 2) {
			s.Needs = append(s.Needs, "s"+strconv.Itoa(n))
		}
	}
	if oneIn(r, 6) {
		s.When = "${ .input.n > 2 }"
	}
	if len(s.Needs) > 0 && oneIn(r, 2) {
		s.With = json.RawMessage(fmt.Sprintf(`{"n":"${ .input.n }","before":"${ .steps.%s.output.a }"}`, s.Needs[0]))
	}
	switch {
	case undoes && !oneIn(r, 4):
		s.Undo = &makegood.Undo{Action: "undo_" + s.Name, Retry: makegood.Retry{Attempts: 1 + r.IntN(3)}}
	case undoes:
		s.Undo = &makegood.Undo{None: true}
	}
	return s
}
