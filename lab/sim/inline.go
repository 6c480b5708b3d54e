package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/agentrun"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// Some Schedulers link the agents, and run inline attempts themselves. The save that opens one is its claim as well.

// rollInline makes some steps of some workflows inline, and some workflows a chain but for a few steps.
func rollInline(r *rand.Rand, c *workflowfile.Compiled) *workflowfile.Compiled {
	if !oneIn(r, 3) {
		return c
	}
	w := c.Workflow
	for i := range w.Steps {
		w.Steps[i].Inline = w.Steps[i].Heartbeat == 0 && w.Steps[i].Agent != makegood.AgentApproval && !oneIn(r, 4)
	}
	if oneIn(r, 2) {
		rollChain(r, w.Steps)
	}
	c, err := workflowfile.FromWorkflow(w)
	if err != nil {
		panic(fmt.Sprintf("a workflow that was rolled is refused: %v", err))
	}
	return c
}

// rollChain makes most steps of a workflow follow one another in chains.
func rollChain(r *rand.Rand, steps []makegood.Step) {
	for i := range steps {
		s := &steps[i]
		if s.Agent == makegood.AgentApproval || s.Heartbeat > 0 || oneIn(r, 6) {
			continue
		}
		s.Inline, s.Shared, s.When = true, true, ""
		if i == 0 {
			continue
		}
		s.Needs = []string{steps[i-1].Name}
		if s.With != nil {
			s.With = json.RawMessage(fmt.Sprintf(`{"n":"${ .input.n }","before":"${ .steps.%s.output.a }"}`, s.Needs[0]))
		}
		if s.Undo != nil && s.Undo.With != nil {
			s.Undo.With = s.With
		}
	}
}

// inChain: its agent takes little of the time of a chain.
func (w *world) inChain(task makegood.Task) bool {
	return task.Shared && w.inline[on(task.Job, task.Step, task.Attempt)]
}

// lane runs inline attempts in a process.
type lane struct {
	*life
	runner *agentrun.Runner
}

var _ scheduler.Lane = lane{}

// laneOf returns the lane of a process, if it links the agents; nil: it does not.
func (w *world) laneOf(l *life) scheduler.Lane {
	if l.engine == nil && oneIn(w.chance.of("links", l.name), 3) {
		return nil
	}
	config := agentrun.Config{Instance: l.name, Now: l.now, Logger: quiet}
	for _, name := range agents {
		config.Handlers = append(config.Handlers, agent.Handler(remote{l, name}))
	}
	if w.large != nil {
		config.Large = payloads{l}
	}
	return lane{l, agentrun.New(config)}
}

// Agents is what scheduler.Lane says.
func (n lane) Agents(ctx context.Context) ([]string, time.Time) {
	end, ends := ctx.Deadline()
	if n.engine != nil || !ends {
		return agents, time.Time{}
	}
	return agents, n.now().Add(time.Until(end) - 2*time.Second)
}

// Secrets is what scheduler.Lane says.
func (n lane) Secrets() bool { return true }

// Enter is what scheduler.Lane says: now and then all places are taken.
func (n lane) Enter(agent string, _ bool) (leave func(), ok bool) {
	if oneIn(n.w.chance.of("full", n.calling("enter", agent)), 8) {
		return nil, false
	}
	return func() {}, true
}

// Run is what scheduler.Lane says.
func (n lane) Run(ctx context.Context, task makegood.Task, lockedBy string, since time.Time) job.Event {
	n.w.begins(n.life, task)
	reply := n.runner.Inline(ctx, task, lockedBy, since)
	n.alive()
	if reply == nil {
		return nil
	}
	n.w.mu.Lock()
	defer n.w.mu.Unlock()
	// It comes by no message, and is what the process is given all the same.
	n.batch[task.Job] = append(n.batch[task.Job], reply)
	if _, done := reply.(job.StepSucceeded); done {
		n.w.succeeded[on(task.Job, task.Step, task.Attempt)] = true
	}
	if took := time.Since(since); took > task.Timeout.Std() {
		n.w.violate(task.Job, "I8: %s replies %s after its CompleteBy", n.name, took-task.Timeout.Std())
	}
	return reply
}

// Drive is what scheduler.Lane says. It waits for the drivers, in an embedded engine too: a process here has one batch.
func (n lane) Drive(ctx context.Context, drivers []func(context.Context)) {
	var wg sync.WaitGroup
	for _, drive := range drivers {
		wg.Go(func() { drive(ctx) })
	}
	wg.Wait()
}

// begins: an attempt of a chain begins in the time of its chain, after the one before it succeeded there.
func (w *world) begins(l *life, task makegood.Task) {
	w.mu.Lock()
	defer w.mu.Unlock()
	name := on(task.Job, task.Step, task.Attempt)
	before, chained := w.chained[name]
	if !chained {
		w.beganAt[name] = time.Now()
		return
	}
	first := before
	for w.chained[first] != "" {
		first = w.chained[first]
	}
	if late := time.Since(w.beganAt[first]); late > limits.ChainTime {
		w.violate(task.Job, "law 4: %s begins %s in a chain %s after its first step", l.name, name, late)
	}
	if !w.succeeded[before] {
		w.violate(task.Job, "I7: %s begins %s in a chain, and %s has not succeeded there", l.name, name, before)
	}
}

// inlined notes the inline attempts that a write has opened: it is their claim.
func (c change) inlined() {
	for _, s := range c.after.Steps {
		was, _ := c.before.Step(s.Name)
		for undo, a := range directions(s) {
			opened := a.State == job.Dispatched && a.Inline != "" && a.Attempt != activity(was, undo).Attempt
			if !opened {
				continue
			}
			name := on(c.after.ID, s.Name, a.Attempt)
			if a.Inline != c.after.LockedBy && c.before.Rev > 0 {
				c.wrong("law 4: attempt %d of %s is inline, and is not of the save that opened it", a.Attempt, s.Name)
			}
			c.claimed[name]++
			c.inline[name], c.inline[c.after.ID+"/"+job.StepHeld{Reply: job.Reply{Step: s.Name, Attempt: a.Attempt}}.Cause()] = true, true
			if before, ahead := c.ahead(s, undo); ahead {
				c.chained[name] = before
			}
			c.written[name] = time.Now()
			c.started[c.after.ID]++
			c.referee(c.after.ID).Took(s.Name, a.Attempt, 1)
		}
	}
}

// ahead: an attempt is out in a chain, behind this one.
func (c change) ahead(s job.StepState, undo bool) (before string, ahead bool) {
	n := slices.IndexFunc(c.after.Steps, func(of job.StepState) bool { return of.Name == s.Name })
	def := c.w.Steps[n]
	if undo || !def.Shared || len(def.Needs) != 1 || s.Forward.Inline == "" {
		return "", false
	}
	need, _ := c.after.Step(def.Needs[0])
	is := need.Forward.State == job.Dispatched && need.Forward.Inline == s.Forward.Inline
	return on(c.after.ID, need.Name, need.Forward.Attempt), is
}
