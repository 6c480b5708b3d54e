package machine_test

import (
	"slices"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
)

// known are the facts that the core is given: those of the story, and that all else is fine.
func (s *story) known() machine.Facts {
	values := make(map[machine.Want]machine.Fact)
	steps := slices.Clone(s.w.Steps)
	for _, other := range s.definitions {
		steps = append(steps, other.Steps...)
	}
	for _, step := range steps {
		for _, undo := range []bool{false, true} {
			w := machine.Want{Step: step.Name, Undo: undo}
			values[w] = machine.Fact{Run: true}
			if fact, ok := s.facts[w]; ok {
				values[w] = fact
			}
		}
		ready := machine.Want{Step: step.Name, Ready: true}
		values[ready] = machine.Fact{Run: true}
		if fact, ok := s.facts[ready]; ok {
			values[ready] = fact
		}
	}
	s.decisions++
	lane := s.lane
	lane.LockedBy = s.lockedBy()
	return machine.Facts{
		Lane:   lane,
		Random: s.random, Values: values, Found: map[machine.Ask]job.Found{},
		Secret: []byte("sixteen bytes ok"), Period: s.period, Held: s.holds, Incarnation: s.run,
		Publishes: s.publishes, Published: s.publishedUpTo,
	}
}

// forget is a hand that is not ours: it takes back that steps were begun, or that the job has ended, and moves the key.
func (s *story) forget(a args) {
	s.job.Steps = slices.Clone(s.job.Steps)
	for i := range s.job.Steps {
		if step := &s.job.Steps[i]; a.has(step.Name) {
			step.Forward, step.Undo = job.Activity{}, job.Activity{}
		}
	}
	if state, ok := a.values["is"]; ok {
		s.job.ProcessState, s.job.FinishedAt = makegood.ProcessState(state), time.Time{}
	}
	if at, ok := a.values["key"]; ok {
		s.job.CompleteBy = s.start.Add(s.duration(at).Std())
	}
}
