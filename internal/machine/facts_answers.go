package machine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

// ClosedTo says why the step of a completion token takes no answer now; empty: it takes one.
func ClosedTo(w makegood.Workflow, j job.Job, p job.Place) string {
	t := turn{w: w, job: j}
	at, verdict := t.place(p)
	if verdict.Kind != Applied {
		return verdict.Reason
	}
	return t.closedTo(at, job.StepCompleted{Place: p})
}

// Choices are the answers that a step, or its undo, takes that is an approval; none: any output.
func Choices(w makegood.Workflow, step string, undo bool) []string {
	if i, ok := stepNamed(w.Steps, nil, step); ok {
		return choices(w.Steps[i], undo)
	}
	return nil
}

// WhyFor are those of the choices of a step, or of its undo, that must say why.
func WhyFor(w makegood.Workflow, step string, undo bool) []string {
	if i, ok := stepNamed(w.Steps, nil, step); ok {
		return whyFor(w.Steps[i], undo)
	}
	return nil
}

// closedTo says why a step takes no answer now; empty: it does.
func (t *turn) closedTo(at side, e job.StepCompleted) string {
	a, name := t.activity(at), named(t.name(at), at.undo)
	switch settled := t.job.Settled(*a); {
	case settled != nil:
		return t.wasSettled(at)
	case a.Held():
		return name + " was completed" + by(a, e) + " with another answer, which counts when its attempt has ended"
	case a.State == job.Done && a.Completion != nil:
		return fmt.Sprintf("%s was completed%s at %s with another answer", name, by(a, e), a.FinishedAt.UTC().Format(time.RFC3339))
	case a.State == job.Done:
		return fmt.Sprintf("%s is done", name)
	case a.WentTo != "" && a.Completion != nil:
		return fmt.Sprintf("%s was completed%s at %s, and the job went to %s", name, by(a, e), a.FinishedAt.UTC().Format(time.RFC3339), a.WentTo)
	case t.job.ProcessState.Finished():
		return fmt.Sprintf("the job is %s", t.job.ProcessState)
	case at.undo == t.forwards():
		if at.undo {
			return fmt.Sprintf("%s: the job is not being undone", name)
		}
		return fmt.Sprintf("%s: the job is being undone", name)
	case a.Completion != nil && a.Completion.Early:
		return fmt.Sprintf("another answer%s is kept for when %s waits", by(a, e), name)
	case a.State == job.Waiting:
		return ""
	case t.isChild(at):
		return name + " is done by a job of its own, and takes no answer"
	case e.Token != "" && t.ahead(at):
		return name + " is ahead of the step before it in its chain; give the answer when that is done"
	case e.Token != "" && (a.State == job.Dispatched || a.State == job.Backoff):
		return ""
	case e.Token == "" && e.Early && (a.State == job.NotStarted || a.State == job.Dispatched || a.State == job.Backoff):
		return ""
	case e.Token == "" && (a.State == job.NotStarted || a.State == job.Dispatched || a.State == job.Backoff):
		return fmt.Sprintf("%s does not wait yet; an early answer can be kept for when it does", name)
	case a.State == job.NotStarted:
		return fmt.Sprintf("%s has not begun", name)
	default:
		return fmt.Sprintf("%s is %s", name, a.State)
	}
}

// by names the author of a completion, if known, for callers known to the API. A token holder gets no name.
func by(a *job.Activity, e job.StepCompleted) string {
	if a.Completion.By == "" || e.Token != "" {
		return ""
	}
	return " by " + a.Completion.By
}

// wasSettled says how a side was settled.
func (t *turn) wasSettled(at side) string {
	a := t.activity(at)
	was := t.job.Settled(*a)
	by := ""
	if was.By != "" {
		by = " by " + was.By
	}
	return fmt.Sprintf("%s was settled as %s%s at %s", named(t.name(at), at.undo), a.State, by, was.At.UTC().Format(time.RFC3339))
}

// completionOf returns the completion to keep for an answer. An approval takes one of its choices.
func (t *turn) completionOf(at side, e job.StepCompleted) (c job.Completion, refused string) {
	c = job.Completion{Answer: e.Answer(), By: limits.Cut(limits.Clip(e.By), limits.MaxCompletedByBytes), Why: limits.Clip(e.Why), Output: e.Output, Error: e.Error}
	if e.Request != "" {
		c.Request = e.Asking()
	}
	if e.Error != nil {
		failure := *e.Error
		failure.Message = limits.Clip(failure.Message)
		c.Error, c.Output = &failure, job.Payload{}
		return c, ""
	}
	allowed := choices(t.w.Steps[at.step], at.undo)
	if allowed == nil {
		return c, ""
	}
	answer, ok := answerIn(e.Output)
	if !ok || !slices.Contains(allowed, answer) {
		return c, t.takes(at, allowed)
	}
	if c.Why == "" && slices.Contains(whyFor(t.w.Steps[at.step], at.undo), answer) {
		return c, fmt.Sprintf("%s wants to know why, for the answer %q: say it", named(t.name(at), at.undo), answer)
	}
	c.Answer = job.ShortHash("approval\n" + answer)
	c.Output = t.approved(answer, c.By, c.Why)
	return c, ""
}

// isSame reports whether an answer equals the last one: by its request or, if done or held, by its content. After a
// failure that was tried again, the same content is another answer.
func isSame(a *job.Activity, c job.Completion) bool {
	last := a.Completion
	switch {
	case last == nil:
		return false
	case c.Request != "" && last.Request == c.Request:
		return true
	case last.Answer != c.Answer:
		return false
	default:
		refused := a.State == job.Backoff && a.Error != nil && a.Error.Kind == makegood.KindAnswer
		return a.State == job.Done || a.State == job.Failed || refused || a.WentTo != "" || last.Held || last.Early
	}
}

// approved returns the output of an approval that is answered now.
func (t *turn) approved(answer, by, why string) job.Payload {
	output, err := json.Marshal(approval{answer, by, t.now.UTC().Format(time.RFC3339), why})
	if err != nil {
		panic(fmt.Sprintf("machine: an approval that is no JSON: %v", err))
	}
	return job.Payload{Inline: output, Bytes: len(output)}
}

// takes lists the answers that an approval takes, as JSON: its output is exactly one of these texts.
func (t *turn) takes(at side, allowed []string) string {
	var quoted []string
	for _, answer := range allowed {
		quoted = append(quoted, strconv.Quote(answer))
	}
	return fmt.Sprintf("%s takes one of these answers, a text: %s", named(t.name(at), at.undo), strings.Join(quoted, ", "))
}

// approval is the output of an approval.
type approval struct {
	Answer string `json:"answer"`
	By     string `json:"by"`
	At     string `json:"at"`
	Why    string `json:"why,omitempty"`
}

// answerIn reads the answer to an approval: a string, or an object with one.
func answerIn(output job.Payload) (string, bool) {
	var answer string
	if json.Unmarshal(output.Inline, &answer) == nil {
		return answer, answer != ""
	}
	var says approval
	if json.Unmarshal(output.Inline, &says) != nil {
		return "", false
	}
	return says.Answer, says.Answer != ""
}

// failsBy reports whether an answer is one after which its step may be asked again, as after a failure.
func (t *turn) failsBy(e job.StepCompleted) bool {
	i, ok := t.indexOf(e.Step)
	if !ok || e.Undo {
		return false
	}
	answer, _ := answerIn(e.Output)
	do := t.w.Steps[i].OnAnswer[answer].Action
	return do == makegood.AnswerStop || do == makegood.AnswerFail
}

// answerOf names the answer, its author and the reason.
func answerOf(answer string, c *job.Completion) string {
	if c == nil {
		return fmt.Sprintf("not answered in time, which counts as %q", answer)
	}
	says := fmt.Sprintf("answered %q", answer)
	if c.By != "" {
		says += " by " + c.By
	}
	if c.Why != "" {
		says += ": " + c.Why
	}
	return says
}
