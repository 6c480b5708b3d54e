package timetable_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/timetable"
)

// A fire is submitted once and stored once; one that others are left out before is stored twice.
func TestAFireCostsOneSubmissionAndOneWrite(t *testing.T) {
	w := newWorld(t)
	w.make(nil)
	f, submitted := w.faults(nil)
	w.at(10 * time.Minute)
	if *submitted != 1 || f.puts != 1 {
		t.Errorf("got %d submissions and %d writes, want 1 and 1", *submitted, f.puts)
	}
	w.at(41 * time.Minute)
	if *submitted != 2 || f.puts != 3 {
		t.Errorf("then got %d submissions and %d writes, want 2 and 3", *submitted, f.puts)
	}
}

// The jobs of a schedule have its priority.
func TestAFireHasThePriorityOfItsSchedule(t *testing.T) {
	w := newWorld(t)
	w.make(func(s *makegood.Schedule) { s.Priority = makegood.PriorityIdle })
	w.at(10 * time.Minute)
	if j, err := w.store.Load(t.Context(), w.tick().LastJob); err != nil || j.Priority != makegood.PriorityIdle {
		t.Errorf("got priority %q, %v, want idle", j.Priority, err)
	}
}

// A fire that is late by as much as may be is made, and one that is later is left out, with all that came due before.
func TestALateFireIsLeftOutWhereItSaysSo(t *testing.T) {
	for late, want := range map[time.Duration][]string{limits.MissedAfter: {"10m0s"}, limits.MissedAfter + time.Millisecond: nil} {
		w := newWorld(t)
		w.make(func(s *makegood.Schedule) { s.Missed = makegood.MissedSkip })
		w.want(fmt.Sprint(late, " late"), w.at(10*time.Minute+late), want...)
	}
	w := newWorld(t)
	w.make(nil)
	w.now = hour(25 * time.Minute)
	w.must(w.table.Change(t.Context(), makegood.Schedule{Name: "tick", Workflow: "order", Cron: "@hourly", Input: []byte(`0`)}, 0, ""))
	if s := w.tick(); len(s.Due) != 1 {
		t.Fatalf("got %v due, want one", s.Due)
	}
	w.must(w.table.Change(t.Context(), makegood.Schedule{Name: "tick", Workflow: "order", Cron: "@hourly", Input: []byte(`0`), Missed: makegood.MissedSkip}, 0, ""))
	w.want("all left out", w.at(50*time.Minute))
	if s := w.tick(); len(s.Due) > 0 || !s.Key.Equal(hour(time.Hour)) || s.Skipped != 2 {
		t.Errorf("got %+v, want nothing due, the next at the hour, and two left out", s)
	}
}

// The next fire by new times comes after now, though the last that came due by the old ones is long ago.
func TestNewTimesBeginNow(t *testing.T) {
	w := newWorld(t)
	w.make(func(s *makegood.Schedule) { s.Cron = "10 * * * *" })
	w.now = hour(59 * time.Minute)
	w.changes("*/30 * * * *")
	if s := w.tick(); !s.Next.Equal(hour(time.Hour)) || len(s.Due) != 1 || !s.Key.Equal(hour(10*time.Minute)) {
		t.Errorf("got the next at %v, %v due and the key %v, want the hour, one, and that one's", s.Next, s.Due, s.Key)
	}
}

// A wrong key, or a wrong next fire, is set right; a schedule that is right is not written.
func TestWhatIsSetRightIsWhatIsWrong(t *testing.T) {
	year := start.AddDate(1, 0, 0)
	for name, c := range map[string]struct {
		stored    func(*store.Scheduled)
		at        time.Time
		next, key time.Time
		same      bool
	}{
		"the key alone": {
			func(s *store.Scheduled) { s.Key = year },
			hour(time.Minute), hour(10 * time.Minute), hour(10 * time.Minute), false,
		},
		"the next alone, behind one that is due": {
			func(s *store.Scheduled) {
				s.Due, s.Key, s.Next = []time.Time{hour(10 * time.Minute)}, hour(10*time.Minute), year
			},
			hour(5 * time.Minute), hour(20 * time.Minute), hour(10 * time.Minute), false,
		},
		"neither, as a clock that is behind sees it": {
			func(s *store.Scheduled) {
				s.Due, s.Key, s.Next = []time.Time{hour(10 * time.Minute)}, hour(10*time.Minute), hour(20*time.Minute)
			},
			hour(-2 * time.Hour), hour(20 * time.Minute), hour(10 * time.Minute), true,
		},
		"neither, a day ahead": {
			func(s *store.Scheduled) { s.Cron, s.Next, s.Key = "0 0 * * *", hour(11*time.Hour), hour(11*time.Hour) },
			hour(5 * time.Minute), hour(11 * time.Hour), hour(11 * time.Hour), true,
		},
		"neither, of a fire that waits": {
			func(s *store.Scheduled) {
				s.Cron, s.Every, s.Next, s.Key = "", 10*makegood.Second, hour(5*time.Minute), hour(15*time.Minute+time.Second)
			},
			hour(5 * time.Minute), hour(5 * time.Minute), hour(15*time.Minute + time.Second), true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.make(nil)
			w.faults(func(c *timetable.Config) { c.Again = 10 * time.Minute })
			before := w.puts(c.stored)
			w.now = c.at
			w.fires()
			s := w.tick()
			if !s.Next.Equal(c.next) || !s.Key.Equal(c.key) || (s.Rev == before.Rev) != c.same {
				t.Errorf("got the next at %v, the key %v, and revision %d after %d, want %v, %v, the same: %v", s.Next, s.Key, s.Rev, before.Rev, c.next, c.key, c.same)
			}
		})
	}
}

// A slower rate alone moves the key, too: what was the next fire is none any more.
func TestASlowerRateAloneMovesTheKey(t *testing.T) {
	w := newWorld(t)
	s := makegood.Schedule{Name: "tick", Workflow: "order", Every: 10 * makegood.Minute}
	w.make(func(made *makegood.Schedule) { *made = s })
	s.Every = makegood.Hour
	w.must(w.table.Change(t.Context(), s, 0, ""))
	if s := w.tick(); !s.Key.Equal(hour(time.Hour)) || !s.Next.Equal(hour(time.Hour)) {
		t.Errorf("got the key %v, want the hour", s.Key)
	}
}

// A schedule that is paused is not changed where it cannot be told whether the fire that it stands at has made its job.
func TestAPausedScheduleIsNotChangedBlindly(t *testing.T) {
	w := newWorld(t)
	w.make(nil)
	w.must(w.table.Pause(t.Context(), "tick", ""))
	f, _ := w.faults(nil)
	broken := errors.New("broken")
	f.loads[domain.FireID("tick", hour(10*time.Minute))] = broken
	daily := tick()
	daily.Cron = "@daily"
	if _, err := w.table.Change(t.Context(), daily, 0, ""); !errors.Is(err, broken) {
		t.Errorf("changed: got %v, want %v", err, broken)
	}
	if _, err := w.table.Resume(t.Context(), "tick", ""); !errors.Is(err, broken) {
		t.Errorf("resumed: got %v, want %v", err, broken)
	}
	if s := w.tick(); s.Cron == "@daily" || !s.Paused() {
		t.Errorf("got %+v, want it as it was", s)
	}
	// So it is where fires are left out by a change of its times.
	w.must(w.store.Schedule(t.Context(), "tick"))
	w.puts(func(s *store.Scheduled) { s.PausedAt, s.Key = time.Time{}, s.Next })
	w.now = hour(31 * time.Minute)
	if _, err := w.table.Change(t.Context(), daily, 0, ""); !errors.Is(err, broken) {
		t.Errorf("changed while it is due: got %v, want %v", err, broken)
	}
	if err := w.table.Fire(t.Context(), "tick", w.tick().Key); !errors.Is(err, broken) {
		t.Errorf("fired: got %v, want %v", err, broken)
	}
}

// A next fire that is none by the rule, as where the rules of a zone have changed, is not made: the first that is one,
// is.
func TestANextFireThatIsNoneAnyMoreIsNotMade(t *testing.T) {
	w := newWorld(t)
	w.make(func(s *makegood.Schedule) { s.Missed, s.AtMost = makegood.MissedAll, 2 })
	w.puts(func(s *store.Scheduled) {
		s.Due, s.Next, s.Key = []time.Time{hour(10 * time.Minute)}, hour(15*time.Minute), hour(10*time.Minute)
	})
	w.want("made", w.at(31*time.Minute), "20m0s", "30m0s")
	if s := w.tick(); s.Skipped != 1 || !s.Next.Equal(hour(40*time.Minute)) || len(s.Due) > 0 {
		t.Errorf("got %+v, want one left out and the next at 40 minutes", s)
	}
}
