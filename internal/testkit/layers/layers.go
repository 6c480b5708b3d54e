// Package layers says which features of the product each layer of proof plays, by counting. Only tests import it.
//
// A layer hands in every move of a job (Seen.Moved); which features that shows is read from the workflow, from the job
// before and after, and from the event. What no job shows, such as a schedule that fires or a receiver that hangs, the
// layer says itself (Seen.Played). Column compares the layer's column of the table in docs/proof.md with what it has
// played. A field of a workflow, an event or a verb that no feature stands for fails a test.
package layers

import (
	"slices"
	"sync"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
)

// Feature names a row of the table.
type Feature string

// Those that no job shows.
const (
	Outside   Feature = "an agent outside, over a restart"
	Fence     Feature = "an effect behind a fence"
	Schedules Feature = "schedules that fire"
	Payloads  Feature = "large payloads"
	Hanging   Feature = "receivers that hang"
	Deaf      Feature = "receivers that cannot be told"
	Doubled   Feature = "messages lost, doubled, late"
	Batches   Feature = "several events in one save"
	Deaths    Feature = "processes that die between two calls"
	PowerLost Feature = "claims lost with the power"
	Clocks    Feature = "clocks that are wrong"
	Strangers Feature = "strangers and agents that lie"
	Releases  Feature = "two releases side by side"
	Zombies   Feature = "claims of weeks ago"
)

// Move is a step of the life of a job. Before is zero at its birth; Event was applied, or is nil if unknown.
type Move struct {
	Workflow      makegood.Workflow
	Before, After job.Job
	Event         job.Event
}

// Seen is what a layer has played so far. The zero value has played nothing, and a nil one notes nothing. Its methods
// may be called by many goroutines.
type Seen struct {
	mu     sync.Mutex
	played map[Feature]bool
	// left are those of the table that a job may yet show.
	left []row
}

// Played notes a feature that no job shows.
func (s *Seen) Played(f Feature) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begin()
	s.played[f] = true
}

// begin has the whole table before it. s.mu is held.
func (s *Seen) begin() {
	if s.played == nil {
		s.played, s.left = map[Feature]bool{}, slices.DeleteFunc(table(), func(r row) bool { return r.shows == nil })
	}
}

// Moved notes what a move of a job shows.
func (s *Seen) Moved(m Move) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begin()
	s.left = slices.DeleteFunc(s.left, func(r row) bool {
		shows := r.shows(m)
		s.played[r.name] = s.played[r.name] || shows
		return shows
	})
}

// Add notes what another has played, too.
func (s *Seen) Add(other *Seen) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begin()
	for f, played := range other.played {
		s.played[f] = s.played[f] || played
	}
}

// side is a step of a move, or its undo, before and after.
type side struct {
	def     makegood.Step
	undo    bool
	was, is job.Activity
}

// agent is who does it.
func (s side) agent() string {
	if s.undo && domain.CanUndo(s.def) {
		return s.def.Undo.Agent
	}
	return s.def.Agent
}

// rules are those of its waiting; nil: there are none.
func (s side) rules() *makegood.WaitRules {
	if s.undo && domain.CanUndo(s.def) {
		return s.def.Undo.Waiting
	}
	return s.def.Waiting
}

// became reports whether it came to a state by the move.
func (s side) became(state job.ActivityState) bool {
	return s.is.State == state && s.was.State != state
}

// opened reports whether an attempt of it was made.
func (s side) opened() bool { return s.is.State == job.Dispatched && s.is.Attempt != s.was.Attempt }

// some reports whether any side of a move is so.
func some(is func(Move, side) bool) func(Move) bool {
	return func(m Move) bool {
		for _, s := range m.After.Steps {
			i := slices.IndexFunc(m.Workflow.Steps, func(d makegood.Step) bool { return d.Name == s.Name })
			if i < 0 {
				continue
			}
			was, _ := m.Before.Step(s.Name)
			def := m.Workflow.Steps[i]
			if is(m, side{def, false, was.Forward, s.Forward}) || is(m, side{def, true, was.Undo, s.Undo}) {
				return true
			}
		}
		return false
	}
}

// forward reports whether any step is so, going forward.
func forward(is func(side) bool) func(Move) bool {
	return some(func(_ Move, s side) bool { return !s.undo && is(s) })
}

// either reports whether any step or undo is so.
func either(is func(side) bool) func(Move) bool {
	return some(func(_ Move, s side) bool { return is(s) })
}

// by reports whether an event of a kind was applied.
func by[E job.Event](is func(E) bool) func(Move) bool {
	return func(m Move) bool {
		e, ok := m.Event.(E)
		return ok && is(e)
	}
}

func always[E job.Event](E) bool { return true }

// verb reports whether somebody was granted a verb.
func verb(v makegood.Verb) func(Move) bool {
	return func(m Move) bool {
		e, ok := m.Event.(job.Requested)
		name := job.ShortHash(m.cause())
		return ok && e.Verb == v && slices.Contains(m.After.Requests, name) && !slices.Contains(m.Before.Requests, name)
	}
}

func (m Move) cause() string {
	if m.Event == nil {
		return ""
	}
	return m.Event.Cause()
}

// born reports whether the job was there before the move.
func (m Move) born() bool { return m.Before.ID != "" }

// turned reports whether the job turned back because a step was given up, as its workflow says.
func turned(action makegood.FailureAction) func(Move) bool {
	return func(m Move) bool {
		_, asked := m.Event.(job.Requested)
		stopped := m.After.ProcessState == makegood.JobError && m.Before.ProcessState != makegood.JobError
		back := m.After.Desired != makegood.JobProcessed && m.Before.Desired == makegood.JobProcessed
		return m.born() && !asked && m.Workflow.OnFailure.Action == action && (stopped || back)
	}
}
