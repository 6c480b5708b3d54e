package page

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	line "github.com/makegood-dev/makegood/internal/timeline"
)

// timeline is the times of a job's work.
type timeline = line.Line

// lineOf returns the time line of a job. While none of its steps is under way it moves on by minutes: a job that waits
// for a person need not be sent anew each second.
func lineOf(s seen, whole bool) timeline {
	now := s.now
	if !slices.ContainsFunc(s.job.Steps, func(step makegood.JobStep) bool {
		state := side(s.job, step).State
		return state == makegood.StepClaimed || state == makegood.StepDispatched
	}) {
		now = now.Truncate(time.Minute)
	}
	before, outside := map[string][]string{}, map[string]bool{}
	if s.workflow != nil {
		for _, def := range s.workflow.Steps {
			before[def.Name] = domain.Before(*s.workflow, def)
			outside[def.Name] = domain.WaitsByItself(def.Agent) || def.Waiting != nil
		}
	}
	return line.Of(s.job, before, outside, now, whole)
}

// timeData is a time line for the template.
type timeData struct {
	Worked time.Duration
	Folds  []foldData
	Ticks  []tickData
	Turns  []string
	Rows   []timeRow
	// Folded: parts are folded; Whole: it is drawn to scale, though parts could be folded.
	Folded, Whole bool
}

// foldData is a folded span, tickData a moment that is named. Lengths are per cent.
type foldData struct{ X, Width, Middle, Says string }

// At is the moment where Says is a time of the day, and not how long after the first it is.
type tickData struct{ X, Says, Anchor, At string }

// timeRow is a step.
type timeRow struct {
	Step, Shape, Word string
	Bars              []barData
	// Says is the whole line in words, and Note the text beside the last bar, at NoteX.
	Says, Note, NoteX string
	Took              time.Duration
}

// barData is a bar: a line or a rectangle of a class, with a shape at its end.
type barData struct {
	Line               bool
	Class, Fill, Title string
	X, Width, End      string
	Mark, MarkX        string
}

// percent writes a length for SVG.
func percent(x float64) string { return fmt.Sprintf("%.2f%%", x) }

func timeOf(s seen, l timeline) timeData {
	d := timeData{Worked: l.Worked}
	for _, p := range l.Parts {
		if p.Folded {
			d.Folded = true
			d.Folds = append(d.Folds, foldData{X: percent(p.X), Width: percent(p.Width), Middle: percent(p.X + p.Width/2), Says: span(p.Took())})
		}
	}
	for _, t := range l.Ticks() {
		tick := tickData{X: percent(t.X), Says: "+" + span(t.After), Anchor: "middle"}
		if t.After == 0 {
			tick.Says, tick.Anchor, tick.At = t.At.UTC().Format("15:04:05"), "start", stamp(t.At)
		}
		d.Ticks = append(d.Ticks, tick)
	}
	for _, at := range l.Turned {
		d.Turns = append(d.Turns, percent(l.X(at)))
	}
	for _, r := range l.Rows {
		d.Rows = append(d.Rows, timeRowOf(s, l, r))
	}
	return d
}

func timeRowOf(s seen, l timeline, r line.Row) timeRow {
	node := s.nodes[r.Step]
	row := timeRow{Step: r.Step, Shape: node.State.Class(), Word: node.Word, Took: r.Took, Says: inWords(r)}
	for _, b := range r.Bars {
		row.Bars = append(row.Bars, barOf(l, b))
	}
	if n := len(r.Bars); n > 0 {
		last := r.Bars[n-1]
		if x := l.X(last.To); x < 70 {
			row.Note, row.NoteX = note(r.Bars), percent(x)
		}
	}
	return row
}

// note is the text beside the last bar: the reason for a failure, or a long time in the queue.
func note(bars []line.Bar) string {
	last := bars[len(bars)-1]
	if last.Kind == line.Person && len(bars) > 1 {
		last = bars[len(bars)-2]
	}
	if last.Kind == line.Failed || last.Kind == line.Final || last.Kind == line.Passed {
		return cut(last.Why, 60)
	}
	for _, b := range bars {
		if b.Kind == line.Queue && b.Took() >= 5*time.Second {
			return span(b.Took()) + " in the queue"
		}
	}
	return ""
}

// leastWidth is how wide a bar is at least, in per cent, so that it is seen.
const leastWidth = 0.35

func barOf(l timeline, b line.Bar) barData {
	from, to := l.X(b.From), l.X(b.To)
	width := max(to-from, leastWidth)
	from = min(from, 100-width)
	d := barData{X: percent(from), Width: percent(width), End: percent(from + width), Title: barWords(b)}
	switch b.Kind {
	case line.Queue:
		d.Line, d.Class = true, "q"
	case line.Backoff:
		d.Line, d.Class = true, "error z"
	case line.Work:
		d.Class = "w processed"
	case line.Going:
		d.Class = "w processing"
	case line.Failed:
		d.Class, d.Fill, d.Mark, d.MarkX = "error hatch", "hx-error", "error", percent(from+width)
	case line.Final:
		d.Class, d.Mark, d.MarkX = "w error", "error", percent(from+width)
	case line.Wait, line.Person:
		d.Class, d.Fill = "waiting hatch", "hx-waiting"
	case line.Passed:
		d.Class, d.Mark, d.MarkX = "w skipped", "skipped", percent(from)
	}
	if !b.Undo {
		return d
	}
	switch b.Kind {
	case line.Work, line.Going:
		d.Class, d.Mark, d.MarkX = "w undone", "undone", d.X
	case line.Failed:
		d.Class, d.Fill = "undone hatch", "hx-undone"
	}
	return d
}

// kinds are the names of the kinds of bars.
var kinds = map[line.Kind]string{
	line.Queue: "in the queue", line.Work: "done", line.Going: "at work", line.Failed: "failed", line.Final: "failed for good",
	line.Backoff: "backoff", line.Wait: "waits to be completed", line.Person: "waits for a person", line.Passed: "passed by",
}

// barWords describe a bar, and its duration.
func barWords(b line.Bar) string {
	text := kinds[b.Kind]
	if b.Attempt > 0 {
		text = fmt.Sprintf("attempt %d %s", b.Attempt, text)
	}
	if b.Undo {
		text = "undo: " + text
	}
	if b.From.Before(b.To) {
		text += ", " + span(b.Took())
	}
	if b.Why != "" {
		text += ": " + cut(b.Why, 120)
	}
	return text
}

// saidBars is how many bars of a row are said in words: the last.
const saidBars = 12

// inWords says a row in words.
func inWords(r line.Row) string {
	if len(r.Bars) == 0 {
		return "Not reached"
	}
	bars := r.Bars[max(0, len(r.Bars)-saidBars):]
	var said []string
	if left := r.Left + len(r.Bars) - len(bars); left > 0 {
		said = append(said, fmt.Sprintf("%d before", left))
	}
	for _, b := range bars {
		said = append(said, barWords(b))
	}
	return strings.Join(said, "; ")
}
