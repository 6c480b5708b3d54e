package bulk_test

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/bulk"
)

// panics is an API that panics a number of times, and then grants; it keeps who asked.
type panics struct {
	bulk.Jobs
	left  atomic.Int32
	asked chan string
}

func (p *panics) Request(ctx context.Context, id string, _ api.Request) (makegood.Job, error) {
	if p.left.Add(-1) >= 0 {
		panic("there is no user")
	}
	p.asked <- api.Who(ctx)
	return makegood.Job{ID: id}, nil
}

// A repair runs beside everything else of its process. What it asks for may panic: it waits, says why, and asks again.
func TestARepairWhoseQuestionPanicsAsksAgainAndEndsNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &panics{asked: make(chan string, 1)}
		p.left.Store(2)
		k := bulk.New(p, slog.New(slog.DiscardHandler))
		if _, err := k.Begin(bulk.Order{Name: "r", Verb: makegood.VerbResubmit, By: "ada", PerSecond: 1, Jobs: []string{"j"}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if got, err := k.Get("r"); err != nil || !strings.Contains(got.Waits, "there is no user") || got.Asked != 0 {
			t.Errorf("got %+v, %v, want it to wait, and to say why", got, err)
		}
		if who := <-p.asked; who != "ada" {
			t.Errorf("it asked as %q, want ada", who)
		}
		synctest.Wait()
		if got, err := k.Get("r"); err != nil || got.Granted != 1 || got.Goes() || got.Waits != "" {
			t.Errorf("got %+v, %v, want it through", got, err)
		}
		check(t, k.Close())
	})
}
