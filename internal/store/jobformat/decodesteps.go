package jobformat

import (
	"errors"
	"fmt"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/store"
)

// assemble makes the steps from the several fields that describe them.
func (d *decoder) assemble() error {
	if err := d.label(); err != nil {
		return err
	}
	if !d.inputSized {
		d.Job.Input.Bytes = len(d.Job.Input.Inline)
	}
	// Every step has a byte of summary at least, so no number in the bytes makes a job larger than they are.
	if most := min(len(d.summaries.in), limits.MaxSteps); most > 0 {
		d.Job.Steps = make([]job.StepState, 0, most)
	}
	for len(d.summaries.in) > 0 && d.newer == nil {
		if err := d.step(); err != nil {
			return err
		}
	}
	if d.newer != nil {
		// The bytes after it cannot be distinguished.
		d.Job.Steps, d.NamesAt, d.DetailsAt, d.Detailed = nil, nil, nil, nil
		return nil
	}
	if len(d.numbers.in) > 0 || len(d.activities) > 0 {
		return damaged("%d bytes of numbers and %d activities too many", len(d.numbers.in), len(d.activities))
	}
	if err := d.briefly(); err != nil {
		return err
	}
	if err := d.formerThere(); err != nil {
		return err
	}
	if err := d.keptOfSteps(); err != nil || d.NamesAt != nil {
		return err
	}
	return d.Name(texts(d.names))
}

func texts(all [][]byte) []string {
	texts := make([]string, len(all))
	for i, b := range all {
		texts[i] = string(b)
	}
	return texts
}

// leave says why this release cannot read the rest of the job.
func (d *decoder) leave(format string, args ...any) {
	d.newer = fmt.Errorf("%w: %s", store.ErrNewer, fmt.Sprintf(format, args...))
}

// step reads the next step from summaries, numbers and activities.
func (d *decoder) step() error {
	i := len(d.Job.Steps)
	if i == limits.MaxSteps {
		d.leave("it has more than %d steps", limits.MaxSteps)
		return nil
	}
	d.Job.Steps = append(d.Job.Steps, job.StepState{})
	s := &d.Job.Steps[i]
	forward := d.summaries.next()
	if err := d.activity(Place{Step: i}, forward, sumAll); err != nil || d.newer != nil {
		return err
	}
	if forward&sumAttempt != 0 {
		s.Attempt = d.numbers.int()
	}
	if forward&sumUndo != 0 {
		if err := d.activity(Place{Step: i, Undo: true}, d.summaries.next(), sumAll&^(sumUndo|sumAttempt)); err != nil {
			return err
		}
	}
	if forward&sumAttempt == 0 {
		s.Attempt = max(s.Forward.Attempt, s.Undo.Attempt)
	}
	return errors.Join(d.summaries.err, d.numbers.err)
}

// activity reads what a summary says. Bits that it may not have are those of a later release.
func (d *decoder) activity(p Place, sum, may uint64) error {
	if sum&^may != 0 {
		d.leave("the summary %#x of step %d has unknown bits", sum, p.Step)
		return nil
	}
	a := p.At(d.Job.Steps)
	a.State = stateOf(sum&sumState, activityStates())
	a.Unknown = sum&sumUnknown != 0
	if a.Attempt, a.Tries = usualTries(a.State), usualTries(a.State); sum&sumTries != 0 {
		a.Attempt, a.Tries = d.numbers.int(), d.numbers.int()
	}
	if sum&sumTrouble != 0 {
		a.FailureCount, a.Interruptions, a.Resent = d.numbers.int(), d.numbers.int(), d.numbers.int()
	}
	if sum&sumOwnRef != 0 {
		a.Output.Bytes = d.numbers.int()
		d.ownRefs = append(d.ownRefs, p)
	}
	if sum&sumDetailed != 0 {
		d.Detailed = append(d.Detailed, p)
	}
	if sum&sumRest == 0 {
		return nil
	}
	if len(d.activities) == 0 {
		return damaged("no activity of step %d", p.Step)
	}
	rest := d.activities[0]
	d.activities = d.activities[1:]
	return readActivity(a, rest, d.epoch)
}

// keptOfSteps puts the fields that a later release knows back into the steps.
func (d *decoder) keptOfSteps() error {
	for _, data := range d.stepsKept {
		at := -1
		kept, err := readFields(data, func(f *field) bool {
			if f.num != stepIndex {
				return false
			}
			at = f.int()
			return true
		})
		// As proto3 has it, the first step has no index.
		if at = max(at, 0); err == nil && at >= len(d.Job.Steps) {
			err = damaged("step %d of %d", at, len(d.Job.Steps))
		}
		if err != nil {
			return err
		}
		d.Job.Steps[at].Kept += kept
	}
	return nil
}

// Name gives the steps their names, and writes the keys of outputs that hold them. Where the details are elsewhere,
// the end of such a key comes with them.
func (s *Stored) Name(names []string) error {
	if len(names) != len(s.Job.Steps) {
		return damaged("%d names of %d steps", len(names), len(s.Job.Steps))
	}
	for i, name := range names {
		s.Job.Steps[i].Name = name
	}
	for _, p := range s.ownRefs {
		a := p.At(s.Job.Steps)
		a.Output.Ref = outputPrefix(s.Job.Steps[p.Step].Name, a.Attempt) + a.Output.Ref
	}
	return nil
}
