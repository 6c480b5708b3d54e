package timetable_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/memstore"
	"github.com/makegood-dev/makegood/internal/timetable"
)

// world is a timetable on a store in memory, with a clock of the test's, and a Scheduler that only stores jobs.
type world struct {
	*testing.T
	store *memstore.Store
	table *timetable.Timetable
	// broken, if set, is what a submission answers that has stored its job.
	broken error
	// unsubmitted, if set, is what a submission answers that has stored nothing.
	unsubmitted error
	// crashed, if set, is what the next write of a schedule answers, which is not made.
	crashed error
	// unreadable, if set, is what a look at a job answers.
	unreadable error
	// meanwhile, if set, is done once by somebody else before the next write or removal of a schedule.
	meanwhile func()
	stored    []time.Time

	mu   sync.Mutex
	now  time.Time
	jobs []string
}

// start is a Sunday, and no fire of anything here.
var start = time.Date(2026, 11, 22, 13, 0, 30, 0, time.UTC)

func newWorld(t *testing.T) *world {
	w := &world{T: t, store: memstore.New(), now: start}
	w.table = timetable.New(timetable.Config{
		Schedules: crashing{w.store, w}, Jobs: crashing{w.store, w}, Submit: w.submit, Now: w.clock,
		Stored: func(_ context.Context, _ string, key time.Time) { w.stored = append(w.stored, key) },
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Knows: func(_ context.Context, workflow string) error {
			if workflow == "unknown" {
				return fmt.Errorf("%w: there is no workflow %q", scheduler.ErrInvalid, workflow)
			}
			return nil
		},
	})
	return w
}

// crashing is a store whose next write of a schedule may not be made, and whose jobs may not be read.
type crashing struct {
	*memstore.Store
	w *world
}

func (c crashing) Load(ctx context.Context, id string) (job.Job, error) {
	if err := c.w.unreadable; err != nil {
		return job.Job{}, err
	}
	return c.Store.Load(ctx, id)
}

func (c crashing) RemoveSchedule(ctx context.Context, name string, rev int64) error {
	c.w.others()
	return c.Store.RemoveSchedule(ctx, name, rev)
}

func (c crashing) PutSchedule(ctx context.Context, s store.Scheduled) error {
	c.w.others()
	if err := c.w.crashed; err != nil {
		c.w.crashed = nil
		return err
	}
	return c.Store.PutSchedule(ctx, s)
}

func (w *world) others() {
	if act := w.meanwhile; act != nil {
		w.meanwhile = nil
		act()
	}
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) submit(ctx context.Context, workflow string, s scheduler.Submission) (job.Job, bool, error) {
	if w.unsubmitted != nil {
		return job.Job{}, false, w.unsubmitted
	}
	if workflow == "gone" {
		return job.Job{}, false, fmt.Errorf("%w: there is no workflow %q", scheduler.ErrInvalid, workflow)
	}
	j := job.Job{ID: s.ID, Workflow: workflow, InputHash: string(s.Input), Priority: s.Priority, ProcessState: makegood.JobProcessing}
	err := w.store.Create(ctx, j)
	if err == nil {
		w.mu.Lock()
		w.jobs = append(w.jobs, strings.TrimPrefix(s.ID, "tick:")+" "+string(s.Input))
		w.mu.Unlock()
		return j, true, w.broken
	}
	have, _ := w.store.Load(ctx, s.ID)
	if have.InputHash != j.InputHash {
		return j, false, &scheduler.MismatchError{Job: s.ID}
	}
	return have, false, nil
}

// make makes the schedule tick.
func (w *world) make(change func(*makegood.Schedule)) store.Scheduled {
	w.Helper()
	s := makegood.Schedule{Name: "tick", Workflow: "order", Cron: "*/10 * * * *", Input: []byte(`0`)}
	if change != nil {
		change(&s)
	}
	stored, created, err := w.table.Create(w.Context(), s, "me")
	if err != nil || !created {
		w.Fatalf("create: got created %v, %v", created, err)
	}
	return stored
}

func (w *world) tick() store.Scheduled {
	w.Helper()
	s, err := w.table.Get(w.Context(), "tick")
	if err != nil {
		w.Fatal(err)
	}
	return s
}

// at fires tick at a time after the start of the hour, as a sweep would that finds its key, and returns the jobs that that made, by
// the minutes and seconds of their times.
func (w *world) at(after time.Duration) []string {
	w.Helper()
	w.now = start.Truncate(time.Hour).Add(after)
	w.jobs = nil
	if err := w.table.Fire(w.Context(), "tick", w.tick().Key); err != nil {
		w.Fatal(err)
	}
	return w.made()
}

func (w *world) made() []string {
	var made []string
	for _, j := range w.jobs {
		id, _, _ := strings.Cut(j, " ")
		at, err := time.Parse(time.RFC3339, id)
		if err != nil {
			w.Fatal(err)
		}
		made = append(made, at.Sub(start.Truncate(time.Hour)).String())
	}
	return made
}

// ends ends the job that tick made last.
func (w *world) ends() {
	w.Helper()
	j, err := w.store.Load(w.Context(), w.tick().LastJob)
	if err != nil {
		w.Fatal(err)
	}
	j.ProcessState = makegood.JobProcessed
	if err := w.store.Save(w.Context(), store.Change{Job: j}); err != nil {
		w.Fatal(err)
	}
}

func (w *world) want(what string, got []string, want ...string) {
	w.Helper()
	if !slices.Equal(got, want) {
		w.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func TestAFireMakesOneJobAndMovesTheKey(t *testing.T) {
	w := newWorld(t)
	s := w.make(nil)
	if want := start.Truncate(time.Hour).Add(10 * time.Minute); !s.Key.Equal(want) || !slices.Equal(w.stored, []time.Time{want}) {
		t.Fatalf("the first key is %v, told of %v, want %v", s.Key, w.stored, want)
	}
	w.want("before its time", w.at(9*time.Minute))
	w.want("at its time", w.at(10*time.Minute), "10m0s")
	w.want("again", w.at(10*time.Minute))
	w.want("the next", w.at(20*time.Minute+2*time.Second), "20m0s")
	s = w.tick()
	if s.LastJob != "tick:2026-11-22T13:20:00Z" || !s.LastFire.Equal(start.Truncate(time.Hour).Add(20*time.Minute)) || s.Key != s.Next {
		t.Errorf("got %+v", s)
	}
	if got := w.table.Stats(); got != (timetable.Stats{Fired: 2}) {
		t.Errorf("got %+v", got)
	}
}

// A hint is worth nothing by itself: of a schedule that is gone, or with a key that is not stored, it makes nothing.
func TestAHintOfAnotherKeyMakesNothing(t *testing.T) {
	w := newWorld(t)
	s := w.make(nil)
	w.now = s.Key.Add(time.Second)
	for name, key := range map[string]time.Time{"gone": s.Key, "tick": s.Key.Add(-10 * time.Minute)} {
		if err := w.table.Fire(t.Context(), name, key); err != nil || len(w.jobs) > 0 {
			t.Errorf("%s at %v: got %v, %v", name, key, w.jobs, err)
		}
	}
	if err := w.table.Fire(t.Context(), "tick", time.Time{}); err != nil || len(w.jobs) > 0 {
		t.Errorf("without a key: got %v, %v", w.jobs, err)
	}
}

// Whoever dies between the two writes of a fire, or does not hear that the first was made, has made the job; the next who comes makes
// no other, and moves the key.
func TestAFireThatWasCutOffIsMadeOnce(t *testing.T) {
	for name, fault := range map[string]func(*world){
		"the answer of the submission was lost": func(w *world) { w.broken = errors.New("lost") },
		"the key was not moved":                 func(w *world) { w.crashed = errors.New("crashed") },
	} {
		for _, overlap := range []makegood.Overlap{makegood.OverlapAllow, makegood.OverlapSkip, makegood.OverlapQueue} {
			t.Run(name+", "+string(overlap), func(t *testing.T) {
				w := newWorld(t)
				w.make(func(s *makegood.Schedule) { s.Overlap = overlap })
				w.at(10 * time.Minute)
				w.ends()
				fault(w)
				w.now, w.jobs = start.Truncate(time.Hour).Add(20*time.Minute), nil
				if err := w.table.Fire(t.Context(), "tick", w.tick().Key); err == nil {
					t.Fatal("got no error of a fire that was cut off")
				}
				w.want("the first try", w.made(), "20m0s")
				w.broken = nil
				w.want("the second try", w.at(20*time.Minute))
				if s := w.tick(); s.LastJob != "tick:2026-11-22T13:20:00Z" || s.Skipped != 0 || !s.Next.Equal(w.now.Add(10*time.Minute)) {
					t.Errorf("got %+v", s)
				}
			})
		}
	}
}

// A job of that id that is another's counts as the fire, and the schedule says so: two schedules cannot make one job twice.
func TestAnIDThatIsTakenCountsAsFired(t *testing.T) {
	w := newWorld(t)
	w.make(nil)
	if err := w.store.Create(t.Context(), job.Job{ID: "tick:2026-11-22T13:10:00Z", InputHash: "another"}); err != nil {
		t.Fatal(err)
	}
	w.want("the fire", w.at(10*time.Minute))
	if s := w.tick(); s.LastJob != "tick:2026-11-22T13:10:00Z" || !s.LastFire.Equal(start.Truncate(time.Hour).Add(10*time.Minute)) || !strings.Contains(s.Problem, "of another workflow or with another input") || !s.Next.Equal(w.now.Add(10*time.Minute)) {
		t.Errorf("got %+v", s)
	}
}

// What is done with fires that come late, or several at once, says the schedule.
func TestMissedFires(t *testing.T) {
	for _, c := range []struct {
		missed  makegood.Missed
		atMost  int
		at      time.Duration
		want    []string
		skipped int64
	}{
		{makegood.MissedOne, 0, 14 * time.Minute, []string{"10m0s"}, 0},
		{makegood.MissedOne, 0, 59 * time.Minute, []string{"50m0s"}, 4},
		{makegood.MissedSkip, 0, 14 * time.Minute, []string{"10m0s"}, 0},
		{makegood.MissedSkip, 0, 15 * time.Minute, []string{"10m0s"}, 0},
		{makegood.MissedSkip, 0, 16 * time.Minute, nil, 1},
		{makegood.MissedSkip, 0, 51 * time.Minute, []string{"50m0s"}, 4},
		{makegood.MissedSkip, 0, 59 * time.Minute, nil, 5},
		{makegood.MissedAll, 3, 51 * time.Minute, []string{"30m0s", "40m0s", "50m0s"}, 2},
		{makegood.MissedAll, 3, 59 * time.Minute, []string{"30m0s", "40m0s", "50m0s"}, 2},
		{makegood.MissedAll, 100, 59 * time.Minute, []string{"10m0s", "20m0s", "30m0s", "40m0s", "50m0s"}, 0},
	} {
		t.Run(fmt.Sprint(c.missed, c.atMost, c.at), func(t *testing.T) {
			w := newWorld(t)
			w.make(func(s *makegood.Schedule) { s.Missed, s.AtMost = c.missed, c.atMost })
			w.want("made", w.at(c.at), c.want...)
			if s := w.tick(); s.Skipped != c.skipped || !s.Next.After(w.now) {
				t.Errorf("got %d skipped and the next at %v, want %d and one to come", s.Skipped, s.Next, c.skipped)
			}
			if got, want := w.table.Stats(), (timetable.Stats{Fired: int64(len(c.want)), Missed: c.skipped}); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

func TestAFireBesideAnUnfinishedJob(t *testing.T) {
	t.Run("is allowed", func(t *testing.T) {
		w := newWorld(t)
		w.make(nil)
		w.want("the first", w.at(10*time.Minute), "10m0s")
		w.want("the second", w.at(20*time.Minute), "20m0s")
	})
	t.Run("is skipped", func(t *testing.T) {
		w := newWorld(t)
		w.make(func(s *makegood.Schedule) { s.Overlap = makegood.OverlapSkip })
		w.want("the first", w.at(10*time.Minute), "10m0s")
		w.want("the second", w.at(20*time.Minute))
		w.ends()
		w.want("the third", w.at(30*time.Minute), "30m0s")
		if s := w.tick(); s.Skipped != 1 {
			t.Errorf("got %d skipped, want 1", s.Skipped)
		}
	})
	t.Run("waits for its end", func(t *testing.T) {
		w := newWorld(t)
		w.make(func(s *makegood.Schedule) { s.Overlap = makegood.OverlapQueue })
		w.want("the first", w.at(10*time.Minute), "10m0s")
		w.want("the second", w.at(20*time.Minute))
		if s := w.tick(); !s.Key.Equal(w.now.Add(timetable.DefaultAgain)) || !s.Next.Equal(w.now) {
			t.Fatalf("it looks again at %v for %v", s.Key, s.Next)
		}
		w.want("a minute later", w.at(21*time.Minute))
		w.ends()
		w.want("after the end", w.at(22*time.Minute), "20m0s")
		w.want("the third is missed while the second runs", w.at(31*time.Minute))
		w.ends()
		w.want("and the fourth comes", w.at(41*time.Minute), "40m0s")
	})
	t.Run("waits, and all are made up for", func(t *testing.T) {
		w := newWorld(t)
		w.make(func(s *makegood.Schedule) { s.Overlap, s.Missed = makegood.OverlapQueue, makegood.MissedAll })
		w.at(10 * time.Minute)
		w.want("while it runs", w.at(31*time.Minute))
		w.ends()
		w.want("one after the other", w.at(32*time.Minute), "20m0s")
		w.ends()
		w.want("and the next", w.at(34*time.Minute), "30m0s")
	})
}

// A fire of which no job can be made is told of with the schedule, and does not keep the next from coming.
func TestAFireThatMakesNoJobSaysWhy(t *testing.T) {
	w := newWorld(t)
	w.make(func(s *makegood.Schedule) { s.Input = []byte(`"${ .time | tonumber }"`) })
	w.want("the fire", w.at(10*time.Minute))
	if s := w.tick(); !strings.Contains(s.Problem, "tick:2026-11-22T13:10:00Z: ") || !strings.Contains(s.Problem, "tonumber") || s.LastJob != "" || !s.Next.After(w.now) {
		t.Errorf("got %+v", s)
	}
	if got := w.table.Stats(); got != (timetable.Stats{Failed: 1}) {
		t.Errorf("got %+v", got)
	}
	w = newWorld(t)
	w.make(func(s *makegood.Schedule) { s.Workflow = "gone" })
	w.at(10 * time.Minute)
	if s := w.tick(); !strings.Contains(s.Problem, `there is no workflow "gone"`) {
		t.Errorf("got %+v", s)
	}
}

// Many who are told at once make each fire once.
func TestOfManyWhoFireEachFireIsMadeOnce(t *testing.T) {
	w := newWorld(t)
	w.make(func(s *makegood.Schedule) { s.Missed = makegood.MissedAll })
	w.now = start.Truncate(time.Hour).Add(59 * time.Minute)
	key := w.tick().Key
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := w.table.Fire(t.Context(), "tick", key); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	made := w.made()
	slices.Sort(made)
	w.want("made", made, "10m0s", "20m0s", "30m0s", "40m0s", "50m0s")
}

// However long nothing fired, no more is made up for than the limit.
func TestNoMoreIsMadeUpForThanTheLimit(t *testing.T) {
	w := newWorld(t)
	w.make(func(s *makegood.Schedule) { s.Cron, s.Missed = "* * * * *", makegood.MissedAll })
	w.at(3 * time.Hour)
	if s := w.tick(); len(w.jobs) != limits.MaxMissed || !s.Next.After(w.now) || s.Skipped != 180-limits.MaxMissed {
		t.Errorf("got %d jobs, %d skipped, the next at %v", len(w.jobs), s.Skipped, s.Next)
	}
}

// Who meets another's change while a fire is made reads the schedule anew, and moves it on.
func TestAFireBesideAChangeIsMadeAndMovesTheKey(t *testing.T) {
	w := newWorld(t)
	w.make(nil)
	w.meanwhile = func() {
		s := w.tick()
		s.ChangedBy = "another"
		if err := w.store.PutSchedule(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	w.want("made", w.at(10*time.Minute), "10m0s")
	if s := w.tick(); s.ChangedBy != "another" || !s.Key.Equal(start.Truncate(time.Hour).Add(20*time.Minute)) {
		t.Errorf("got the key %v, changed by %q, want the next, and the change", s.Key, s.ChangedBy)
	}
}

// Nothing is made beside a job of which nothing is known.
func TestAFireWaitsWhereTheJobBeforeItCannotBeRead(t *testing.T) {
	w := newWorld(t)
	w.make(func(s *makegood.Schedule) { s.Overlap = makegood.OverlapSkip })
	w.want("the first", w.at(10*time.Minute), "10m0s")
	w.now, w.jobs, w.unreadable = w.now.Add(10*time.Minute), nil, errors.New("broken")
	if err := w.table.Fire(t.Context(), "tick", w.tick().Key); !errors.Is(err, w.unreadable) || len(w.jobs) > 0 {
		t.Errorf("got %v, and %v made, want none, and why", err, w.jobs)
	}
	w.unreadable = nil
	w.ends()
	w.want("then", w.at(21*time.Minute), "20m0s")
}
