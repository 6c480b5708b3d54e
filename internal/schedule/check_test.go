package schedule_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/schedule"
)

func TestAScheduleIsCheckedAsAWhole(t *testing.T) {
	good := func() makegood.Schedule {
		return makegood.Schedule{Name: "nightly", Workflow: "order", Cron: "@daily"}
	}
	for _, c := range []struct {
		change func(*makegood.Schedule)
		says   string
	}{
		{func(*makegood.Schedule) {}, ""},
		{func(s *makegood.Schedule) { s.Missed = makegood.MissedAll }, ""},
		{func(s *makegood.Schedule) { s.Missed, s.AtMost = makegood.MissedAll, limits.MaxMissed }, ""},
		{func(s *makegood.Schedule) { s.Overlap = makegood.OverlapQueue }, ""},
		{func(s *makegood.Schedule) { s.Name = "Nightly" }, "cannot be the name of a schedule"},
		{func(s *makegood.Schedule) { s.Workflow = "" }, "schedule nightly: the name of a workflow is missing"},
		{func(s *makegood.Schedule) { s.Cron = "@noon" }, "schedule nightly: cron"},
		{func(s *makegood.Schedule) { s.Input = json.RawMessage(`{`) }, "its input is not JSON"},
		{func(s *makegood.Schedule) {
			s.Input = json.RawMessage(`"` + strings.Repeat("a", limits.MaxScheduleInputBytes) + `"`)
		}, "its input has 16386 bytes, the limit is 16384"},
		{func(s *makegood.Schedule) { s.Missed = "none" }, `missed is "none"`},
		{func(s *makegood.Schedule) { s.AtMost = 3 }, "it belongs to missed all"},
		{func(s *makegood.Schedule) { s.Missed, s.AtMost = makegood.MissedAll, -1 }, "atMost is -1: want 1 to 100"},
		{func(s *makegood.Schedule) { s.Missed, s.AtMost = makegood.MissedAll, 101 }, "atMost is 101"},
		{func(s *makegood.Schedule) { s.Priority = "high" }, `priority "high": want urgent, normal or idle`},
		{func(s *makegood.Schedule) { s.Overlap = "wait" }, `overlap is "wait"`},
		{func(s *makegood.Schedule) { s.Overlap, s.Missed = makegood.OverlapQueue, makegood.MissedSkip }, "overlap queue beside missed skip"},
	} {
		s := good()
		c.change(&s)
		_, err := schedule.Check(domain.ScheduleDefaults(s))
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%+v: got %v, want %q", s, err, c.says)
		}
	}
}
