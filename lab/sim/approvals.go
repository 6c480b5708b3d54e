package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// Where steps may wait, some of them are approvals: nobody is sent anything, and people answer by the step's address,
// early, late, several of them, with other answers, or never.

// choices are what an approval may be answered.
var choices = []string{"yes", "no"}

// rollApprovals makes approvals of some steps of a workflow.
func rollApprovals(r *rand.Rand, c *workflowfile.Compiled) *workflowfile.Compiled {
	w := c.Workflow
	w.Steps = slices.Clone(w.Steps)
	for i, s := range w.Steps {
		if !oneIn(r, 4) {
			continue
		}
		waits := between(r, time.Second, pick(r, 30*time.Second, 5*time.Minute)).Truncate(time.Second)
		w.Steps[i] = makegood.Step{
			Name: s.Name, Agent: makegood.AgentApproval, Needs: s.Needs, When: s.When, Retry: s.Retry,
			With: json.RawMessage(fmt.Sprintf(`{"choices":["yes","no"],"for":%q}`, waits)),
		}
	}
	if on := w.OnFailure.Action; (on == makegood.FailureUndo || on == makegood.FailureRestart) && !domain.HasUndo(w) {
		return c
	}
	rolled, err := workflowfile.FromWorkflow(w)
	if err != nil {
		panic(fmt.Sprintf("a workflow with approvals that was rolled is refused: %v", err))
	}
	return rolled
}

// approvers answer the approvals of a job, as if they knew when that is wanted.
func (w *world) approvers(o order, someone func(time.Duration, func(*scheduler.Scheduler, *life) bool)) {
	for _, s := range o.workflow.Workflow.Steps {
		if s.Agent != makegood.AgentApproval {
			continue
		}
		r := w.chance.of("approvers", o.id, s.Name)
		for n := range r.IntN(5) {
			by := on(o.id, s.Name, n) + "-approver"
			answer := strconv.Quote(pick(r, "yes", "yes", "no", "maybe"))
			e := job.StepCompleted{
				Place: job.Place{Step: s.Name}, By: by, Early: oneIn(r, 2), Output: job.Payload{Inline: json.RawMessage(answer), Bytes: len(answer)},
			}
			if oneIn(r, 5) {
				e.Output, e.Error = job.Payload{}, &job.StepError{Message: "I will not", Applied: makegood.AppliedNo, Retryable: oneIn(r, 2)}
			}
			if oneIn(r, 2) {
				e.Request = by
			}
			someone(o.at+between(r, 0, pick(r, time.Second, time.Minute, 6*time.Minute)), func(s *scheduler.Scheduler, l *life) bool {
				return w.approve(s, l, o.id, e)
			})
		}
	}
}

func (w *world) approve(s *scheduler.Scheduler, l *life, id string, e job.StepCompleted) bool {
	l.asked(id, e)
	w.mu.Lock()
	w.words[e.By] = true
	w.mu.Unlock()
	_, verdict, err := s.Complete(context.Background(), id, e)
	if err == nil && verdict.Kind == machine.Applied {
		w.mu.Lock()
		w.result.Approvals++
		w.mu.Unlock()
	}
	return err == nil || l.missing(err)
}

// consent is what an operator does about the approvals of a job in the end: yes to each, if need be before it is asked.
func (w *world) consent(j job.Job, n int) {
	for _, s := range w.workflowOf(j.ID).Steps {
		at := slices.IndexFunc(j.Steps, func(is job.StepState) bool { return is.Name == s.Name })
		if s.Agent != makegood.AgentApproval || at < 0 || j.Steps[at].Forward.State == job.Done {
			continue
		}
		by := on(j.ID, s.Name, n) + "-operator"
		e := job.StepCompleted{
			Place: job.Place{Step: s.Name}, By: by, Request: by, Early: true, Output: job.Payload{Inline: json.RawMessage(`"yes"`), Bytes: len(`"yes"`)},
		}
		<-w.process("operator", func(l *life) { w.approve(w.scheduler(l, nil), l, j.ID, e) })
	}
}

// approved: an approval is done by one of its choices, and by somebody who gave it.
func (c change) approved(s job.StepState) {
	var said struct {
		Answer, By string
		At         time.Time
	}
	err := json.Unmarshal(s.Forward.Output.Inline, &said)
	if err != nil || !slices.Contains(choices, said.Answer) || said.At.IsZero() {
		c.wrong("I4: the approval %s is done with the output %s", s.Name, s.Forward.Output.Inline)
		return
	}
	c.fromOutside(s.Name, said.By)
}
