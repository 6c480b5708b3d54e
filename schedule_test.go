package makegood_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
)

func ExampleSchedule() {
	s := makegood.Schedule{Name: "nightly", Workflow: "report", Cron: "30 2 * * *", Zone: "Europe/Berlin"}.WithDefaults()
	fmt.Println(s.Missed, s.Overlap, string(s.Input))
	fmt.Println(makegood.FireID(s.Name, time.Date(2026, 11, 23, 1, 30, 0, 0, time.UTC)))
	// Output:
	// one allow {"time":"${ .time }"}
	// nightly:2026-11-23T01:30:00Z
}

// The longest name makes ids of jobs that are not too long.
func TestTheJobsOfAScheduleHaveIDs(t *testing.T) {
	name := "n"
	for len(name) < makegood.MaxNameBytes {
		name += "-"
	}
	if err := makegood.ScheduleName.Check(name); err != nil {
		t.Fatal(err)
	}
	if err := makegood.CheckJobID(makegood.FireID(name, time.Date(9999, 12, 31, 23, 59, 59, 0, time.FixedZone("", 3600)))); err != nil {
		t.Error(err)
	}
}
