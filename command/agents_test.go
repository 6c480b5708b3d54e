package command

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood/api"
)

// The list of agents says how many processes ask for the tasks of one outside, and for how long none does.
func TestAgentsOutsideAreSeenInTheList(t *testing.T) {
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	last := now.Add(-41 * time.Second)
	var out bytes.Buffer
	printAgents(&out, []api.Agent{
		{Name: "courier", Place: api.AgentOutside, Polls: &api.AgentPolls{LastAt: &last, Since: last}},
		{Name: "pilot", Place: api.AgentOutside, Polls: &api.AgentPolls{Waiting: 1, Instances: 2, LastAt: &now, Since: last}},
	}, now)
	lines := strings.Split(out.String(), "\n")
	if !strings.Contains(lines[1], " 0  ") || !strings.Contains(lines[1], "no process has asked for its tasks for 41s") {
		t.Errorf("got %q, want that no process has asked for the courier's tasks", lines[1])
	}
	if !strings.Contains(lines[2], " 2  ") || !strings.Contains(lines[2], "works") {
		t.Errorf("got %q, want two processes", lines[2])
	}
}
