package agentrun_test

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/agentrun"
)

// named is an agent of that name.
type named struct {
	handler
	name string
}

func (n named) Name() string { return n.name }

// An invocation has 64 places for inline attempts, of all agents together and of their undos, and keeps three seconds
// for the save of what they do.
func TestAnInvocationHasPlacesAndTimeForInlineAttempts(t *testing.T) {
	l := agentrun.NewLane([]agent.Handler{named{succeed, "a"}, named{succeed, "b"}}, nil, time.Now, slog.New(slog.DiscardHandler))
	var leave func()
	for i := range 64 {
		free, ok := l.Enter([]string{"a", "b"}[i%2], i%4 > 1)
		if !ok {
			t.Fatalf("got %d places, want 64", i)
		}
		leave = free
	}
	if _, ok := l.Enter("a", false); ok {
		t.Error("got a place beside 64 attempts")
	}
	leave()
	if _, ok := l.Enter("b", true); !ok {
		t.Error("got no place though one was given back")
	}

	end := time.Now().Add(time.Minute)
	ctx, cancel := context.WithDeadline(t.Context(), end)
	defer cancel()
	if agents, until := l.Agents(ctx); !slices.Equal(agents, []string{"a", "b"}) || !until.Equal(end.Add(-3*time.Second)) {
		t.Errorf("got %v until %v, want a and b until three seconds before %v", agents, until, end)
	}
}
