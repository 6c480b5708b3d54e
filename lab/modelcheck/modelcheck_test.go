package modelcheck

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood/internal/testkit/layers"
	"github.com/makegood-dev/makegood/internal/testkit/proof"
)

// limit is how many states a configuration may have, so that a mistake in one does not eat the machine.
const limit = 10_000_000

// counted is what a check found.
type counted struct {
	Config
	Result
}

// done are the checks of this run. They are compared with the page in a test of their own, since a planted bug may change
// the counts and is looked for in the others alone.
var done []counted

// Everything that can happen to a very small job keeps every promise.
func TestSmallModels(t *testing.T) {
	for i, c := range Small() {
		if testing.Short() && i > 1 {
			// There is one goroutine: the race detector finds nothing here, and takes its time.
			break
		}
		t.Run(c.Name, func(t *testing.T) { check(t, c) })
	}
}

// The same for jobs that are not quite so small.
func TestLargeModels(t *testing.T) {
	if !large() {
		t.Skip("make modelcheck runs it: it takes minutes")
	}
	for _, c := range Large() {
		t.Run(c.Name, func(t *testing.T) { check(t, c) })
	}
}

func check(t *testing.T, c Config) {
	t.Helper()
	r := Check(c, limit)
	done = append(done, counted{c, r})
	t.Logf("| %s | %d | %d | %d | %.1f |", c.Name, r.States, r.Edges, r.Depth, r.Took.Seconds())
	if r.Violation != "" {
		t.Errorf("%s: after %d states: %s\n  %s", c.Name, r.States, r.Violation, strings.Join(r.Trace, "\n  "))
	}
}

// docs/proof.md says how many states and edges there are, of each configuration that was just checked.
func TestThePageSaysWhatWasCounted(t *testing.T) {
	if len(done) == 0 {
		check(t, Small()[0])
	}
	var seen layers.Seen
	states, edges := 0, 0
	for i, d := range done {
		allDown := map[bool]string{true: "yes"}[d.Wipe]
		proof.Says(t, fmt.Sprintf("| %s | %s | %d | %d | %d |", d.Name, allDown, d.States, d.Edges, d.Depth))
		states, edges = states+d.States, edges+d.Edges
		if i < len(Small()) {
			seen.Add(d.Seen)
		}
	}
	if len(done) >= len(Small()) {
		seen.Column(t, "model check")
	}
	if len(done) == len(Small())+len(Large()) {
		proof.Says(t, fmt.Sprintf("%d states and %d edges in ", states, edges))
	}
}

// Two runs of one check go the same way: what is found once is found again, by the same trace.
func TestAChecksTraceIsTheSameTwice(t *testing.T) {
	c := Small()[0]
	c.Resends = 0
	first, second := Check(c, 500), Check(c, 500)
	if first.States != second.States || first.Edges != second.Edges || first.Violation == "" {
		t.Errorf("got %d states and %d edges (%s), then %d and %d", first.States, first.Edges, first.Violation, second.States, second.Edges)
	}
	m := newModel(c)
	m.search(500)
	n := newModel(c)
	n.search(500)
	if last := uint32(len(m.parents) - 1); !slices.Equal(m.trace(last), n.trace(last)) {
		t.Errorf("the way to state %d is\n%s\nand then\n%s", last, strings.Join(m.trace(last), "\n"), strings.Join(n.trace(last), "\n"))
	}
}
