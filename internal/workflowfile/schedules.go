package workflowfile

import (
	"fmt"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/canonical"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/schedule"
)

// checkSchedules completes the schedules of a file, and adds their errors.
func (c *check) checkSchedules(workflow string) {
	if len(c.schedules) > limits.MaxSchedules {
		c.add("schedules", "%d schedules, the limit is %d", len(c.schedules), limits.MaxSchedules)
		return
	}
	first := map[string]int{}
	for i, s := range c.schedules {
		path := fmt.Sprintf("schedules[%d]", i)
		s.Workflow = workflow
		s = domain.ScheduleDefaults(s)
		if at, said := first[s.Name]; said && s.Name != "" {
			c.add(path+".name", "schedule %q is there twice: schedules[%d] has that name, too", s.Name, at)
		} else {
			first[s.Name] = i
		}
		c.schedules[i] = c.checkSchedule(path, s)
	}
}

// checkSchedule adds the errors in one schedule. The name of the workflow is checked elsewhere.
func (c *check) checkSchedule(path string, s makegood.Schedule) makegood.Schedule {
	asked := s
	if limits.WorkflowName.Check(s.Workflow) != nil {
		asked.Workflow = "unnamed"
	}
	if text, err := canonical.JSON(s.Input); err == nil {
		s.Input, asked.Input = text, text
	}
	if _, err := schedule.Check(asked); err != nil {
		c.add(path, "%v", err)
		return s
	}
	c.scheduleInput(path+".input", s.Input)
	return s
}
