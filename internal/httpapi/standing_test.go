package httpapi_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/protocol"
)

// agentConversations are those about how agents stand.
func agentConversations() []conversation {
	return []conversation{
		{"GET", "/api/agents", "/api/agents", "", "", 200},
		{"GET", "/api/agents", "/api/agents?name=actor", "", "", 400},
	}
}

// agentOf waits until an agent stands as is wanted.
func (w *world) agentOf(name string, is func(api.Agent) bool) api.Agent {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 2*time.Minute)
	defer cancel()
	for {
		all, err := w.client.ListAgents(ctx)
		check(w.t, err)
		i := slices.IndexFunc(all, func(a api.Agent) bool { return a.Name == name })
		if i < 0 {
			w.t.Fatalf("got %+v, want %s among them", all, name)
		}
		if is(all[i]) {
			return all[i]
		}
		select {
		case <-ctx.Done():
			w.t.Fatalf("agent %s is not as wanted: %+v", name, all[i])
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// How an agent stands is seen over HTTP: what it has taken, what failed, who asks it, and that it is paused, by whom and why.
func TestHowAnAgentStandsIsSeen(t *testing.T) {
	before := time.Now().Add(-time.Second)
	w := newWorld(t)
	w.submit("order", "held", `{"reserve":"hold"}`)
	w.submit("stop", "failed", `{"reserve":"fail"}`)
	a := w.agentOf("actor", func(a api.Agent) bool {
		return a.InFlight != nil && *a.InFlight == 1 && a.Lately != nil && a.Lately.Failed == 1
	})
	if a.Place != api.AgentHere || *a.Waiting != 0 || a.OldestAt != nil || a.Problem != "" || a.Hold != nil {
		t.Errorf("got %+v, want that it works here, and nothing waits for it", a)
	}
	if want := []string{"lines", "order", "send", "stop"}; !slices.Equal(a.Workflows, want) {
		t.Errorf("got the workflows %v, want %v", a.Workflows, want)
	}
	if a.Lately.Succeeded != 0 || a.Lately.Late != 0 || a.Lately.Since.Before(before) || a.Lately.Since.After(time.Now()) {
		t.Errorf("got %+v, want one failure since the engine was opened", *a.Lately)
	}
	if _, err := w.client.PauseAll(t.Context(), makegood.HoldAgent, "actor", "it is down"); err != nil {
		t.Fatal(err)
	}
	if a = w.agentOf("actor", func(a api.Agent) bool { return a.Hold != nil }); a.Hold.Reason != "it is down" || a.Hold.ReleasedAt != nil {
		t.Errorf("got %+v, want why it is paused", *a.Hold)
	}
}

// Tasks of an agent outside wait until somebody comes for them. How long is said, and what is not known is not.
func TestTasksThatWaitForAnAgentOutsideAreSeen(t *testing.T) {
	w := newWorld(t)
	before := time.Now().Add(-time.Second)
	w.submit("voyage", "v-1", `{}`)
	a := w.agentOf("pilot", func(a api.Agent) bool { return a.Waiting != nil && *a.Waiting == 1 })
	if a.Place != api.AgentOutside || a.InFlight != nil || a.Lately != nil || a.OldestAt == nil || a.OldestAt.Before(before) || a.OldestAt.After(time.Now()) {
		t.Errorf("got %+v, want since when its task waits, and no more", a)
	}
	if a.Polls == nil || a.Polls.LastAt != nil || a.Polls.Instances != 0 || a.Polls.Since.After(time.Now()) {
		t.Errorf("got %+v, want that nobody has asked for its tasks since the engine began", a.Polls)
	}
	if since, absent := protocol.Absent(a, a.Polls.Since.Add(limits.AbsentAfter+time.Second)); !absent || since != a.Polls.Since {
		t.Errorf("got %v since %v, want that no process asks for its tasks since the engine began", absent, since)
	}
	if _, absent := protocol.Absent(a, a.Polls.Since.Add(limits.AbsentAfter)); absent {
		t.Error("it is absent before half a minute has passed")
	}
	if idle := w.agentOf("guarded", func(api.Agent) bool { return true }); *idle.Waiting != 0 || idle.OldestAt != nil || len(idle.Workflows) != 0 || idle.Workflows == nil {
		t.Errorf("got %+v, want that nothing waits and nobody asks", idle)
	}
}
