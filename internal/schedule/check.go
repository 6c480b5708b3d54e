package schedule

import (
	"encoding/json"
	"fmt"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/limits"
)

// Check returns the rule of a schedule with its defaults, or its first fault. The caller must check that there is
// such a workflow, and that the expressions of the input compile.
func Check(s makegood.Schedule) (Rule, error) {
	if err := limits.ScheduleName.Check(s.Name); err != nil {
		return Rule{}, err
	}
	rule, err := New(s)
	if err == nil {
		err = checkRest(s)
	}
	if err != nil {
		return Rule{}, fmt.Errorf("schedule %s: %w", s.Name, err)
	}
	return rule, nil
}

// checkRest checks all but the name and the times.
func checkRest(s makegood.Schedule) error {
	if err := limits.WorkflowName.Check(s.Workflow); err != nil {
		return err
	}
	if len(s.Input) > limits.MaxScheduleInputBytes {
		return fmt.Errorf("its input has %d bytes, the limit is %d", len(s.Input), limits.MaxScheduleInputBytes)
	}
	if !json.Valid(s.Input) {
		return fmt.Errorf("its input is not JSON")
	}
	if err := domain.CheckPriority(s.Priority); err != nil {
		return err
	}
	switch s.Missed {
	case makegood.MissedSkip, makegood.MissedOne:
		if s.AtMost != 0 {
			return fmt.Errorf("atMost is %d beside missed %s: it belongs to missed all", s.AtMost, s.Missed)
		}
	case makegood.MissedAll:
		if s.AtMost < 1 || s.AtMost > limits.MaxMissed {
			return fmt.Errorf("atMost is %d: want 1 to %d", s.AtMost, limits.MaxMissed)
		}
	default:
		return fmt.Errorf("missed is %q: want skip, one or all", s.Missed)
	}
	switch s.Overlap {
	case makegood.OverlapAllow, makegood.OverlapSkip:
		return nil
	case makegood.OverlapQueue:
		if s.Missed == makegood.MissedSkip {
			return fmt.Errorf("overlap queue beside missed skip: a fire that waits for long is missed, so it would never come; want missed one or all")
		}
		return nil
	default:
		return fmt.Errorf("overlap is %q: want allow, skip or queue", s.Overlap)
	}
}
