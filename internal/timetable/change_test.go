package timetable_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/timetable"
)

func tick() makegood.Schedule {
	return makegood.Schedule{Name: "tick", Workflow: "order", Cron: "*/10 * * * *", Input: []byte(`0`)}
}

func TestTheSameScheduleAgainIsTheSameAndAnotherIsRefused(t *testing.T) {
	w := newWorld(t)
	w.make(nil)
	s, created, err := w.table.Create(t.Context(), tick(), "you")
	if err != nil || created || s.ChangedBy != "me" {
		t.Errorf("the same: got %+v, %v, %v", s, created, err)
	}
	other := tick()
	other.Cron = "@daily"
	if _, created, err = w.table.Create(t.Context(), other, "you"); !errors.Is(err, timetable.ErrExists) || created {
		t.Errorf("another: got %v, created: %v", err, created)
	}
}

// A change that could not be stored is an error, and there is none.
func TestAChangeThatIsNotStoredIsAnError(t *testing.T) {
	w := newWorld(t)
	w.make(nil)
	down := errors.New("the store is down")
	w.crashed = down
	if _, err := w.table.Pause(t.Context(), "tick", "me"); !errors.Is(err, down) {
		t.Errorf("got %v, want %v", err, down)
	}
	if s := w.tick(); s.Paused() {
		t.Errorf("got %+v, want that it is not paused", s)
	}
}

// A schedule that says something else has no problem any more.
func TestAChangeEndsTheProblemOfASchedule(t *testing.T) {
	w := newWorld(t)
	w.make(func(s *makegood.Schedule) { s.Workflow = "gone" })
	w.at(11 * time.Minute)
	if s := w.tick(); s.Problem == "" {
		t.Fatal("it has no problem, want one")
	}
	s, err := w.table.Change(t.Context(), tick(), 0, "me")
	if err != nil || s.Problem != "" || w.tick().Problem != "" {
		t.Errorf("got %+v, %v, want no problem", s, err)
	}
}

// Of two who create a schedule at once one does. The other hears that it is there, or that another is.
func TestOfTwoWhoCreateAScheduleOneDoes(t *testing.T) {
	for cron, want := range map[string]error{"*/10 * * * *": nil, "@daily": timetable.ErrExists} {
		w := newWorld(t)
		w.meanwhile = func() { w.make(nil) }
		s := tick()
		s.Cron = cron
		got, created, err := w.table.Create(t.Context(), s, "you")
		if created || !errors.Is(err, want) || got.ChangedBy != "me" {
			t.Errorf("%s: got %+v, created: %v, %v, want the other's, and %v", cron, got, created, err, want)
		}
	}
}

// An input is the same however it is spelt.
func TestTheSameInputInAnotherSpellingIsTheSameSchedule(t *testing.T) {
	w := newWorld(t)
	w.make(func(s *makegood.Schedule) { s.Input = []byte(`{ "b": 1, "a": 2 }`) })
	again := tick()
	again.Input = []byte(`{"a":2,"b":1}`)
	if s, created, err := w.table.Create(t.Context(), again, "you"); err != nil || created || string(s.Input) != `{"a":2,"b":1}` {
		t.Errorf("got %s, %v, %v, want the one that is there", s.Input, created, err)
	}
}

func TestAScheduleThatCannotBeIsRefused(t *testing.T) {
	w := newWorld(t)
	for says, change := range map[string]func(*makegood.Schedule){
		"cron":                           func(s *makegood.Schedule) { s.Cron = "@noon" },
		"input is not JSON":              func(s *makegood.Schedule) { s.Input = []byte(`{`) },
		`the key "a" twice`:              func(s *makegood.Schedule) { s.Input = []byte(`{"a":1,"a":2}`) },
		".steps is unknown":              func(s *makegood.Schedule) { s.Input = []byte(`"${ .steps }"`) },
		`there is no workflow "unknown"`: func(s *makegood.Schedule) { s.Workflow = "unknown" },
	} {
		s := tick()
		change(&s)
		if _, _, err := w.table.Create(t.Context(), s, ""); !errors.Is(err, scheduler.ErrInvalid) || !strings.Contains(err.Error(), says) {
			t.Errorf("create: got %v, want %q", err, says)
		}
		if _, err := w.table.Change(t.Context(), s, 0, ""); !errors.Is(err, scheduler.ErrInvalid) {
			t.Errorf("change: got %v, want it refused", err)
		}
	}
}

func TestThereAreNoMoreSchedulesThanTheLimit(t *testing.T) {
	w := newWorld(t)
	s := tick()
	for i := range limits.MaxSchedules {
		s.Name = fmt.Sprint("s", i)
		if err := w.store.PutSchedule(t.Context(), store.Scheduled{Schedule: s}); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := w.table.Create(t.Context(), tick(), ""); !errors.Is(err, scheduler.ErrInvalid) || !strings.Contains(err.Error(), "1001 schedules are more than the limit, 1000") {
		t.Errorf("got %v", err)
	}
}

func TestAChangeIsOfTheRevisionThatWasSeen(t *testing.T) {
	w := newWorld(t)
	made := w.make(nil)
	daily := tick()
	daily.Cron = "@daily"
	changed, err := w.table.Change(t.Context(), daily, made.Rev, "you")
	if err != nil || changed.Cron != "@daily" || changed.ChangedBy != "you" || !changed.Next.Equal(time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)) || changed.Key != changed.Next {
		t.Fatalf("got %+v, %v", changed, err)
	}
	if again, err := w.table.Change(t.Context(), daily, 0, "somebody"); err != nil || again.Rev != changed.Rev {
		t.Errorf("the same again: got %+v, %v, want nothing written", again, err)
	}
	if _, err = w.table.Change(t.Context(), tick(), made.Rev, "late"); !errors.Is(err, store.ErrConflict) {
		t.Errorf("of a revision that is gone: got %v", err)
	}
	daily.Name = "tock"
	if _, err = w.table.Change(t.Context(), daily, 0, ""); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("of what is not there: got %v", err)
	}
}

// While it is paused nothing fires, and nothing of that is made up for.
func TestAPauseKeepsAScheduleFromFiring(t *testing.T) {
	w := newWorld(t)
	w.make(nil)
	key := w.tick().Key
	paused, err := w.table.Pause(t.Context(), "tick", "me")
	if err != nil || !paused.Key.IsZero() || !paused.Paused() {
		t.Fatalf("got %+v, %v", paused, err)
	}
	if again, err := w.table.Pause(t.Context(), "tick", "you"); err != nil || again.Rev != paused.Rev {
		t.Errorf("paused again: got %+v, %v", again, err)
	}
	w.now = start.Add(time.Hour)
	if err := w.table.Fire(t.Context(), "tick", key); err != nil || len(w.jobs) > 0 {
		t.Errorf("an old hint: got %v, %v", w.jobs, err)
	}
	daily := tick()
	daily.Cron = "@daily"
	if changed, err := w.table.Change(t.Context(), daily, 0, "me"); err != nil || !changed.Key.IsZero() || !changed.Paused() {
		t.Errorf("changed: got %+v, %v, want it paused still", changed, err)
	}
	resumed, err := w.table.Resume(t.Context(), "tick", "me")
	if want := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC); err != nil || resumed.Paused() || !resumed.Key.Equal(want) {
		t.Errorf("got %+v, %v, want the next fire at %v", resumed, err, want)
	}
}

func TestAScheduleThatIsRemovedFiresNoMore(t *testing.T) {
	w := newWorld(t)
	made := w.make(nil)
	if err := w.table.Remove(t.Context(), "tick", made.Rev+1); !errors.Is(err, store.ErrConflict) {
		t.Errorf("another revision: got %v", err)
	}
	if err := w.table.Remove(t.Context(), "tick", made.Rev); err != nil {
		t.Fatal(err)
	}
	w.now = made.Key
	if err := w.table.Fire(t.Context(), "tick", made.Key); err != nil || len(w.jobs) > 0 {
		t.Errorf("got %v, %v", w.jobs, err)
	}
	if err := w.table.Remove(t.Context(), "tick", 0); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("again: got %v", err)
	}
	w.make(nil)
	w.meanwhile = func() {
		if err := w.store.RemoveSchedule(t.Context(), "tick", w.tick().Rev); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.table.Remove(t.Context(), "tick", 0); err != nil {
		t.Errorf("removed by somebody else meanwhile: got %v", err)
	}
}

// A run by hand makes a job of its own, and moves nothing.
func TestARunByHandIsBesideTheFires(t *testing.T) {
	w := newWorld(t)
	w.make(func(s *makegood.Schedule) { s.Input = []byte(`"${ .time }"`) })
	if _, err := w.table.Pause(t.Context(), "tick", ""); err != nil {
		t.Fatal(err)
	}
	before := w.tick()
	for range 2 {
		if id, err := w.table.Run(t.Context(), "tick", "r1"); err != nil || id != "tick:run:r1" {
			t.Errorf("got %s, %v", id, err)
		}
		w.now = w.now.Add(time.Second)
	}
	j, err := w.store.Load(t.Context(), "tick:run:r1")
	if err != nil || j.InputHash != `"2026-11-22T13:00:30Z"` {
		t.Errorf("got %+v, %v", j, err)
	}
	if after := w.tick(); after.Rev != before.Rev {
		t.Errorf("got revision %d, want %d", after.Rev, before.Rev)
	}
	if _, err := w.table.Run(t.Context(), "tock", "r1"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("of what is not there: got %v", err)
	}
	w.broken = errors.New("broken")
	if _, err := w.table.Run(t.Context(), "tick", "r2"); !errors.Is(err, w.broken) {
		t.Errorf("got %v, want why there is no job", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.table.Run(ctx, "tick", "r3"); !errors.Is(err, context.Canceled) || errors.Is(err, scheduler.ErrInvalid) {
		t.Errorf("cut off: got %v, want that, and nothing of the input", err)
	}
}

func TestTheNextFiresAreTold(t *testing.T) {
	w := newWorld(t)
	fires, err := w.table.Next(tick(), 2)
	if err != nil || len(fires) != 2 || !fires[0].Equal(start.Truncate(time.Hour).Add(10*time.Minute)) || !fires[1].Equal(fires[0].Add(10*time.Minute)) {
		t.Errorf("got %v, %v", fires, err)
	}
	if fires, _ = w.table.Next(tick(), 1_000_000); len(fires) != timetable.MaxNext {
		t.Errorf("got %d fires, want the limit", len(fires))
	}
}

// What a file says is what there is: made, changed, removed. A pause is a person's, and stays.
func TestTheSchedulesOfAFileAreThoseThatItSays(t *testing.T) {
	w := newWorld(t)
	adopt := func(schedules ...makegood.Schedule) {
		t.Helper()
		if err := w.table.Adopt(t.Context(), "order", schedules); err != nil {
			t.Fatal(err)
		}
	}
	tock := tick()
	tock.Name = "tock"
	adopt(tick(), tock)
	if s := w.tick(); s.From != "order" || s.Rev != 1 {
		t.Errorf("got %+v", s)
	}
	adopt(tick(), tock)
	if s := w.tick(); s.Rev != 1 {
		t.Errorf("adopted again: got revision %d, want nothing written", s.Rev)
	}
	if _, err := w.table.Pause(t.Context(), "tick", "me"); err != nil {
		t.Fatal(err)
	}
	daily := tick()
	daily.Cron = "@daily"
	adopt(daily)
	if s := w.tick(); s.Cron != "@daily" || !s.Paused() || !s.Key.IsZero() {
		t.Errorf("changed in the file: got %+v, want it paused still", s)
	}
	paused := w.tick().Rev
	adopt(daily)
	if s := w.tick(); s.Rev != paused {
		t.Errorf("adopted again while it is paused: got revision %d, want nothing written after %d", s.Rev, paused)
	}
	if _, err := w.table.Get(t.Context(), "tock"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("taken out of the file: got %v, want it gone", err)
	}
	if _, err := w.table.Change(t.Context(), tick(), 0, "me"); !errors.Is(err, timetable.ErrExists) || !strings.Contains(err.Error(), "change it there") {
		t.Errorf("changed by hand: got %v, want it refused", err)
	}
	adopt()
	if _, err := w.table.Get(t.Context(), "tick"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a file without schedules: got %v, want it gone", err)
	}
}

// What somebody made by hand, or another file says, is not taken over.
func TestAFileTakesNoScheduleFromAnybody(t *testing.T) {
	w := newWorld(t)
	w.make(nil)
	tock := tick()
	tock.Name = "tock"
	if err := w.table.Adopt(t.Context(), "refund", []makegood.Schedule{tock}); err != nil {
		t.Fatal(err)
	}
	third := tick()
	third.Name = "third"
	err := w.table.Adopt(t.Context(), "order", []makegood.Schedule{tick(), tock, third})
	if !errors.Is(err, timetable.ErrExists) || !strings.Contains(err.Error(), "a person who made it by hand has it") || !strings.Contains(err.Error(), "the file of workflow refund has it") {
		t.Errorf("got %v", err)
	}
	if _, err := w.table.Get(t.Context(), "third"); err != nil {
		t.Errorf("the one that is free: got %v, want it made", err)
	}
	if s := w.tick(); s.From != "" {
		t.Errorf("got %+v, want it left alone", s)
	}
}

// Who loads a file asks before anything of it is current.
func TestWhatAFileCouldNotHaveIsSaidBeforehand(t *testing.T) {
	w := newWorld(t)
	w.make(nil)
	broken, tock := tick(), tick()
	broken.Name, broken.Cron, tock.Name = "broken", "@noon", "tock"
	tock.Workflow = "" // as a file has it
	if err := w.table.MayAdopt(t.Context(), "order", []makegood.Schedule{tock}); err != nil {
		t.Errorf("one that a file may have: got %v", err)
	}
	err := w.table.MayAdopt(t.Context(), "order", []makegood.Schedule{tick(), broken, tock})
	if !errors.Is(err, timetable.ErrExists) || !errors.Is(err, scheduler.ErrInvalid) || !strings.Contains(err.Error(), "@noon") {
		t.Errorf("got %v, want both that are wrong", err)
	}
	if _, err := w.table.Get(t.Context(), "tock"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("got %v, want nothing made", err)
	}
	for range 2 {
		if err := w.table.MayAdopt(t.Context(), "order", []makegood.Schedule{tock}); err != nil {
			t.Errorf("what may be: got %v", err)
		}
		if err := w.table.Adopt(t.Context(), "order", []makegood.Schedule{tock}); err != nil {
			t.Fatal(err)
		}
	}
	many := make([]makegood.Schedule, limits.MaxSchedules)
	for i := range many {
		many[i] = tick()
		many[i].Name = fmt.Sprint("s", i)
	}
	if err := w.table.MayAdopt(t.Context(), "order", many); !errors.Is(err, scheduler.ErrInvalid) || !strings.Contains(err.Error(), "1001 schedules") {
		t.Errorf("one too many: got %v", err)
	}
	if err := w.table.MayAdopt(t.Context(), "order", many[1:]); err != nil {
		t.Errorf("as many as may be, in the place of the file's: got %v", err)
	}
	if err := w.table.MayAdopt(t.Context(), "order", nil); err != nil {
		t.Errorf("none: got %v", err)
	}
}

func TestAnotherRateAloneMovesTheKey(t *testing.T) {
	w := newWorld(t)
	s := makegood.Schedule{Name: "tick", Workflow: "order", Every: makegood.Hour}
	if _, _, err := w.table.Create(t.Context(), s, ""); err != nil {
		t.Fatal(err)
	}
	s.Every = 10 * makegood.Minute
	if _, err := w.table.Change(t.Context(), s, 0, ""); err != nil {
		t.Fatal(err)
	}
	if key := w.tick().Key; !key.Equal(start.Truncate(time.Hour).Add(10 * time.Minute)) {
		t.Errorf("got the key %v, want it after ten minutes", key)
	}
}
