package changes_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/changes"
)

// run is a run of a job's changes from one number to another.
func run(job string, from, to int) changes.Run {
	r := changes.Run{Changes: makegood.Changes{Version: makegood.ChangesVersion, Job: job, Workflow: "order"}}
	for n := from; n <= to; n++ {
		r.Changes.Changes = append(r.Changes.Changes, makegood.Change{Number: n})
	}
	return r
}

func text(r makegood.Changes) string {
	return fmt.Sprintf("%s %d-%d", r.Job, r.Changes[0].Number, r.Changes[len(r.Changes)-1].Number)
}

// record keeps what it was handed, and what became of it.
type record struct {
	mu     sync.Mutex
	got    []string
	handed []string
	fails  int
	hold   chan struct{}
}

func (r *record) take(ctx context.Context, run makegood.Changes) error {
	if r.hold != nil {
		select {
		case <-r.hold:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = append(r.got, text(run))
	if r.fails > 0 {
		r.fails--
		return errors.New("no")
	}
	return nil
}

func (r *record) said(_ context.Context, run changes.Run, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.handed = append(r.handed, fmt.Sprint(text(run.Changes), " ", err))
}

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func TestARelayHandsOverOneAfterTheOtherAndSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &record{fails: 2}
		relay := changes.NewRelay(r.take, slog.New(slog.DiscardHandler))
		for _, err := range relay.Publish(t.Context(), []changes.Run{run("a", 1, 2), run("b", 1, 1)}) {
			if !errors.Is(err, changes.ErrLater) {
				t.Errorf("got %v, want %v", err, changes.ErrLater)
			}
		}
		ctx, stop := context.WithCancel(t.Context())
		go relay.Run(ctx, r.said)
		synctest.Wait()
		relay.Publish(ctx, []changes.Run{run("a", 1, 4)})
		time.Sleep(time.Minute)
		stop()
		synctest.Wait()
		same(t, "tried", r.got, []string{"a 1-2", "a 1-4", "a 1-4", "b 1-1"})
		same(t, "handed over", r.handed, []string{"a 1-4 <nil>", "b 1-1 <nil>"})
	})
}

// While the sink hangs, nobody who publishes waits.
func TestNobodyWaitsForASlowSink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &record{hold: make(chan struct{})}
		relay := changes.NewRelay(r.take, slog.New(slog.DiscardHandler))
		ctx, stop := context.WithCancel(t.Context())
		go relay.Run(ctx, r.said)
		began := time.Now()
		for i := range changes.MaxWaiting + 5 {
			relay.Publish(ctx, []changes.Run{run(fmt.Sprint("j", i), 1, 1)})
		}
		err := relay.Publish(ctx, []changes.Run{run("one more", 1, 1)})[0]
		if errors.Is(err, changes.ErrLater) || err == nil {
			t.Errorf("of one too many: got %v, want a refusal", err)
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("publishing took %v", took)
		}
		stop()
		synctest.Wait()
	})
}

func TestAHubShowsEachChangeOnceAndTellsWhoIsSlow(t *testing.T) {
	h := changes.NewHub()
	all, stop := h.Watch(0)
	defer stop()
	h.Show(run("a", 1, 2).Changes)
	h.Show(run("a", 1, 3).Changes)
	for want := 1; want <= 3; want++ {
		if s := <-all; s.Number != want || s.At != int64(want) || s.Missed != 0 {
			t.Errorf("got %+v, want change %d", s, want)
		}
	}
	h.Show(run("b", 1, 2000).Changes)
	for range 1000 {
		<-all
	}
	h.Show(run("b", 2001, 2001).Changes)
	if s := <-all; s.Missed != 1000 || s.Number != 2001 {
		t.Errorf("got %+v, want 1000 missed", s)
	}
}

func TestAHubRemembersForThoseWhoComeBack(t *testing.T) {
	h := changes.NewHub()
	h.Show(run("a", 1, 100).Changes)
	all, stop := h.Watch(98)
	defer stop()
	if first, second := <-all, <-all; first.Number != 99 || second.Number != 100 || first.Missed != 0 {
		t.Errorf("got %+v and %+v, want 99 and 100", first, second)
	}
	h.Show(run("a", 101, 3000).Changes)
	late, stopLate := h.Watch(100)
	defer stopLate()
	if s := <-late; s.Missed == 0 || s.At != 100+s.Missed+1 {
		t.Errorf("got %+v, want to hear how many were missed", s)
	}
}

// A sink that hangs once, whatever its context says, is given up by an error of the log that names it, and gets the run again;
// a Relay ends though its sink hangs.
func TestASinkThatHangsStopsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		r := &record{}
		free := make(chan struct{})
		var hang atomic.Int64
		hang.Store(1)
		defer close(free)
		sink := func(ctx context.Context, run makegood.Changes) error {
			if hang.Add(-1) >= 0 {
				<-free
			}
			return r.take(ctx, run)
		}
		relay := changes.NewRelay(sink, slog.New(slog.NewTextHandler(&log, nil)))
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { relay.Run(ctx, r.said); close(ended) }()
		relay.Publish(ctx, []changes.Run{run("a", 1, 2), run("b", 1, 1)})
		time.Sleep(20 * time.Second)
		synctest.Wait()
		same(t, "handed over", r.handed, []string{"a 1-2 <nil>", "b 1-1 <nil>"})
		if got := log.String(); !strings.Contains(got, "level=ERROR") || !strings.Contains(got, "receiver=changes") {
			t.Errorf("no error of the log names who hangs: %s", got)
		}
		hang.Store(1)
		relay.Publish(ctx, []changes.Run{run("c", 1, 1)})
		synctest.Wait()
		began := time.Now()
		stop()
		<-ended
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("it ended after %v, want soon", took)
		}
		same(t, "handed over in the end", r.handed, []string{"a 1-2 <nil>", "b 1-1 <nil>"})
	})
}

// Runs of a job may come in out of order. What is handed over is the newer one; one of a new job of that id takes the place of
// what the former has.
func TestAnOlderRunNeverTakesThePlaceOfANewerOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &record{fails: 1}
		gate := make(chan struct{})
		sink := func(ctx context.Context, run makegood.Changes) error {
			<-gate
			return r.take(ctx, run)
		}
		relay := changes.NewRelay(sink, slog.New(slog.DiscardHandler))
		relay.Publish(t.Context(), []changes.Run{run("a", 1, 4), run("b", 2, 9)})
		relay.Publish(t.Context(), []changes.Run{run("a", 1, 2)})
		again := run("b", 1, 3)
		again.CreatedAt = time.Now()
		relay.Publish(t.Context(), []changes.Run{again})
		ctx, stop := context.WithCancel(t.Context())
		go relay.Run(ctx, r.said)
		synctest.Wait()
		relay.Publish(ctx, []changes.Run{run("a", 1, 6)}) // While 1-4 is on its way, and fails.
		close(gate)
		time.Sleep(time.Minute)
		stop()
		synctest.Wait()
		same(t, "tried", r.got, []string{"a 1-4", "b 1-3", "a 1-6"})
		same(t, "handed over", r.handed, []string{"b 1-3 <nil>", "a 1-6 <nil>"})
	})
}
