package services

import (
	"fmt"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood"
)

// ledgerOf books effects of one order, written as in "reserve charge ship"; "!refund" is a refusal.
func ledgerOf(order, story string) Ledger {
	l := newLedger()
	for i, word := range strings.Fields(story) {
		if action, refused := strings.CutPrefix(word, "!"); refused {
			l.refuse(order, Action(action))
			continue
		}
		l.add(Effect{Order: order, Action: Action(word), Amount: 500, Key: fmt.Sprint(i), Attempt: 1})
	}
	return l
}

func TestCheckFindsEveryKindOfViolation(t *testing.T) {
	const every = "reserve charge ship "
	for _, row := range []struct {
		story string
		state makegood.ProcessState
		want  string // empty: nothing is wrong
	}{
		{every, makegood.JobProcessed, ""},
		{"reserve charge refund charge ship", makegood.JobProcessed, ""},
		{"", makegood.JobUndone, ""},
		{"!reserve", makegood.JobUndone, ""},
		{"reserve !charge release", makegood.JobUndone, ""},
		{every + "cancel refund release", makegood.JobUndone, ""},
		{every + "cancel refund release", makegood.JobCancelled, ""},
		{"reserve charge !ship !refund", makegood.JobError, ""},
		{"reserve charge !ship release !refund", makegood.JobError, ""},

		{"reserve charge", makegood.JobProcessed, "0 shipments net, want 1"},
		{"", makegood.JobProcessed, "0 reservations net, want 1"},
		{every + "ship", makegood.JobProcessed, "ship stood 2 times"},
		{"charge charge refund refund", makegood.JobUndone, "charge stood 2 times"},
		{every + "charge", makegood.JobProcessed, "2 charges net, want 1"},
		{every + "cancel refund", makegood.JobUndone, "1 reservations net, want 0"},
		{"reserve charge release", makegood.JobUndone, "500 cents charged net, want 0"},
		{"reserve charge release", makegood.JobCancelled, "1 charges net, want 0"},
		{"refund", makegood.JobUndone, "refund of a charge that did not stand"},
		{"refund charge", makegood.JobUndone, "refund of a charge that did not stand"},
		{"reserve charge !ship", makegood.JobError, "no refund was refused"},
		{"reserve charge ship !refund", makegood.JobError, "1 shipments net, want 0"},
		{"reserve !refund", makegood.JobError, "0 charges net, want the 1"},
		{"reserve reserve charge !refund", makegood.JobError, "2 reservations net, want 0 to 1"},
		{"reserve", makegood.JobProcessing, "the job has not ended"},
		{"reserve", makegood.JobUndoing, "the job has not ended"},
	} {
		got := Check(ledgerOf("7", row.story), map[string]makegood.ProcessState{"7": row.state})
		switch {
		case row.want == "" && len(got) > 0:
			t.Errorf("%q, %s: got %q, want nothing", row.story, row.state, got)
		case row.want != "" && !strings.Contains(strings.Join(got, "\n"), row.want):
			t.Errorf("%q, %s: got %q, want %q", row.story, row.state, got, row.want)
		}
	}
}

// An order of two lines has a reservation of each, and no second one of either.
func TestCheckLooksAtEachLine(t *testing.T) {
	for _, row := range []struct {
		lines []int // that are reserved
		state makegood.ProcessState
		want  string
	}{
		{[]int{0, 1}, makegood.JobProcessed, "[]"},
		{[]int{0}, makegood.JobProcessed, "[order 7 (Processed): 1 reservations net, want 2]"},
		{[]int{0, 0}, makegood.JobProcessed, "[order 7 (Processed): reserve stood 2 times]"},
		{[]int{1}, makegood.JobError, "[]"},
		{[]int{0, 1, 2}, makegood.JobError, "[order 7 (Error): 3 reservations net, want 0 to 2]"},
	} {
		l := ledgerOf("7", map[makegood.ProcessState]string{
			makegood.JobProcessed: "charge ship", makegood.JobError: "charge !ship !refund",
		}[row.state])
		for _, line := range row.lines {
			l.add(Effect{Order: "7", Line: line, Action: Reserve})
		}
		got := CheckLines(l, map[string]makegood.ProcessState{"7": row.state}, map[string]int{"7": 2})
		if fmt.Sprint(got) != row.want {
			t.Errorf("lines %v, %s: got %q, want %s", row.lines, row.state, got, row.want)
		}
	}
}

func TestCheckFindsAnAttemptSeenTwice(t *testing.T) {
	l := newLedger()
	l.Requests["7/charge/1"] = map[int]int{1: 1, 2: 2}
	got := Check(l, nil)
	if want := "[attempt 2 under 7/charge/1 reached the shop 2 times]"; fmt.Sprint(got) != want {
		t.Errorf("got %s, want %s", fmt.Sprint(got), want)
	}
}

func TestCheckFindsAnOrderWithoutAJob(t *testing.T) {
	got := Check(ledgerOf("7", "reserve"), nil)
	if len(got) != 1 || !strings.Contains(got[0], "there is no job for it") {
		t.Errorf("got %q, want that there is no job for order 7", got)
	}
}
