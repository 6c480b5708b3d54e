package bulk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/engine"
	"github.com/makegood-dev/makegood/internal/bulk"
	"github.com/makegood-dev/makegood/internal/limits"
)

const (
	patience = 2 * time.Minute
	jobs     = 40
)

// broken fails every attempt for good.
type broken struct{}

func (broken) Name() string { return "shop" }

func (broken) Handle(context.Context, makegood.Task) (json.RawMessage, error) {
	return nil, agent.Final(errors.New("the shop is closed"))
}

// world is an engine with jobs that all wait for a person, and will again.
type world struct {
	*engine.Engine
	t   *testing.T
	ids []string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	eng, err := engine.Open(t.Context(), engine.Options{
		Workflows: fstest.MapFS{"order.yaml": {Data: []byte("name: order\nonFailure: stop\nsteps: [{name: charge, agent: shop}]\n")}},
		Agents:    []agent.Handler{broken{}}, Logger: slog.New(slog.DiscardHandler),
	})
	check(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- eng.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		check(t, errors.Join(<-ran, eng.Close()))
	})
	w := &world{Engine: eng, t: t}
	for i := range jobs {
		id := fmt.Sprintf("o-%02d", i)
		_, err := eng.Submit(t.Context(), makegood.Submission{Workflow: "order", ID: id, Input: json.RawMessage(`{}`)})
		check(t, err)
		w.ids = append(w.ids, id)
	}
	w.stand()
	return w
}

// stand waits until all jobs wait for a person.
func (w *world) stand() {
	w.t.Helper()
	for _, id := range w.ids {
		job, err := w.Wait(w.t.Context(), id)
		if check(w.t, err); job.ProcessState != makegood.JobError {
			w.t.Fatalf("job %s is %s, want it in Error", id, job.ProcessState)
		}
	}
}

// requests counts what was granted to a job.
func (w *world) requests(id string) (granted int) {
	w.t.Helper()
	job, err := w.Get(w.t.Context(), id)
	check(w.t, err)
	for _, e := range job.History {
		if e.Kind == "request" {
			granted++
		}
	}
	return granted
}

func (w *world) order(name string) bulk.Order {
	return bulk.Order{Name: name, Says: "order, charge", Verb: makegood.VerbResubmit, Reason: "the shop is open", PerSecond: 1000, BeganAt: time.Now(), Jobs: w.ids}
}

// gate lets so many requests through, and answers others as somebody who is not there, or with an error of its own.
type gate struct {
	*engine.Engine
	mu      sync.Mutex
	through int
	shut    error
}

func (g *gate) Request(ctx context.Context, id string, r api.Request) (makegood.Job, error) {
	g.mu.Lock()
	open := g.through > 0
	g.through--
	g.mu.Unlock()
	if !open && g.shut != nil {
		return makegood.Job{}, g.shut
	}
	if !open {
		return makegood.Job{}, &api.UnreachableError{URL: "http://localhost", Err: errors.New("it was killed")}
	}
	return g.Engine.Request(ctx, id, r)
}

func open(t *testing.T, jobs bulk.Jobs, dir string) *bulk.Keeper {
	t.Helper()
	k := bulk.New(jobs, slog.New(slog.DiscardHandler))
	if dir != "" {
		var err error
		k, err = bulk.Open(jobs, dir, slog.New(slog.DiscardHandler))
		check(t, err)
	}
	t.Cleanup(func() { check(t, k.Close()) })
	return k
}

// until waits until an order is as wanted.
func until(t *testing.T, k *bulk.Keeper, name string, is func(bulk.Progress) bool) bulk.Progress {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		p, err := k.Get(name)
		if check(t, err); is(p) {
			return p
		}
		if time.Now().After(deadline) {
			t.Fatalf("the repair is not as wanted: %+v", p)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func ended(p bulk.Progress) bool { return !p.Goes() }

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// The engine dies in the middle, the Keeper dies too, and no answer is left in the journal. The next Keeper goes on,
// and no job is granted the verb twice, though all of them have failed again meanwhile.
func TestARepairGoesOnAfterAKillAndDoesNothingTwice(t *testing.T) {
	w := newWorld(t)
	dir := t.TempDir()
	door := &gate{Engine: w.Engine, through: 15}
	first := open(t, door, dir)
	_, err := first.Begin(w.order("repair-1"))
	check(t, err)
	p := until(t, first, "repair-1", func(p bulk.Progress) bool { return p.Asked == 15 && p.Waits != "" })
	if p.Granted != 15 || !p.Goes() || !strings.Contains(p.Waits, "killed") || !p.Kept {
		t.Errorf("got %+v, want 15 granted, and that nobody answers any more", p)
	}
	check(t, first.Close())
	w.stand()
	path := filepath.Join(dir, "repair-1.jsonl")
	text, err := os.ReadFile(path)
	check(t, err)
	order, _, _ := strings.Cut(string(text), "\n")
	check(t, os.WriteFile(path, []byte(order+"\n{\"job\":\"o-0"), 0o600))

	second := open(t, w.Engine, dir)
	p = until(t, second, "repair-1", ended)
	if p.Asked != jobs || p.Granted != jobs-15 || p.Already != 15 || p.Refused != 0 || p.Stopped || p.Left() != 0 {
		t.Errorf("got %+v, want the 15 that it was granted before left as they are", p)
	}
	w.stand()
	for _, id := range w.ids {
		if n := w.requests(id); n != 1 {
			t.Errorf("job %s was granted it %d times, want once", id, n)
		}
	}
	check(t, second.Close())
	third := open(t, w.Engine, dir)
	if p, err = third.Get("repair-1"); err != nil || p.Goes() || p.Asked != jobs {
		t.Errorf("after another start: got %+v, %v, want it as it ended", p, err)
	}
}

// The same order twice, as a form that is sent twice makes it, is one.
func TestAnOrderOfOneNameIsOne(t *testing.T) {
	w := newWorld(t)
	k := open(t, w.Engine, "")
	for range 3 {
		_, err := k.Begin(w.order("twice"))
		check(t, err)
	}
	until(t, k, "twice", ended)
	w.stand()
	for _, id := range w.ids {
		if n := w.requests(id); n != 1 {
			t.Errorf("job %s was granted it %d times, want once", id, n)
		}
	}
	if list := k.List(); len(list) != 1 || list[0].Kept {
		t.Errorf("got %+v, want one order, which no file keeps", list)
	}
}

// A refusal is counted and told with its reason, and the others go on.
func TestARefusalIsTold(t *testing.T) {
	w := newWorld(t)
	_, err := w.Request(t.Context(), w.ids[3], api.Request{Verb: makegood.VerbCancel})
	check(t, err)
	_, err = w.Wait(t.Context(), w.ids[3])
	check(t, err)
	k := open(t, w.Engine, t.TempDir())
	o := w.order("settle")
	o.Verb, o.Step, o.Skipped, o.Jobs = "", "charge", true, append([]string{"nobody"}, w.ids...)
	_, err = k.Begin(o)
	check(t, err)
	p := until(t, k, "settle", ended)
	if p.Granted != jobs-1 || p.Refused != 2 || len(p.Refusals) != 2 || p.Asked != p.Total() {
		t.Fatalf("got %+v, want two refused", p)
	}
	for _, r := range p.Refusals {
		if r.Reason == "" || r.Job != "nobody" && r.Job != w.ids[3] {
			t.Errorf("got %+v, want the job and the reason", r)
		}
	}
	if job, err := w.Get(t.Context(), w.ids[0]); err != nil || job.ProcessState == makegood.JobError {
		t.Errorf("got %+v, %v, want that it went on", job, err)
	}
}

// Credentials that have expired in the middle refuse nothing: the repair waits, says why, and goes on with new ones.
func TestARepairWaitsForWhoMayAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		g := &gate{Engine: w.Engine, through: 10, shut: &api.InvalidError{Status: http.StatusForbidden, Message: "the token has expired"}}
		k := open(t, g, t.TempDir())
		_, err := k.Begin(w.order("r-expired"))
		check(t, err)
		p := until(t, k, "r-expired", func(p bulk.Progress) bool { return p.Waits != "" })
		if p.Refused > 0 || !strings.Contains(p.Waits, "the token has expired") {
			t.Fatalf("got %+v, want that it waits", p)
		}
		g.mu.Lock()
		g.through = 1000
		g.mu.Unlock()
		if p := until(t, k, "r-expired", ended); p.Granted != jobs || p.Refused > 0 {
			t.Errorf("got %+v, want all granted", p)
		}
	})
}

// A repair that was stopped asks nothing more, also after another start.
func TestAStoppedRepairStaysStopped(t *testing.T) {
	w := newWorld(t)
	dir := t.TempDir()
	k := open(t, &gate{Engine: w.Engine}, dir)
	_, err := k.Begin(w.order("stop"))
	check(t, err)
	check(t, k.Stop("stop"))
	check(t, k.Stop("stop"))
	if err := k.Stop("other"); !errors.Is(err, bulk.ErrNone) {
		t.Errorf("got %v of an order that there is not, want ErrNone", err)
	}
	check(t, k.Close())
	again := open(t, w.Engine, dir)
	if p, err := again.Get("stop"); err != nil || p.Goes() || !p.Stopped || p.Asked != 0 {
		t.Errorf("got %+v, %v, want it stopped, with nothing asked", p, err)
	}
}

// Another process on the same folder shows what the first carries out, and takes it over when that is gone.
func TestAnotherProcessLooksOnAndTakesOver(t *testing.T) {
	w := newWorld(t)
	dir := t.TempDir()
	first := open(t, &gate{Engine: w.Engine, through: 5}, dir)
	_, err := first.Begin(w.order("shared"))
	check(t, err)
	until(t, first, "shared", func(p bulk.Progress) bool { return p.Asked == 5 })
	second := open(t, w.Engine, dir)
	p := until(t, second, "shared", func(p bulk.Progress) bool { return p.Asked == 5 })
	var refused *api.RefusedError
	if err := second.Stop("shared"); !p.Elsewhere || !errors.As(err, &refused) {
		t.Errorf("got %+v, %v, want that another process carries it out", p, err)
	}
	check(t, first.Close())
	if p = until(t, second, "shared", ended); p.Asked != jobs || p.Granted != jobs || p.Already != 0 {
		t.Errorf("got %+v, want the rest granted", p)
	}
}

// A damaged job is counted as refused, in the process and from afar, and the others do not wait for it.
func TestADamagedJobKeepsNoOtherWaiting(t *testing.T) {
	w := newWorld(t)
	for name, damaged := range map[string]error{"here": api.ErrDamaged, "afar": &api.UnreachableError{Status: http.StatusInternalServerError, Err: api.ErrDamaged}} {
		k := open(t, &gate{Engine: w.Engine, through: jobs - 1, shut: fmt.Errorf("resubmit job o-1: %w", damaged)}, "")
		_, err := k.Begin(w.order(name))
		check(t, err)
		p := until(t, k, name, ended)
		if p.Asked != jobs || p.Refused != 1 || p.Refusals[0].Reason != "it is stored, but cannot be read" {
			t.Errorf("%s: got %+v, want one job refused", name, p)
		}
		w.stand()
	}
}

// What cannot be an order begins nothing.
func TestABadOrderIsRefused(t *testing.T) {
	k := open(t, nil, "")
	good := bulk.Order{Name: "n", Verb: makegood.VerbResubmit, PerSecond: 1, Jobs: []string{"a"}}
	for what, spoil := range map[string]func(*bulk.Order){
		"a name with a slash": func(o *bulk.Order) { o.Name = "../n" }, "no jobs": func(o *bulk.Order) { o.Jobs = nil },
		"too many": func(o *bulk.Order) { o.Jobs = make([]string, bulk.MaxJobs+1) }, "no speed": func(o *bulk.Order) { o.PerSecond = 0 },
		"too fast": func(o *bulk.Order) { o.PerSecond = bulk.MaxPerSecond + 1 }, "a long reason": func(o *bulk.Order) { o.Reason = strings.Repeat("x", limits.MaxReasonBytes+1) },
	} {
		o := good
		spoil(&o)
		var invalid *api.InvalidError
		if _, err := k.Begin(o); !errors.As(err, &invalid) {
			t.Errorf("%s: got %v, want it refused", what, err)
		}
	}
	if list := k.List(); len(list) != 0 {
		t.Errorf("got %+v, want nothing begun", list)
	}
}
