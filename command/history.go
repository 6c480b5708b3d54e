package command

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/plain"
)

// drawnEntries is how many of the last entries of a history are drawn below the steps on a terminal.
const drawnEntries = 5

// printHistory writes the history of a job, newest last, and where entries are not shown.
func printHistory(w io.Writer, job makegood.Job) {
	if job.HistoryCount == 0 {
		return
	}
	fmt.Fprintf(w, "  history  %s\n", plural(job.HistoryCount, "entry", "entries"))
	for _, line := range historyLines(job) {
		fmt.Fprintln(w, line)
	}
}

// historyLines returns a line an entry, and one for each gap.
func historyLines(job makegood.Job) []string {
	width := 0
	for _, e := range job.History {
		width = max(width, len(entryAbout(e)))
	}
	gaps := slices.Clone(job.HistoryGaps)
	var lines []string
	for _, e := range job.History {
		for len(gaps) > 0 && gaps[0].To < e.N {
			lines, gaps = append(lines, gapLine(gaps[0])), gaps[1:]
		}
		lines = append(lines, strings.TrimRight(fmt.Sprintf("    %s  %-11s  %-*s  %s", e.At.Format(time.RFC3339), e.Kind, width, entryAbout(e), entryText(e)), " "))
	}
	for _, g := range gaps {
		lines = append(lines, gapLine(g))
	}
	return lines
}

func gapLine(g makegood.HistoryGap) string {
	n := g.To - g.From + 1
	if g.Why == "not kept" {
		return fmt.Sprintf("    ... %d between are not kept", n)
	}
	return fmt.Sprintf("    ... %s cannot be shown: %s", plural(n, "entry", "entries"), plain.Line(g.Why))
}

// entryAbout says of what an entry is.
func entryAbout(e makegood.Entry) string {
	about := e.Step
	if e.Undo {
		about = "undo of " + e.Step
	}
	if e.Attempt > 0 {
		about += fmt.Sprintf(" #%d", e.Attempt)
	}
	if e.Round > 0 {
		about += fmt.Sprintf("round %d", e.Round)
	}
	if about != "" && e.Verb != "" {
		about = " of " + about
	}
	return plain.Line(string(e.Verb) + about + string(e.State))
}

// entryText says what there is to say.
func entryText(e makegood.Entry) string {
	var parts []string
	if e.By != "" {
		parts = append(parts, "by "+e.By)
	}
	if e.LockedBy != "" {
		parts = append(parts, "held by "+e.LockedBy)
	}
	if e.StartedAt != nil {
		parts = append(parts, "since "+moment(e.StartedAt))
	}
	if e.StartAt != nil {
		parts = append(parts, "to start "+moment(e.StartAt))
	}
	if e.As != "" {
		parts = append(parts, "as "+string(e.As))
	}
	if e.Definition != "" {
		parts = append(parts, "definition "+e.Definition)
	}
	if e.Input {
		parts = append(parts, "another input")
	}
	if e.Timeout != "" {
		parts = append(parts, "timeout "+e.Timeout)
	}
	if text := domain.FiguresText(e.Concurrency, e.Tolerate); text != "" {
		parts = append(parts, text)
	}
	if e.Items > 0 {
		failed := count(e.Items, "failed item")
		if e.Indexes != "" {
			failed += " (" + e.Indexes + ")"
		}
		parts = append(parts, failed)
	}
	if e.Failure > 0 {
		parts = append(parts, fmt.Sprintf("failure %d", e.Failure))
	}
	text := strings.Join(parts, ", ")
	for _, why := range []string{e.Reason, errorText(e.Error)} {
		switch {
		case why == "":
		case text == "":
			text = why
		default:
			text += ": " + why
		}
	}
	return plain.Line(text)
}

func errorText(e *makegood.StepError) string {
	if e == nil {
		return ""
	}
	text := e.Message
	if e.Kind != "" {
		text += " (" + e.Kind + ")"
	}
	if !e.Retryable {
		text += ", final"
	}
	if e.Applied == makegood.AppliedNo {
		text += ", not applied"
	}
	return text
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// following adds the history to a watched job. It reads it anew when it has grown: looks bring only its length.
func following(ctx context.Context, jobs api.Reader) func(makegood.Job) makegood.Job {
	var last makegood.Job
	return func(job makegood.Job) makegood.Job {
		if job.HistoryCount > last.HistoryCount {
			// What cannot be read now is read with the next change; the job is shown all the same.
			if full, err := jobs.Get(ctx, job.ID); err == nil {
				last = full
			}
		}
		job.History, job.HistoryGaps = last.History, last.HistoryGaps
		return job
	}
}

// newEntries returns the lines of entries that follow entry n.
func newEntries(job makegood.Job, n int) []string {
	at := slices.IndexFunc(job.History, func(e makegood.Entry) bool { return e.N > n })
	if at < 0 {
		return nil
	}
	return historyLines(makegood.Job{History: job.History[at:]})
}

// lastEntry is the number of the last entry that is shown.
func lastEntry(job makegood.Job) int {
	if len(job.History) == 0 {
		return 0
	}
	return job.History[len(job.History)-1].N
}
