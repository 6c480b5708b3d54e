package command

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
)

func aHistory() makegood.Job {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return makegood.Job{
		ID: "o-1", Workflow: "order", ProcessState: makegood.JobError, Desired: makegood.JobProcessed, HistoryCount: 43,
		History: []makegood.Entry{
			{N: 1, At: at, Kind: makegood.EntryFailed, Step: "pay", Attempt: 1, StartedAt: &at, LockedBy: "agent:1", Failure: 1, Error: &makegood.StepError{Message: "card\x1b[2Jrefused", Kind: "card", Applied: makegood.AppliedNo}},
			{N: 2, At: at, Kind: makegood.EntryTurned, State: makegood.JobUndone, Reason: "step pay failed"},
			{N: 40, At: at, Kind: makegood.EntrySilent, Step: "reserve", Undo: true, Attempt: 7, Failure: 2, Error: &makegood.StepError{Message: "no reply", Retryable: true}},
			{N: 41, At: at, Kind: makegood.EntryRequest, Verb: makegood.VerbResubmit, By: "anna", Reason: "the bank is open"},
		},
		HistoryGaps: []makegood.HistoryGap{{From: 3, To: 39, Why: "not kept"}, {From: 42, To: 43, Why: "damaged"}},
	}
}

func TestAHistoryIsShownToPeople(t *testing.T) {
	var out strings.Builder
	printHistory(&out, aHistory())
	want := `  history  43 entries
    2026-01-02T03:04:05Z  failed       pay #1              held by agent:1, since 2026-01-02T03:04:05Z, failure 1: card [2Jrefused (card), final, not applied
    2026-01-02T03:04:05Z  turned       Undone              step pay failed
    ... 37 between are not kept
    2026-01-02T03:04:05Z  silent       undo of reserve #7  failure 2: no reply
    2026-01-02T03:04:05Z  request      resubmit            by anna: the bank is open
    ... 2 entries cannot be shown: damaged
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
	out.Reset()
	if printHistory(&out, makegood.Job{}); out.String() != "" {
		t.Errorf("of a job that went well: got %q", out.String())
	}
}

func TestAWatchShowsNewEntriesOnce(t *testing.T) {
	var out strings.Builder
	draw := newPicture(&out, false, nil)
	job := aHistory()
	all := job.History
	for _, n := range []int{1, 1, 4} {
		job.History = all[:n]
		if err := draw(watched{Job: job}); err != nil {
			t.Fatal(err)
		}
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 5 || !strings.Contains(lines[0], "failed") || !strings.Contains(lines[1], "o-1") || !strings.Contains(lines[4], "by anna") {
		t.Errorf("got %d lines, want the job and each entry once:\n%s", len(lines), out.String())
	}
}

// Who asks is kept with what they asked for: what --who says, or who runs the command. So is why.
func TestAHistorySaysWhoAskedAndWhy(t *testing.T) {
	_, url := waitingFor(t, "a")
	at := func(args ...string) []string { return append(args, "--addr", url) }
	wants(t, 0, "paused", at("pause", "a", "--who", "anna", "--reason", "the bank is closed")...)
	wants(t, 0, "approvals", at("resume", "a")...)
	wants(t, codeUsage, "name of the caller: has 129 bytes, the limit is 128", at("pause", "a", "--who", strings.Repeat("x", 129))...)
	wants(t, codeUsage, "is no text in one line", at("pause", "a", "--who", "a\nb")...)
	wants(t, 0, "request      pause   by anna: the bank is closed", at("get", "a")...)
	_, stdout, _ := ask(t, at("get", "a", "--json")...)
	var job makegood.Job
	if err := json.Unmarshal([]byte(stdout), &job); err != nil || len(job.History) != 2 || job.History[1].By != userAtHost() {
		t.Errorf("in JSON: got %+v, %v, want two entries, the second by %s", job.History, err, userAtHost())
	}
}
