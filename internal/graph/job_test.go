package graph

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
)

func order() makegood.Workflow {
	return makegood.Workflow{Name: "order", Steps: []makegood.Step{
		{Name: "reserve", Agent: "shop", Action: "reserve", Undo: &makegood.Undo{Agent: "shop", Action: "release"}},
		{Name: "charge", Agent: "payments", Action: "take", Needs: []string{"reserve"}, OnError: []makegood.ErrorRoute{{Kind: "*", Do: makegood.ErrorDo{Action: makegood.RouteGoto, Step: "by_hand"}}}},
		{Name: "by_hand", Agent: "approval", Action: "by_hand", Only: makegood.OnlyOnError},
		{Name: "ship", Agent: "shop", Action: "ship", Needs: []string{"charge", "by_hand"}},
	}}
}

func shown(nodes []Node, edges []Edge) string {
	var b strings.Builder
	for _, n := range nodes {
		fmt.Fprintf(&b, "%s %s (%s) %s\n", n.ID, n.State.Class(), n.word(), n.Sub)
	}
	for _, e := range edges {
		fmt.Fprintf(&b, "%s to %s: %d\n", e.From, e.To, e.Kind)
	}
	return b.String()
}

func TestAWorkflowIsDrawnWithItsAgentsAndUndos(t *testing.T) {
	want := `reserve idle (step) shop · undo release
charge idle (step) payments take
by_hand idle (step) approval
ship idle (step) shop
reserve to charge: 0
charge to by_hand: 1
charge to ship: 0
by_hand to ship: 0
`
	if got := shown(OfWorkflow(order())); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestAJobIsDrawnWithWhereItIs(t *testing.T) {
	begin := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	end := begin.Add(1400 * time.Millisecond)
	done := makegood.Activity{State: makegood.StepDone, Attempt: 1, StartedAt: &begin, FinishedAt: &end}
	failed := makegood.Activity{State: makegood.StepFailed, Attempt: 3, Error: &makegood.StepError{Kind: "declined"}}
	for _, row := range []struct {
		name  string
		steps []makegood.JobStep
		want  string
	}{
		{"ahead", []makegood.JobStep{
			{Name: "reserve", Activity: done},
			{Name: "charge", Activity: makegood.Activity{State: makegood.StepClaimed, Attempt: 2}},
			{Name: "by_hand", Activity: makegood.Activity{State: makegood.StepNotStarted}},
			{Name: "ship", Activity: makegood.Activity{State: makegood.StepNotStarted}},
		}, `reserve processed (done) shop · 1.4 s
charge processing (at work) payments · at work · 2nd try
by_hand idle (not reached) approval · not reached
ship idle (not reached) shop · not reached
reserve to charge: 2
charge to by_hand: 1
charge to ship: 1
by_hand to ship: 1
`},
		{"being undone", []makegood.JobStep{
			{Name: "reserve", Activity: done, Undo: &makegood.Activity{State: makegood.StepClaimed, Attempt: 2}},
			{Name: "charge", Activity: failed, Undo: &makegood.Activity{State: makegood.StepSkipped}},
			{Name: "by_hand", Activity: makegood.Activity{State: makegood.StepSkipped}},
			{Name: "ship", Activity: makegood.Activity{State: makegood.StepNotStarted}},
		}, `reserve undoing (being undone) shop · being undone
charge error (failed) payments · failed: declined
by_hand skipped (skipped) approval · skipped
ship idle (not reached) shop · not reached
reserve to charge: 0
charge to by_hand: 1
charge to ship: 1
by_hand to ship: 1
charge to reserve: 4
`},
		{"undo given up", []makegood.JobStep{
			{Name: "reserve", Activity: done, Undo: &makegood.Activity{State: makegood.StepFailed, Attempt: 2, Error: &makegood.StepError{Kind: "too_late"}}},
			{Name: "charge", Activity: failed, Undo: &makegood.Activity{State: makegood.StepIrreversible}},
		}, `reserve error (its undo failed) shop · its undo failed: too_late
charge error (failed) payments · failed: declined
by_hand idle (not reached) approval · not reached
ship idle (not reached) shop · not reached
reserve to charge: 0
charge to by_hand: 1
charge to ship: 1
by_hand to ship: 1
charge to reserve: 5
`},
	} {
		if got := shown(OfJob(order(), makegood.Job{Steps: row.steps})); got != row.want {
			t.Errorf("%s: got\n%swant\n%s", row.name, got, row.want)
		}
	}
}

// Each state of a step, and of an undo, looks like something.
func TestEveryStateOfAStepHasALook(t *testing.T) {
	var steps, undos []string
	for _, s := range domain.StepStates() {
		state, _ := StateOf(makegood.JobStep{Activity: makegood.Activity{State: s}})
		steps = append(steps, fmt.Sprintf("%s %s", s, state.Class()))
		state, _ = StateOf(makegood.JobStep{Activity: makegood.Activity{State: makegood.StepDone}, Undo: &makegood.Activity{State: s}})
		undos = append(undos, fmt.Sprintf("%s %s", s, state.Class()))
	}
	if got, want := strings.Join(steps, ", "), "notStarted idle, queued pending, dispatched pending, claimed processing, waiting waiting, backoff pending, done processed, skipped skipped, failed error, withdrawn cancelled, irreversible idle"; got != want {
		t.Errorf("steps: got %s, want %s", got, want)
	}
	if got, want := strings.Join(undos, ", "), "notStarted processed, queued undoing, dispatched undoing, claimed undoing, waiting waiting, backoff undoing, done undone, skipped processed, failed error, withdrawn processed, irreversible processed"; got != want {
		t.Errorf("undos: got %s, want %s", got, want)
	}
}

func TestDurationsAreWrittenWithTwoUnits(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0.0 s", 340 * time.Millisecond: "0.3 s", 41 * time.Second: "41 s", 125 * time.Second: "2 m 05 s",
		2*time.Hour + 4*time.Minute: "2 h 04 m", 76 * time.Hour: "3 d 04 h",
	} {
		if got := Duration(d); got != want {
			t.Errorf("%v: got %s, want %s", d, got, want)
		}
	}
}

func TestOrdinals(t *testing.T) {
	for n, want := range map[int]string{1: "1st", 2: "2nd", 3: "3rd", 4: "4th", 11: "11th", 12: "12th", 13: "13th", 21: "21st", 112: "112th"} {
		if got := ordinal(n); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// A step that is done by a job of its own names the workflow of that, also where that is its own name.
func TestAStepThatIsAJobNamesItsWorkflow(t *testing.T) {
	w := makegood.Workflow{Steps: []makegood.Step{
		{Name: "reserve", Agent: makegood.AgentWorkflow, Action: "reserve-line", Undo: &makegood.Undo{Agent: makegood.AgentWorkflow, Action: "reserve-line"}},
		{Name: "mail", Agent: makegood.AgentWorkflow, Action: "mail", Undo: &makegood.Undo{None: true}},
	}}
	nodes, _ := OfWorkflow(w)
	if nodes[0].Sub != "workflow reserve-line · undo" || nodes[1].Sub != "workflow mail" {
		t.Errorf("got %q and %q", nodes[0].Sub, nodes[1].Sub)
	}
	nodes, _ = OfJob(w, makegood.Job{Steps: []makegood.JobStep{{Name: "reserve", Activity: makegood.Activity{State: makegood.StepClaimed, Attempt: 1}}}})
	if !strings.HasPrefix(nodes[0].Sub, "reserve-line · ") {
		t.Errorf("of a job: got %q", nodes[0].Sub)
	}
}
