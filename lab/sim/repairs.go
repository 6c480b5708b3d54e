package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/holds"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// In some worlds people repair: they publish corrected definitions and move jobs to them, give jobs another input,
// settle steps and undos, edit timeouts, and pause agents and workflows.

// rollCorrections makes corrected definitions of a workflow, each from the one before.
func rollCorrections(r *rand.Rand, c *workflowfile.Compiled) (all []*workflowfile.Compiled) {
	for range r.IntN(3) {
		w := c.Workflow
		w.Steps = slices.Clone(w.Steps)
		for i := range w.Steps {
			correct(r, &w.Steps[i])
		}
		if n := r.IntN(3 * len(w.Steps)); n < len(w.Steps) && len(w.Steps) > 1 {
			w.Steps = without(w.Steps, n)
		}
		if oneIn(r, 3) {
			fresh := rollStep(r, len(w.Steps)+10, true)
			fresh.Needs, fresh.With = []string{w.Steps[0].Name}, nil
			w.Steps = append(w.Steps, fresh)
		}
		corrected, err := workflowfile.FromWorkflow(w)
		if err != nil || corrected.Hash == c.Hash {
			continue // Something needs what is gone, or nothing is another.
		}
		all, c = append(all, corrected), corrected
	}
	return all
}

// correct changes something of a step, or nothing.
func correct(r *rand.Rand, s *makegood.Step) {
	byItself := domain.WaitsByItself(s.Agent)
	switch r.IntN(10) {
	case 0:
		if !byItself {
			s.Agent = pick(r, agents...)
		}
	case 1:
		if !byItself {
			s.Timeout += makegood.Second
		}
	case 2:
		s.Retry.Attempts = 1 + r.IntN(4)
	case 3:
		if domain.CanUndo(*s) {
			undo := *s.Undo
			undo.Action, s.Undo = undo.Action+"_again", &undo
		}
	case 4:
		if domain.CanUndo(*s) && !byItself {
			undo := *s.Undo
			undo.Agent, s.Undo = s.Agent, &undo
		}
	case 5:
		if s.With == nil && !byItself {
			s.With = json.RawMessage(`{"corrected":true}`)
		}
	}
}

// without returns steps but for one, which nothing needs any more.
func without(steps []makegood.Step, gone int) []makegood.Step {
	name := steps[gone].Name
	steps = slices.Delete(slices.Clone(steps), gone, gone+1)
	for i := range steps {
		steps[i].Needs = slices.DeleteFunc(slices.Clone(steps[i].Needs), func(n string) bool { return n == name })
	}
	return steps
}

// repairers start the people who repair.
func (w *world) repairers(someone func(time.Duration, func(*scheduler.Scheduler, *life) bool)) {
	if !w.repairs {
		return
	}
	for _, first := range w.load.workflows {
		name := first.Workflow.Name
		r := w.chance.of("publisher", name)
		for _, c := range w.load.corrections[name] {
			w.after(between(r, 5*time.Second, 4*time.Minute), func() {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.publish(c)
			})
		}
	}
	for _, o := range w.load.jobs {
		r := w.chance.of("repairers", o.id)
		for n := range r.IntN(6) {
			name := "fix" + strconv.Itoa(n)
			at := o.at + between(r, time.Second, pick(r, 20*time.Second, 2*time.Minute, 6*time.Minute))
			var asked func(*scheduler.Scheduler, *life) bool
			someone(at, func(s *scheduler.Scheduler, l *life) bool {
				if asked == nil {
					asked = w.repairOf(l, o.id, name)
				}
				return asked == nil || asked(s, l)
			})
		}
	}
	w.pausers(someone)
}

// repairOf makes up what somebody does about a job, who has looked at it; nil: they could not.
func (w *world) repairOf(l *life, id, name string) func(*scheduler.Scheduler, *life) bool {
	j, err := l.Load(context.Background(), id)
	if err != nil {
		return nil
	}
	r := w.chance.of("repair", id, name)
	switch r.IntN(6) {
	case 0, 1, 2:
		e := w.resubmitOf(r, j, name)
		return func(s *scheduler.Scheduler, l *life) bool { return w.request(s, l, id, e) }
	case 3:
		e := job.Requested{Verb: makegood.VerbEdit, Request: name, Reason: "sim", Timeout: makegood.Duration(between(r, time.Minute, 10*time.Minute).Truncate(time.Second))}
		if oneIn(r, 3) {
			e.Timeout = makegood.NoTimeout
		}
		return func(s *scheduler.Scheduler, l *life) bool { return w.request(s, l, id, e) }
	default:
		e := settlementOf(r, w.definitionOf(j), j, name)
		return func(s *scheduler.Scheduler, l *life) bool { return w.settle(s, l, id, e) }
	}
}

// resubmitOf is a resubmit by another definition, with another input, or with both.
func (w *world) resubmitOf(r *rand.Rand, j job.Job, name string) job.Requested {
	e := job.Requested{Verb: makegood.VerbResubmit, Request: name, Reason: "sim"}
	if corrections := w.load.corrections[j.Workflow]; len(corrections) > 0 && !oneIn(r, 4) {
		e.Definition = pick(r, corrections...).Hash
		if oneIn(r, 3) {
			e.Definition = job.CurrentDefinition
		}
	}
	if oneIn(r, 2) {
		input := json.RawMessage(fmt.Sprintf(`{"n":%d,"by":%q}`, r.IntN(6), name))
		e.Input = &job.Payload{Inline: input, Bytes: len(input)}
	}
	return e
}

func (w *world) definitionOf(j job.Job) makegood.Workflow {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.definition(j.Definition)
}

// settlementOf is what somebody says that they have dealt with: most often with what has failed or cannot be undone.
func settlementOf(r *rand.Rand, w makegood.Workflow, j job.Job, name string) job.Settled {
	var all, likely, unknown []job.Place
	for _, s := range j.Steps {
		for undo, a := range directions(s) {
			p := job.Place{Step: s.Name, Undo: undo, Round: j.Round}
			all = append(all, p)
			if a.State == job.Failed || a.State == job.Irreversible {
				likely = append(likely, p)
			}
			if a.Unknown && !undo {
				unknown = append(unknown, p)
			}
		}
	}
	e := job.Settled{By: name, Reason: "sim", Request: pick(r, "", name)}
	if len(unknown) > 0 && oneIn(r, 2) {
		e.Place, e.NotDone = pick(r, unknown...), true
		return e
	}
	if len(likely) > 0 && !oneIn(r, 4) {
		all = likely
	}
	e.Place, e.Done = pick(r, all...), oneIn(r, 2)
	if e.Done {
		output := `{"a":1,"by":"hand"}`
		if defOf(w, e.Step).Agent == makegood.AgentApproval {
			output = `"yes"`
		}
		e.Output = job.Payload{Inline: json.RawMessage(output), Bytes: len(output)}
	}
	return e
}

func (w *world) settle(s *scheduler.Scheduler, l *life, id string, e job.Settled) bool {
	l.asked(id, e)
	if e.NotDone {
		w.mu.Lock()
		w.notDone[fmt.Sprintf("%s/%s/%d", id, e.Step, e.Round)] = true
		w.mu.Unlock()
	}
	_, _, err := s.Settle(context.Background(), id, e)
	return err == nil || l.missing(err)
}

// pausers start the people who pause an agent or a workflow, and resume it.
func (w *world) pausers(someone func(time.Duration, func(*scheduler.Scheduler, *life) bool)) {
	r := w.chance.of("pausers")
	for range r.IntN(3) {
		kind, name := makegood.HoldAgent, pick(r, agents...)
		if oneIn(r, 2) {
			kind, name = makegood.HoldWorkflow, pick(r, w.load.workflows...).Workflow.Name
		}
		at := between(r, time.Second, 3*time.Minute)
		someone(at, func(_ *scheduler.Scheduler, l *life) bool {
			_, err := w.keeper(l).Pause(context.Background(), kind, name, "sim", "anna")
			return err == nil
		})
		someone(at+between(r, time.Second, 3*time.Minute), func(_ *scheduler.Scheduler, l *life) bool {
			_, err := w.keeper(l).Resume(context.Background(), kind, name, "bert")
			return err == nil || errors.Is(err, holds.ErrNotHeld)
		})
	}
}

// keeper is what pauses agents and workflows in a process, and sets limits.
func (w *world) keeper(l *life) *holds.Keeper {
	c := holds.Config{Store: l, Queue: l, Events: eventsQueue, Agents: agents, Now: l.now, Logger: quiet}
	if w.limits != nil {
		c.Gates = l.gate
	}
	return holds.New(c)
}

// mend is what an operator does about a job that waits for one, where people repair.
func (w *world) mend(j job.Job, n int) bool {
	r := w.chance.of("mend", j.ID, strconv.Itoa(n))
	name := "mend" + strconv.Itoa(n)
	if !w.repairs || j.ProcessState != makegood.JobError || oneIn(r, 2) {
		return false
	}
	<-w.process("operator", func(l *life) {
		if oneIn(r, 2) {
			w.request(w.scheduler(l, nil), l, j.ID, w.resubmitOf(r, j, name))
			return
		}
		w.settle(w.scheduler(l, nil), l, j.ID, settlementOf(r, w.definitionOf(j), j, name))
	})
	return true
}

// resumeAll is what an operator does about what is paused in the end.
func (w *world) resumeAll() {
	if !w.repairs && w.breaking == nil {
		return
	}
	held, _ := w.store.Holds(context.Background(), true) // memory never fails
	for _, h := range held.Holds {
		if h.On() && h.Kind != makegood.HoldLimit && !h.Automatic() {
			<-w.process("operator", func(l *life) { _, _ = w.keeper(l).Resume(context.Background(), h.Kind, h.Name, "operator") })
		}
	}
}

// Holds is what store.Holds says, in a world. It takes no time: whoever reads keeps others from reading by a mutex, and
// while one of a bubble waits for that, no time passes.
func (l *life) Holds(ctx context.Context, sure bool) (store.Held, error) {
	l.alive()
	l.w.mu.Lock()
	struck := l.w.faults.strikes(Throttled, l.name+" holds") // Several may read at one moment, and in any order.
	l.troubled = l.troubled || struck
	l.w.mu.Unlock()
	if struck {
		return store.Held{}, errThrottled
	}
	return l.w.store.Holds(ctx, sure)
}

// PutHolds is what store.Holds says, in a world.
func (l *life) PutHolds(ctx context.Context, h store.Held) error {
	return l.call(ctx, "put-holds", "", func() error {
		err := l.w.store.PutHolds(ctx, h)
		if err == nil {
			l.w.limited(h, agents...)
			l.w.paused(l, h.Holds)
		}
		return err
	})
}

// HeldJobs is what store.Holds says, in a world.
func (l *life) HeldJobs(ctx context.Context, hold string, limit int) ([]string, error) {
	return ask(ctx, l, "held-jobs", hold, func() ([]string, error) { return l.w.store.HeldJobs(ctx, hold, limit) })
}

// CountHeld is what store.Holds says, in a world.
func (l *life) CountHeld(ctx context.Context, hold string, most int) (int, error) {
	return ask(ctx, l, "count-held", hold, func() (int, error) { return l.w.store.CountHeld(ctx, hold, most) })
}
