package page

import (
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
)

// A step that is at work again says so, and how far it is, before it says why the attempt before failed.
func TestTheLineOfARunningStepIsNotItsLastError(t *testing.T) {
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	step := makegood.JobStep{Name: "charge", Activity: makegood.Activity{
		State: makegood.StepClaimed, Attempt: 2, LastStartedAt: &now, Error: &makegood.StepError{Message: "connection refused"},
		Progress: &makegood.Progress{Value: []byte(`{"done":40}`), At: now},
	}}
	says := saysOf(seen{job: makegood.Job{ID: "j", Desired: makegood.JobProcessed, Steps: []makegood.JobStep{step}}, now: now}, step)
	got := string(prose(says, now))
	want := `is at work, attempt 2, since <time datetime="2026-11-24T12:00:00Z" title="24 Nov 2026 12:00:00 UTC">12:00:00</time>; at ` +
		`<time datetime="2026-11-24T12:00:00Z" title="24 Nov 2026 12:00:00 UTC">12:00:00</time> it reported {&#34;done&#34;:40}; the attempt before failed: connection refused`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// What others say may look like a moment of ours; it stays text.
func TestProseKeepsTheWordsOfOthersText(t *testing.T) {
	got := string(prose("a <b> \x02not-a-time\x03 \x02T\x03", time.Time{}))
	if strings.Contains(got, "<b>") || strings.Contains(got, "<time") {
		t.Errorf("got %q, want nothing that draws", got)
	}
}

// An agent outside that nobody asks for is said so after half a minute: as trouble where tasks wait, and at the step that waits for it.
func TestAnAgentThatNobodyAsksForIsSaidSo(t *testing.T) {
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	last, waiting := now.Add(-31*time.Second), 2
	row := agentRow{Agent: api.Agent{Name: "courier", Place: api.AgentOutside, Waiting: &waiting, Polls: &api.AgentPolls{LastAt: &last, Since: last}}, Now: now}
	if says := string(prose(row.Says(), now)); row.Mark().Name != "in trouble" || !strings.Contains(says, "no process asks for its tasks; the last request came at <time") || !strings.Contains(says, ">11:59:29<") {
		t.Errorf("got %v, %q", row.Mark(), says)
	}
	waiting = 0
	if row.Mark().Name != "absent" {
		t.Errorf("got %v where no task waits, want absent", row.Mark())
	}
	away := row
	away.Polls = &api.AgentPolls{LastAt: &last, Since: last}
	row.Polls.Waiting, row.Polls.Instances = 3, 2
	if says := row.Says(); row.Mark().Name != "works" || says != "outside: 2 processes, 3 requests waiting now" {
		t.Errorf("got %v, %q", row.Mark(), says)
	}
	step := makegood.JobStep{Name: "ship", Activity: makegood.Activity{State: makegood.StepDispatched, Attempt: 1}}
	s := seen{
		job: makegood.Job{ID: "j", Desired: makegood.JobProcessed, Steps: []makegood.JobStep{step}}, now: now, agents: map[string]agentRow{"courier": away},
		workflow: &makegood.Workflow{Steps: []makegood.Step{{Name: "ship", Agent: "courier"}}},
	}
	if says := does(s, step, step.Activity); !strings.HasPrefix(says, "step ship is in the queue of courier, attempt 1: no process asks for its tasks") {
		t.Errorf("got %q", says)
	}
}
