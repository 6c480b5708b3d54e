package command

import (
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
)

func aJob() makegood.Job {
	by, until := "agent:1", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return makegood.Job{
		ID: "o-1", Workflow: "order", ProcessState: makegood.JobUndoing, Desired: makegood.JobUndone, Reason: "card\x1b[2Jrefused", Round: 1,
		Input: json.RawMessage(`{"a": "` + strings.Repeat("x", 1000) + `"}`),
		Steps: []makegood.JobStep{
			{Name: "reserve", Activity: makegood.Activity{State: "done", Attempt: 1}, Undo: &makegood.Activity{State: makegood.StepClaimed, Attempt: 2, LockedBy: &by, CompleteBy: &until}},
			{Name: "pay", Activity: makegood.Activity{State: "failed", Attempt: 3, FailureCount: 3, Error: &makegood.StepError{Message: "card\nrefused"}}},
		},
	}
}

func TestAJobIsShownToPeople(t *testing.T) {
	var out strings.Builder
	printJob(&out, aJob())
	want := `o-1  order  Undoing, wanted Undone: card [2Jrefused
  created 0001-01-01T00:00:00Z, round 1, 0 failures
  input   {"a":"` + strings.Repeat("x", maxShownBytes-6) + `... (1008 bytes; --json shows all)
  reserve  done, attempt 1
           undo: claimed, attempt 2, by agent:1 until 2026-01-02T03:04:05Z
  pay      failed, attempt 3, 3 failures; last error: card refused
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

// On a terminal the second picture is drawn over the first, and what is left of it is wiped.
func TestAPictureIsDrawnOverTheOneBefore(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	draw := redraw(w, noWorkflow)
	job := aJob()
	if err := draw(watched{Job: job}); err != nil {
		t.Fatal(err)
	}
	job.Steps = job.Steps[:1]
	if err := draw(watched{Job: job}); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	first, second, ok := strings.Cut(string(text), "\x1b[4A")
	if !ok || strings.Count(first, "\n") != 4 || strings.Count(second, "\n") != 3 || !strings.HasSuffix(second, "\x1b[J") {
		t.Errorf("got %q, want four lines, then up by four, three lines, and the rest wiped", text)
	}
	for line := range strings.SplitSeq(string(text), "\n") {
		if n := len([]rune(line)); n > 90 {
			t.Errorf("a line has %d characters, want it cut to the terminal: %q", n, line)
		}
	}
}

func TestInAPipeEachChangeIsALine(t *testing.T) {
	var out strings.Builder
	draw := newPicture(&out, false, nil)
	job := aJob()
	for range 2 {
		if err := draw(watched{Job: job}); err != nil {
			t.Fatal(err)
		}
	}
	job.ProcessState = makegood.JobUndone
	if err := draw(watched{Job: job}); err != nil {
		t.Fatal(err)
	}
	want := "o-1  order  Undoing, wanted Undone: card [2Jrefused  [reserve done, undo claimed; pay failed]\n" +
		"o-1  order  Undone: card [2Jrefused  [reserve done, undo claimed; pay failed]\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

func noWorkflow(makegood.Job) *makegood.Workflow { return nil }

// An attempt that runs inline is shown so.
func TestAnInlineAttemptIsShownToPeople(t *testing.T) {
	by, until := "engine:1", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	got := activityText(makegood.Activity{State: makegood.StepClaimed, Attempt: 1, Inline: true, LockedBy: &by, CompleteBy: &until})
	if want := "claimed, attempt 1, inline, by engine:1 until 2026-01-02T03:04:05Z"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
