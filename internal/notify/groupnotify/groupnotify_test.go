package groupnotify_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/notify"
	"github.com/makegood-dev/makegood/internal/notify/groupnotify"
)

// pager is who is alerted; deaf: they cannot be reached.
type pager struct {
	mu   sync.Mutex
	got  []notify.Alert
	deaf bool
}

var errDeaf = errors.New("deaf")

// Alert is what notify.Alerter says.
func (p *pager) Alert(_ context.Context, a notify.Alert) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.deaf {
		return errDeaf
	}
	p.got = append(p.got, a)
	return nil
}

// counts are how many jobs each alert so far was about.
func (p *pager) counts() (all []int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range p.got {
		all = append(all, a.Count)
	}
	return all
}

func process(p *pager, places groupnotify.Places) *groupnotify.Grouped {
	return groupnotify.New(groupnotify.Config{To: []notify.Alerter{p}, Places: places, Where: func() notify.Where { return notify.Where{Name: "here"} }})
}

// stopped are announcements of jobs that stop now.
func stopped(from, to int) (all []notify.Notice) {
	for i := from; i < to; i++ {
		all = append(all, notify.Notice{Job: fmt.Sprintf("o-%d", i), Workflow: "order", Step: "charge", ErrorKind: "declined", Announcement: job.Announcement{
			Seq: 1, ProcessState: makegood.JobError, Reason: "too dear", At: time.Now(), Operator: true,
		}})
	}
	return all
}

// announce brings announcements at once, and returns those that are to be brought again.
func announce(t *testing.T, g *groupnotify.Grouped, all []notify.Notice) (again []notify.Notice) {
	t.Helper()
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, n := range all {
		wg.Go(func() { errs[i] = g.Announce(t.Context(), n) })
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			again = append(again, all[i])
		}
		if err != nil && !errors.Is(err, notify.ErrGathered) && !errors.Is(err, errDeaf) {
			t.Errorf("%s: %v", all[i].Job, err)
		}
	}
	return again
}

func TestAHundredJobsThatStopForOneReasonAreOneAlert(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pager{}
		began := time.Now().UTC()
		if again := announce(t, process(p, groupnotify.NewPlaces()), stopped(0, 100)); len(again) > 0 {
			t.Errorf("%d are brought again, want none", len(again))
		}
		if len(p.got) != 1 {
			t.Fatalf("got %d alerts, want 1", len(p.got))
		}
		a := p.got[0]
		want := notify.Cause{Kind: notify.AlertStopped, Workflow: "order", Step: "charge", ErrorKind: "declined"}
		if a.Cause != want || a.Count != 100 || len(a.Jobs) != notify.MaxAlertJobs || !a.Since.Equal(began) || a.Where.Name != "here" {
			t.Errorf("got %+v, want 100 jobs of %+v since %v, and %d by name", a, want, began, notify.MaxAlertJobs)
		}
	})
}

// Those that follow wait in their jobs, are brought again each minute, and are told of together when the window is over. Nobody
// is counted twice for being brought again, and what was told is not told again.
func TestWhatFollowsIsToldTogetherWhenTheWindowIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pager{}
		g := process(p, groupnotify.NewPlaces())
		announce(t, g, stopped(0, 1))
		var waiting []notify.Notice
		for i := range 6 {
			waiting = append(waiting, stopped(10*i+10, 10*i+20)...)
			if waiting = announce(t, g, waiting); i < 5 && len(waiting) != 10*i+10 {
				t.Errorf("minute %d: %d wait, want %d", i, len(waiting), 10*i+10)
			}
			time.Sleep(limits.TellAgain)
		}
		if waiting = announce(t, g, waiting); len(waiting) > 0 {
			t.Errorf("%d wait still", len(waiting))
		}
		if got := p.counts(); !slices.Equal(got, []int{1, 60}) {
			t.Errorf("alerts of %v jobs, want 1, then 60", got)
		}
	})
}

// Several functions of a stack share what was told. What one of them has counted another tells of, and both have told it then.
func TestSeveralProcessesAreOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, places := &pager{}, groupnotify.NewPlaces()
		a, b := process(p, places), process(p, places)
		announce(t, a, stopped(0, 10))
		time.Sleep(10 * time.Second)
		ofA := announce(t, a, stopped(10, 30))
		ofB := announce(t, b, stopped(30, 50))
		if len(ofA) != 20 || len(ofB) != 20 {
			t.Fatalf("%d and %d wait, want all", len(ofA), len(ofB))
		}
		time.Sleep(groupnotify.Window)
		if again := append(announce(t, b, ofB), announce(t, a, ofA)...); len(again) > 0 {
			t.Errorf("%d wait still", len(again))
		}
		if got := p.counts(); !slices.Equal(got, []int{10, 40}) {
			t.Errorf("alerts of %v jobs, want 10, then 40", got)
		}
	})
}

// A job that nobody can decide about keeps no announcement: it is announced anew each minute, and is one job all the same.
func TestAParkedJobIsCountedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pager{}
		g := process(p, groupnotify.NewPlaces())
		parked := func(from, to int) []notify.Notice {
			all := stopped(from, to)
			for i := range all {
				all[i].Seq = 0
			}
			return all
		}
		announce(t, g, parked(0, 1))
		for minute := 0; len(announce(t, g, parked(1, 4))) > 0; minute++ {
			if minute > 10 {
				t.Fatal("they are never told of")
			}
			time.Sleep(limits.TellAgain)
		}
		if got := p.counts(); !slices.Equal(got, []int{1, 3}) {
			t.Errorf("alerts of %v jobs, want 1, then 3", got)
		}
	})
}

func TestWhatCouldNotBeToldIsToldWithTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pager{deaf: true}
		g := process(p, groupnotify.NewPlaces())
		again := announce(t, g, stopped(0, 10))
		if len(again) != 10 {
			t.Errorf("%d are brought again, want all", len(again))
		}
		time.Sleep(limits.TellAgain)
		p.deaf = false
		if again = announce(t, g, append(again, stopped(10, 15)...)); len(again) > 0 {
			t.Errorf("%d wait still", len(again))
		}
		if got := p.counts(); !slices.Equal(got, []int{15}) {
			t.Errorf("alerts of %v jobs, want 15", got)
		}
	})
}

// A process dies with what it knows: those that were not told of are in their jobs, and another tells of them.
func TestADeathLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pager{}
		dying := process(p, groupnotify.NewPlaces())
		announce(t, dying, stopped(0, 1))
		waiting := announce(t, dying, stopped(1, 21))
		time.Sleep(limits.TellAgain)
		if again := announce(t, process(p, groupnotify.NewPlaces()), waiting); len(again) > 0 {
			t.Errorf("%d wait still", len(again))
		}
		if got := p.counts(); !slices.Equal(got, []int{1, 20}) {
			t.Errorf("alerts of %v jobs, want 1, then 20", got)
		}
	})
}

func TestEachCauseIsAnAlertAndAnAgentOneAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pager{}
		g := process(p, groupnotify.NewPlaces())
		all := stopped(0, 3)
		all[1].Step, all[1].ErrorKind = "ship", "timeout"
		all[2].ProcessState, all[2].ExpectBy = makegood.JobProcessing, time.Now().Add(time.Minute)
		announce(t, g, append(all, notify.Notice{Job: "well", Announcement: job.Announcement{ProcessState: makegood.JobProcessed}}))
		for range 4 {
			if err := g.AgentAlert(t.Context(), "payments", ""); err != nil {
				t.Error(err)
			}
			time.Sleep(29 * time.Minute)
		}
		kinds := map[notify.AlertKind]int{}
		for _, a := range p.got {
			kinds[a.Kind]++
		}
		if kinds[notify.AlertStopped] != 2 || kinds[notify.AlertLate] != 1 || kinds[notify.AlertAgent] != 2 || len(p.got) != 5 {
			t.Errorf("got %v, want 2 stopped, 1 late, 2 of an agent in an hour and a half", kinds)
		}
	})
}

// broken is a store that does not answer, or forgets.
type broken struct{ err error }

// Place is what groupnotify.Places says.
func (b broken) Place(context.Context, string) (string, error) { return "no JSON", b.err }

// KeepPlace is what groupnotify.Places says.
func (b broken) KeepPlace(context.Context, string, string, string) error { return b.err }

func TestWhereNothingCanBeKeptItIsToldAgainRatherThanNever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, places := range map[string]broken{"forgets": {}, "does not answer": {errDeaf}} {
			p := &pager{}
			g := process(p, places)
			announce(t, g, stopped(0, 3))
			announce(t, g, stopped(3, 4))
			if got := p.counts(); !slices.Equal(got, []int{3, 1}) {
				t.Errorf("a store that %s: alerts of %v jobs, want 3, then 1", name, got)
			}
		}
	})
}

func TestWhoHangsUpIsBroughtAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := process(&pager{}, groupnotify.NewPlaces())
		all := stopped(0, 2)
		ctx, cancel := context.WithTimeout(t.Context(), groupnotify.Gather/2)
		defer cancel()
		var late error
		var wg sync.WaitGroup
		wg.Go(func() { _ = g.Announce(t.Context(), all[0]) })
		synctest.Wait()
		wg.Go(func() { late = g.Announce(ctx, all[1]) })
		wg.Wait()
		if !errors.Is(late, context.DeadlineExceeded) {
			t.Errorf("got %v, want that its time is over", late)
		}
	})
}

// One job that is announced twice at once is one job of the alert.
func TestAJobThatIsAnnouncedTwiceAtOnceIsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pager{}
		one := stopped(0, 1)
		if again := announce(t, process(p, groupnotify.NewPlaces()), append(one, one...)); len(again) > 0 {
			t.Errorf("%d are to be brought again", len(again))
		}
		if got := p.counts(); !slices.Equal(got, []int{1}) || len(p.got[0].Jobs) != 1 {
			t.Errorf("got alerts about %v jobs, %v, want one about one", got, p.got[0].Jobs)
		}
	})
}
