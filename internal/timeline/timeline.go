// Package timeline shows when the work of a job was done: a row a step, with a bar for each queue time, attempt,
// pause between two and wait, of the step and of its undo. Idle spans are folded, so that two hours of waiting do not
// hide 300 ms of work. It reads only a job as people see it; it draws no picture, and makes no decisions.
package timeline

import (
	"slices"
	"time"

	"github.com/makegood-dev/makegood"
)

const (
	// MaxBars is how many bars a row has at most: of more attempts the last are shown, and how many are not.
	MaxBars = 400
	// maxFolds is how many spans are folded at most: the longest.
	maxFolds = 12
	// foldWidth is how wide a fold is, and allFolds how wide all are together at most, in per cent of the line.
	foldWidth, allFolds = 8.0, 45.0
	// shortest is the shortest span to fold; a span that fits share times into the total work stays.
	shortest, share = time.Second, 3
)

// Kind says what a bar stands for.
type Kind string

// The kinds of bars.
const (
	// Queue: an attempt was sent, and was not claimed yet.
	Queue Kind = "queue"
	// Work: an attempt that succeeded; Going: one that is under way.
	Work  Kind = "work"
	Going Kind = "going"
	// Failed: an attempt that failed, fell silent or was cut off, and may be tried again. Final: one that was not to be.
	Failed Kind = "failed"
	Final  Kind = "final"
	// Backoff: between two attempts, with the time that the next was in the queue where that is not known.
	Backoff Kind = "backoff"
	// Wait: an outside party was to complete it. Person: it was given up, and waits for a person.
	Wait   Kind = "wait"
	Person Kind = "person"
	// Passed: skipped, or settled by hand. It took no time.
	Passed Kind = "passed"
)

// Bar is a span of a row.
type Bar struct {
	Kind     Kind
	From, To time.Time
	// Attempt is its number; 0: it is none. Undo: it is one of the undo.
	Attempt int
	Undo    bool
	// Why is the error of a failure, or the person that settled it.
	Why string
	// Open: it goes on.
	Open bool
}

// Took is how long it took so far.
func (b Bar) Took() time.Duration { return max(0, b.To.Sub(b.From)) }

// Row is a step.
type Row struct {
	Step string
	Bars []Bar
	// Took is the step's duration from its first attempt to its end or now, without its undo. Zero: it has not begun.
	Took time.Duration
	// Left is how many bars before those are not here.
	Left int
}

// Line is the time line of a job.
type Line struct {
	Rows []Row
	// From and To are its ends.
	From, To time.Time
	// Worked is the total time of work.
	Worked time.Duration
	// Turned are the moments at which the job was turned round, the first first.
	Turned []time.Time
	Scale
}

// Of returns the time line of a job at now. before names the steps right before each, as far as known: without them
// the queue time of a first attempt that failed is unknown. outside are the steps that an outside party, or the time,
// completes. whole: no span is folded.
func Of(j makegood.Job, before map[string][]string, outside map[string]bool, now time.Time, whole bool) Line {
	line := Line{From: j.CreatedAt, To: now}
	if j.FinishedAt != nil {
		line.To = *j.FinishedAt
	}
	ready := readiness{job: j, before: before, ended: map[string]time.Time{}}
	for _, s := range j.Steps {
		r := recorder{job: j, now: now, step: s.Name, waits: outside[s.Name], entries: j.History}
		opened := ready.of(s)
		forward := r.side(s.Activity, false, opened)
		bars := forward
		if s.Undo != nil {
			bars = append(bars, r.side(*s.Undo, true, time.Time{})...)
		} else {
			bars = append(bars, r.side(makegood.Activity{}, true, time.Time{})...)
		}
		row := Row{Step: s.Name, Bars: bars, Took: took(forward)}
		if left := len(bars) - MaxBars; left > 0 {
			row.Bars, row.Left = bars[left:], left
		}
		line.Rows = append(line.Rows, row)
	}
	for _, e := range j.History {
		if e.Kind == makegood.EntryTurned {
			line.Turned = append(line.Turned, e.At)
		}
	}
	busy := busySpans(line.Rows)
	for _, s := range busy {
		line.Worked += s.to.Sub(s.from)
	}
	line.From, line.To = bounds(line)
	if whole {
		busy = []span{{line.From, line.To}}
	}
	line.Scale = newScale(line.From, line.To, busy)
	return line
}

// bounds are the ends of a line, with all its bars between them.
func bounds(l Line) (from, to time.Time) {
	from, to = l.From, l.To
	for _, r := range l.Rows {
		for _, b := range r.Bars {
			from, to = earlier(from, b.From), later(to, b.To)
		}
	}
	if !to.After(from) {
		to = from.Add(time.Millisecond)
	}
	return from, to
}

func took(bars []Bar) time.Duration {
	var from, to time.Time
	for _, b := range bars {
		if b.Kind == Person || b.Kind == Passed {
			continue
		}
		if from.IsZero() {
			from = b.From
		}
		to = later(to, b.To)
	}
	return max(0, to.Sub(from))
}

// readiness knows since when a step could begin.
type readiness struct {
	job    makegood.Job
	before map[string][]string
	ended  map[string]time.Time
}

// of returns since when the first attempt of a step could be in a queue; zero: that is not known.
func (r readiness) of(s makegood.JobStep) time.Time {
	if s.FinishedAt != nil {
		r.ended[s.Name] = *s.FinishedAt
	}
	at := r.job.CreatedAt
	if r.job.StartAt != nil {
		at = later(at, *r.job.StartAt)
	}
	needs, known := r.before[s.Name]
	if !known || r.job.Round > 1 {
		return time.Time{}
	}
	for _, name := range needs {
		end, ended := r.ended[name]
		if !ended {
			return time.Time{}
		}
		at = later(at, end)
	}
	return at
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// span is a part of the line.
type span struct{ from, to time.Time }

// busySpans are the parts in which work was done, in order, none touching another.
func busySpans(rows []Row) (all []span) {
	for _, r := range rows {
		for _, b := range r.Bars {
			if b.Kind == Work || b.Kind == Going || b.Kind == Failed || b.Kind == Final {
				all = append(all, span{b.From, later(b.From, b.To)})
			}
		}
	}
	slices.SortFunc(all, func(a, b span) int { return a.from.Compare(b.from) })
	var merged []span
	for _, s := range all {
		if n := len(merged); n > 0 && !s.from.After(merged[n-1].to) {
			merged[n-1].to = later(merged[n-1].to, s.to)
			continue
		}
		merged = append(merged, s)
	}
	return merged
}
