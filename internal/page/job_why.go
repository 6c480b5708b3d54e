package page

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/protocol"
)

// why is the first text about a job: the reason for its state, and what to do.
type why struct {
	Head string
	// Quote is the agent's message, or the recorded reason; First is the first reason of the round, if it differs.
	Quote, First string
	// Says is the consequence, and Todo what to do.
	Says, Todo string
	// Tone is a class: error, waiting, or that of the state.
	Tone string
	// Alike leads to the jobs that stopped at the same step; empty: to none.
	Alike string
}

func whyOf(s seen) why {
	w := standsWhy(s)
	if w.Quote == s.job.Reason {
		w.First = s.job.FirstReason
	}
	return w
}

func standsWhy(s seen) why {
	j := s.job
	w := why{Tone: lower(j.ProcessState)}
	switch {
	case j.ProcessState == makegood.JobError:
		return stopped(s)
	case j.Paused:
		return paused(s)
	case j.ProcessState.Finished():
		return ended(s)
	case j.NextRoundAt != nil:
		w.Head = fmt.Sprintf("Its steps are undone; it begins again %s.", in(*j.NextRoundAt, s.now))
	case j.StartAt != nil && j.StartAt.After(s.now):
		w.Head = fmt.Sprintf("It begins %s.", in(*j.StartAt, s.now))
	default:
		w = goesOn(s)
	}
	w.Quote = cmp.Or(w.Quote, j.Reason)
	return w
}

// in says when an event comes, as seen now.
func in(at, now time.Time) string {
	if at.After(now) {
		return "in " + span(at.Sub(now)) + ", at " + moment(at)
	}
	return "at once"
}

// stopped explains why a job waits for a person.
func stopped(s seen) why {
	w := why{Tone: "error", Head: "It waits for a person.", Quote: s.job.Reason}
	for _, step := range s.job.Steps {
		a := side(s.job, step)
		if a.State != makegood.StepFailed {
			continue
		}
		what := step.Name
		if onUndo(s.job, step) {
			what = "the undo of " + step.Name
		}
		how := "was given up"
		if a.Error != nil && !a.Error.Retryable {
			how = "was refused for good"
		}
		w.Head = fmt.Sprintf("It waits for a person: %s %s.", what, how)
		w.Alike = "?state=Error&workflow=" + s.job.Workflow + "&step=" + step.Name
		w.Todo = "Mend the cause and resubmit: it goes on from there, with fresh attempts. Or deal with it yourself, and settle " + what + "."
		break
	}
	if e, turned := lastTurn(s.job); turned && back(s.job) {
		w.Says = fmt.Sprintf("It was turned round at %s: %s", moment(e.At), e.Reason)
	}
	return w
}

// lastTurn is the entry of when the job was turned round last.
func lastTurn(j makegood.Job) (found makegood.Entry, any bool) {
	for _, e := range j.History {
		if e.Kind == makegood.EntryTurned {
			found, any = e, true
		}
	}
	return found, any
}

func paused(s seen) why {
	w := why{Tone: "paused", Head: "It is paused: no step begins until it is resumed.", Quote: s.job.Reason}
	if at := s.job.PausedAt; at != nil {
		w.Head = fmt.Sprintf("It is paused since %s: no step begins until it is resumed.", moment(*at))
	}
	if s.job.HeldBy != "" {
		w.Head = fmt.Sprintf("It is held: %s is paused as a whole.", s.job.HeldBy)
		w.Says = s.job.HeldReason
		w.Todo = "It goes on by itself when that is resumed."
	}
	return w
}

func ended(s seen) why {
	w := why{Tone: lower(s.job.ProcessState), Quote: s.job.Reason}
	done := 0
	for _, step := range s.job.Steps {
		if step.State == makegood.StepDone {
			done++
		}
	}
	switch s.job.ProcessState {
	case makegood.JobProcessed:
		w.Head = fmt.Sprintf("It is done: %s of %d.", many(done, "step"), len(s.job.Steps))
	case makegood.JobCancelled:
		w.Head = "It was cancelled, and its steps are undone."
	default:
		w.Head = "Its steps are undone."
	}
	return w
}

// goesOn describes what a job does now: of the open steps, those that need a person first.
func goesOn(s seen) why {
	w := why{Tone: lower(s.job.ProcessState)}
	var said []string
	for _, state := range []makegood.StepState{makegood.StepWaiting, makegood.StepBackoff, makegood.StepClaimed, makegood.StepDispatched, makegood.StepQueued} {
		for _, step := range s.job.Steps {
			if a := side(s.job, step); a.State == state {
				said = append(said, does(s, step, a))
			}
		}
	}
	switch {
	case len(said) == 0:
		w.Head = "It goes on at the next time that is due."
		return w
	case len(said) > 3:
		said = append(said[:3], fmt.Sprintf("and %d more", len(said)-3))
	}
	if waits(s.job) {
		w.Tone = "waiting"
	}
	w.Head = strings.ToUpper(said[0][:1]) + strings.Join(said, "; ")[1:] + "."
	if s.job.ProcessState == makegood.JobUndoing {
		w.Says = "It is being undone."
	}
	return w
}

// does describes an open step.
func does(s seen, step makegood.JobStep, a makegood.Activity) string {
	what := "step " + step.Name
	if onUndo(s.job, step) {
		what = "the undo of " + step.Name
	}
	switch a.State {
	case makegood.StepWaiting:
		if a.CompleteBy != nil {
			return fmt.Sprintf("%s waits to be completed, until %s", what, moment(*a.CompleteBy))
		}
		return what + " waits to be completed"
	case makegood.StepBackoff:
		if a.NextAt != nil {
			return fmt.Sprintf("%s is tried again %s", what, in(*a.NextAt, s.now))
		}
		return what + " is tried again"
	case makegood.StepClaimed:
		text := fmt.Sprintf("%s is at work, attempt %d", what, a.Attempt)
		if step.Child != "" {
			text = what + " is the work of job " + step.Child
		}
		if a.LastStartedAt != nil {
			text += ", since " + moment(*a.LastStartedAt)
		}
		return text
	case makegood.StepQueued:
		agent := agentOf(s, step.Name, onUndo(s.job, step))
		text := fmt.Sprintf("%s stands before the gate of %s, attempt %d", what, agent, a.Attempt)
		if l := s.agents[agent].Limit; l != nil {
			text += fmt.Sprintf(": %s, by %s since %s", protocol.LimitText(*l), l.By, moment(l.Since))
			if l.Reason != "" {
				text += ", " + l.Reason
			}
		}
		return text
	default:
		agent := agentOf(s, step.Name, onUndo(s.job, step))
		text := fmt.Sprintf("%s is in the queue of %s, attempt %d", what, agent, a.Attempt)
		if absent := s.agents[agent].absent(); absent != "" {
			text += ": " + absent
		}
		return text
	}
}

// stepOf is a step of the definition; nil: it is not known.
func stepOf(s seen, name string) *makegood.Step {
	if s.workflow == nil {
		return nil
	}
	for i := range s.workflow.Steps {
		if s.workflow.Steps[i].Name == name {
			return &s.workflow.Steps[i]
		}
	}
	return nil
}

// agentOf names the agent of a step, or of its undo.
func agentOf(s seen, name string, undo bool) string {
	def := stepOf(s, name)
	switch {
	case def == nil:
		return "its agent"
	case undo && domain.CanUndo(*def) && def.Undo.Agent != "":
		return def.Undo.Agent
	default:
		return def.Agent
	}
}
