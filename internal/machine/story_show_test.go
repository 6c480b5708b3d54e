package machine_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
)

// show writes what is different from what was last shown.
func (s *story) show() string {
	lines := s.describe()
	var out strings.Builder
	for _, line := range lines {
		if !slices.Contains(s.shown, line) {
			out.WriteString("  " + line + "\n")
		}
	}
	s.shown = lines
	return out.String()
}

func (s *story) when(at time.Time) string {
	if at.IsZero() {
		return "none"
	}
	return at.Sub(s.start).String()
}

func (s *story) describe() []string {
	j := s.job
	job := fmt.Sprintf("job %s", j.ProcessState)
	if !j.ProcessState.Finished() && j.Desired != makegood.JobProcessed {
		job += ", wanted " + string(j.Desired)
	}
	if j.Paused() {
		job += ", paused" + s.heldBy()
	}
	if j.Round > 1 {
		job += fmt.Sprintf(", round %d", j.Round)
	}
	if j.FailureCount > 0 {
		job += fmt.Sprintf(", failures %d", j.FailureCount)
	}
	if !j.FinishedAt.IsZero() {
		job += ", finished at " + s.when(j.FinishedAt)
	}
	if j.Reason != "" {
		job += ": " + j.Reason
	}
	if j.FirstReason != "" {
		job += " (first: " + j.FirstReason + ")"
	}
	if j.Definition != "d" {
		job += ", definition " + j.Definition
	}
	if len(j.Input.Inline) > 0 {
		job += ", input " + string(j.Input.Inline)
	}
	lines := []string{job}
	if !j.Deadline.IsZero() {
		lines = append(lines, "its timeout passes at "+s.when(j.Deadline))
	}
	switch {
	case j.ExpectBy.IsZero():
	case j.WarnAt.IsZero():
		lines = append(lines, "expected by "+s.when(j.ExpectBy)+", and the operator knows that it is late")
	default:
		lines = append(lines, "expected by "+s.when(j.ExpectBy)+", the operator is told at "+s.when(j.WarnAt))
	}
	switch {
	case !j.NextRoundAt.IsZero():
		lines = append(lines, "the next round begins at "+s.when(j.NextRoundAt))
	case j.AnotherRound:
		lines = append(lines, "another round follows")
	}
	for _, e := range j.Edits {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s edited: %d%s", e.Step, e.N, figures(e.Concurrency, e.Tolerate))))
	}
	if !j.RemindAt.IsZero() {
		lines = append(lines, "the operator is reminded at "+s.when(j.RemindAt))
	}
	if j.TellTries > 0 || !j.TellAt.IsZero() {
		lines = append(lines, fmt.Sprintf("listener: not heard %d times in a row, told again at %s", j.TellTries, s.when(j.TellAt)))
	}
	if j.Unheard > 0 {
		lines = append(lines, fmt.Sprintf("listener: %d announcements given up", j.Unheard))
	}
	for _, step := range j.Steps {
		lines = append(lines, s.activity(step.Name, false)...)
		lines = append(lines, s.activity(step.Name, true)...)
	}
	lines = append(lines, s.changes()...)
	if j.CompleteBy.IsZero() {
		return append(lines, "out of the index")
	}
	return append(lines, "in the index at "+s.when(j.CompleteBy))
}

func (s *story) activity(step string, undo bool) []string {
	a, name := s.activityOf(step, undo), named(step, undo)
	if a.State == job.NotStarted && a.Attempt == 0 && a.Completion == nil {
		return nil
	}
	state := string(a.State)
	if a.State == job.NotStarted {
		state = "not started"
	}
	line := fmt.Sprintf("%s: %s", name, state)
	switch a.State {
	case job.Backoff:
		line += " until " + s.when(a.At)
	case job.Dispatched:
		if a.Queued {
			line += " before the gate"
		}
		line += s.attempt(a, s.items[s.slotOf(step, undo)])
	case job.Waiting:
		line += s.wait(a)
	}
	if a.Interruptions > 0 {
		line += fmt.Sprintf(", cut off %d times", a.Interruptions)
	}
	if a.Unknown && a.State != job.Done {
		line += ", outcome unknown"
	}
	return []string{line + s.past(step, a)}
}

// wait says how long an activity waits, and who was asked.
func (s *story) wait(a job.Activity) string {
	line := fmt.Sprintf(" #%d until %s", a.Attempt, s.when(a.Wait.Deadline))
	if a.Wait.Asked > 0 {
		line += fmt.Sprintf(", asked %d, told %d", a.Wait.Asked, a.Wait.Heard)
	}
	if !a.Wait.AskAt.IsZero() {
		line += fmt.Sprintf(", not told %d times, again at %s", a.Wait.Tries, s.when(a.Wait.AskAt))
	}
	return line + ", due at " + s.when(a.LookAt)
}

// past says of an activity what it has behind it. Of one that goes well there is little to say.
func (s *story) past(step string, a job.Activity) string {
	line := ""
	if a.Tries != 1 && a.Attempt > 0 {
		line += fmt.Sprintf(", tries %d", a.Tries)
	}
	if a.FailureCount > 0 {
		line += fmt.Sprintf(", failures %d", a.FailureCount)
	}
	if !a.StartedAt.IsZero() {
		line += ", started at " + s.when(a.StartedAt)
	}
	if !a.FinishedAt.IsZero() {
		line += ", finished at " + s.when(a.FinishedAt)
	}
	if a.By != "" {
		line += ", by " + a.By
	}
	if a.WentTo != "" {
		line += ", went to " + a.WentTo
	}
	switch i := slices.IndexFunc(s.w.Steps, func(w makegood.Step) bool { return w.Name == step }); {
	case i >= 0 && s.w.Steps[i].Map != nil && a.Repeats+a.RepeatTries > 0:
		line += fmt.Sprintf(", redriven %d times", a.Repeats)
		if a.RepeatTries > 0 {
			line += ", and to be once more"
		}
		if a.Redriven != "" {
			line += " for items " + string(a.Redriven)
		}
	case a.Repeats > 0:
		line += fmt.Sprintf(", %d times not ready", a.Repeats)
	}
	if c := a.Completion; c != nil {
		line += ", completed from outside"
		if c.By != "" {
			line += " by " + c.By
		}
		if c.Why != "" {
			line += " (" + c.Why + ")"
		}
		if c.Held {
			line += ", taken when #" + strconv.Itoa(a.Attempt) + " has ended"
		}
		if c.Early {
			line += ", taken when it waits"
		}
	}
	if was := s.job.Settled(a); was != nil {
		line += ", settled"
		if was.By != "" {
			line += " by " + was.By
		}
		line += " at " + s.when(was.At)
		if was.Reason != "" {
			line += " (" + was.Reason + ")"
		}
	}
	if len(a.Output.Inline) > 0 {
		line += ", output " + string(a.Output.Inline)
	}
	if a.Answered > 0 {
		line += fmt.Sprintf(", %d items done", a.Answered)
	}
	if a.Refused > 0 {
		line += fmt.Sprintf(", refused %b", a.Refused)
	}
	if a.Alone {
		line += ", alone from now on"
	}
	if a.Silent != nil {
		line += fmt.Sprintf(", #%d was silent (%s)", a.Silent.Attempt, a.Silent.LockedBy)
	}
	if a.Error != nil {
		final := ""
		if !a.Error.Retryable {
			final = "final, "
		}
		line += fmt.Sprintf(": %s (%sapplied %s)", a.Error.Message, final, a.Error.Applied)
	}
	return line
}

// late is what an announcement says of a job that is expected by then.
func (s *story) late(by time.Time) string {
	if by.IsZero() {
		return ""
	}
	return " will not be done by " + s.when(by)
}

// history writes what the last event added to the job's history.
func (s *story) history() string {
	var out strings.Builder
	for _, e := range s.entries {
		out.WriteString("  history: " + s.entry(e) + "\n")
	}
	return out.String()
}

func (s *story) entry(e job.Entry) string {
	if !e.At.Equal(s.now) {
		s.t.Fatalf("an entry at %s, it is %s", s.when(e.At), s.when(s.now))
	}
	line := string(e.Kind)
	if e.Step != "" {
		line += " " + named(e.Step, e.Undo)
	}
	if e.Attempt > 0 {
		line += fmt.Sprintf("#%d", e.Attempt)
	}
	for _, word := range []string{string(e.Verb), string(e.State), string(e.As)} {
		if word != "" {
			line += " " + word
		}
	}
	if e.Round > 0 {
		line += fmt.Sprintf(" %d", e.Round)
	}
	if e.LockedBy != "" {
		line += " (" + e.LockedBy + ")"
	}
	if e.By != "" {
		line += " by " + e.By
	}
	if !e.StartedAt.IsZero() {
		line += ", started at " + s.when(e.StartedAt)
	}
	if !e.StartAt.IsZero() {
		line += ", to start at " + s.when(e.StartAt)
	}
	if e.Failure > 0 {
		line += fmt.Sprintf(", failure %d", e.Failure)
	}
	if e.Definition != "" {
		line += ", definition " + e.Definition
	}
	line += figures(e.Concurrency, e.Tolerate)
	if e.Timeout != "" {
		line += ", timeout " + e.Timeout
	}
	if e.Input {
		line += ", another input"
	}
	if e.Reason != "" {
		line += ": " + e.Reason
	}
	if e.Error != nil {
		line += ": " + e.Error.Message
	}
	return line
}

// unheard is the first announcement that the listener has not confirmed.
func (s *story) unheard() int {
	for _, a := range s.job.Untold {
		if a.Listener {
			return a.Seq
		}
	}
	return s.job.Seq
}
