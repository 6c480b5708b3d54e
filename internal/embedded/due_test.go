package embedded_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/testkit/seed"
)

// onTime notes when each job of a workflow of one step began.
type onTime struct {
	mu    sync.Mutex
	began map[string][]time.Time
}

func (o *onTime) work(_ context.Context, t makegood.Task) (json.RawMessage, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.began[t.Job] = append(o.began[t.Job], time.Now())
	return nil, nil
}

func (o *onTime) troupe() troupe { return troupe{script: map[string]work{"tick": o.work}} }

const tickWorkflow = "name: ticking\nsteps: [{name: tick, agent: a}]"

// A schedule fires at its times, to within 100 milliseconds, in every hour, and each fire is one job.
func TestAScheduleFiresOnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := onTime{began: map[string][]time.Time{}}
		r := o.troupe()
		w := open(t, embedded.Config{Agents: r.agents("a")})
		w.define(tickWorkflow)
		s := makegood.Schedule{Name: "quarters", Workflow: "ticking", Every: 15 * makegood.Minute}
		if _, _, err := w.engine.Parts().Timetable.Create(t.Context(), s, ""); err != nil {
			t.Fatal(err)
		}
		hours := hoursOf(6)
		time.Sleep(time.Duration(hours)*time.Hour + time.Second)
		synctest.Wait()
		if len(o.began) != 4*hours {
			t.Errorf("%d fires in %d hours, want four in each", len(o.began), hours)
		}
		for id, times := range o.began {
			at, err := time.Parse("quarters:"+time.RFC3339, id)
			if err != nil {
				t.Fatal(err)
			}
			if late := times[0].Sub(at); len(times) != 1 || late < 0 || late > 100*time.Millisecond {
				t.Errorf("%s ran %d times, at first %s late", id, len(times), late)
			}
		}
	})
}

// What came due while no engine ran is found by the next one at once, and what is due soon after on time: its key was
// set by another process.
func TestANewEngineKnowsWhatIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := onTime{began: map[string][]time.Time{}}
		r := o.troupe()
		dir := t.TempDir()
		first := open(t, embedded.Config{Dir: dir, Agents: r.agents("a")})
		c := first.define(tickWorkflow)
		begin := time.Now().Truncate(time.Minute).Add(time.Minute)
		s := makegood.Schedule{Name: "minutes", Workflow: "ticking", Cron: "* * * * *"}
		if _, _, err := first.engine.Parts().Timetable.Create(t.Context(), s, ""); err != nil {
			t.Fatal(err)
		}
		job := scheduler.Submission{ID: "later", Definition: c.Hash, StartAt: begin.Add(10*time.Minute + 40*time.Second + 333*time.Millisecond)}
		if _, _, err := first.engine.Submit(t.Context(), job); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Until(begin.Add(-time.Second)))
		first.stop()
		time.Sleep(time.Until(begin.Add(10*time.Minute + 30*time.Second)))
		second := open(t, embedded.Config{Dir: dir, Agents: r.agents("a")})
		second.define(tickWorkflow)
		time.Sleep(time.Minute)
		synctest.Wait()
		want := map[string]time.Time{
			// Of ten that were missed the latest is made up for.
			domain.FireID("minutes", begin.Add(10*time.Minute)): begin.Add(10*time.Minute + 30*time.Second),
			domain.FireID("minutes", begin.Add(11*time.Minute)): begin.Add(11 * time.Minute),
			"later": job.StartAt,
		}
		for id, at := range want {
			times := o.began[id]
			most := 100 * time.Millisecond
			if at.Equal(begin.Add(10*time.Minute + 30*time.Second)) {
				most = time.Second
			}
			if len(times) != 1 || times[0].Before(at) || times[0].Sub(at) > most {
				t.Errorf("%s began at %v, want once at %v", id, times, at)
			}
		}
		if len(o.began) != len(want) {
			t.Errorf("got %d jobs, want %d: %v", len(o.began), len(want), o.began)
		}
	})
}

// queue: the next fire waits until the job of the one before has ended, and comes then.
func TestAFireThatWaitsComesAfterTheEndOfTheOneBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := onTime{began: map[string][]time.Time{}}
		r := troupe{script: map[string]work{"tick": func(ctx context.Context, task makegood.Task) (json.RawMessage, error) {
			out, err := o.work(ctx, task)
			select {
			case <-time.After(20 * time.Second):
			case <-ctx.Done():
			}
			return out, err
		}}}
		w := open(t, embedded.Config{Agents: r.agents("a")})
		w.define(tickWorkflow)
		s := makegood.Schedule{Name: "often", Workflow: "ticking", Every: 15 * makegood.Second, Overlap: makegood.OverlapQueue, Missed: makegood.MissedAll}
		if _, _, err := w.engine.Parts().Timetable.Create(t.Context(), s, ""); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Second)
		o.mu.Lock()
		var began []time.Time
		for _, times := range o.began {
			began = append(began, times...)
		}
		o.mu.Unlock()
		slices.SortFunc(began, time.Time.Compare)
		for i := 1; i < len(began); i++ {
			if gap := began[i].Sub(began[i-1]); gap < 20*time.Second || gap > 22*time.Second {
				t.Errorf("a job began %s after the one before, want 20 to 22 seconds", gap)
			}
		}
		if len(began) < 4 {
			t.Errorf("got %d jobs", len(began))
		}
	})
}

// hoursOf is how many of so many hours of virtual time are played.
func hoursOf(hours int) int {
	if testing.Short() {
		return 1
	}
	return hours
}

// dueItems is how many jobs are due in the tests below; DUE says another number.
func dueItems(t *testing.T, usual int) int {
	text, said := os.LookupEnv("DUE")
	switch {
	case !said && testing.Short():
		return usual / 10 // The same goroutines meet.
	case !said:
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Many jobs, submitted in any order, whose times are equal or random: each begins once, and none before its time.
func TestManyDueItemsBeginOnceAndOnTime(t *testing.T) {
	const window = 10 * time.Minute
	for name, after := range map[string]func(*rand.Rand) time.Duration{
		"at equal times": func(*rand.Rand) time.Duration { return window },
		"at random times": func(r *rand.Rand) time.Duration {
			return time.Duration(r.Int64N(int64(window))).Truncate(time.Millisecond)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				many, seed := dueItems(t, 3000), seed.Of(t)
				t.Logf("%d items", many)
				r := rand.New(rand.NewPCG(seed, 0))
				o := onTime{began: make(map[string][]time.Time, many)}
				cast := o.troupe()
				w := open(t, embedded.Config{Agents: cast.agents("a")})
				c := w.define(tickWorkflow)
				begin := time.Now().Add(time.Minute)
				at := submitDue(t, w, c.Hash, many, func() time.Time { return begin.Add(after(r)) })
				time.Sleep(time.Until(begin.Add(window + time.Minute)))
				synctest.Wait()
				late := lateness(t, &o, at)
				if p99 := late[len(late)*99/100]; p99 > 100*time.Millisecond {
					t.Errorf("p99 is %s late, the last %s, want at most 100ms", p99, late[len(late)-1])
				}
			})
		})
	}
}

// submitDue submits many jobs that start when at says, and returns when each does.
func submitDue(t *testing.T, w *world, definition string, many int, at func() time.Time) map[string]time.Time {
	t.Helper()
	all := make(map[string]time.Time, many)
	var mu sync.Mutex
	var wg sync.WaitGroup
	const submitters = 64
	for s := range submitters {
		wg.Go(func() {
			for i := s; i < many; i += submitters {
				id := fmt.Sprintf("due-%06d", i)
				mu.Lock()
				start := domain.Instant(at())
				all[id] = start
				mu.Unlock()
				if _, _, err := w.engine.Submit(t.Context(), scheduler.Submission{ID: id, Definition: definition, StartAt: start}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	return all
}

// lateness returns how late each job began, in order. Each must have begun once, and not before its time.
func lateness(t *testing.T, o *onTime, at map[string]time.Time) []time.Duration {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	var late []time.Duration
	for id, start := range at {
		times := o.began[id]
		if len(times) != 1 || times[0].Before(start) {
			t.Fatalf("%s began at %v, want once, from %v on", id, times, start)
		}
		late = append(late, times[0].Sub(start))
	}
	slices.Sort(late)
	return late
}

// With the real clock, and DUE=20000: what a computer of two cores makes of it.
func TestRealDueItemsBeginOnce(t *testing.T) {
	o := onTime{began: map[string][]time.Time{}}
	cast := o.troupe()
	w := open(t, embedded.Config{Dir: t.TempDir(), Agents: cast.agents("a")})
	c := w.define(tickWorkflow)
	many := dueItems(t, 200)
	begin := time.Now()
	ahead := 2 * time.Second
	if testing.Short() {
		ahead = 200 * time.Millisecond // Where they are not submitted by then, some are due at once.
	}
	ahead += time.Duration(many) * 400 * time.Microsecond
	at := submitDue(t, w, c.Hash, many, func() time.Time { return begin.Add(ahead) })
	submitted := time.Since(begin)
	for id := range at {
		w.patience = 5 * time.Minute
		w.ends(id, makegood.JobProcessed)
	}
	late := lateness(t, &o, at)
	t.Logf("%d items at one time: submitted in %s, ended %s after their time; late p50 %s, p99 %s", many, submitted.Round(time.Millisecond),
		time.Since(begin.Add(ahead)).Round(time.Millisecond), late[len(late)/2].Round(time.Millisecond), late[len(late)*99/100].Round(time.Millisecond))
}
