package sim

import (
	"context"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

// history: HIST. With every write a job's history can be read whole, and what the write adds to it is what it changed:
// each failure that it counted once, in their order, each turn, each round, and that it stopped.
func (c change) history() {
	before, after := c.before.History, c.after.History
	if !c.saved() {
		if before != after {
			c.wrong("HIST: is parked, and its history goes from %+v to %+v", before, after)
		}
		return
	}
	pages, err := c.store.HistoryPages(context.Background(), c.after.ID)
	if err != nil {
		c.wrong("HIST: %v", err)
		return
	}
	entries, gaps := after.Read(c.after.Birth, pages)
	for _, g := range gaps {
		if g.Why != "not kept" || g.From <= limits.MaxHistoryFirst || g.To > after.Count-limits.MaxHistoryLast {
			c.wrong("HIST: of %d entries %d to %d are %s", after.Count, g.From, g.To, g.Why)
		}
	}
	var added []job.Entry
	for _, e := range entries {
		if e.N > before.Count {
			added = append(added, e.Entry)
		}
	}
	if len(added) != after.Count-before.Count {
		c.wrong("HIST: it shows %d new entries, and counts %d", len(added), after.Count-before.Count)
	}
	c.tells(added)
}

// tells compares what a write changed with what it adds to the history.
func (c change) tells(added []job.Entry) {
	n := map[makegood.EntryKind]int{}
	failures, forward := c.before.FailureCount, 0
	for _, e := range added {
		n[e.Kind]++
		if e.Kind == makegood.EntryTurned && e.State == makegood.JobProcessed {
			forward++
		}
		if e.Failure == 0 {
			continue
		}
		if failures++; e.Failure != failures {
			c.wrong("HIST: failure %d is noted as number %d", failures, e.Failure)
		}
	}
	turned := direction(c.before) - direction(c.after)
	switch {
	case failures != c.after.FailureCount:
		c.wrong("HIST: it has failed %d times, and %d are noted", c.after.FailureCount, failures)
	case n[makegood.EntryRound] != c.after.Round-max(c.before.Round, 1):
		c.wrong("HIST: goes from round %d to %d, and %d are noted", c.before.Round, c.after.Round, n[makegood.EntryRound])
	case n[makegood.EntryTurned]-2*forward-n[makegood.EntryRound] != turned:
		c.wrong("HIST: is wanted %s, then %s, and turns %d times and begins %d rounds", c.before.Desired, c.after.Desired, n[makegood.EntryTurned], n[makegood.EntryRound])
	case n[makegood.EntryLate] != newlyLate(c.before, c.after):
		c.wrong("HIST: %d times it is told that it will be late, and %d are noted", newlyLate(c.before, c.after), n[makegood.EntryLate])
	case c.before.ProcessState != makegood.JobError && c.after.ProcessState == makegood.JobError && n[makegood.EntryStopped] == 0:
		c.wrong("HIST: stopped, and it is not noted")
	}
}

// newlyLate is how often a write tells that a job will be late.
func newlyLate(before, after job.Job) int {
	n := 0
	for _, a := range after.Untold {
		if a.Seq > before.Seq && !a.ExpectBy.IsZero() {
			n++
		}
	}
	return n
}

// direction is 1 for a job that is wanted done.
func direction(j job.Job) int {
	if j.Rev == 0 || j.Desired == makegood.JobProcessed {
		return 1
	}
	return 0
}
