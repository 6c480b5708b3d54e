//go:build aws

package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/limits"
)

// Whoever hears of every change pays one write unit more for each job, however its messages come, and whoever gets them; and an
// event of the bus for each save that has changed something.
func TestEveryChangeCostsAJobOneWriteUnit(t *testing.T) {
	for _, l := range loads() {
		if l.steps <= 5 && (l.steps > 1 || !l.batched) && !(l.slow && l.batched) {
			changesCost(t, l, 1, 1)
		}
	}
	// The key of the last attempt stands where it is, and is not moved for what is published at once.
	changesCost(t, load{name: "1 step of an hour", steps: 1, output: inlineOutput, timeout: makegood.Duration(time.Hour)}, 1, 1)
}

// The table of docs/cost.md, which make cost prints, too.
func TestTheTableOfChangesIsTheOneThatIsShown(t *testing.T) {
	var more []changesRow
	for _, l := range heard() {
		off := measured(t, l)
		l.changes = true
		more = append(more, heardMore(off, measured(t, l)))
	}
	shown, err := os.ReadFile("../../../docs/cost.md")
	if err != nil {
		t.Fatal(err)
	}
	if got := changesTable(more); !strings.Contains(string(shown), got) {
		t.Errorf("docs/cost.md shows another table than\n%s", got)
	}
}

// What waits to be published makes the item of a job a little larger: where it grows past a kilobyte a save may cost a unit more.
func TestALongJobPaysMoreForItsChanges(t *testing.T) {
	changesCost(t, load{name: "20 steps", steps: 20, output: inlineOutput}, 2, 2)
	changesCost(t, load{name: "100 steps", steps: 100, output: inlineOutput}, 2, 3)
}

// changesCost wants the jobs of a load to cost so many write units more where somebody hears of their changes: where one process
// gets all their events, and where each comes to another.
func changesCost(t *testing.T, l load, together, apart int) {
	t.Helper()
	for _, forgetful := range []bool{false, true} {
		name, units := l.name, together
		if forgetful {
			name, units = name+", each event in another process", apart
		}
		if forgetful && l.batched {
			continue // It takes its time, and shows no more.
		}
		t.Run(name, func(t *testing.T) {
			l.forgetful, l.changes = forgetful, false
			off := measured(t, l)
			l.changes = true
			on := measured(t, l)
			without, with, jobs := off.counted(), on.counted(), l.jobs()
			if more := with.WriteUnits - without.WriteUnits; more != float64(units*jobs) {
				t.Errorf("%d jobs cost %v write units more, want %d each", jobs, more, units)
			}
			if more := with.SQSRequests - without.SQSRequests; more != 0 {
				t.Errorf("%d jobs cost %v requests more, want none", jobs, more)
			}
			// It is loaded before it is saved at its end, with what a long one has beside its item. A new process also reads the
			// definition, once or more.
			most := float64(jobs * (1 + (l.steps+19)/20))
			if more := with.ReadUnits - without.ReadUnits; !forgetful && (more < float64(jobs) || more > most) {
				t.Errorf("%d jobs cost %v read units more, want 1 each, and %v at most", jobs, more, most)
			}
			saves := 1 + l.steps
			if l.chained {
				saves = 1 + (l.steps+limits.MaxChain-1)/limits.MaxChain
			}
			if least := jobs * saves; on.runs < least || on.runs > least*13/10+jobs || off.runs != 0 {
				t.Errorf("%d events of the bus, and %d where nobody hears; want about one for each save, %d, and none", on.runs, off.runs, least)
			}
		})
	}
}
