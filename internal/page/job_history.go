package page

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
)

// historyData is a page of a history, the newest first.
type historyData struct {
	Count   int
	Entries []entryData
	// Older is the number before which the next page begins; 0: there is none. Newer: there is a page before this one.
	Older int
	Newer bool
	// Folded is how many successes are left out of the entries.
	Folded int
}

// entryData is an entry; with N 0, a gap; with Well, a success: no history keeps those, the steps say them.
type entryData struct {
	N                  int
	Well               bool
	At                 time.Time
	Shape, Head, Small string
}

// historyOf is the page of a history before an entry; empty: the newest.
func historyOf(j makegood.Job, before string) (historyData, error) {
	d := historyData{Count: j.HistoryCount}
	limit := j.HistoryCount + 1
	if before != "" {
		n, err := strconv.Atoi(before)
		if err != nil || n < 1 {
			return d, &problem{status: 400, Head: "That is no entry", Text: fmt.Sprintf("before is %.40q: want the number of an entry.", before)}
		}
		limit, d.Newer = n, true
	}
	gaps := j.HistoryGaps
	for i := len(j.History) - 1; i >= 0; i-- {
		e := j.History[i]
		for len(gaps) > 0 && gaps[len(gaps)-1].From > e.N {
			gap := gaps[len(gaps)-1]
			gaps = gaps[:len(gaps)-1]
			if gap.From < limit {
				d.Entries = append(d.Entries, entryData{Shape: "idle", Head: fmt.Sprintf("%s not shown: %s", many(gap.To-gap.From+1, "entry"), gap.Why)})
			}
		}
		if e.N >= limit {
			continue
		}
		if len(d.Entries) >= historyPage {
			d.Older = e.N + 1
			return d.withWell(j, limit), nil
		}
		d.Entries = append(d.Entries, entryOf(e))
	}
	return d.withWell(j, limit), nil
}

// withWell adds the successes between the entries of a page that ends before the entry limit.
func (d historyData) withWell(j makegood.Job, limit int) historyData {
	var from, until time.Time
	if d.Older > 0 {
		from = d.Entries[len(d.Entries)-1].At
	}
	for _, e := range j.History {
		if e.N == limit {
			until = e.At
		}
	}
	well := slices.DeleteFunc(wellOf(j), func(e entryData) bool {
		return e.At.Before(from) || !until.IsZero() && !e.At.Before(until)
	})
	// The newest are listed, and the birth of the job: it says where all began.
	if d.Folded = max(0, len(well)-maxWell); d.Folded > 0 {
		well = append(well[:maxWell-1], well[len(well)-1])
	}
	for _, e := range well {
		at := slices.IndexFunc(d.Entries, func(kept entryData) bool { return !kept.At.IsZero() && kept.At.Before(e.At) })
		if at < 0 {
			at = len(d.Entries)
		}
		d.Entries = slices.Insert(d.Entries, at, e)
	}
	return d
}

// wellOf are the successes of a job, the newest first, from its steps: a history has none.
func wellOf(j makegood.Job) []entryData {
	all := []entryData{{Well: true, At: j.CreatedAt, Shape: "pending", Head: "Submitted"}}
	for _, s := range j.Steps {
		all = append(all, wellOfSide(s.Name, "processed", "done", s.Activity)...)
		if s.Undo != nil {
			all = append(all, wellOfSide(s.Name, "undone", "undone", *s.Undo)...)
		}
	}
	if j.FinishedAt != nil {
		all = append(all, entryData{Well: true, At: *j.FinishedAt, Shape: lower(j.ProcessState), Head: "Ended: " + string(j.ProcessState)})
	}
	slices.SortStableFunc(all, func(a, b entryData) int { return a.At.Compare(b.At) })
	slices.Reverse(all)
	return all
}

// wellOfSide is the end of a step, or of its undo, that no person settled, and the start of a running one.
func wellOfSide(step, shape, word string, a makegood.Activity) []entryData {
	switch {
	case a.State == makegood.StepDone && a.FinishedAt != nil && a.Settled == nil && a.CompletedBy == nil:
		e := entryData{Well: true, At: *a.FinishedAt, Shape: shape, Head: step + ": " + word}
		if from := cmp.Or(a.LastStartedAt, a.StartedAt); from != nil {
			e.Small = fmt.Sprintf("attempt %d, took %s", a.Attempt, span(a.FinishedAt.Sub(*from)))
		}
		return []entryData{e}
	case a.State == makegood.StepClaimed && a.LastStartedAt != nil:
		return []entryData{{Well: true, At: *a.LastStartedAt, Shape: "processing", Head: fmt.Sprintf("%s: attempt %d began", step, a.Attempt)}}
	}
	return nil
}

func entryOf(e makegood.Entry) entryData {
	shape, head := entryHead(e)
	return entryData{N: e.N, At: e.At, Shape: shape, Head: head, Small: entrySmall(e)}
}

// entryHead returns the headline of an entry.
func entryHead(e makegood.Entry) (shape, head string) {
	what := e.Step
	if e.Undo {
		what = "undo of " + e.Step
	}
	if e.Attempt > 0 {
		what += fmt.Sprintf(", attempt %d", e.Attempt)
	}
	message := ""
	if e.Error != nil {
		message = ": " + e.Error.Message
	}
	switch e.Kind {
	case makegood.EntryFailed:
		return "error", what + cmp.Or(message, ": failed")
	case makegood.EntrySilent:
		return "error", what + ": silent" + message
	case makegood.EntryRefused:
		return "error", what + ": cannot be sent" + message
	case makegood.EntryInterrupted:
		return "error", what + ": cut off by the end of the engine"
	case makegood.EntryWithdrawn:
		return "cancelled", what + ": withdrawn"
	case makegood.EntryRequest:
		if e.Step != "" {
			return "pending", "Asked to " + string(e.Verb) + " " + e.Step
		}
		return "pending", "Asked for " + string(e.Verb)
	case makegood.EntryCompleted:
		return "processed", what + ": completed from outside" + message
	case makegood.EntrySettled:
		return "processed", what + ": settled as " + string(e.As)
	case makegood.EntryTurned:
		return "undoing", "Turned round: wanted " + string(e.State)
	case makegood.EntryStopped:
		return "error", "Error: it waits for a person"
	case makegood.EntryRound:
		return "pending", fmt.Sprintf("Round %d begins", e.Round)
	case makegood.EntryHeld:
		if e.Verb == makegood.VerbResume {
			return "processing", "Goes on"
		}
		return "paused", "Held"
	default:
		return "idle", string(e.Kind) + " " + what + message
	}
}

// entrySmall returns the details of an entry: by whom, why, and more.
func entrySmall(e makegood.Entry) string {
	var parts []string
	add := func(format string, value string) {
		if value != "" {
			parts = append(parts, fmt.Sprintf(format, value))
		}
	}
	add("by %s", e.By)
	add("held by %s", e.LockedBy)
	add("%s", e.Reason)
	if e.Error != nil {
		add("%s", e.Error.Kind)
		if !e.Error.Retryable {
			parts = append(parts, "final")
		}
		if e.Error.Applied == makegood.AppliedNo {
			parts = append(parts, "not applied")
		}
	}
	if e.StartedAt != nil && e.At.After(*e.StartedAt) {
		parts = append(parts, "after "+span(e.At.Sub(*e.StartedAt)))
	}
	if e.StartAt != nil {
		parts = append(parts, "to start "+day(e.StartAt))
	}
	add("definition %s", short(e.Definition))
	if e.Input {
		parts = append(parts, "another input")
	}
	add("timeout %s", e.Timeout)
	add("%s", domain.FiguresText(e.Concurrency, e.Tolerate))
	if e.Items > 0 {
		parts = append(parts, many(e.Items, "failed item"))
	}
	if e.Indexes != "" {
		parts = append(parts, fmt.Sprintf("items %s of %s", e.Indexes, e.Step))
	}
	return strings.Join(parts, ", ")
}
