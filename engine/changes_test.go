package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/engine"
)

// diary keeps what it is handed, each number once and in order, and refuses the first calls.
type diary struct {
	mu      sync.Mutex
	refuses int
	taken   []makegood.Change
	ended   chan struct{}
}

func (d *diary) write(_ context.Context, run makegood.Changes) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.refuses > 0 {
		d.refuses--
		return errors.New("not now")
	}
	for _, c := range run.Changes {
		if c.Number == len(d.taken)+1 {
			d.taken = append(d.taken, c)
		}
		if c.Step == "" && makegood.ProcessState(c.To).Finished() {
			select {
			case <-d.ended:
			default:
				close(d.ended)
			}
		}
	}
	return nil
}

func (d *diary) text() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []string
	for _, c := range d.taken {
		all = append(all, strings.Trim(fmt.Sprintf("%s:%s", c.Step, c.To), ":"))
	}
	return strings.Join(all, " ")
}

const (
	tripFile    = "name: trip\nsteps: [{name: book, agent: hotel}, {name: pay, agent: hotel}]"
	tripChanges = "Pending book:dispatched book:done Processing pay:dispatched pay:done Processed"
)

func hotel() agent.Handler {
	done := func(context.Context, json.RawMessage) (string, error) { return "done", nil }
	return agent.New("hotel", agent.Do("book", done), agent.Do("pay", done))
}

// Every change reaches who hears of them, although they refuse at first, and those who look on see the same.
func TestEveryChangeReachesWhoHearsOfThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &diary{refuses: 1, ended: make(chan struct{})}
		eng, err := engine.Open(t.Context(), engine.Options{
			Workflows: fstest.MapFS{"trip.yaml": {Data: []byte(tripFile)}}, Agents: []agent.Handler{hotel()},
			Notify: engine.Notify{Changes: d.write}, Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		defer eng.Close()
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		shown, err := eng.WatchChanges(ctx)
		if err != nil {
			t.Fatal(err)
		}
		go eng.Run(ctx)
		if _, err := eng.Submit(ctx, makegood.Submission{Workflow: "trip", ID: "t-1"}); err != nil {
			t.Fatal(err)
		}
		var live []string
		for c := range shown {
			live = append(live, strings.Trim(fmt.Sprintf("%s:%s", c.Step, c.To), ":"))
			if c.To == "Processed" {
				break
			}
		}
		if got := strings.Join(live, " "); got != tripChanges {
			t.Errorf("shown %q, want %q", got, tripChanges)
		}
		<-d.ended
		if got := d.text(); got != tripChanges {
			t.Errorf("handed over %q, want %q", got, tripChanges)
		}
	})
}

func TestWhereChangesAreNotKeptNobodyCanWatchThem(t *testing.T) {
	eng, err := engine.Open(t.Context(), engine.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer eng.Close()
	if _, err := eng.WatchChanges(t.Context()); !errors.Is(err, engine.ErrNoChanges) {
		t.Errorf("got %v, want %v", err, engine.ErrNoChanges)
	}
}

// The engine ends before anybody has heard of the job's end; the next one on the folder hands it over.
func TestChangesSurviveTheEngine(t *testing.T) {
	dir := t.TempDir()
	open := func(d *diary) *engine.Engine {
		eng, err := engine.Open(t.Context(), engine.Options{
			Dir: dir, Workflows: fstest.MapFS{"trip.yaml": {Data: []byte(tripFile)}}, Agents: []agent.Handler{hotel()},
			Notify: engine.Notify{Changes: d.write}, Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		return eng
	}
	deaf := &diary{refuses: 1 << 30, ended: make(chan struct{})}
	eng := open(deaf)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go eng.Run(ctx)
	if _, err := eng.Submit(ctx, makegood.Submission{Workflow: "trip", ID: "t-1"}); err != nil {
		t.Fatal(err)
	}
	if _, err := eng.Wait(ctx, "t-1"); err != nil {
		t.Fatal(err)
	}
	if err := eng.Close(); err != nil {
		t.Fatal(err)
	}
	d := &diary{ended: make(chan struct{})}
	eng = open(d)
	defer eng.Close()
	go eng.Run(ctx)
	// Whoever has to do with the job again hands it over; without that the Supervisor does, a minute after its end.
	if _, err := eng.Request(ctx, "t-1", api.Request{Verb: makegood.VerbPause}); err == nil {
		t.Fatal("a job that has ended was paused")
	}
	<-d.ended
	if got := d.text(); got != tripChanges {
		t.Errorf("handed over %q, want %q", got, tripChanges)
	}
}
