package command

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/bulk"
	"github.com/makegood-dev/makegood/internal/plain"
)

// The outcomes of one of many.
const (
	granted   = "granted"
	duplicate = "duplicate"
	refused   = "refused"
	broke     = "failed"
)

const (
	// maxWhys is how many reasons a summary counts; those of others are counted together.
	maxWhys = 100
	// maxWhysShown is how many it shows to people, each with maxExamples jobs at most.
	maxWhysShown = 20
	maxExamples  = 3
)

// outcome is the outcome of a verb for a job, real or foreseen.
type outcome struct {
	Job     string `json:"job"`
	Outcome string `json:"outcome"`
	// Reason is why it was refused, or failed.
	Reason string `json:"reason,omitempty"`
	// Would is what the verb would do to it.
	Would string `json:"would,omitempty"`
	// Plan is what a resubmit would do to it.
	Plan *makegood.Plan `json:"plan,omitempty"`
	// State is the state that it is in after that.
	State makegood.ProcessState `json:"processState,omitempty"`
	// Line is that of the file which it stands on.
	Line int `json:"line,omitempty"`

	// all: the error is the same for every job.
	all bool
}

// named is a job as an example names it.
func (o outcome) named() string {
	if o.Line > 0 {
		return fmt.Sprintf("%s on line %d", o.Job, o.Line)
	}
	return o.Job
}

// outcomeOf returns what the answer of a job says.
func outcomeOf(id string, a bulk.Answer) outcome {
	if a.Outcome == "" {
		_, all := errors.AsType[*api.InvalidError](a.Err)
		return outcome{Job: id, Outcome: broke, Reason: plain.Line(a.Err.Error()), all: all}
	}
	words := map[bulk.Outcome]string{bulk.Granted: granted, bulk.Already: duplicate, bulk.Refused: refused}
	return outcome{Job: id, Outcome: words[a.Outcome], Reason: plain.Line(a.Reason), State: a.State}
}

// tally counts the outcomes of many.
type tally struct {
	Verb      string  `json:"verb"`
	Jobs      int     `json:"jobs"`
	Granted   int     `json:"granted"`
	Duplicate int     `json:"duplicate"`
	Refused   int     `json:"refused"`
	Failed    int     `json:"failed"`
	Seconds   float64 `json:"seconds"`
	// Before is how many of them had answered an earlier run.
	Before int `json:"before,omitempty"`
	// DryRun: the outcomes are foreseen. The command had no effect.
	DryRun bool `json:"dryRun,omitempty"`
	// Reasons say why, the most frequent first.
	Reasons []why `json:"reasons"`

	whys map[whyOf]*why
}

// whyOf is an outcome and its reason.
type whyOf struct{ outcome, reason string }

// why is a reason, and how many jobs have it.
type why struct {
	Outcome  string   `json:"outcome"`
	Reason   string   `json:"reason"`
	Jobs     int      `json:"jobs"`
	Examples []string `json:"examples"`

	// first is the reason as it was first given, with the id of that job.
	first string
}

func newTally(verb string) *tally {
	return &tally{Verb: verb, Reasons: []why{}, whys: map[whyOf]*why{}}
}

// shortestNamed is how long an id must be to be looked for in a reason: a shorter one may stand in any word.
const shortestNamed = 4

func (t *tally) add(o outcome) {
	t.Jobs++
	switch o.Outcome {
	case granted:
		t.Granted++
	case duplicate:
		t.Duplicate++
	case refused:
		t.Refused++
	default:
		t.Failed++
	}
	reason := cmp.Or(o.Would, o.Reason)
	if reason == "" {
		return
	}
	first := reason
	if len(o.Job) >= shortestNamed {
		// Reasons that differ in the job's id alone are one.
		reason = strings.ReplaceAll(reason, o.Job, "ID")
	}
	of := whyOf{o.Outcome, reason}
	if t.whys[of] == nil && len(t.whys) >= maxWhys {
		of.reason, first = "for other reasons", "for other reasons"
	}
	if t.whys[of] == nil {
		t.whys[of] = &why{Outcome: of.outcome, Reason: of.reason, Examples: []string{}, first: first}
	}
	w := t.whys[of]
	if w.Jobs++; len(w.Examples) < maxExamples {
		w.Examples = append(w.Examples, o.named())
	}
}

// close notes how long it took, and puts the reasons in their order.
func (t *tally) close(seconds float64) {
	t.Seconds = seconds
	t.Reasons = []why{}
	for w := range maps.Values(t.whys) {
		w := *w
		if w.Jobs == 1 {
			w.Reason = w.first
		}
		t.Reasons = append(t.Reasons, w)
	}
	slices.SortFunc(t.Reasons, func(a, b why) int {
		return cmp.Or(b.Jobs-a.Jobs, strings.Compare(a.Outcome, b.Outcome), strings.Compare(a.Reason, b.Reason))
	})
}

func (t *tally) print(w io.Writer) {
	verb := t.Verb
	if t.DryRun {
		verb += " --dry-run, no job was changed"
	}
	fmt.Fprintf(w, "%s: %s in %.1f s\n", verb, thousands(t.Jobs, "job"), t.Seconds)
	for _, row := range []struct {
		outcome string
		count   int
	}{{granted, t.Granted}, {duplicate, t.Duplicate}, {refused, t.Refused}, {broke, t.Failed}} {
		if row.count == 0 && row.outcome != granted {
			continue
		}
		fmt.Fprintf(w, "  %-10s %8s\n", row.outcome, grouped(row.count))
		t.printReasons(w, row.outcome)
	}
}

func (t *tally) printReasons(w io.Writer, outcome string) {
	shown := 0
	for _, why := range t.Reasons {
		if why.Outcome != outcome {
			continue
		}
		if shown++; shown > maxWhysShown {
			fmt.Fprintf(w, "    and more reasons; --json has them\n")
			return
		}
		examples := strings.Join(why.Examples, ", ")
		if why.Jobs > len(why.Examples) {
			examples += ", ..."
		}
		fmt.Fprintf(w, "    %8s  %s (%s)\n", grouped(why.Jobs), plain.Line(why.Reason), examples)
	}
}
