package timetable_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/memstore"
	"github.com/makegood-dev/makegood/internal/timetable"
)

// faulty is a store whose answers a test may exchange.
type faulty struct {
	*memstore.Store
	// read, listed, put and removed are what reading, listing, storing and removing a schedule answers; nil: what the
	// store answers.
	read, listed, put, removed error
	// loads are what reading a job answers, by its id.
	loads map[string]error
	// puts counts the schedules that were stored, or were to be.
	puts int
}

func (f *faulty) Schedule(ctx context.Context, name string) (store.Scheduled, error) {
	s, err := f.Store.Schedule(ctx, name)
	if f.read != nil {
		err = f.read
	}
	return s, err
}

func (f *faulty) ListSchedules(ctx context.Context) ([]store.Scheduled, error) {
	all, err := f.Store.ListSchedules(ctx)
	return all, errors.Join(err, f.listed)
}

func (f *faulty) PutSchedule(ctx context.Context, s store.Scheduled) error {
	f.puts++
	if f.put != nil {
		return f.put
	}
	return f.Store.PutSchedule(ctx, s)
}

func (f *faulty) RemoveSchedule(ctx context.Context, name string, rev int64) error {
	if f.removed != nil {
		return f.removed
	}
	return f.Store.RemoveSchedule(ctx, name, rev)
}

func (f *faulty) Load(ctx context.Context, id string) (job.Job, error) {
	j, err := f.Store.Load(ctx, id)
	if why := f.loads[id]; why != nil {
		err = why
	}
	return j, err
}

// faults puts such a store in the place of the world's own; submitted counts what was submitted.
func (w *world) faults(change func(*timetable.Config)) (f *faulty, submitted *int) {
	f, submitted = &faulty{Store: w.store, loads: map[string]error{}}, new(int)
	c := timetable.Config{Schedules: f, Jobs: f, Now: w.clock, Submit: func(ctx context.Context, workflow string, s scheduler.Submission) (job.Job, bool, error) {
		*submitted++
		return w.submit(ctx, workflow, s)
	}}
	if change != nil {
		change(&c)
	}
	w.table = timetable.New(c)
	return f, submitted
}

// hour is a time after the start of the hour.
func hour(after time.Duration) time.Time { return start.Truncate(time.Hour).Add(after) }

// puts stores tick as change leaves it.
func (w *world) puts(change func(*store.Scheduled)) store.Scheduled {
	w.Helper()
	s := w.tick()
	change(&s)
	if err := w.store.PutSchedule(w.Context(), s); err != nil {
		w.Fatal(err)
	}
	return w.tick()
}

func TestATimetableLacksNothingThatItNeeds(t *testing.T) {
	s := memstore.New()
	whole := timetable.Config{Schedules: s, Jobs: s, Submit: newWorld(t).submit}
	for name, lacks := range map[string]func(*timetable.Config){
		"Schedules": func(c *timetable.Config) { c.Schedules = nil },
		"Jobs":      func(c *timetable.Config) { c.Jobs = nil },
		"Submit":    func(c *timetable.Config) { c.Submit = nil },
		"":          func(*timetable.Config) {},
	} {
		c := whole
		lacks(&c)
		func() {
			defer func() {
				if r := recover(); (r != nil) != (name != "") {
					t.Errorf("without %q: got %v", name, r)
				}
			}()
			timetable.New(c)
		}()
	}
}

// Where nothing is said, every workflow is known, no key is told, the clock is that of the machine, and a fire waits a
// minute.
func TestATimetableHasDefaults(t *testing.T) {
	w := newWorld(t)
	w.table = timetable.New(timetable.Config{Schedules: w.store, Jobs: w.store, Submit: w.submit})
	before := time.Now().Truncate(time.Second)
	s := w.make(func(s *makegood.Schedule) { s.Workflow, s.Overlap = "unknown", makegood.OverlapQueue })
	if s.CreatedAt.Before(before) || s.CreatedAt.After(time.Now()) || !s.Next.After(before) || s.Next.After(before.Add(11*time.Minute)) {
		t.Errorf("got it made at %v, the next fire at %v, want now, and soon", s.CreatedAt, s.Next)
	}
	if err := w.table.Remove(t.Context(), "tick", 0); err != nil {
		t.Fatal(err)
	}
	w.table = timetable.New(timetable.Config{Schedules: w.store, Jobs: w.store, Submit: w.submit, Now: w.clock})
	w.make(func(s *makegood.Schedule) { s.Overlap = makegood.OverlapQueue })
	w.at(10 * time.Minute)
	w.want("beside a job that is unfinished", w.at(21*time.Minute))
	if s := w.tick(); !s.Key.Equal(hour(22 * time.Minute)) {
		t.Errorf("got the key %v, want it a minute later", s.Key)
	}
}

// A schedule is made by a person, now, for the first time.
func TestWhoMadeAScheduleAndWhenIsStored(t *testing.T) {
	w := newWorld(t)
	s := w.make(nil)
	if have := w.tick(); s.Rev != 1 || have.Rev != 1 || have.ChangedBy != "me" || !have.CreatedAt.Equal(start) || !have.Next.Equal(hour(10*time.Minute)) {
		t.Errorf("got %+v, stored %+v", s, have)
	}
	all, err := w.table.List(t.Context())
	if err != nil || len(all) != 1 || all[0].Name != "tick" {
		t.Errorf("got %v, %v, want the one", all, err)
	}
}

// A problem ends with the next fire that makes its job, whether that is heard of at once or after a death.
func TestAFireThatMakesAJobEndsTheProblem(t *testing.T) {
	for name, dies := range map[string]bool{"at once": false, "after a death": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.make(nil)
			w.unsubmitted = fmt.Errorf("%w: not now", scheduler.ErrInvalid)
			w.at(10 * time.Minute)
			if s := w.tick(); !strings.Contains(s.Problem, "not now") || !s.LastFire.IsZero() {
				t.Fatalf("got %+v, want the problem", s)
			}
			w.unsubmitted = nil
			if dies {
				w.now, w.crashed = hour(20*time.Minute), errors.New("dies here")
				if err := w.table.Fire(t.Context(), "tick", w.tick().Key); err == nil {
					t.Fatal("it did not die")
				}
				w.must(w.table.Pause(t.Context(), "tick", ""))
				w.must(w.table.Resume(t.Context(), "tick", ""))
			} else {
				w.at(20 * time.Minute)
			}
			if s := w.tick(); s.Problem != "" || s.LastJob != "tick:2026-11-22T13:20:00Z" || !s.LastFire.Equal(hour(20*time.Minute)) {
				t.Errorf("got %+v, want no problem, and the job of 20 minutes", s)
			}
		})
	}
}

// An id that is taken by another job is the last fire, and says so.
func TestAnIDThatIsTakenIsTheLastFire(t *testing.T) {
	w := newWorld(t)
	w.make(nil)
	if err := w.store.Create(t.Context(), job.Job{ID: "tick:2026-11-22T13:10:00Z", InputHash: "another"}); err != nil {
		t.Fatal(err)
	}
	w.want("made", w.at(10*time.Minute))
	if s := w.tick(); s.LastJob != "tick:2026-11-22T13:10:00Z" || !s.LastFire.Equal(hour(10*time.Minute)) || !strings.Contains(s.Problem, "a job of this id was there") {
		t.Errorf("got %+v", s)
	}
}

// What a store cannot say, a timetable does not know either, and says so.
func TestWhatTheStoreCannotDoIsSaid(t *testing.T) {
	down := errors.New("the store is down")
	tock := tick()
	tock.Name = "tock"
	for name, c := range map[string]struct {
		fails func(*faulty)
		do    func(*world) error
	}{
		"create, unread":    {func(f *faulty) { f.read = down }, func(w *world) error { _, _, err := w.table.Create(w.Context(), tick(), ""); return err }},
		"create, unlisted":  {func(f *faulty) { f.listed = down }, func(w *world) error { _, _, err := w.table.Create(w.Context(), tock, ""); return err }},
		"create, unput":     {func(f *faulty) { f.put = down }, func(w *world) error { _, _, err := w.table.Create(w.Context(), tock, ""); return err }},
		"change, unread":    {func(f *faulty) { f.read = down }, func(w *world) error { _, err := w.table.Pause(w.Context(), "tick", ""); return err }},
		"change, unput":     {func(f *faulty) { f.put = down }, func(w *world) error { _, err := w.table.Pause(w.Context(), "tick", ""); return err }},
		"fire, unread":      {func(f *faulty) { f.read = down }, func(w *world) error { return w.table.Fire(w.Context(), "tick", w.now) }},
		"remove, unread":    {func(f *faulty) { f.read = down }, func(w *world) error { return w.table.Remove(w.Context(), "tick", 0) }},
		"remove, unremoved": {func(f *faulty) { f.removed = down }, func(w *world) error { return w.table.Remove(w.Context(), "tick", 0) }},
		"run, unread":       {func(f *faulty) { f.read = down }, func(w *world) error { _, err := w.table.Run(w.Context(), "tick", "r"); return err }},
		"ask, unlisted":     {func(f *faulty) { f.listed = down }, func(w *world) error { return w.table.MayAdopt(w.Context(), "order", nil) }},
		"adopt, unlisted":   {func(f *faulty) { f.listed = down }, func(w *world) error { return w.table.Adopt(w.Context(), "order", nil) }},
		"adopt, unread":     {func(f *faulty) { f.read = down }, func(w *world) error { return w.table.Adopt(w.Context(), "order", []makegood.Schedule{tock}) }},
		"adopt, unput":      {func(f *faulty) { f.put = down }, func(w *world) error { return w.table.Adopt(w.Context(), "order", []makegood.Schedule{tock}) }},
		"adopt, no room": {func(f *faulty) {}, func(w *world) error {
			for i := range limits.MaxSchedules {
				s := tick()
				s.Name = fmt.Sprint("s", i)
				if err := w.store.PutSchedule(w.Context(), store.Scheduled{Schedule: s}); err != nil {
					return err
				}
			}
			if err := w.table.Adopt(w.Context(), "order", []makegood.Schedule{tock}); !errors.Is(err, scheduler.ErrInvalid) {
				return err
			}
			return down
		}},
		"adopt, one that is wrong": {func(f *faulty) {}, func(w *world) error {
			wrong := tock
			wrong.Cron = "@noon"
			if err := w.table.Adopt(w.Context(), "order", []makegood.Schedule{wrong}); !errors.Is(err, scheduler.ErrInvalid) {
				return err
			}
			return down
		}},
		"adopt, unremoved": {func(f *faulty) { f.removed = down }, func(w *world) error {
			if err := w.table.Adopt(w.Context(), "order", []makegood.Schedule{tock}); err != nil {
				return err
			}
			return w.table.Adopt(w.Context(), "order", nil)
		}},
		"next, of what is wrong": {func(f *faulty) {}, func(w *world) error {
			wrong := tock
			wrong.Cron = "@noon"
			if _, err := w.table.Next(wrong, 1); !errors.Is(err, scheduler.ErrInvalid) {
				return err
			}
			return down
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.make(nil)
			f, _ := w.faults(nil)
			c.fails(f)
			if err := c.do(w); !errors.Is(err, down) {
				t.Errorf("got %v, want %v", err, down)
			}
			if s, err := w.store.Schedule(t.Context(), "tick"); err != nil || s.Rev != 1 {
				t.Errorf("got %+v, %v, want nothing written", s, err)
			}
		})
	}
}

// A schedule that cannot be read can be removed.
func TestAScheduleThatCannotBeReadCanBeRemoved(t *testing.T) {
	for _, why := range []error{store.ErrNewer, store.ErrDamaged} {
		w := newWorld(t)
		w.make(nil)
		f, _ := w.faults(nil)
		f.read = why
		if err := w.table.Remove(t.Context(), "tick", 1); err != nil {
			t.Errorf("%v: got %v", why, err)
		}
		if _, err := w.store.Schedule(t.Context(), "tick"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%v: got %v, want it gone", why, err)
		}
	}
}

// A change beside another's is decided anew, and in the end given up.
func TestAChangeBesideAnothersIsDecidedAnew(t *testing.T) {
	w := newWorld(t)
	w.make(nil)
	w.meanwhile = func() { w.puts(func(s *store.Scheduled) { s.Skipped = 7 }) }
	paused, err := w.table.Pause(t.Context(), "tick", "you")
	if err != nil || !paused.Paused() || paused.Skipped != 7 || paused.Rev != 3 || w.tick().Rev != 3 {
		t.Errorf("got %+v, %v, want it paused beside the other's change", paused, err)
	}
	w.meanwhile = func() { w.puts(func(s *store.Scheduled) { s.Skipped = 8 }) }
	if err := w.table.Remove(t.Context(), "tick", 0); err != nil {
		t.Errorf("removed beside another's change: got %v", err)
	}
	w.make(nil)
	f, _ := w.faults(nil)
	f.put, f.removed = store.ErrConflict, store.ErrConflict
	if _, err := w.table.Pause(t.Context(), "tick", ""); !errors.Is(err, store.ErrConflict) || f.puts != 20 {
		t.Errorf("got %v after %d tries, want 20", err, f.puts)
	}
	if err := w.table.Remove(t.Context(), "tick", 0); !errors.Is(err, store.ErrConflict) {
		t.Errorf("got %v, want that it was changed meanwhile", err)
	}
}

// A schedule that is removed while it fires has fired, and that is no error.
func TestAScheduleThatIsRemovedWhileItFiresIsGone(t *testing.T) {
	w := newWorld(t)
	w.make(nil)
	w.meanwhile = func() {
		if err := w.store.RemoveSchedule(t.Context(), "tick", 0); err != nil {
			if err = w.store.RemoveSchedule(t.Context(), "tick", w.tick().Rev); err != nil {
				t.Error(err)
			}
		}
	}
	w.now = hour(10 * time.Minute)
	if err := w.table.Fire(t.Context(), "tick", w.now); err != nil {
		t.Errorf("got %v", err)
	}
	w.want("made", w.made(), "10m0s")
}

// Two processes load the same file at once.
func TestTwoWhoAdoptTheSameFileDo(t *testing.T) {
	w := newWorld(t)
	adopt := func() error { return w.table.Adopt(t.Context(), "order", []makegood.Schedule{tick()}) }
	w.meanwhile = func() {
		if err := adopt(); err != nil {
			t.Error(err)
		}
	}
	if err := adopt(); err != nil || w.tick().Rev != 1 {
		t.Errorf("got %v, and revision %d, want 1", err, w.tick().Rev)
	}
}

// A file takes nothing away that is not its own, and what it changes no person has changed.
func TestAFileLeavesAloneWhatItDoesNotSay(t *testing.T) {
	w := newWorld(t)
	w.make(nil)
	tock, third := tick(), tick()
	tock.Name, third.Name = "tock", "third"
	for workflow, s := range map[string]makegood.Schedule{"refund": tock, "order": third} {
		if err := w.table.Adopt(t.Context(), workflow, []makegood.Schedule{s}); err != nil {
			t.Fatal(err)
		}
	}
	w.must(w.table.Pause(t.Context(), "third", "me"))
	third.Cron = "@daily"
	if err := w.table.Adopt(t.Context(), "order", []makegood.Schedule{third}); err != nil {
		t.Fatal(err)
	}
	if s, err := w.table.Get(t.Context(), "third"); err != nil || s.ChangedBy != "" || s.Cron != "@daily" || !s.Next.Equal(hour(11*time.Hour)) || !s.Key.IsZero() {
		t.Errorf("got %+v, %v, want it changed by the file, and its next fire at midnight", s, err)
	}
	if err := w.table.Adopt(t.Context(), "order", nil); err != nil {
		t.Fatal(err)
	}
	all, err := w.table.List(t.Context())
	if err != nil || len(all) != 2 {
		t.Errorf("got %v, %v, want the one of a person and the one of another file", all, err)
	}
}

// A schedule whose rule is unknown to this release is stopped where it is due, and otherwise left alone.
func TestAScheduleThatCannotBeUnderstoodIsStopped(t *testing.T) {
	w := newWorld(t)
	w.make(nil)
	before := w.puts(func(s *store.Scheduled) {
		s.Cron, s.Due = "@noon", []time.Time{hour(5 * time.Minute)}
		s.Key = hour(5 * time.Minute)
	})
	w.fires()
	if s := w.tick(); s.Rev != before.Rev {
		t.Errorf("before its time: got %+v, want nothing written", s)
	}
	w.want("made", w.at(6*time.Minute))
	if s := w.tick(); !s.Key.IsZero() || !s.Next.IsZero() || len(s.Due) > 0 || !strings.Contains(s.Problem, "it does not fire any more: ") || s.Rev != before.Rev+1 {
		t.Errorf("got %+v, want it stopped", s)
	}
	if got, want := w.table.Stats(), (timetable.Stats{Failed: 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	w.puts(func(s *store.Scheduled) { s.PausedAt = start })
	if _, err := w.table.Resume(t.Context(), "tick", ""); !errors.Is(err, scheduler.ErrInvalid) || !w.tick().Paused() {
		t.Errorf("resumed: got %v, want why it cannot be", err)
	}
}

// A schedule whose input cannot be evaluated makes no job, says why, and goes on.
func TestAnInputThatCannotBeReadIsTheProblem(t *testing.T) {
	w := newWorld(t)
	w.make(nil)
	w.puts(func(s *store.Scheduled) { s.Input = []byte(`"${ .steps }"`) })
	w.want("made", w.at(10*time.Minute))
	if s := w.tick(); !strings.Contains(s.Problem, ".steps") || !s.Key.Equal(hour(20*time.Minute)) {
		t.Errorf("got %+v, want the problem, and the next fire", s)
	}
}

// Of a job that a later release has stored the state is known, of one that is damaged nothing: both are there.
func TestAJobBeforeThatCannotBeReadWholeIsThere(t *testing.T) {
	for name, c := range map[string]struct {
		why   error
		state makegood.ProcessState
		want  []string
	}{
		"newer, unfinished": {store.ErrNewer, makegood.JobProcessing, nil},
		"newer, finished":   {store.ErrNewer, makegood.JobProcessed, []string{"20m0s"}},
		"damaged":           {store.ErrDamaged, makegood.JobProcessing, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.make(func(s *makegood.Schedule) { s.Overlap = makegood.OverlapSkip })
			w.at(10 * time.Minute)
			if c.state.Finished() {
				w.ends()
			}
			f, _ := w.faults(nil)
			f.loads[w.tick().LastJob] = c.why
			w.want("made", w.at(20*time.Minute), c.want...)
		})
	}
}

// A fire whose own job cannot be looked for waits, although the job before it has ended.
func TestAFireWaitsWhereItsOwnJobCannotBeRead(t *testing.T) {
	w := newWorld(t)
	w.make(func(s *makegood.Schedule) { s.Overlap = makegood.OverlapSkip })
	w.at(10 * time.Minute)
	w.ends()
	f, submitted := w.faults(nil)
	broken := errors.New("broken")
	w.now = hour(20 * time.Minute)
	f.loads[domain.FireID("tick", w.now)] = broken
	if err := w.table.Fire(t.Context(), "tick", w.tick().Key); !errors.Is(err, broken) || *submitted != 0 {
		t.Errorf("got %v, and %d submitted, want why, and none", err, *submitted)
	}
}
