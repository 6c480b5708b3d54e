package makegoodtest

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/makegood-dev/makegood/internal/job"
)

// report describes a violation: the rule that is broken, the faults of the engine, the requests to the agents, and
// the ledgers of the services.
func (w *world) report(violation error) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "%v\n", violation)
	if len(w.suffered) > 0 {
		fmt.Fprintf(&b, "\nfaults:\n%s\n", indent(strings.Join(w.suffered, "\n")))
	}
	fmt.Fprintf(&b, "\nthe job of workflow %s: %s\n", w.compiled.Workflow.Name, ended(w.stored[JobID]))
	for _, id := range slices.Sorted(maps.Keys(w.stored)) {
		if id != JobID {
			fmt.Fprintf(&b, "job %s of workflow %s: %s\n", id, w.stored[id].Workflow, ended(w.stored[id]))
		}
	}
	fmt.Fprintf(&b, "\ntasks that reached the agents:\n%s", w.sequence())
	if w.services.Ledger != nil {
		fmt.Fprintf(&b, "\nthe ledger:\n%s\n", indent(w.services.Ledger()))
	}
	return b.String()
}

func ended(j job.Job) string {
	if j.Reason == "" {
		return string(j.ProcessState)
	}
	return fmt.Sprintf("%s, because %s", j.ProcessState, j.Reason)
}

// sequence lists the attempts in the order in which they began, with the deaths between them. The caller holds mu.
func (w *world) sequence() string {
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for i, a := range w.attempts {
		if i > 0 && a.Life > w.attempts[i-1].Life {
			w.flush(table)
			fmt.Fprintf(&b, "  -- the engine is dead, and is started again --\n")
		}
		answer := cmp.Or(a.Answer, "no answer yet")
		fmt.Fprintf(table, "  +%s\t%s asks %s of agent %s\tkey %s\t%s\n", a.At.Round(time.Millisecond), attempt(a.Task), a.Action, a.Agent, a.Key, answer)
	}
	w.flush(table)
	return b.String()
}

// flush writes what a table holds; a strings.Builder takes everything.
func (*world) flush(table *tabwriter.Writer) { _ = table.Flush() }

func indent(text string) string { return "  " + strings.ReplaceAll(text, "\n", "\n  ") }

// replay is the line that runs the test again with one flag.
func replay(t *testing.T, flag, value string) string {
	in := ""
	if dir, err := os.Getwd(); err == nil {
		in = " -C " + dir
	}
	return fmt.Sprintf("go test%s -run '^%s$' -makegoodtest.%s=%s", in, strings.ReplaceAll(regexp.QuoteMeta(t.Name()), "/", "$/^"), flag, value)
}
