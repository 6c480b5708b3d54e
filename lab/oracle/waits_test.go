package oracle_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"pgregory.net/rapid"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/lab/oracle"
)

// How an agent replies.
const (
	succeeds = "succeeds"
	fails    = "fails"
	waits    = "waits"
)

// drawWaits says what holds while a step waits, and makes some of them wait by themselves.
func drawWaits(t *rapid.T, s *makegood.Step) {
	s.Waiting = drawRules(t)
	s.Agent = drawAgent(t)
	s.Shared = s.Shared && !domain.WaitsByItself(s.Agent)
	s.With = json.RawMessage(`{"choices":["yes","no"]}`)
	if s.Agent == makegood.AgentApproval && oneIn(t, 2, "onAnswer") {
		do := rapid.SampledFrom([]makegood.AnswerAction{makegood.AnswerUndo, makegood.AnswerStop, makegood.AnswerFail}).Draw(t, "answer")
		s.OnAnswer = map[string]makegood.AnswerDo{"no": {Action: do}}
	}
	if domain.CanUndo(*s) {
		s.Undo.Agent, s.Undo.Waiting = drawAgent(t), drawRules(t)
	}
}

func drawAgent(t *rapid.T) string {
	switch rapid.IntRange(0, 15).Draw(t, "agent") {
	case 14:
		return makegood.AgentWait
	case 15:
		return makegood.AgentApproval
	default:
		return "a"
	}
}

func drawRules(t *rapid.T) *makegood.WaitRules {
	if !oneIn(t, 4, "rules") {
		return nil
	}
	r := &makegood.WaitRules{}
	if oneIn(t, 2, "ask") {
		r.Ask = []string{"ops"}
		r.Remind = []makegood.Duration{seconds(t, 40, "remind")}
	}
	if oneIn(t, 3, "escalate") {
		r.Escalate = &makegood.Escalate{After: seconds(t, 60, "escalate"), Ask: []string{"boss"}}
	}
	if oneIn(t, 4, "onTimeout") {
		r.OnTimeout = &makegood.OnTimeout{Output: json.RawMessage(rapid.SampledFrom([]string{`null`, `"late"`, `"no"`}).Draw(t, "output"))}
	}
	return r
}

// drawTime is a time that comes soon, or none.
func (x *world) drawTime() time.Time {
	if oneIn(x.t, 8, "no time") {
		return time.Time{}
	}
	return x.now.Add(seconds(x.t, 100, "until").Std())
}

func (x *world) drawLasting() oracle.Lasting {
	if oneIn(x.t, 3, "until") {
		return oracle.Lasting{Until: x.now.Add(seconds(x.t, 200, "until").Std())}
	}
	return oracle.Lasting{For: seconds(x.t, 100, "for").Std()}
}

// place is a side of a step, most often one that is under way.
func (x *world) place() (p job.Place, ok bool) {
	var all, likely []job.Place
	for i, s := range x.job.Steps {
		for _, undo := range []bool{false, domain.CanUndo(x.w.Steps[i])} {
			p := job.Place{Step: s.Name, Undo: undo}
			all = append(all, p)
			a := s.Forward
			if undo {
				a = s.Undo
			}
			if a.State == job.Waiting || a.State == job.Dispatched || a.State == job.Backoff || a.Completion != nil {
				likely = append(likely, p)
			}
		}
	}
	if len(likely) > 0 && !oneIn(x.t, 8, "any") {
		all = likely
	}
	p = rapid.SampledFrom(all).Draw(x.t, "place")
	if oneIn(x.t, 3, "address") {
		p.Round = rapid.IntRange(0, x.job.Round).Draw(x.t, "round")
		return p, true
	}
	p.Token = machine.CompletionToken(x.job, p.Step, p.Undo)
	p.Round = x.job.Round
	return p, p.Token != ""
}

// say lets somebody outside say how a step ended.
func (x *world) say() {
	p, ok := x.place()
	if !ok {
		return
	}
	w := oracle.Word{
		Step: p.Step, Undo: p.Undo, Round: p.Round, Holds: p.Token != "", Early: p.Token == "" && oneIn(x.t, 2, "early"),
		By: rapid.SampledFrom([]string{"", "anna"}).Draw(x.t, "by"), Output: rapid.SampledFrom([]string{`"yes"`, `"no"`, `1`}).Draw(x.t, "output"),
	}
	if oneIn(x.t, 3, "named") {
		w.Request = fmt.Sprint("w", rapid.IntRange(0, 3).Draw(x.t, "request"))
	}
	e := job.StepCompleted{Place: p, Request: w.Request, By: w.By, Early: w.Early, Output: job.Payload{Inline: json.RawMessage(w.Output), Bytes: len(w.Output)}}
	if oneIn(x.t, 3, "failed") {
		x.requests++
		w.Failure = &job.StepError{
			Message: "it was refused", Kind: rapid.SampledFrom(kinds()).Draw(x.t, "kind"), Retryable: !oneIn(x.t, 3, "final"), Applied: makegood.AppliedUnknown,
		}
		if oneIn(x.t, 2, "not applied") {
			w.Failure.Applied = makegood.AppliedNo
		}
		w.Request = fmt.Sprint("f", x.requests)
		e.Request, e.Error, e.Output = w.Request, w.Failure, job.Payload{}
	}
	v, found := x.decide(e)
	answer := x.want.Said(w, x.now, found...)
	x.answered(e, v, answer)
}

// answered compares what somebody was answered with what they should be.
func (x *world) answered(e job.StepCompleted, v machine.Verdict, answer oracle.Answer) {
	want := map[oracle.Answer]machine.Kind{oracle.Granted: machine.Applied, oracle.So: machine.Duplicate, oracle.Refused: machine.Refused}
	if v.Kind != want[answer] {
		s, _ := x.job.Step(e.Step)
		x.fail("%#v is %s (%s), and should be %s: it is %+v, %+v", e, v.Kind, v.Reason, answer, s.Forward.Completion, s.Undo.Completion)
	}
	x.grants(makegood.EntryCompleted, "", answer)
	if e.Round != 0 && !e.Early && (e.Request != "" || !x.fails(e)) {
		// An unnamed answer that fails its step is another when that waits again, after a resubmit. In another round one that
		// names none is another; and so is one that is to be kept, when another took its place.
		x.heard(e, v)
	}
	x.judge("said", fmt.Sprintf("%+v %s %s early %v, failed %v: %s", e.Place, e.Output.Inline, e.Request, e.Early, e.Error != nil, answer), e)
}

// fails reports whether an answer fails its step, as its onAnswer says.
func (x *world) fails(e job.StepCompleted) bool {
	i := slices.IndexFunc(x.w.Steps, func(s makegood.Step) bool { return s.Name == e.Step })
	for answer, do := range x.w.Steps[i].OnAnswer {
		if do.Action != makegood.AnswerGoto && string(e.Output.Inline) == strconv.Quote(answer) {
			return true
		}
	}
	return false
}

// extend lets a step wait longer.
func (x *world) extend() {
	p, ok := x.place()
	if !ok {
		return
	}
	e := job.WaitExtended{Place: p, Until: x.drawTime()}
	v, _ := x.decide(e)
	answer := x.want.WaitLonger(p.Step, p.Undo, p.Round, e.Until, x.now)
	want := map[oracle.Answer]machine.Kind{oracle.Granted: machine.Applied, oracle.So: machine.Duplicate, oracle.Refused: machine.Refused}
	if v.Kind != want[answer] {
		x.fail("%+v is %s (%s), and should be %s", e, v.Kind, v.Reason, answer)
	}
	x.judge("extended", fmt.Sprintf("%+v: %s", e, answer), e)
}

// tellOfWaits lets those hear who are asked to complete a step.
func (x *world) tellOfWaits() {
	for _, s := range x.job.Steps {
		for _, a := range []job.Activity{s.Forward, s.Undo} {
			if a.Wait == nil || a.Wait.Heard == a.Wait.Asked {
				continue
			}
			e := job.Asked{Step: s.Name, Attempt: a.Attempt, N: a.Wait.Asked}
			x.decide(e)
			x.want.Told(s.Name, a.Attempt, e.N, x.now)
			x.judge("told that it waits", s.Name, e)
			return
		}
	}
}

// asked judges a question that goes out: only who has yet to hear is asked, of what waits, and while the job goes on.
func (x *world) asked(c job.Ask) {
	i := slices.IndexFunc(x.w.Steps, func(s makegood.Step) bool { return s.Name == c.Step })
	side := x.want.Steps[i].Forward
	if c.Undo {
		side = x.want.Steps[i].Undo
	}
	if side.Phase != oracle.Waits || side.Attempt != c.Attempt || c.N != side.Questions || side.Heard >= c.N || x.want.Paused {
		x.fail("%+v is asked, and the step is %+v", c, side)
	}
}
