package sim

import (
	"fmt"
	"strings"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
)

// tale is what happened to a job, in the words of the stories of internal/machine.
type tale struct{ lines []string }

// note adds a write to the story of its job. w.mu is held.
func (c change) note() {
	t := c.tales[c.after.ID]
	if t == nil {
		t = &tale{}
		c.tales[c.after.ID] = t
	}
	switch {
	case c.before.Rev == 0:
		line := "submit"
		if !c.after.StartAt.IsZero() {
			line += fmt.Sprintf(" startAt=%s", c.after.StartAt.Sub(c.start))
		}
		if c.after.ReplyTo != "" {
			line += " replyTo=" + c.after.ReplyTo
		}
		t.lines = append(t.lines, c.at(c.after.CreatedAt), line)
	case !c.saved():
		t.lines = append(t.lines, "# parked: "+c.after.Reason)
	case c.writer != nil:
		// The rules decided by the clock and the random number of the process.
		t.lines = append(t.lines, c.at(c.writer.looked), fmt.Sprintf("random %d", c.writer.rolled))
		t.lines = append(t.lines, c.events()...)
	}
}

// events are the lines of what the Scheduler was given when it saved.
func (c change) events() []string {
	switch {
	case len(c.after.Untold) < len(c.before.Untold):
		return []string{"told"}
	case c.after.TellTries > c.before.TellTries:
		return []string{"unheard"}
	}
	for _, s := range c.before.Steps {
		now, _ := c.after.Step(s.Name)
		if s.Forward.Closing && !now.Forward.Closing || s.Undo.Closing && !now.Undo.Closing {
			return []string{"close"}
		}
	}
	var lines []string
	for _, e := range c.writer.batch[c.after.ID] {
		switch e := e.(type) {
		case job.StepSucceeded:
			lines = append(lines, fmt.Sprintf("succeed %s attempt=%d by=%s", e.Step, e.Attempt, nick(e.LockedBy)))
		case job.StepFailed:
			line := fmt.Sprintf("fail %s attempt=%d by=%s message=%s", e.Step, e.Attempt, nick(e.LockedBy), strings.ReplaceAll(e.Error.Message, " ", "_"))
			if !e.Error.Retryable {
				line += " final"
			}
			if e.Error.Applied == makegood.AppliedNo {
				line += " applied=no"
			}
			lines = append(lines, line)
		case job.DeadlinePassed:
			lines = append(lines, fmt.Sprintf("deadline key=%s", e.Key.Sub(c.start)))
		case job.Requested:
			lines = append(lines, fmt.Sprintf("%s request=%s", e.Verb, e.Request))
		case job.Submitted:
			lines = append(lines, "submitted")
		}
	}
	return lines
}

// nick shortens the name of a claim to what tells it from others.
func nick(lockedBy string) string {
	name, _, _ := strings.Cut(lockedBy, ":")
	return strings.TrimPrefix(name, tasksPrefix)
}

// story describes the job of the first violation in the format of internal/machine/testdata, to be pasted there
// and run with -rewrite.
func (w *world) story() string {
	t := w.tales[w.blamed]
	if t == nil {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# %s.\n\n", w.result.Violations[0])
	def := w.workflowOf(w.blamed)
	on, _ := def.OnFailure.MarshalText()
	fmt.Fprintf(&b, "workflow %s onFailure=%s", def.Name, strings.ReplaceAll(string(on), " ", "_"))
	if def.Timeout > 0 {
		fmt.Fprintf(&b, " timeout=%s", def.Timeout)
	}
	if def.Expect > 0 {
		fmt.Fprintf(&b, " expect=%s", def.Expect)
	}
	b.WriteString("\n")
	for _, s := range def.Steps {
		needs := strings.Join(s.Needs, ",")
		if needs == "" {
			needs = "-"
		}
		fmt.Fprintf(&b, "step %s needs=%s attempts=%d backoff=%s max=%s startBy=%s timeout=%s",
			s.Name, needs, s.Retry.Attempts, s.Retry.Backoff, s.Retry.Max, s.StartBy, s.Timeout)
		if s.Heartbeat > 0 {
			fmt.Fprintf(&b, " heartbeat=%s", s.Heartbeat)
		}
		switch {
		case domain.CanUndo(s):
			fmt.Fprintf(&b, " undo undoAttempts=%d", s.Undo.Retry.Attempts)
		case s.Undo != nil:
			b.WriteString(" undo=none")
		}
		if s.Shared {
			b.WriteString(" shared")
		}
		if s.Inline {
			b.WriteString(" inline")
		}
		b.WriteString("\n")
	}
	b.WriteString("----\n\n")
	blamed, _ := w.store.Stored(w.blamed)
	for _, s := range blamed.Steps {
		if s.Forward.State == job.Skipped {
			fmt.Fprintf(&b, "fact %s skip\n", s.Name)
		}
	}
	b.WriteString(strings.Join(t.lines, "\n"))
	b.WriteString("\n----\n")
	return b.String()
}
