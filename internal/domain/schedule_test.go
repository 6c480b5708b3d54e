package domain_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/limits"
)

func ExampleScheduleDefaults() {
	s := domain.ScheduleDefaults(makegood.Schedule{Name: "nightly", Workflow: "report", Cron: "30 2 * * *", Zone: "Europe/Berlin"})
	fmt.Println(s.Missed, s.Overlap, string(s.Input))
	fmt.Println(domain.FireID(s.Name, time.Date(2026, 11, 23, 1, 30, 0, 0, time.UTC)))
	// Output:
	// one allow {"time":"${ .time }"}
	// nightly:2026-11-23T01:30:00Z
}

// The longest name makes ids of jobs that are not too long.
func TestTheJobsOfAScheduleHaveIDs(t *testing.T) {
	name := "n"
	for len(name) < limits.MaxNameBytes {
		name += "-"
	}
	if err := limits.ScheduleName.Check(name); err != nil {
		t.Fatal(err)
	}
	if err := makegood.CheckJobID(domain.FireID(name, time.Date(9999, 12, 31, 23, 59, 59, 0, time.FixedZone("", 3600)))); err != nil {
		t.Error(err)
	}
}
