package agency

import (
	"fmt"
	"maps"
	"slices"

	"github.com/makegood-dev/makegood"
)

// Check compares the ledger with the ends of trips, by their ids, and returns the faults: a trip that is Processed
// has one standing line of each service, one that has ended otherwise has none, and no line is of another trip.
func Check(lines []Line, ends map[string]makegood.ProcessState) []string {
	stand := map[string]map[string]int{}
	wrong := []string{}
	for _, line := range lines {
		if _, known := ends[line.Trip]; !known {
			wrong = append(wrong, fmt.Sprintf("%s of %s: there is no such trip", line.Ref, line.Trip))
		}
		if stand[line.Trip] == nil {
			stand[line.Trip] = map[string]int{}
		}
		if !line.Canceled {
			stand[line.Trip][line.Service]++
		}
	}
	for _, trip := range slices.Sorted(maps.Keys(ends)) {
		want := 0
		if ends[trip] == makegood.JobProcessed {
			want = 1
		}
		for _, service := range Services {
			if got := stand[trip][service]; got != want {
				wrong = append(wrong, fmt.Sprintf("trip %s is %s, and %s has %d bookings of it that stand, want %d", trip, ends[trip], service, got, want))
			}
		}
	}
	return wrong
}
