package graph

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
)

// OfWorkflow returns the steps of a workflow and the edges to each, as Layout takes them: all Idle, with the agent
// below the name, and a step that only an error or an answer leads to with an edge that is Off. A node's ID is the
// step's name.
func OfWorkflow(w makegood.Workflow) ([]Node, []Edge) {
	var nodes []Node
	var edges []Edge
	for _, s := range w.Steps {
		nodes = append(nodes, Node{ID: s.Name, Label: s.Name, Sub: whoDoes(s), Word: "step"})
		kind := Taken
		if s.Only == makegood.OnlyOnError {
			kind = Off
		}
		for _, before := range domain.Before(w, s) {
			edges = append(edges, Edge{From: before, To: s.Name, Kind: kind})
		}
	}
	return nodes, edges
}

// whoDoes names the agent, and the undo where there is one.
func whoDoes(s makegood.Step) string {
	text, child := s.Agent, s.Agent == makegood.AgentWorkflow
	if s.Action != "" && (s.Action != s.Name || child) && s.Action != s.Agent {
		text += " " + s.Action
	}
	for _, answer := range slices.Sorted(maps.Keys(s.OnAnswer)) {
		if do := s.OnAnswer[answer]; do.Action != makegood.AnswerGoto { // That is a way of its own.
			text += " · " + answer + ": " + do.String()
		}
	}
	if domain.CanUndo(s) {
		text += " · undo"
		if s.Undo.Action != "undo" && !child { // that of an http step, which has no other name, and that of the job
			text += " " + s.Undo.Action
		}
	}
	return text
}

// OfJob returns the steps of a job's workflow with the job's states, the ways that it took, and the way back. A step
// that the job does not know is Idle. It reads no payloads, so a job without them will do.
func OfJob(w makegood.Workflow, job makegood.Job) ([]Node, []Edge) {
	nodes, edges := OfWorkflow(w)
	steps := map[string]makegood.JobStep{}
	for _, s := range job.Steps {
		steps[s.Name] = s
	}
	for i, s := range w.Steps {
		step := steps[s.Name]
		nodes[i].State, nodes[i].Word = StateOf(step)
		nodes[i].Sub = subOf(s, step)
	}
	var back []Edge
	for i, e := range edges {
		from, to := steps[e.From], steps[e.To]
		edges[i].Kind = wayTo(from, to)
		if kind, any := wayBack(to, from); any {
			back = append(back, Edge{From: e.To, To: e.From, Kind: kind})
		}
	}
	return nodes, append(edges, back...)
}

// StateOf returns the look of a job's step, and its meaning: those of its undo, once the undo has begun.
func StateOf(s makegood.JobStep) (State, string) {
	if s.Undo != nil {
		switch s.Undo.State {
		case makegood.StepQueued, makegood.StepDispatched, makegood.StepClaimed, makegood.StepBackoff:
			return Undoing, "being undone"
		case makegood.StepWaiting:
			return Waiting, "its undo waits"
		case makegood.StepDone:
			return Undone, "undone"
		case makegood.StepFailed:
			return Error, "its undo failed"
		case makegood.StepNotStarted, makegood.StepSkipped, makegood.StepWithdrawn, makegood.StepIrreversible:
		}
	}
	switch s.State {
	case makegood.StepQueued:
		return Pending, "at the gate"
	case makegood.StepDispatched:
		return Pending, "queued"
	case makegood.StepClaimed:
		return Processing, "at work"
	case makegood.StepWaiting:
		return Waiting, "waits"
	case makegood.StepBackoff:
		return Pending, "to be tried again"
	case makegood.StepDone:
		return Processed, "done"
	case makegood.StepSkipped:
		return Skipped, "skipped"
	case makegood.StepFailed:
		return Error, "failed"
	case makegood.StepWithdrawn:
		return Cancelled, "withdrawn"
	default:
		return Idle, "not reached"
	}
}

// subOf summarizes the step's course in a few words, after its agent.
func subOf(s makegood.Step, step makegood.JobStep) string {
	state, word := StateOf(step)
	who := s.Agent
	if who == makegood.AgentWorkflow {
		who = s.Action // There is no room for both.
	}
	switch state {
	case Idle, Skipped, Undoing, Undone, Cancelled:
		return who + " · " + word
	case Error:
		if kind := errorKind(step); kind != "" {
			return who + " · " + word + ": " + kind
		}
		return who + " · " + word
	case Processed:
		return who + tries(step.Activity) + took(step.Activity)
	default:
		return who + " · " + word + tries(step.Activity)
	}
}

// errorKind is the kind of what a step, or its undo, was given up for.
func errorKind(s makegood.JobStep) string {
	if s.Undo != nil && s.Undo.State == makegood.StepFailed && s.Undo.Error != nil {
		return s.Undo.Error.Kind
	}
	if s.Error != nil {
		return s.Error.Kind
	}
	return ""
}

// tries counts the attempts, where it was not one.
func tries(a makegood.Activity) string {
	if a.Attempt < 2 {
		return ""
	}
	return " · " + ordinal(a.Attempt) + " try"
}

func ordinal(n int) string {
	suffix := "th"
	if n%100 < 11 || n%100 > 13 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return strconv.Itoa(n) + suffix
}

func took(a makegood.Activity) string {
	if a.StartedAt == nil || a.FinishedAt == nil {
		return ""
	}
	return " · " + Duration(a.FinishedAt.Sub(*a.StartedAt))
}

// Duration writes a duration with the two units that matter: 0.3 s, 41 s, 2 m 05 s, 2 h 04 m, 3 d 04 h.
func Duration(d time.Duration) string {
	d = max(d, 0)
	two := func(large, small int, units ...string) string {
		text := strconv.Itoa(large) + " " + units[0] + " "
		if small < 10 {
			text += "0"
		}
		return text + strconv.Itoa(small) + " " + units[1]
	}
	switch {
	case d < 10*time.Second:
		return strconv.FormatFloat(d.Round(100*time.Millisecond).Seconds(), 'f', 1, 64) + " s"
	case d < time.Minute:
		return strconv.Itoa(int(d.Seconds())) + " s"
	case d < time.Hour:
		return two(int(d.Minutes()), int(d.Seconds())%60, "m", "s")
	case d < 24*time.Hour:
		return two(int(d.Hours()), int(d.Minutes())%60, "h", "m")
	default:
		return two(int(d.Hours())/24, int(d.Hours())%24, "d", "h")
	}
}

// begun reports whether anything was done for a step.
func begun(s makegood.JobStep) bool {
	return s.State != "" && s.State != makegood.StepNotStarted && s.State != makegood.StepSkipped
}

// wayTo says what the way from a step to the next stands for.
func wayTo(from, to makegood.JobStep) EdgeKind {
	switch {
	case !begun(to) || !begun(from):
		return Off
	case to.State == makegood.StepDispatched || to.State == makegood.StepClaimed:
		return Flow
	default:
		return Taken
	}
}

// wayBack returns the kind of the way back from a step to one before it, if it was taken: the step has begun and is
// dealt with, and the job came to the one before it.
func wayBack(step, before makegood.JobStep) (EdgeKind, bool) {
	if !begun(step) || before.Undo == nil || underWay(step) {
		return 0, false
	}
	switch before.Undo.State {
	case makegood.StepDone, makegood.StepSkipped, makegood.StepIrreversible:
		return Back, true
	case makegood.StepQueued, makegood.StepDispatched, makegood.StepClaimed, makegood.StepBackoff, makegood.StepWaiting:
		return BackFlow, true
	case makegood.StepFailed:
		return Stop, true
	default:
		return 0, false
	}
}

// underWay reports whether a step, or its undo, is still being dealt with, or its undo stopped.
func underWay(s makegood.JobStep) bool {
	if s.Undo == nil {
		return s.State != makegood.StepDone && s.State != makegood.StepFailed && s.State != makegood.StepWithdrawn
	}
	switch s.Undo.State {
	case makegood.StepDone, makegood.StepSkipped, makegood.StepIrreversible:
		return false
	default:
		return true
	}
}
