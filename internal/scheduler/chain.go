package scheduler

import (
	"context"
	"slices"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/spend"
)

// chain runs the attempts of a chain one after the other, and saves nothing in between. It goes on to the next while
// all before it succeeded, within limits.ChainTime of the beginning, and where its agent has a place.
type chain struct {
	*Scheduler
	ctx      context.Context
	attempts []job.Dispatch
	leave    func()
	// moved is the chain's own copy of its job, which knows the replies so far. It makes tasks and decides nothing.
	moved *moved
	// began is when the first attempt was begun, and begun how many were.
	began   time.Time
	begun   int
	replies []job.Event
}

func (s *Scheduler) newChain(ctx context.Context, w *work, opened inlined) *chain {
	m := w.moved
	if len(opened.chain) > 1 {
		m = &moved{job: m.job, compiled: m.compiled, lockedBy: m.lockedBy, since: m.since, values: s.newValues(m.compiled), now: m.now}
		m.job.Steps = slices.Clone(m.job.Steps)
	}
	return &chain{Scheduler: s, ctx: spend.With(ctx, w.account), attempts: opened.chain, leave: opened.leave, moved: m}
}

// run runs the first attempt with its task, and those behind it.
func (c *chain) run(task makegood.Task) {
	c.began = time.Now()
	since := c.moved.since
	for more := true; more; task, more = c.next() {
		c.begun++
		reply := c.config.Lane.Run(c.ctx, task, c.moved.lockedBy, since)
		if reply != nil {
			c.replies = append(c.replies, reply)
		}
		// The time of the next counts from its own beginning, but its end is that of the save: a slow save shortens it.
		if since = time.Now(); since.Sub(c.moved.since) > limits.ChainTime {
			since = c.moved.since.Add(limits.ChainTime)
		}
		if c.begun == len(c.attempts) || !c.knows(reply) {
			return
		}
		c.leave()
		c.leave = nil
	}
}

// next returns the task of the next attempt, and takes a place for it. ok is false if the chain ends before it.
func (c *chain) next() (task makegood.Task, ok bool) {
	d, left := c.attempts[c.begun], limits.ChainTime-time.Since(c.began)
	if left <= 0 {
		return task, false
	}
	leave, ok := c.config.Lane.Enter(machine.AgentOf(c.moved.compiled.Workflow, d.Step, d.Undo), d.Undo)
	if !ok {
		return task, false
	}
	c.leave = leave
	// The caller of the save may have hung up: that ends no chain.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), left)
	defer cancel()
	task, err := c.ownTask(ctx, c.moved, d)
	// A task that cannot be made is the affair of the next decision, which opens this attempt anew.
	return task, err == nil
}

// knows takes a success into the chain's copy of its job, for the tasks of the attempts behind it. It reports whether
// the chain may go on: any other reply ends it, and so does an output that is kept outside of the job.
func (c *chain) knows(reply job.Event) bool {
	success, ok := reply.(job.StepSucceeded)
	if !ok || len(success.Output.Inline) > limits.MaxInlineBytes {
		return false
	}
	if refs, err := domain.FindPayloads(success.Output.Inline); err != nil || len(refs) > 0 {
		return false
	}
	for i := range c.moved.job.Steps {
		if s := &c.moved.job.Steps[i]; s.Name == success.Step {
			s.Forward.State, s.Forward.Output, s.Forward.Error = job.Done, success.Output, nil
		}
	}
	return true
}

// ended gives the place back, and returns the replies: before them the word that the rest was not begun.
func (c *chain) ended() []job.Event {
	if c.leave != nil {
		c.leave()
	}
	if c.begun == len(c.attempts) {
		return c.replies
	}
	return append([]job.Event{chainEnds(c.moved, c.attempts[c.begun])}, c.replies...)
}

// chainEnds says that an attempt was not begun, nor those behind it in its chain.
func chainEnds(m *moved, d job.Dispatch) job.Event {
	return job.StepHeld{Reply: job.Reply{
		Step: d.Step, Attempt: d.Attempt, Token: machine.Token(m.job, d.Step, d.Attempt), LockedBy: m.lockedBy, StartedAt: m.now,
	}}
}
