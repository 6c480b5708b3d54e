package page

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
)

// counter is an API that counts so many jobs, each time in so long, or fails.
type counter struct {
	jobs  atomic.Int64
	fails atomic.Bool
	asked atomic.Int64
}

func (c *counter) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	c.asked.Add(1)
	time.Sleep(100 * time.Millisecond)
	if c.fails.Load() {
		http.Error(w, `{"error":"not now"}`, http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, fmt.Sprintf(`{"groups":[{"values":["order"],"jobs":%d}],"jobs":%[1]d,"cursor":""}`, c.jobs.Load()))
}

func newCounter(t *testing.T, jobs int) (*counter, *Page) {
	t.Helper()
	c := &counter{}
	c.jobs.Store(int64(jobs))
	p := New(Config{Jobs: within(t, c), Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(p.Close)
	return c, p
}

// alikeIs counts, and wants so many jobs; old: counted before.
func alikeIs(t *testing.T, p *Page, jobs int, old bool) {
	t.Helper()
	groups, at, err := p.alike(t.Context(), api.Filter{State: makegood.JobError}, api.ByWorkflow)
	if err != nil || groups.Jobs != jobs || at.IsZero() == old {
		t.Errorf("got %d jobs as of %s, %v, want %d, counted before: %t", groups.Jobs, at, err, jobs, old)
	}
}

func TestFewJobsAreCountedForEachView(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := newCounter(t, fewAlike)
		alikeIs(t, p, fewAlike, false)
		c.jobs.Store(3)
		alikeIs(t, p, 3, false)
	})
}

// A view of many shows at once what was counted last, and when; they are counted again beside it, and no more often than is cheap. Once they
// are few again each view counts.
func TestManyJobsAreCountedBesideTheViews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := newCounter(t, 5000)
		alikeIs(t, p, 5000, false)
		c.jobs.Store(4000)
		begun := time.Now()
		alikeIs(t, p, 5000, true)
		alikeIs(t, p, 5000, true)
		if waited := time.Since(begun); waited != 0 {
			t.Errorf("a view waited %s for a count", waited)
		}
		time.Sleep(recountRest * 100 * time.Millisecond)
		alikeIs(t, p, 5000, true)
		alikeIs(t, p, 5000, true)
		synctest.Wait()
		time.Sleep(time.Second)
		alikeIs(t, p, 4000, true)
		if n := c.asked.Load(); n != 2 {
			t.Errorf("counted %d times, want 2", n)
		}
		c.fails.Store(true)
		time.Sleep(time.Minute)
		alikeIs(t, p, 4000, true)
		time.Sleep(time.Minute)
		c.fails.Store(false)
		c.jobs.Store(7)
		alikeIs(t, p, 4000, true)
		time.Sleep(time.Minute)
		alikeIs(t, p, 7, false)
	})
}

func TestCountsThatAreKeptHaveALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, p := newCounter(t, 5000)
		for n := range maxAlike + 5 {
			if _, _, err := p.alike(t.Context(), api.Filter{Workflow: fmt.Sprintf("w-%d", n)}, api.ByState); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(p.alikes.by); n != maxAlike {
			t.Errorf("%d counts are kept, want %d", n, maxAlike)
		}
	})
}

// However many views are open, looksAtOnce of them are looked at at once; who waits for a turn and goes is not kept.
func TestViewsAreLookedAtInTurns(t *testing.T) {
	_, p := newCounter(t, 0)
	for range looksAtOnce {
		if !p.takeTurn(t.Context()) {
			t.Fatal("there was no turn")
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("gone"))
	if p.takeTurn(ctx) {
		t.Error("one more had a turn")
	}
}
