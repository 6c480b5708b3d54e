package machine_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
)

// What agents say of an attempt: one thing, however often it is delivered.
const (
	saysDone    = "done"
	saysFailed  = "failed"
	saysWaiting = "waiting"
	saysHeld    = "held" // Of a chain: neither this nor those behind it were begun.
)

// choicesOf is what approvals of random workflows ask.
const choicesOf = `{"choices":["yes","no"]}`

// drawWaits makes a step one that waits by itself, or says what holds when its agent says that it waits.
func drawWaits(t *rapid.T, s *makegood.Step) {
	s.Agent = drawAgent(t)
	if domain.WaitsByItself(s.Agent) {
		s.Shared, s.Repeat = false, nil
	}
	if domain.WaitsByItself(s.Agent) || rapid.Bool().Draw(t, "with") {
		s.With = json.RawMessage(choicesOf)
	}
	if s.Agent == makegood.AgentApproval && rapid.Bool().Draw(t, "onAnswer") {
		s.OnAnswer = map[string]makegood.AnswerDo{"no": {Action: rapid.SampledFrom([]makegood.AnswerAction{
			makegood.AnswerUndo, makegood.AnswerStop, makegood.AnswerFail,
		}).Draw(t, "answer")}}
	}
	s.Waiting = drawRules(t)
	if domain.CanUndo(*s) {
		s.Undo.Agent, s.Undo.Waiting = drawAgent(t), drawRules(t)
		if domain.WaitsByItself(s.Undo.Agent) {
			s.Undo.With = json.RawMessage(choicesOf)
		}
	}
}

func drawAgent(t *rapid.T) string {
	switch rapid.IntRange(0, 11).Draw(t, "agent") {
	case 0:
		return makegood.AgentWait
	case 1:
		return makegood.AgentApproval
	case 2, 3:
		return outside
	default:
		return "a"
	}
}

func drawRules(t *rapid.T) *makegood.WaitRules {
	if rapid.IntRange(0, 2).Draw(t, "rules") > 0 {
		return nil
	}
	r := &makegood.WaitRules{}
	if rapid.Bool().Draw(t, "asks") {
		r.Ask = []string{"ops"}
		for range rapid.IntRange(0, 2).Draw(t, "reminders") {
			last := makegood.Duration(0)
			if n := len(r.Remind); n > 0 {
				last = r.Remind[n-1]
			}
			r.Remind = append(r.Remind, last+drawSeconds(t, "remind"))
		}
	}
	if rapid.IntRange(0, 2).Draw(t, "escalates") == 0 {
		r.Escalate = &makegood.Escalate{After: drawSeconds(t, "escalate"), Ask: []string{"boss"}}
	}
	if rapid.IntRange(0, 3).Draw(t, "onTimeout") == 0 {
		r.OnTimeout = &makegood.OnTimeout{Output: json.RawMessage(rapid.SampledFrom([]string{`null`, `"late"`, `"no"`}).Draw(t, "output"))}
	}
	return r
}

// drawRepeat lets some steps be repeated until they are ready.
func drawRepeat(t *rapid.T) *makegood.Repeat {
	if rapid.IntRange(0, 2).Draw(t, "repeat") > 0 {
		return nil
	}
	return &makegood.Repeat{Until: "${ .output }", Every: drawSeconds(t, "every"), For: drawSeconds(t, "for"), Attempts: rapid.IntRange(1, 4).Draw(t, "repeats")}
}

func drawSeconds(t *rapid.T, what string) makegood.Duration {
	return makegood.Duration(rapid.IntRange(1, 60).Draw(t, what)) * makegood.Second
}

// drawTime is when something ends: often soon, and sometimes it has.
func (x *world) drawTime(what string) time.Time {
	return x.now.Add(time.Duration(rapid.IntRange(-5, 120).Draw(x.t, what)) * time.Second)
}

// untilOf is what the expressions of a step give that waits by itself.
func (x *world) untilOf(fact machine.Fact) machine.Fact {
	if rapid.Bool().Draw(x.t, "until") {
		fact.Until = x.drawTime("until")
		return fact
	}
	fact.For = makegood.Duration(rapid.IntRange(0, 120).Draw(x.t, "for")) * makegood.Second
	return fact
}

func (x *world) def(step string) makegood.Step {
	return x.w.Steps[slices.IndexFunc(x.w.Steps, func(d makegood.Step) bool { return d.Name == step })]
}

// activityOf is a step going forward, or its undo.
func activityOf(j job.Job, step string, undo bool) job.Activity {
	s, _ := j.Step(step)
	if undo {
		return s.Undo
	}
	return s.Forward
}

// drawPlace names a side of a step, most often one that is under way, as whoever holds its token knows it, or by its
// address. A token may be forged, or be of another round.
func (x *world) drawPlace() (p job.Place, ok bool) {
	if len(x.tokens) > 0 && rapid.IntRange(0, 5).Draw(x.t, "old token") == 0 {
		_, p, err := job.ReadCompletionToken(rapid.SampledFrom(sorted(x.tokens)).Draw(x.t, "token"))
		return p, err == nil
	}
	var all, likely []job.Place
	for _, s := range x.job.Steps {
		for _, undo := range []bool{false, true} {
			p := job.Place{Step: s.Name, Undo: undo}
			all = append(all, p)
			if a := activityOf(x.job, s.Name, undo); a.State == job.Waiting || a.State == job.Dispatched || a.State == job.Backoff {
				likely = append(likely, p)
			}
		}
	}
	if len(likely) > 0 && rapid.IntRange(0, 5).Draw(x.t, "likely") > 0 {
		all = likely
	}
	p = rapid.SampledFrom(all).Draw(x.t, "place")
	if rapid.IntRange(0, 2).Draw(x.t, "address") == 0 {
		p.Round = rapid.IntRange(0, x.job.Round).Draw(x.t, "round")
		return p, true
	}
	of := x.job
	of.Round = max(1, x.job.Round-rapid.IntRange(0, 5).Draw(x.t, "earlier round")/5)
	return x.placeOf(of, p)
}

// placeOf is a side of a step as whoever holds its completion token knows it.
func (x *world) placeOf(of job.Job, p job.Place) (job.Place, bool) {
	token := machine.CompletionToken(of, p.Step, p.Undo)
	if token == "" {
		return p, false
	}
	id, said, err := job.ReadCompletionToken(token)
	if err != nil || id != of.ID || said.Step != p.Step || said.Undo != p.Undo || said.Round != of.Round {
		x.t.Fatalf("the completion token of %+v is read as %+v of %s: %v", p, said, id, err)
	}
	return said, true
}

// drawCompletion makes an answer from outside, and who gives it may be anybody.
func (x *world) drawCompletion() (job.Event, bool) {
	p, ok := x.drawPlace()
	if !ok {
		return nil, false
	}
	switch rapid.IntRange(0, 7).Draw(x.t, "answer") {
	case 0:
		e := job.WaitExtended{Place: p}
		if rapid.Bool().Draw(x.t, "until") {
			e.Until = x.drawTime("until")
		}
		return e, true
	case 1:
		return x.drawAsked(p)
	case 2, 3:
		x.requests++
		failure := &job.StepError{Message: "it was refused", Retryable: rapid.Bool().Draw(x.t, "retryable"), Applied: makegood.AppliedUnknown}
		if x.harmless[p.Step] {
			failure.Applied = makegood.AppliedNo
		}
		return job.StepCompleted{Place: p, Error: failure, Request: fmt.Sprintf("r%d", x.requests), Early: x.early(p)}, true
	default:
		return job.StepCompleted{Place: p, Output: x.drawOutput(), By: rapid.SampledFrom([]string{"", "anna"}).Draw(x.t, "by"), Early: x.early(p)}, true
	}
}

// drawSettled makes a person say that they have dealt with a step, most often with what has failed or has no undo.
func (x *world) drawSettled() job.Event {
	var all, likely []job.Place
	for _, s := range x.job.Steps {
		for _, undo := range []bool{false, true} {
			p := job.Place{Step: s.Name, Undo: undo, Round: rapid.IntRange(0, x.job.Round).Draw(x.t, "round")}
			all = append(all, p)
			if a := activityOf(x.job, s.Name, undo); a.State == job.Failed || a.State == job.Irreversible {
				likely = append(likely, p)
			}
		}
	}
	if len(likely) > 0 && rapid.Bool().Draw(x.t, "likely") {
		all = likely
	}
	e := job.Settled{Place: rapid.SampledFrom(all).Draw(x.t, "settle"), By: "anna", Reason: "by hand"}
	if e.Done = rapid.IntRange(0, 2).Draw(x.t, "done") > 0; e.Done {
		e.Output = x.drawOutput()
	} else {
		e.NotDone = rapid.Bool().Draw(x.t, "not done")
	}
	if rapid.Bool().Draw(x.t, "named") {
		x.requests++
		e.Request = fmt.Sprintf("r%d", x.requests)
	}
	return e
}

func (x *world) early(p job.Place) bool { return p.Token == "" && rapid.Bool().Draw(x.t, "early") }

func (x *world) drawOutput() job.Payload {
	text := rapid.SampledFrom([]string{`"yes"`, `"no"`, `{"answer":"yes"}`, `1`, ``}).Draw(x.t, "output")
	if text == "" {
		return job.Payload{}
	}
	return job.Payload{Inline: json.RawMessage(text), Bytes: len(text)}
}

// drawAsked says that those who are asked to complete a step were told, or could not be.
func (x *world) drawAsked(p job.Place) (job.Event, bool) {
	a := activityOf(x.job, p.Step, p.Undo)
	if a.Wait == nil {
		return nil, false
	}
	n := max(0, a.Wait.Asked-rapid.IntRange(0, 3).Draw(x.t, "before")/3)
	if rapid.Bool().Draw(x.t, "could be told") {
		return job.Asked{Step: p.Step, Attempt: a.Attempt, N: n}, true
	}
	return job.NotAsked{Step: p.Step, Attempt: a.Attempt, N: n}, true
}

// attend lets those who are asked be told, and lets them answer, if they ever do.
func (x *world) attend(silent bool) (progress bool) {
	if x.waits() && !x.job.Told() {
		// A wait is long, and telling people again is not what it is for.
		x.move(x.job.Clone(), job.Told{Seq: x.job.Seq, Operator: true, Listener: true})
	}
	for _, s := range x.job.Steps {
		for _, undo := range []bool{false, true} {
			a := activityOf(x.job, s.Name, undo)
			if a.State != job.Waiting {
				continue
			}
			if a.Wait.Heard < a.Wait.Asked {
				progress = x.move(x.job.Clone(), job.Asked{Step: s.Name, Attempt: a.Attempt, N: a.Wait.Asked}) == machine.Applied || progress
			}
			if p, ok := x.placeOf(x.job, job.Place{Step: s.Name, Undo: undo}); ok && !silent {
				answer := json.RawMessage(`"yes"`)
				e := job.StepCompleted{Place: p, Output: job.Payload{Inline: answer, Bytes: len(answer)}}
				progress = x.move(x.job.Clone(), e) == machine.Applied || progress
			}
		}
	}
	return progress
}

// noteOutside notes what may have been done by those to whom an agent handed its step, and what was asked of them.
func (x *world) noteOutside(before job.Job, e job.Event) {
	for _, s := range x.job.Steps {
		was, is := activityOf(before, s.Name, false), s.Forward
		settled := x.job.Settled(is) != nil
		if before.Round != x.job.Round || is.State == job.Skipped && !settled {
			continue
		}
		byItself := domain.WaitsByItself(x.def(s.Name).Agent)
		ended := was.State == job.Waiting && (is.State != job.Waiting || is.Attempt != was.Attempt)
		done := is.State == job.Done && was.State != job.Done
		failed, isAnswer := e.(job.StepCompleted)
		harmless := isAnswer && failed.Error != nil && failed.Error.Applied == makegood.AppliedNo
		switch {
		case byItself:
			// Only what has an undo of its own is undone: it did nothing.
			if done && domain.CanUndo(x.def(s.Name)) {
				x.appliesOutside(s.Name, is.Attempt)
			}
		case ended && !(harmless && !done):
			x.appliesOutside(s.Name, was.Attempt)
		case done && was.State == job.Dispatched && is.Completion != nil:
			x.appliesOutside(s.Name, is.Attempt)
		case done && (is.Completion != nil || settled):
			x.appliesOutside(s.Name, 0)
		}
	}
}
