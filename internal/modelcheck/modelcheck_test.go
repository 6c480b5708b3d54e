package modelcheck

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// limit is how many states a configuration may have, so that a mistake in one does not eat the machine.
const limit = 10_000_000

// done is what the checks of this run found, by configuration.
var done = map[string]Result{}

// Everything that can happen to a very small job keeps every promise.
func TestSmallModels(t *testing.T) {
	for i, c := range Small() {
		if raced && i > 1 {
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
	states := 0
	for _, c := range Large() {
		t.Run(c.Name, func(t *testing.T) { states += check(t, c) })
	}
	t.Logf("%d states in all", states)
}

func check(t *testing.T, c Config) (states int) {
	t.Helper()
	r := Check(c, limit)
	done[c.Name] = r
	t.Logf("| %s | %d | %d | %d | %.1f |", c.Name, r.States, r.Edges, r.Depth, r.Took.Seconds())
	if r.Violation != "" {
		t.Errorf("%s: after %d states: %s\n  %s", c.Name, r.States, r.Violation, strings.Join(r.Trace, "\n  "))
	}
	return r.States
}

// docs/proof.md says how many states there are, of each configuration that was just checked.
func TestThePageSaysWhatWasCounted(t *testing.T) {
	page, err := os.ReadFile("../../docs/proof.md")
	if err != nil {
		t.Fatal(err)
	}
	if len(done) == 0 {
		c := Small()[0]
		done[c.Name] = Check(c, limit)
	}
	for name, r := range done {
		want := fmt.Sprintf("| %d | %d | %d |", r.States, r.Edges, r.Depth)
		for line := range strings.Lines(strings.ReplaceAll(string(page), ",", "")) {
			if strings.HasPrefix(line, "| "+strings.ReplaceAll(name, ",", "")+" | ") && strings.Contains(line, want) {
				want = ""
				break
			}
		}
		if want != "" {
			t.Errorf("docs/proof.md has no row of %q with %s", name, want)
		}
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
