package oracle_test

import (
	"encoding/json"
	"fmt"

	"pgregory.net/rapid"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/lab/oracle"
)

// repair lets a person settle a step, or edit the timeout of the job.
func (x *world) repair() {
	if oneIn(x.t, 4, "edit") {
		x.request(makegood.VerbEdit)
		return
	}
	x.settle()
}

// drawTimeout is how long a job may take, none, or nothing that a timeout can be.
func (x *world) drawTimeout() makegood.Duration {
	switch rapid.IntRange(0, 9).Draw(x.t, "timeout") {
	case 8:
		return rapid.SampledFrom([]makegood.Duration{0, makegood.Millisecond, 366 * 24 * makegood.Hour}).Draw(x.t, "no timeout")
	case 9:
		return makegood.NoTimeout
	default:
		return seconds(x.t, 200, "timeout")
	}
}

// drawSettled is what a person says that they have dealt with: most often with what was given up or cannot be undone.
func (x *world) drawSettled() oracle.Settlement {
	var all, likely []oracle.Settlement
	for _, s := range x.job.Steps {
		for _, undo := range []bool{false, true} {
			a := s.Forward
			if undo {
				a = s.Undo
			}
			one := oracle.Settlement{Step: s.Name, Undo: undo}
			all = append(all, one)
			if a.State == job.Failed || a.State == job.Irreversible || a.Settled != nil {
				likely = append(likely, one)
			}
		}
	}
	if len(likely) > 0 && !oneIn(x.t, 3, "any") {
		all = likely
	}
	s := rapid.SampledFrom(all).Draw(x.t, "settles")
	if s.Done = !oneIn(x.t, 2, "skipped"); !s.Done {
		s.NotDone = oneIn(x.t, map[bool]int{false: 3, true: 12}[x.isOut(s)], "not done")
	}
	s.Output = rapid.SampledFrom([]string{`"yes"`, `"no"`, `1`}).Draw(x.t, "output")
	s.By = rapid.SampledFrom([]string{"", "anna"}).Draw(x.t, "by")
	s.Reason = rapid.SampledFrom([]string{"", "by hand"}).Draw(x.t, "reason")
	s.Round = rapid.IntRange(0, x.job.Round).Draw(x.t, "round")
	if oneIn(x.t, 2, "named") {
		if x.settlements == 0 || oneIn(x.t, 2, "another name") {
			x.settlements++
		}
		s.Request = fmt.Sprint("s", x.settlements)
	}
	return s
}

// isOut reports whether an attempt of what a person speaks of is out.
func (x *world) isOut(s oracle.Settlement) bool {
	step, _ := x.job.Step(s.Step)
	return s.Undo && step.Undo.State == job.Dispatched || !s.Undo && step.Forward.State == job.Dispatched
}

// settle lets a person say that they have dealt with a step.
func (x *world) settle() {
	s := x.drawSettled()
	e := job.Settled{Place: job.Place{Step: s.Step, Undo: s.Undo, Round: s.Round}, Done: s.Done, NotDone: s.NotDone, Reason: s.Reason, By: s.By, Request: s.Request}
	if s.Done {
		e.Output = job.Payload{Inline: json.RawMessage(s.Output), Bytes: len(s.Output)}
	}
	v, found := x.decide(e)
	answer := x.want.Settled(s, x.now, found...)
	want := map[oracle.Answer]machine.Kind{oracle.Granted: machine.Applied, oracle.So: machine.Duplicate, oracle.Refused: machine.Refused}
	if v.Kind != want[answer] {
		step, _ := x.job.Step(s.Step)
		x.fail("%+v is %s (%s), and should be %s: it is %+v", s, v.Kind, v.Reason, answer, step)
	}
	x.grants(makegood.EntrySettled, "", answer)
	if s.Request != "" || s.Round != 0 {
		x.heard(e, v) // In another round one that names none is another.
	}
	x.judge("settled", fmt.Sprintf("%+v: %s", s, answer), e)
}
