package machine

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

// waitOf returns the side of a step that waits in this attempt.
func (t *turn) waitOf(step string, attempt int) (side, Verdict) {
	i, ok := t.indexOf(step)
	if !ok {
		return side{}, Verdict{Kind: Stale, Reason: fmt.Sprintf("there is no step %s", step)}
	}
	for _, at := range sides(i) {
		if a := t.activity(at); a.State == job.Waiting && a.Attempt == attempt {
			return at, Verdict{Kind: Applied}
		}
	}
	return side{}, Verdict{Kind: Duplicate, Reason: fmt.Sprintf("attempt %d of step %s waits no more", attempt, step)}
}

// waitUntil bounds the deadline of a wait. One that was not given is as late as can be.
func (t *turn) waitUntil(deadline time.Time) time.Time {
	latest := t.now.Add(makegood.MaxWait)
	if deadline.IsZero() || deadline.After(latest) {
		return latest
	}
	return domain.Instant(deadline)
}

// stood is how long a wait has stood still since the job was paused: it may have begun during the pause.
func (t *turn) stood(a *job.Activity, paused time.Time) time.Duration {
	return t.now.Sub(later(paused, a.At))
}

// moment is a time at which people are asked to complete a step.
type moment struct {
	after time.Duration // since the step began to wait
	ask   []string
}

// moments are the times at which people are asked, in order. The first is the beginning, if they are asked then.
func moments(rules *makegood.WaitRules) []moment {
	if rules == nil {
		return nil
	}
	var all []moment
	if len(rules.Ask) > 0 {
		all = append(all, moment{0, rules.Ask})
	}
	for _, after := range rules.Remind {
		all = append(all, moment{after.Std(), rules.Ask})
	}
	if rules.Escalate == nil {
		return all
	}
	others := slices.Clone(rules.Ask)
	for _, name := range rules.Escalate.Ask {
		if !slices.Contains(others, name) {
			others = append(others, name)
		}
	}
	at := rules.Escalate.After.Std()
	all = slices.DeleteFunc(all, func(m moment) bool { return m.after == at })
	for i := range all {
		if all[i].after > at {
			all[i].ask = others
		}
	}
	i, _ := slices.BinarySearchFunc(all, at, func(m moment, at time.Duration) int { return int(m.after - at) })
	return slices.Insert(all, i, moment{at, others})
}

// momentsPast counts the moments that have come.
func (t *turn) momentsPast(at side) int {
	began := t.activity(at).At
	n := 0
	for _, m := range moments(t.plan(at).waiting) {
		if !t.now.Before(began.Add(m.after)) {
			n++
		}
	}
	return n
}

// nextMoment is the next due time of a waiting activity: its deadline, or a moment to ask, first or repeated.
func (t *turn) nextMoment(at side) time.Time {
	a := t.activity(at)
	next := a.Wait.Deadline
	all := moments(t.plan(at).waiting)
	if n := a.Wait.Asked; n < len(all) {
		next = earlier(next, a.At.Add(all[n].after))
	}
	if a.Wait.Heard < a.Wait.Asked {
		again := t.now.Add(limits.TellAgain)
		if a.Wait.AskAt.After(t.now) {
			again = a.Wait.AskAt
		}
		next = earlier(next, again)
	}
	return next
}

// Question is the message to the people that are asked to complete a step.
type Question struct {
	Job, Workflow, Step string
	Undo                bool
	Round               int
	// To are registered names, N the number of the moment: the same one again may be told twice.
	To []string
	N  int
	// Since is when the step began to wait, Deadline when it ends without an answer.
	Since, Deadline time.Time
	// Choices are the answers that an approval takes; none: any.
	Choices []string
	// Completion is the step's completion token.
	Completion string
}

// QuestionOf writes what a command asks, but for what takes evaluating expressions. ok is false where the step waits no
// more.
func QuestionOf(w makegood.Workflow, j job.Job, c job.Ask) (q Question, ok bool) {
	t := turn{w: w, job: j}
	at, v := t.waitOf(c.Step, c.Attempt)
	if v.Kind != Applied {
		return Question{}, false
	}
	all := moments(t.plan(at).waiting)
	if c.N < 1 || c.N > len(all) {
		return Question{}, false
	}
	a := t.activity(at)
	return Question{
		Job: j.ID, Workflow: j.Workflow, Step: c.Step, Undo: at.undo, Round: j.Round, To: all[c.N-1].ask, N: c.N,
		Since: a.At, Deadline: a.Wait.Deadline, Choices: choices(w.Steps[at.step], at.undo),
		Completion: CompletionToken(j, c.Step, at.undo),
	}, true
}

// choices are the answers that an approval takes; none for another agent.
func choices(s makegood.Step, undo bool) []string { return asksOf(s, undo).Choices }

// whyFor returns the answers for which an approval wants a reason: those that its with lists, or all answers.
func whyFor(s makegood.Step, undo bool) []string {
	says := asksOf(s, undo)
	var some []string
	if json.Unmarshal(says.Why, &some) == nil {
		return some
	}
	return says.Choices
}

// asks holds the fields of an approval's with that are not evaluated.
type asks struct {
	Choices []string        `json:"choices"`
	Why     json.RawMessage `json:"why"`
}

// asksOf returns the fields of an approval's with; they are empty for another agent.
func asksOf(s makegood.Step, undo bool) asks {
	with := s.With
	if undo {
		with = s.Undo.With
	}
	if agentOf(s, undo) != makegood.AgentApproval {
		return asks{Why: json.RawMessage("[]")}
	}
	says := asks{Why: json.RawMessage("[]")}
	if err := json.Unmarshal(with, &says); err != nil {
		panic(fmt.Sprintf("machine: the approval of step %s was not checked: %v", s.Name, err))
	}
	return says
}

// needs is the level that a release must know to decide about the job: law 12.
func (t *turn) needs() int {
	level := 0
	if AtGate(t.job) {
		return job.LevelGates
	}
	if t.w.Part != nil || slices.ContainsFunc(t.w.Steps, func(s makegood.Step) bool { return s.Map != nil }) {
		return job.LevelMaps
	}
	for i := range t.w.Steps { // By index: a step is large.
		if t.w.Steps[i].Agent == makegood.AgentWorkflow {
			return job.LevelChildren
		}
	}
	for i, s := range t.w.Steps {
		if needsWaits(s) {
			level = max(level, job.LevelWaits)
		}
		for _, at := range sides(i) {
			switch a := t.activity(at); {
			case a.Inline != "":
				return job.LevelInline
			case a.Generation > 0 || a.Former > 0:
				level = job.LevelRedefined
			case a.State == job.Waiting || a.Completion != nil:
				level = max(level, job.LevelWaits)
			}
		}
	}
	return level
}

// needsWaits reports whether a step has features that need a release with waiting or long steps: a release without
// heartbeats would take a silent attempt for a live one.
func needsWaits(s makegood.Step) bool {
	if len(s.OnError) > 0 || s.Any || s.Only != "" || s.Repeat != nil {
		return true
	}
	return s.Waiting != nil || s.Heartbeat > 0 || domain.WaitsByItself(s.Agent) ||
		domain.CanUndo(s) && (s.Undo.Waiting != nil || s.Undo.Heartbeat > 0 || domain.WaitsByItself(s.Undo.Agent))
}

// notWaiting says that a side does not wait; empty: it does.
func (t *turn) notWaiting(at side) string {
	if t.activity(at).State != job.Waiting {
		return named(t.name(at), at.undo) + " does not wait"
	}
	return ""
}
