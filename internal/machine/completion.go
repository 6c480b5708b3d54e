package machine

import (
	"cmp"
	"crypto/hmac"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

// CompletionToken returns the completion token of a step in the job's round, in one direction. It names its purpose,
// followed by an HMAC under the job's secret. Attempt tokens cannot be derived from it, nor it from them. It is empty
// for a job that has no secret.
func CompletionToken(j job.Job, step string, undo bool) string {
	if len(j.Secret) == 0 {
		return ""
	}
	p := job.Place{Step: step, Undo: undo, Round: j.Round, Generation: generationOf(j, step, undo)}
	return job.WriteCompletionToken(j.ID, p, completionCode(j, p))
}

// generationOf is the generation of a step, or of its undo.
func generationOf(j job.Job, step string, undo bool) int {
	s, _ := j.Step(step)
	if undo {
		return s.Undo.Generation
	}
	return s.Forward.Generation
}

// completionCode begins with a byte that no name of a step begins with, so it is never the code of an attempt.
func completionCode(j job.Job, p job.Place) string {
	return codeOf(j.Secret, "\x00completion\x00"+p.Says(j.ID))
}

// place is the fence of completions: it returns the side of the step that a completion names, and whether it counts.
func (t *turn) place(p job.Place) (at side, v Verdict) {
	i, ok := t.indexOf(p.Step)
	if !ok {
		return side{}, Verdict{Kind: Refused, Reason: t.noStep(p)}
	}
	at = side{i, p.Undo}
	if p.Token != "" && !GenuineCompletion(*t.job, p) {
		return side{}, Verdict{Kind: Refused, Reason: "this is not the completion token of a step of this job"}
	}
	switch {
	case p.Round != 0 && p.Round != t.job.Round:
		return at, Verdict{Kind: Refused, Reason: fmt.Sprintf("it is of round %d, the job is in round %d", p.Round, t.job.Round)}
	case p.Token != "" && p.Generation != t.activity(at).Generation:
		return at, Verdict{Kind: Refused, Reason: fmt.Sprintf("it is of %s as it was before its definition or the job's input was changed", named(p.Step, p.Undo))}
	case p.Undo && !domain.CanUndo(t.w.Steps[i]):
		return at, Verdict{Kind: Refused, Reason: fmt.Sprintf("step %s has no undo", p.Step)}
	}
	return at, Verdict{Kind: Applied}
}

// noStep says that a job has no such step. A known caller that may look at the job also gets the list of its steps.
func (t *turn) noStep(p job.Place) string {
	if p.Token != "" {
		return fmt.Sprintf("there is no step %s", p.Step)
	}
	names := make([]string, 0, len(t.job.Steps))
	for _, s := range t.job.Steps {
		names = append(names, s.Name)
	}
	return limits.Clip(fmt.Sprintf("there is no step %s: the job has %s", p.Step, strings.Join(names, ", ")))
}

// GenuineCompletion reports whether the job made the completion token for this place, in any of its rounds.
func GenuineCompletion(j job.Job, p job.Place) bool {
	return len(j.Secret) > 0 && hmac.Equal([]byte(completionCode(j, p)), []byte(p.Code()))
}

// completed takes an answer from outside. The first wins, the same again is a duplicate, and a later one is told the
// first. After a failure the step may be tried again, so the failure is remembered beside the requests: the holder of
// a token pushes out none of those. An earlier release kept both as one.
func (t *turn) completed(e job.StepCompleted) Verdict {
	name := job.ShortHash(e.Cause())
	isFailure := e.Request != "" && (e.Error != nil || t.failsBy(e))
	known := slices.Contains(t.job.Answers, name) || slices.Contains(t.job.Requests, name)
	if isFailure && known && (e.Token == "" || GenuineCompletion(*t.job, e.Place)) {
		return Verdict{Kind: Duplicate, Reason: "this answer was given before"}
	}
	verdict := t.answered(e)
	if isFailure && verdict.Kind == Applied {
		t.job.Answers = remember(t.job.Answers, name)
	}
	return verdict
}

func (t *turn) answered(e job.StepCompleted) Verdict {
	at, verdict := t.place(e.Place)
	if verdict.Kind != Applied {
		return verdict
	}
	a := t.activity(at)
	c, wrong := t.completionOf(at, e)
	if isSame(a, c) {
		return Verdict{Kind: Duplicate, Reason: "this answer was given before"}
	}
	if why := cmp.Or(t.closedTo(at, e), wrong); why != "" {
		return Verdict{Kind: Refused, Reason: why}
	}
	t.noteOf(at, job.Entry{Kind: makegood.EntryCompleted, By: c.By, Reason: c.Why, Error: c.Error})
	if e.Token == "" && a.State != job.Waiting {
		c.Early = true
		a.Completion = &c
		return Verdict{Kind: Applied}
	}
	switch a.State {
	case job.Dispatched:
		return t.completeOpen(at, c)
	case job.Backoff:
		return t.completeBackoff(at, c)
	default:
		t.take(at, c)
		return Verdict{Kind: Applied}
	}
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

// ClosedTo says why the step of a completion token takes no answer now; empty: it takes one.
func ClosedTo(w makegood.Workflow, j job.Job, p job.Place) string {
	t := turn{w: w, job: &j}
	at, verdict := t.place(p)
	if verdict.Kind != Applied {
		return verdict.Reason
	}
	return t.closedTo(at, job.StepCompleted{Place: p})
}

// Choices are the answers that a step, or its undo, takes that is an approval; none: any output.
func Choices(w makegood.Workflow, step string, undo bool) []string {
	for _, s := range w.Steps {
		if s.Name == step {
			return choices(s, undo)
		}
	}
	return nil
}

// WhyFor are those of the choices of a step, or of its undo, that must say why.
func WhyFor(w makegood.Workflow, step string, undo bool) []string {
	for _, s := range w.Steps {
		if s.Name == step {
			return whyFor(s, undo)
		}
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

// named is how a person is told of a step or its undo.
func named(step string, undo bool) string {
	if undo {
		return "undo of step " + step
	}
	return "step " + step
}

// completionOf returns the completion to keep for an answer. An approval takes one of its choices.
func (t *turn) completionOf(at side, e job.StepCompleted) (c job.Completion, refused string) {
	c = job.Completion{Answer: e.Answer(), By: clipBytes(e.By, limits.MaxCompletedByBytes), Why: limits.Clip(e.Why), Output: e.Output, Error: e.Error}
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

// clipBytes shortens a text that is kept.
func clipBytes(text string, limit int) string {
	text = limits.Clip(text)
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "")
}

// completeOpen takes an answer while an attempt is out: at once if the attempt can be closed, else when it has ended.
// The attempt is then unwanted, and its holder is told so.
func (t *turn) completeOpen(at side, c job.Completion) Verdict {
	a := t.activity(at)
	if t.shared(at) {
		// It cannot be closed, since it has no claim. It ends by a reply, or when its time has passed.
		c.Held = true
		a.Completion = &c
		return Verdict{Kind: Applied}
	}
	found, known := t.ask(t.question(AskClose, at))
	if !known {
		return Verdict{Kind: Applied}
	}
	c.Held = true
	a.Completion = &c
	if found.Finding == job.FoundHeld && !t.lie(at, found) {
		if a.Inline == "" {
			a.Closing, a.Cause = true, t.cause
			a.LookAt = t.now.Add(limits.CloseAgain)
		}
		return Verdict{Kind: Applied}
	}
	return t.learn(at, found)
}

// completeBackoff takes an answer between two attempts. A failure that may be tried again, by itself or by the route
// of its kind, adds no information: the step will be tried again.
func (t *turn) completeBackoff(at side, c job.Completion) Verdict {
	if c.Error == nil {
		t.take(at, c)
		return Verdict{Kind: Applied}
	}
	if _, retryable := t.again(at, *c.Error); retryable {
		return Verdict{Kind: Duplicate, Reason: "it has failed, and will be tried again"}
	}
	a := t.activity(at)
	a.Completion = c.Taken()
	a.Error = c.Error
	a.Unknown = a.Unknown || c.Error.Applied != makegood.AppliedNo
	t.giveUp(at, c.Error.Message)
	return Verdict{Kind: Applied}
}

// conclude ends an activity after its attempt, if an answer was given before, and reports whether one was.
func (t *turn) conclude(at side) bool {
	a := t.activity(at)
	if !a.Held() {
		return false
	}
	t.take(at, *a.Completion)
	return true
}

// take ends an activity without an open attempt, with an answer from outside.
func (t *turn) take(at side, c job.Completion) {
	a := t.activity(at)
	a.Completion = c.Taken()
	if c.Error != nil {
		t.attemptFailed(at, job.Entry{Kind: makegood.EntryFailed, By: c.By, Error: c.Error})
		return
	}
	t.answeredWith(at, c.Output, a.Completion)
}

// extended moves the deadline of a wait. It is never moved back.
func (t *turn) extended(e job.WaitExtended) Verdict {
	at, verdict := t.place(e.Place)
	if verdict.Kind != Applied {
		return verdict
	}
	a := t.activity(at)
	if why := t.notWaiting(at); why != "" {
		return Verdict{Kind: Refused, Reason: why}
	}
	until := e.Until
	if until.IsZero() {
		until = t.now.Add(a.Wait.For.Std())
	}
	until = t.waitUntil(until)
	if t.job.Paused() {
		// The end of the pause moves the deadline by its whole length, and this deadline already includes the pause so far.
		until = until.Add(-t.stood(a, t.job.PausedAt))
	}
	if !until.After(a.Wait.Deadline) {
		if t.holding != nil {
			return verdict // It is that long because of the pause that begins with this, which must be saved.
		}
		return Verdict{Kind: Duplicate, Reason: "it waits that long already"}
	}
	wait := *a.Wait
	wait.Deadline = until
	a.Wait = &wait
	a.LookAt = t.nextMoment(at)
	return Verdict{Kind: Applied}
}

// notWaiting says that a side does not wait; empty: it does.
func (t *turn) notWaiting(at side) string {
	if t.activity(at).State != job.Waiting {
		return named(t.name(at), at.undo) + " does not wait"
	}
	return ""
}
