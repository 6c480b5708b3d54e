package holds_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/holds"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

// gates notes what a Keeper does with the gates of agents.
type gates struct {
	opened int
	fails  error
	// before are the times of the looks before each look.
	before []time.Time
}

func (g *gates) Look(_ context.Context, _ string, _ job.Limit, before time.Time) error {
	g.before = append(g.before, before)
	return nil
}

func (g *gates) Open(context.Context, string) error {
	g.opened++
	return g.fails
}

func (g *gates) Stand(context.Context, string, int) (permits []job.Permit, waiting int, more bool, err error) {
	return nil, 0, false, nil
}

func (w *world) limiter(g *gates) *holds.Keeper {
	return holds.New(holds.Config{Store: w.store, Queue: w, Events: "events", Gates: g, Logger: slog.New(slog.DiscardHandler)})
}

// A process that dies between the end of a limit and the opening of the gate leaves tickets and permits there. There is
// no limit any more, so no look finds them: the next call has to.
func TestTheGateIsOpenedByTheCallAfterTheOneThatFailed(t *testing.T) {
	g := &gates{fails: errors.New("no answer")}
	k := newWorld(t).limiter(g)
	if _, err := k.Limit(t.Context(), "payments", makegood.Limit{Concurrency: 1}, "", "anna"); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Limit(t.Context(), "payments", makegood.Limit{}, "", "anna"); !errors.Is(err, g.fails) {
		t.Fatalf("got %v, want %v", err, g.fails)
	}
	g.fails = nil
	if _, err := k.Limit(t.Context(), "payments", makegood.Limit{}, "", "anna"); !errors.Is(err, holds.ErrNoLimit) || g.opened != 2 {
		t.Errorf("got %v after the gate was opened %d times, want %v after 2", err, g.opened, holds.ErrNoLimit)
	}
}

// A look that comes late is told when the look before it was, so that it makes up for what came due between the two.
func TestALookIsToldOfTheLookBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gates{}
		k := newWorld(t).limiter(g)
		set := time.Now()
		if _, err := k.Limit(t.Context(), "payments", makegood.Limit{Concurrency: 1}, "", "anna"); err != nil {
			t.Fatal(err)
		}
		late := limits.GateLook + 40*time.Second
		for range 2 {
			time.Sleep(late)
			if err := k.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if len(g.before) != 3 || !g.before[0].IsZero() || !g.before[1].Equal(set) || !g.before[2].Equal(set.Add(late)) {
			t.Errorf("got looks after those at %v, want none, %v and %v", g.before, set, set.Add(late))
		}
	})
}

// A key is checked before it is stored; with another one the gates of the former are opened.
func TestAKeyIsCheckedAndItsGatesAreOpened(t *testing.T) {
	g := &gates{}
	k := newWorld(t).limiter(g)
	for _, l := range []makegood.Limit{{Key: "${ .input.a }"}, {Concurrency: 1, Key: "a"}, {Concurrency: 1, Key: "${ .steps.a.output }"}} {
		if _, err := k.Limit(t.Context(), "payments", l, "", "anna"); !errors.Is(err, holds.ErrInvalid) {
			t.Errorf("%+v: got %v, want %v", l, err, holds.ErrInvalid)
		}
	}
	for i, l := range []makegood.Limit{{Concurrency: 1, Key: "${ .input.a }"}, {Concurrency: 2, Key: "${ .input.a }"}, {Rate: "1/s", Key: "${ .input.b }"}, {Concurrency: 1}, {Concurrency: 2}, {}} {
		before := g.opened
		if _, err := k.Limit(t.Context(), "payments", l, "", "anna"); err != nil {
			t.Fatal(err)
		}
		if opens := g.opened - before; opens != []int{1, 0, 1, 1, 0, 1}[i] {
			t.Errorf("%+v opened the gates %d times", l, opens)
		}
	}
}

// The same limit again, with the same reason or none, keeps the one that stands, its time and its author.
func TestTheSameLimitAgainKeepsTheOneThatStands(t *testing.T) {
	k := newWorld(t).limiter(&gates{})
	set := func(most int, reason, by string) job.Hold {
		t.Helper()
		h, err := k.Limit(t.Context(), "payments", makegood.Limit{Concurrency: most, Rate: "90/m"}, reason, by)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	first := set(1, "INC-4711", "anna")
	for _, reason := range []string{"", "INC-4711"} {
		if got := set(1, reason, "ben"); got != first {
			t.Errorf("with the reason %q: got %+v, want %+v", reason, got, first)
		}
	}
	if got := set(1, "INC-4712", "ben"); got.By != "ben" || got.Reason != "INC-4712" {
		t.Errorf("got %+v, want the other reason, by ben", got)
	}
	if got := set(2, "", "cleo"); got.By != "cleo" || got.Most != 2 || got.Reason != "" {
		t.Errorf("got %+v, want the other limit, by cleo", got)
	}
}

// An agent that is not there any more can have no limit set, and its limit can be taken away.
func TestTheLimitOfAnAgentThatIsGoneIsTakenAway(t *testing.T) {
	w := newWorld(t)
	if _, err := w.limiter(&gates{}).Limit(t.Context(), "payments", makegood.Limit{Concurrency: 1}, "", "anna"); err != nil {
		t.Fatal(err)
	}
	k := holds.New(holds.Config{Store: w.store, Queue: w, Events: "events", Gates: &gates{}, Agents: []string{"mail"}})
	if _, err := k.Limit(t.Context(), "payments", makegood.Limit{Concurrency: 2}, "", "anna"); !errors.Is(err, holds.ErrInvalid) {
		t.Errorf("got %v, want %v", err, holds.ErrInvalid)
	}
	if h, err := k.Limit(t.Context(), "payments", makegood.Limit{}, "", "anna"); err != nil || h.Limit != (job.Limit{}) {
		t.Errorf("got %+v, %v, want that it is taken away", h, err)
	}
	if _, err := k.Limit(t.Context(), "payments", makegood.Limit{}, "", "anna"); !errors.Is(err, holds.ErrNoLimit) {
		t.Errorf("got %v, want %v", err, holds.ErrNoLimit)
	}
}
