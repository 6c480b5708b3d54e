package notify_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/notify"
)

var shop = notify.Where{Name: "stack shop", Flags: "--stack shop", Page: "https://jobs.example"}

// What a person reads who is woken: each alert says what, how many, since when, why, where to look and what to type.
func TestTheTextOfAnAlert(t *testing.T) {
	at := time.Date(2026, 11, 22, 12, 1, 7, 0, time.UTC)
	for name, test := range map[string]struct {
		alert         notify.Alert
		subject, text string
	}{
		"one job": {
			notify.Alert{
				Cause: notify.Cause{Kind: notify.AlertStopped, Workflow: "order", Step: "charge", ErrorKind: "declined"}, Count: 1, Since: at, Where: shop,
				Jobs: []notify.AlertedJob{{ID: "o-1", Reason: "step charge failed:\nPage: too dear"}},
			},
			"Makegood: a job of order stopped at charge (declined)",
			`a job of order stopped at charge (declined), and will not go on until a person says so.
Where: stack shop
Since: 2026-11-22 12:01:07 UTC
Why: step charge failed: Page: too dear
Jobs: o-1
Look: makegood get o-1 --stack shop
Type: makegood resubmit o-1 --reason '...' --stack shop (when the cause is gone)
Page: https://jobs.example/jobs/o-1
Runbook: ` + notify.DefaultRunbook + `#stopped
`,
		},
		"many jobs": {
			notify.Alert{
				Cause: notify.Cause{Kind: notify.AlertStopped, Workflow: "order", Step: "charge", ErrorKind: "it's dear"}, Count: 7, Since: at, Where: shop,
				Jobs: []notify.AlertedJob{{ID: "o-1", Reason: "too dear"}, {ID: "o-2"}},
			},
			"Makegood: 7 jobs of order stopped at charge (it's dear)",
			`7 jobs of order stopped at charge (it's dear), and will not go on until a person says so.
Where: stack shop
Since: 2026-11-22 12:01:07 UTC
Why: too dear
Jobs: o-1, o-2, and 5 more
Look: makegood list --state Error --workflow order --step charge --reason-kind 'it'\''s dear' --stack shop
Type: makegood resubmit --state Error --workflow order --step charge --reason-kind 'it'\''s dear' --reason '...' --stack shop (when the cause is gone)
Page: https://jobs.example/?reason-kind=it%27s+dear&state=Error&step=charge&workflow=order
Runbook: ` + notify.DefaultRunbook + `#stopped
`,
		},
		"late, and no page": {
			notify.Alert{
				Cause: notify.Cause{Kind: notify.AlertLate, Workflow: "order", Step: "charge"}, Count: 2, Since: at,
				Where: notify.Where{Runbook: "https://wiki.example/makegood"},
				Jobs:  []notify.AlertedJob{{ID: "o-1", Reason: "step charge waits", ExpectBy: at.Add(time.Minute)}, {ID: "o-2", ExpectBy: at}},
			},
			"Makegood: 2 jobs of order will be late at charge",
			`2 jobs of order will be late at charge: expected by 2026-11-22 12:01:07 UTC, and not done by then unless a person helps.
Since: 2026-11-22 12:01:07 UTC
Why: step charge waits
Jobs: o-1, o-2
Look: makegood list --workflow order --step charge
Runbook: https://wiki.example/makegood#late
`,
		},
		"an agent": {
			notify.Alert{Cause: notify.Cause{Kind: notify.AlertAgent, Agent: "payments"}, Where: shop},
			"Makegood: no process claims the tasks of agent payments",
			`no process claims the tasks of agent payments. They wait, and are sent again; jobs with them stand still.
Where: stack shop
Look: makegood list --agent payments --stack shop
Type: start what runs agent payments, or let its tasks wait: makegood pause --whole-agent payments --reason '...' --stack shop
Page: https://jobs.example/agents
Runbook: ` + notify.DefaultRunbook + `#agent-silent
`,
		},
	} {
		if got := test.alert.Subject(); got != test.subject {
			t.Errorf("%s: got subject  %s\nwant %s", name, got, test.subject)
		}
		if got := test.alert.Text(); got != test.text {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, test.text)
		}
	}
}

func TestASubjectIsOneShortLineOfASCII(t *testing.T) {
	a := notify.Alert{Cause: notify.Cause{Kind: notify.AlertStopped, Workflow: strings.Repeat("w", limits.MaxNameBytes), Step: "s", ErrorKind: "é\n" + strings.Repeat("k", 100)}}
	got := a.Subject()
	if len(got) != notify.MaxSubjectBytes || !strings.Contains(got, " stopped at s (??") {
		t.Errorf("got %q of %d bytes, want at most %d of ASCII", got, len(got), notify.MaxSubjectBytes)
	}
}

// A reason may quote a payload, which no log is to have.
func TestTheLogHasAnAlertWithoutItsReason(t *testing.T) {
	var out bytes.Buffer
	err := notify.AlertLog{Logger: slog.New(slog.NewTextHandler(&out, nil))}.Alert(t.Context(), notify.Alert{
		Cause: notify.Cause{Kind: notify.AlertStopped, Workflow: "order"}, Count: 1, Jobs: []notify.AlertedJob{{ID: "o-1", Reason: "secret"}}, Where: shop,
	})
	got := out.String()
	for _, part := range []string{"level=WARN", `msg="a job of order stopped"`, "jobs=o-1", `look="makegood get o-1 --stack shop"`, "page=https://jobs.example/jobs/o-1", "#stopped"} {
		if !strings.Contains(got, part) {
			t.Errorf("got %s, want %s in it", got, part)
		}
	}
	if err != nil || strings.Contains(got, "secret") {
		t.Errorf("got %v and %s, want no reason in the log", err, got)
	}
}

// answering is told, and answers so.
type answering struct{ err error }

// Announce is what notify.Notifier says.
func (a answering) Announce(context.Context, notify.Notice) error { return a.err }

// AgentAlert is what notify.Notifier says.
func (a answering) AgentAlert(context.Context, string, string) error { return a.err }

// Who waits for others of its kind is brought each minute, and the log need not say so each time.
func TestTheLogHearsOnceOfWhatIsGathered(t *testing.T) {
	young, old := time.Now(), time.Now().Add(-limits.TellAgain)
	for _, test := range []struct {
		err    error
		at     time.Time
		logged bool
	}{
		{nil, young, true}, {nil, old, true}, {errDeaf, old, true}, {notify.ErrGathered, young, true}, {notify.ErrGathered, old, false},
	} {
		var out bytes.Buffer
		n := notify.Logged(notify.Log{Logger: slog.New(slog.NewTextHandler(&out, nil))}, answering{test.err})
		err := n.Announce(t.Context(), notify.Notice{Job: "o-1", Announcement: job.Announcement{ProcessState: makegood.JobError, At: test.at}})
		if !errors.Is(err, test.err) || strings.Contains(out.String(), "o-1") != test.logged {
			t.Errorf("%+v: got %v, and in the log %q", test, err, out.String())
		}
		if err := n.AgentAlert(t.Context(), "payments", ""); !errors.Is(err, test.err) || !strings.Contains(out.String(), "payments") {
			t.Errorf("%+v: of an agent: got %v, and in the log %q", test, err, out.String())
		}
	}
}
