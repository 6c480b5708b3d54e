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
	"github.com/makegood-dev/makegood/internal/domain"
)

// run is a run of a job's changes from one number to another.
func run(job string, from, to int) changes.Run {
	r := changes.Run{Changes: makegood.Changes{Version: domain.ChangesVersion, Job: job, Workflow: "order"}}
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

// A Relay without runs leaves its sink alone, and the first run is not held up.
func TestARelayWithoutRunsHandsNothingOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		var handed []int
		sink := func(_ context.Context, run makegood.Changes) error {
			if handed = append(handed, len(run.Changes)); len(run.Changes) == 0 {
				stop()
			}
			return nil
		}
		relay := changes.NewRelay(sink, slog.New(slog.DiscardHandler))
		go relay.Run(ctx, func(context.Context, changes.Run, error) {})
		synctest.Wait()
		relay.Publish(ctx, []changes.Run{run("a", 1, 2)})
		synctest.Wait()
		stop()
		synctest.Wait()
		if !slices.Equal(handed, []int{2}) {
			t.Errorf("got runs of so many changes: %v, want one of two", handed)
		}
	})
}

// A Relay waits a second after a run that could not be handed over, then twice as long each time, up to a minute; after one that
// was handed over it begins anew.
func TestARelayWaitsLongerEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		began := time.Now()
		sink := func(context.Context, makegood.Changes) error {
			at = append(at, time.Since(began))
			if len(at) == 10 || len(at) == 12 {
				return nil
			}
			return errors.New("no")
		}
		relay := changes.NewRelay(sink, slog.New(slog.DiscardHandler))
		ctx, stop := context.WithCancel(t.Context())
		relay.Publish(ctx, []changes.Run{run("a", 1, 1), run("b", 1, 1)})
		go relay.Run(ctx, func(context.Context, changes.Run, error) {})
		time.Sleep(time.Hour)
		stop()
		synctest.Wait()
		var want []time.Duration
		for _, seconds := range []time.Duration{0, 1, 3, 7, 15, 31, 63, 123, 183, 243, 243, 244} {
			want = append(want, seconds*time.Second)
		}
		if !slices.Equal(at, want) {
			t.Errorf("tried after %v, want %v", at, want)
		}
	})
}

// A sink that takes longer than its time, and comes back soon after, has taken the run.
func TestASinkThatComesBackLateHasTakenTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &record{}
		tries := 0
		sink := func(context.Context, makegood.Changes) error {
			tries++
			time.Sleep(14 * time.Second)
			return nil
		}
		relay := changes.NewRelay(sink, slog.New(slog.DiscardHandler))
		ctx, stop := context.WithCancel(t.Context())
		relay.Publish(ctx, []changes.Run{run("a", 1, 2)})
		go relay.Run(ctx, r.said)
		time.Sleep(time.Minute)
		stop()
		synctest.Wait()
		same(t, "handed over", r.handed, []string{"a 1-2 <nil>"})
		if tries != 1 {
			t.Errorf("tried %d times, want once", tries)
		}
	})
}

// A sink has ten seconds for a run, and hears when they are over.
func TestASinkHasTenSecondsForARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var had time.Duration
		sink := func(ctx context.Context, _ makegood.Changes) error {
			began := time.Now()
			<-ctx.Done()
			had = time.Since(began)
			return nil
		}
		relay := changes.NewRelay(sink, slog.New(slog.DiscardHandler))
		ctx, stop := context.WithCancel(t.Context())
		relay.Publish(ctx, []changes.Run{run("a", 1, 2)})
		go relay.Run(ctx, func(context.Context, changes.Run, error) {})
		time.Sleep(time.Minute)
		stop()
		synctest.Wait()
		if had != 10*time.Second {
			t.Errorf("it had %v, want 10 s", had)
		}
	})
}

// The later of two runs that reach as far is handed over: it may want to hear that it was.
func TestARunThatWantsToHearTakesThePlaceOfOneThatDoesNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		relay := changes.NewRelay((&record{}).take, slog.New(slog.DiscardHandler))
		again := run("a", 1, 2)
		again.Confirm = true
		relay.Publish(t.Context(), []changes.Run{run("a", 1, 2), again})
		ctx, stop := context.WithCancel(t.Context())
		confirmed := 0
		go relay.Run(ctx, func(_ context.Context, r changes.Run, _ error) {
			if r.Confirm {
				confirmed++
			}
		})
		synctest.Wait()
		stop()
		synctest.Wait()
		if confirmed != 1 {
			t.Errorf("%d runs wanted to hear, want the later one", confirmed)
		}
	})
}

// So many jobs' changes wait, and no more; what waits may still grow.
func TestOfMoreJobsThanMayWaitTheLastAreRefused(t *testing.T) {
	relay := changes.NewRelay((&record{}).take, slog.New(slog.DiscardHandler))
	for i := range changes.MaxWaiting + 1 {
		err := relay.Publish(t.Context(), []changes.Run{run(fmt.Sprint("j", i), 1, 1)})[0]
		if fits := i < changes.MaxWaiting; errors.Is(err, changes.ErrLater) != fits {
			t.Fatalf("job %d: got %v, want it taken in: %v", i+1, err, fits)
		}
	}
	if err := relay.Publish(t.Context(), []changes.Run{run("j0", 1, 2)})[0]; !errors.Is(err, changes.ErrLater) {
		t.Errorf("more of a job that waits: got %v, want %v", err, changes.ErrLater)
	}
}

// publisher answers the same of each run.
type publisher struct {
	answer error
	got    []string
}

func (p *publisher) Publish(_ context.Context, runs []changes.Run) (errs []error) {
	for _, r := range runs {
		p.got = append(p.got, text(r.Changes))
		errs = append(errs, p.answer)
	}
	return errs
}

// What is shown to those who look on is handed on besides, and the answer is that of the publisher; without one all is well.
func TestALiveViewHandsOnWhatItShows(t *testing.T) {
	next := &publisher{answer: errors.New("no")}
	for want, next := range map[error]changes.Publisher{nil: nil, next.answer: next} {
		h := changes.NewHub()
		all, stop := h.Watch(0)
		errs := changes.Live{Hub: h, Next: next}.Publish(t.Context(), []changes.Run{run("a", 1, 1), run("b", 1, 1)})
		if len(errs) != 2 || !errors.Is(errs[1], want) {
			t.Errorf("got %v, want %v of each", errs, want)
		}
		if first, second := <-all, <-all; first.Job != "a" || second.Job != "b" {
			t.Errorf("shown were %+v and %+v, want a and b", first, second)
		}
		stop()
	}
	same(t, "handed on", next.got, []string{"a 1-1", "b 1-1"})
}

// A Hub that is closed says so to those who look on, as often as it is closed.
func TestAHubThatIsClosedSaysSo(t *testing.T) {
	h := changes.NewHub()
	select {
	case <-h.Ended():
		t.Error("it has ended before it was closed")
	default:
	}
	h.Close()
	h.Close()
	select {
	case <-h.Ended():
	default:
		t.Error("it has not ended, want so after Close")
	}
	(*changes.Hub)(nil).Close()
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
		if s := <-all; s.Number != want || s.At != int64(want) || s.Missed != 0 || s.Job != "a" || s.Workflow != "order" {
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
	h.Show(run("b", 2002, 2002).Changes)
	if s := <-all; s.Missed != 0 || s.Number != 2002 {
		t.Errorf("got %+v, want none missed since", s)
	}
	stop()
	h.Show(run("b", 2003, 2003).Changes)
	select {
	case s := <-all:
		t.Errorf("got %+v after stop, want nothing", s)
	default:
	}
}

// A Hub remembers how far the last 10,000 jobs were shown, and at most as many before them: its memory is bounded.
func TestAHubForgetsJobsThatChangedLongAgo(t *testing.T) {
	h := changes.NewHub()
	h.Show(run("a", 1, 1).Changes)
	for i := range 20_000 {
		h.Show(run(fmt.Sprint("j", i), 1, 1).Changes)
	}
	all, stop := h.Watch(0)
	defer stop()
	h.Show(run("j10000", 1, 1).Changes)
	h.Show(run("a", 1, 1).Changes)
	select {
	case s := <-all:
		if s.Job != "a" || s.At != 20_002 {
			t.Errorf("got change %d, of job %s, want that of job a, which is forgotten", s.At, s.Job)
		}
	default:
		t.Error("got nothing, want the change of job a, which is forgotten")
	}
}

// A change of a Hub before this one is no place in this one: what is shown from now on is shown.
func TestAHubThatHasShownNothingKnowsNoPlace(t *testing.T) {
	h := changes.NewHub()
	all, stop := h.Watch(7)
	defer stop()
	h.Show(run("a", 1, 1).Changes)
	if s := <-all; s.At != 1 || s.Missed != 0 {
		t.Errorf("got %+v, want the first, and none missed", s)
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
	if s := <-late; s.Missed != 2400 || s.At != 2501 {
		t.Errorf("got %+v, want the last 500, and to hear how many were missed", s)
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
