package timetable_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/timetable"
)

// A clock that was ahead has put off the next fire by a year, while a fire before it waits for its turn, and has a key that is
// right. The next fire is set right all the same.
func TestANextFireThatIsTooFarIsSetRightThoughTheKeyIsRight(t *testing.T) {
	w := newWorld(t)
	s := w.make(nil)
	s.Next, s.Key = w.now.AddDate(1, 0, 0), w.now.Add(time.Minute)
	if err := w.store.PutSchedule(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	w.fires()
	if s, want := w.tick(), start.Truncate(time.Hour).Add(10*time.Minute); !s.Next.Equal(want) || !s.Key.Equal(want) {
		t.Errorf("got the next at %v, with the key %v, want %v", s.Next, s.Key, want)
	}
}

// Before a fire makes its job, the store has which others are left out: without that no job is made.
func TestAFireWaitsUntilTheStoreHasWhatIsLeftOut(t *testing.T) {
	w := newWorld(t)
	w.make(nil)
	down := errors.New("the store is down")
	w.now, w.crashed = start.Truncate(time.Hour).Add(51*time.Minute), down
	if err := w.table.Fire(t.Context(), "tick", w.tick().Key); !errors.Is(err, down) {
		t.Errorf("got %v, want that the store is down", err)
	}
	w.want("made", w.made())
	w.want("made later", w.at(52*time.Minute), "50m0s")
	if s := w.tick(); s.Skipped != 4 {
		t.Errorf("got %d left out, want 4", s.Skipped)
	}
}

// The key of a fire that waits is told as it is stored: in milliseconds.
func TestAKeyIsToldAsItIsStored(t *testing.T) {
	w := newWorld(t)
	var told []time.Time
	w.table = timetable.New(timetable.Config{
		Schedules: w.store, Jobs: w.store, Submit: w.submit, Now: w.clock, Again: time.Minute + time.Microsecond,
		Stored: func(_ context.Context, _ string, key time.Time) { told = append(told, key) },
	})
	w.make(func(s *makegood.Schedule) { s.Overlap = makegood.OverlapQueue })
	w.at(11 * time.Minute)
	w.at(21 * time.Minute)
	if want := w.now.Add(time.Minute); !told[len(told)-1].Equal(want) || !w.tick().Key.Equal(want) {
		t.Errorf("told %v, stored %v, want %v", told[len(told)-1], w.tick().Key, want)
	}
}

// Before its first fire a schedule has no job that could be unfinished, so none is looked at.
func TestTheFirstFireLooksAtNoJobBeforeIt(t *testing.T) {
	w := newWorld(t)
	w.make(func(s *makegood.Schedule) { s.Overlap = makegood.OverlapSkip })
	w.unreadable = errors.New("no jobs can be read")
	w.want("made", w.at(11*time.Minute), "10m0s")
}

// A timetable that was given no log writes to the one of the process.
func TestATimetableWithoutALogHasThatOfTheProcess(t *testing.T) {
	before := slog.Default()
	t.Cleanup(func() { slog.SetDefault(before) })
	var log strings.Builder
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	w := newWorld(t)
	w.table = timetable.New(timetable.Config{Schedules: w.store, Jobs: w.store, Submit: w.submit, Now: w.clock})
	w.make(func(s *makegood.Schedule) { s.Workflow = "gone" })
	w.at(11 * time.Minute)
	if !strings.Contains(log.String(), "a fire made no job") {
		t.Errorf("got %q, want that a fire made no job", log.String())
	}
}
