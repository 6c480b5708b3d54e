package travel

import (
	"fmt"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/makegoodtest"
)

func trip(t *testing.T, car string) makegoodtest.Case {
	t.Helper()
	yaml, err := Files.ReadFile("trip.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return makegoodtest.Case{
		YAML:  yaml,
		Input: map[string]string{"flight": "LH 400", "hotel": "Ritz", "car": car},
		Services: func() makegoodtest.Services {
			agency := Open()
			return makegoodtest.Services{Agents: agency.Agents(), Check: func(job makegoodtest.Job) error {
				want := map[makegood.ProcessState]int{makegood.Processed: 3, makegood.Undone: 0}
				if n, ended := want[job.ProcessState]; !ended || len(agency.Bookings(makegoodtest.JobID)) != n {
					return fmt.Errorf("the trip is %s, with %v", job.ProcessState, agency.Bookings(makegoodtest.JobID))
				}
				return nil
			}}
		},
	}
}

func TestATripIsBookedWholeOrNotAtAll(t *testing.T) {
	for car, want := range map[string]makegood.ProcessState{"Mini": makegood.Processed, "sold out": makegood.Undone} {
		if job := makegoodtest.Run(t, trip(t, car)); job.ProcessState != want {
			t.Errorf("car %s: got %s, want %s", car, job.ProcessState, want)
		}
	}
}

func TestATripIsGoodWhereverTheEngineDies(t *testing.T) {
	t.Run("booked", func(t *testing.T) { makegoodtest.CrashEverywhere(t, trip(t, "Mini")) })
	t.Run("undone", func(t *testing.T) { makegoodtest.CrashEverywhere(t, trip(t, "sold out")) })
}
