package timeline_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/timeline"
)

var born = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)

// at is a moment so many milliseconds after the birth.
func at(ms int) *time.Time {
	t := born.Add(time.Duration(ms) * time.Millisecond)
	return &t
}

// told writes the bars of a line, a row a line: what, from and to in ms after the birth.
func told(l timeline.Line) string {
	var b strings.Builder
	for _, r := range l.Rows {
		fmt.Fprintf(&b, "%s:", r.Step)
		for _, bar := range r.Bars {
			undo, open := "", ""
			if bar.Undo {
				undo = "undo "
			}
			if bar.Open {
				open = "+"
			}
			fmt.Fprintf(&b, " %s%s#%d %d-%d%s", undo, bar.Kind, bar.Attempt, bar.From.Sub(born).Milliseconds(), bar.To.Sub(born).Milliseconds(), open)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestEveryStateOfAStepHasItsBars(t *testing.T) {
	failed := func(n, attempt, from, to int, retryable bool) makegood.Entry {
		return makegood.Entry{N: n, At: *at(to), Kind: makegood.EntryFailed, Step: "a", Attempt: attempt, StartedAt: at(from), Error: &makegood.StepError{Message: "503", Retryable: retryable}}
	}
	by := "anna"
	for _, c := range []struct {
		name    string
		step    makegood.JobStep
		history []makegood.Entry
		state   makegood.ProcessState
		want    string
	}{
		{"not begun", makegood.JobStep{Activity: makegood.Activity{State: makegood.StepNotStarted}}, nil, makegood.JobProcessing, "a:"},
		{"before the gate", makegood.JobStep{Activity: makegood.Activity{State: makegood.StepQueued, Attempt: 1}}, nil, makegood.JobProcessing, "a: queue#1 0-9000+"},
		{"in the queue", makegood.JobStep{Activity: makegood.Activity{State: makegood.StepDispatched, Attempt: 1, SentAt: at(100)}}, nil, makegood.JobProcessing, "a: queue#1 100-9000+"},
		{
			"at work",
			makegood.JobStep{Activity: makegood.Activity{State: makegood.StepClaimed, Attempt: 1, SentAt: at(100), StartedAt: at(300), LastStartedAt: at(300)}},
			nil, makegood.JobProcessing, "a: queue#1 100-300 going#1 300-9000+",
		},
		{
			"done at once",
			makegood.JobStep{Activity: makegood.Activity{State: makegood.StepDone, Attempt: 1, SentAt: at(100), StartedAt: at(300), LastStartedAt: at(300), FinishedAt: at(900)}},
			nil, makegood.JobProcessed, "a: queue#1 100-300 work#1 300-900",
		},
		{
			"done at the second try",
			makegood.JobStep{Activity: makegood.Activity{State: makegood.StepDone, Attempt: 2, SentAt: at(2000), StartedAt: at(300), LastStartedAt: at(2100), FinishedAt: at(2900)}},
			[]makegood.Entry{failed(1, 1, 300, 900, true)},
			makegood.JobProcessed,
			"a: queue#1 0-300 failed#1 300-900 backoff#0 900-2000 queue#2 2000-2100 work#2 2100-2900",
		},
		{
			"waits for the next try",
			makegood.JobStep{Activity: makegood.Activity{State: makegood.StepBackoff, Attempt: 1, StartedAt: at(300), LastStartedAt: at(300), NextAt: at(12000)}},
			[]makegood.Entry{failed(1, 1, 300, 900, true)},
			makegood.JobProcessing, "a: queue#1 0-300 failed#1 300-900 backoff#0 900-9000+",
		},
		{
			"given up",
			makegood.JobStep{Activity: makegood.Activity{State: makegood.StepFailed, Attempt: 1, StartedAt: at(300), LastStartedAt: at(300), FinishedAt: at(900)}},
			[]makegood.Entry{failed(1, 1, 300, 900, false)},
			makegood.JobError, "a: queue#1 0-300 final#1 300-900 person#0 900-9000+",
		},
		{
			"waits for somebody",
			makegood.JobStep{Activity: makegood.Activity{State: makegood.StepWaiting, Attempt: 1, SentAt: at(400), StartedAt: at(300), LastStartedAt: at(300)}},
			nil, makegood.JobProcessing, "a: queue#1 0-300 work#1 300-400 wait#1 400-9000+",
		},
		{
			"completed by somebody",
			makegood.JobStep{Activity: makegood.Activity{State: makegood.StepDone, Attempt: 1, SentAt: at(400), StartedAt: at(300), LastStartedAt: at(300), FinishedAt: at(5000), CompletedBy: &by}},
			nil, makegood.JobProcessed, "a: queue#1 0-300 work#1 300-400 wait#1 400-5000",
		},
		{
			"undone", makegood.JobStep{
				Activity: makegood.Activity{State: makegood.StepDone, Attempt: 1, SentAt: at(100), StartedAt: at(300), LastStartedAt: at(300), FinishedAt: at(900)},
				Undo:     &makegood.Activity{State: makegood.StepDone, Attempt: 2, SentAt: at(3000), StartedAt: at(3100), LastStartedAt: at(3100), FinishedAt: at(3900)},
			}, nil, makegood.JobUndone, "a: queue#1 100-300 work#1 300-900 undo queue#2 3000-3100 undo work#2 3100-3900",
		},
		{
			"settled by hand",
			makegood.JobStep{Activity: makegood.Activity{State: makegood.StepDone, Attempt: 1, SentAt: at(100), StartedAt: at(300), LastStartedAt: at(300), FinishedAt: at(5000), Settled: &makegood.Settlement{At: *at(5000)}}},
			[]makegood.Entry{failed(1, 1, 300, 900, false), {N: 2, At: *at(5000), Kind: makegood.EntrySettled, Step: "a", As: makegood.StepDone}},
			makegood.JobProcessed,
			"a: queue#1 0-300 final#1 300-900 passed#0 5000-5000",
		},
	} {
		c.step.Name = "a"
		j := makegood.Job{Round: 1, CreatedAt: born, ProcessState: c.state, Desired: makegood.JobProcessed, History: c.history, Steps: []makegood.JobStep{c.step}}
		line := timeline.Of(j, map[string][]string{"a": nil}, nil, *at(9000), false)
		if got := strings.TrimSpace(told(line)); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, c.want)
		}
	}
}

// Two hours in which nobody worked do not hide the seconds before and after them, and nothing stands outside the line.
func TestWhatNobodyWorkedInIsFolded(t *testing.T) {
	two := 2 * 3600_000
	j := makegood.Job{
		Round: 1, CreatedAt: born, ProcessState: makegood.JobProcessed, Desired: makegood.JobProcessed, FinishedAt: at(two + 4000),
		Steps: []makegood.JobStep{
			{Name: "a", Activity: makegood.Activity{State: makegood.StepDone, Attempt: 1, SentAt: at(0), LastStartedAt: at(0), FinishedAt: at(3000)}},
			{Name: "b", Activity: makegood.Activity{State: makegood.StepDone, Attempt: 1, SentAt: at(3000), LastStartedAt: at(3000), FinishedAt: at(two)}},
			{Name: "c", Activity: makegood.Activity{State: makegood.StepDone, Attempt: 1, SentAt: at(two), LastStartedAt: at(two), FinishedAt: at(two + 4000)}},
		},
	}
	line := timeline.Of(j, nil, map[string]bool{"b": true}, born.Add(time.Hour*9), false)
	if line.Worked != 7*time.Second {
		t.Errorf("got %s of work, want 7 s: b waited", line.Worked)
	}
	folded := 0
	for _, p := range line.Parts {
		if p.Folded {
			folded++
			if p.Width > 10 {
				t.Errorf("a fold is %.1f %% wide", p.Width)
			}
		}
	}
	if folded != 1 {
		t.Errorf("got %d folds, want one: %+v", folded, line.Parts)
	}
	if a, c := line.X(*at(3000))-line.X(*at(0)), line.X(*at(two + 4000))-line.X(*at(two)); a < 30 || c < a {
		t.Errorf("3 s are %.1f %% wide and 4 s %.1f %%, want both to fill the line at one scale", a, c)
	}
	whole := timeline.Of(j, nil, map[string]bool{"b": true}, born.Add(time.Hour*9), true)
	if len(whole.Parts) != 1 || whole.X(*at(3000)) > 1 {
		t.Errorf("to scale nothing is folded: got %+v", whole.Parts)
	}
	for _, l := range []timeline.Line{line, whole} {
		last := -1.0
		for ms := -1000; ms < two+10_000; ms += 10_000 {
			x := l.X(*at(ms))
			if x < last || x < 0 || x > 100 {
				t.Fatalf("%d ms stands at %.2f, behind %.2f", ms, x, last)
			}
			last = x
		}
		for _, tick := range l.Ticks() {
			if x := l.X(tick.At); x != tick.X {
				t.Errorf("a tick of %s stands at %.2f, the moment at %.2f", tick.At, tick.X, x)
			}
		}
	}
}

// A job of which a thousand attempts failed has a row that says how many of them are not in it.
func TestARowIsBounded(t *testing.T) {
	j := makegood.Job{Round: 1, CreatedAt: born, ProcessState: makegood.JobError, Desired: makegood.JobProcessed, Steps: []makegood.JobStep{{Name: "a", Activity: makegood.Activity{State: makegood.StepBackoff, Attempt: 1000}}}}
	for n := range 1000 {
		j.History = append(j.History, makegood.Entry{At: *at(n*100 + 50), Kind: makegood.EntrySilent, Step: "a", Attempt: n + 1, StartedAt: at(n * 100)})
	}
	row := timeline.Of(j, nil, nil, *at(200_000), false).Rows[0]
	if len(row.Bars) != timeline.MaxBars || row.Left != 2000-timeline.MaxBars {
		t.Errorf("got %d bars and %d left, want %d of 2000", len(row.Bars), row.Left, timeline.MaxBars)
	}
}
