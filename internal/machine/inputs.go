package machine

import (
	"fmt"
	"slices"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

// A job may get another input while it stands still. Steps that ran with the old input are undone with the old input:
// the job keeps it, and each step that may have to be undone records which input its attempts saw.

// asksAgain says why the job cannot have another input; empty: it can. A step with an unknown outcome would be asked
// for another effect under the same key, and its undo could refer to only one of the two. reads are the steps that
// are asked with the input.
func (t *turn) asksAgain(rule Rule, input *job.Payload, reads []string) string {
	if input == nil || rule.Effect == NewRound || sameInput(*input, t.job.Input) {
		return ""
	}
	needed := false
	for i, s := range t.job.Steps {
		if s.Forward.Unknown && t.asksWithInput(i, reads) {
			return fmt.Sprintf("the outcome of step %s is unknown, and it would be asked again under the same key with another input; %s", s.Name, t.untilSettled())
		}
		needed = needed || t.sawInput(i)
	}
	if needed && t.formerly() < 0 && len(t.job.Former) >= limits.MaxFormerInputs {
		return fmt.Sprintf("it had %d other inputs in this round that steps were done with: that is the limit", limits.MaxFormerInputs)
	}
	return ""
}

// asksWithInput reports whether a step without an open attempt will be asked with the job's input.
func (t *turn) asksWithInput(i int, reads []string) bool {
	switch s := t.job.Steps[i]; s.Forward.State {
	case job.Failed, job.Backoff, job.NotStarted:
		return t.forwards() && slices.Contains(reads, s.Name)
	default:
		return false
	}
}

// sawInput reports whether a step may have had an effect with the input that the job has, and with none before.
func (t *turn) sawInput(i int) bool {
	f := t.job.Steps[i].Forward
	return f.Former == 0 && (f.State == job.Done || f.Unknown)
}

// formerly is where the input that the job has is among those of before; below zero: nowhere.
func (t *turn) formerly() int {
	return slices.IndexFunc(t.job.Former, func(p job.Payload) bool { return sameInput(p, t.job.Input) })
}

// giveInput gives the job another input. In a step that is asked with it, earlier answers and completion tokens
// belong to another question.
func (t *turn) giveInput(input job.Payload, reads []string) {
	if sameInput(input, t.job.Input) {
		return
	}
	was := t.formerly()
	for i := range t.job.Steps {
		s := &t.job.Steps[i]
		if t.sawInput(i) {
			if was < 0 {
				was = len(t.job.Former)
				t.job.Former = append(t.job.Former, t.job.Input)
			}
			s.Forward.Former = was + 1
		}
		if t.asksWithInput(i, reads) {
			s.Forward.Generation = s.Attempt
			if c := s.Forward.Completion; c != nil && !c.Early {
				s.Forward.Completion = nil
			}
		}
	}
	t.job.Input = input
}

// sameInput reports whether two inputs are equal: an input that is kept elsewhere has a key made from its content.
func sameInput(a, b job.Payload) bool {
	return a.Ref == b.Ref && slices.Equal(a.Inline, b.Inline)
}
