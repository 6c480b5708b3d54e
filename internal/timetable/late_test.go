package timetable_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/timetable"
)

// changes has for each field of a schedule one that says something else there, and nowhere else, and one that it is changed from.
var changes = map[string]struct{ from, to func(*makegood.Schedule) }{
	"Workflow": {to: func(s *makegood.Schedule) { s.Workflow = "refund" }},
	"Cron":     {to: func(s *makegood.Schedule) { s.Cron = "@daily" }},
	"Every": {
		from: func(s *makegood.Schedule) { s.Cron, s.Every = "", 10*makegood.Minute },
		to:   func(s *makegood.Schedule) { s.Every = makegood.Hour },
	},
	"Zone":   {to: func(s *makegood.Schedule) { s.Zone = "Europe/Berlin" }},
	"Input":  {to: func(s *makegood.Schedule) { s.Input = []byte(`1`) }},
	"Missed": {to: func(s *makegood.Schedule) { s.Missed = makegood.MissedSkip }},
	"AtMost": {
		from: func(s *makegood.Schedule) { s.Missed, s.AtMost = makegood.MissedAll, 3 },
		to:   func(s *makegood.Schedule) { s.AtMost = 4 },
	},
	"Overlap":  {to: func(s *makegood.Schedule) { s.Overlap = makegood.OverlapSkip }},
	"Priority": {to: func(s *makegood.Schedule) { s.Priority = makegood.PriorityIdle }},
}

func TestChangingOneFieldOfAScheduleAloneWorks(t *testing.T) {
	for field := range reflect.TypeFor[makegood.Schedule]().Fields() {
		if field.Name == "Name" {
			continue
		}
		c, ok := changes[field.Name]
		if !ok {
			t.Errorf("field %s is changed by no test", field.Name)
			continue
		}
		from := tick()
		if c.from != nil {
			c.from(&from)
		}
		to := from
		c.to(&to)
		t.Run(field.Name, func(t *testing.T) {
			w := newWorld(t)
			if _, _, err := w.table.Create(t.Context(), from, ""); err != nil {
				t.Fatal(err)
			}
			if _, _, err := w.table.Create(t.Context(), to, ""); !errors.Is(err, timetable.ErrExists) {
				t.Errorf("made where there is another: got %v, want ErrExists", err)
			}
			want := reflect.ValueOf(to).FieldByName(field.Name).Interface()
			stored := func() any { return reflect.ValueOf(w.tick().Schedule).FieldByName(field.Name).Interface() }
			if _, err := w.table.Change(t.Context(), to, 0, ""); err != nil || !reflect.DeepEqual(stored(), want) {
				t.Errorf("changed by a person: got %v, %v, want %v", stored(), err, want)
			}
			if field.Name == "Workflow" {
				return // A file's schedules are of its workflow.
			}
			w = newWorld(t)
			for _, s := range []makegood.Schedule{from, to} {
				if err := w.table.Adopt(t.Context(), "order", []makegood.Schedule{s}); err != nil {
					t.Fatal(err)
				}
			}
			if !reflect.DeepEqual(stored(), want) {
				t.Errorf("changed in the file: got %v, want %v", stored(), want)
			}
		})
	}
}

// Nothing fires for 59 minutes, and then there is a release that changes the schedule. It is fired a minute later.
func TestWhatCameDueBeforeAChangeIsNotLost(t *testing.T) {
	input := func(s *makegood.Schedule) { s.Input = []byte(`1`) }
	times := func(s *makegood.Schedule) { s.Cron = "30 * * * *" }
	all := func(change func(*makegood.Schedule)) func(*makegood.Schedule) {
		return func(s *makegood.Schedule) { s.Missed, s.AtMost = makegood.MissedAll, 3; change(s) }
	}
	skip := func(s *makegood.Schedule) { s.Missed = makegood.MissedSkip; times(s) }
	for name, c := range map[string]struct {
		change  func(*makegood.Schedule)
		want    []string
		skipped int64
		next    time.Duration
	}{
		"another input":                  {input, []string{"1h0m0s 1"}, 5, 70 * time.Minute},
		"another input, all":             {all(input), []string{"40m0s 1", "50m0s 1", "1h0m0s 1"}, 3, 70 * time.Minute},
		"other times":                    {times, []string{"50m0s 0"}, 4, 90 * time.Minute},
		"other times, all":               {all(times), []string{"30m0s 0", "40m0s 0", "50m0s 0"}, 2, 90 * time.Minute},
		"other times, all left out":      {skip, nil, 5, 90 * time.Minute},
		"other times and another input":  {func(s *makegood.Schedule) { times(s); input(s) }, []string{"50m0s 1"}, 4, 90 * time.Minute},
		"a rate":                         {func(s *makegood.Schedule) { s.Cron, s.Every = "", makegood.Hour }, []string{"1h0m0s 0"}, 5, 2 * time.Hour},
		"another zone alone":             {func(s *makegood.Schedule) { s.Zone = "Asia/Kathmandu" }, []string{"50m0s 0"}, 4, 65 * time.Minute},
		"another zone, which is no hour": {func(s *makegood.Schedule) { s.Zone = "Asia/Kathmandu"; s.Cron = "0 * * * *" }, []string{"50m0s 0"}, 4, 75 * time.Minute},
	} {
		for _, by := range []string{"a file", "a person"} {
			t.Run(name+", by "+by, func(t *testing.T) {
				w := newWorld(t)
				s := tick()
				if by == "a file" {
					s.Workflow = "order"
					if err := w.table.Adopt(t.Context(), "order", []makegood.Schedule{s}); err != nil {
						t.Fatal(err)
					}
				} else {
					w.make(nil)
				}
				w.now = start.Truncate(time.Hour).Add(59 * time.Minute)
				c.change(&s)
				change := func() (err error) {
					if by == "a file" {
						return w.table.Adopt(t.Context(), "order", []makegood.Schedule{s})
					}
					_, err = w.table.Change(t.Context(), s, 0, "")
					return err
				}
				for range 2 { // Loaded again, it says the same.
					if err := change(); err != nil {
						t.Fatal(err)
					}
				}
				if w.tick().Key.After(w.now) && c.want != nil {
					t.Errorf("got the key %v, want it due", w.tick().Key)
				}
				w.at(60 * time.Minute)
				w.want("made", w.withInputs(), c.want...)
				if s := w.tick(); s.Skipped != c.skipped || !s.Next.Equal(start.Truncate(time.Hour).Add(c.next)) || !s.Key.Equal(s.Next) || len(s.Due) > 0 {
					t.Errorf("got %d skipped and the next at %v, key %v, %v due, want %d and the next after %v", s.Skipped, s.Next, s.Key, s.Due, c.skipped, c.next)
				}
				if got, want := w.table.Stats(), (timetable.Stats{Fired: int64(len(c.want)), Missed: c.skipped}); got != want {
					t.Errorf("got %+v, want %+v", got, want)
				}
			})
		}
	}
}

// withInputs returns the jobs that were made, by the times of their fires after the start of the hour, and with their inputs.
func (w *world) withInputs() []string {
	made := w.made()
	for i, j := range w.jobs {
		_, input, _ := strings.Cut(j, " ")
		made[i] += " " + input
	}
	return made
}

// Fires that came due before a change wait for the end of the job before them, as others do; what comes due meanwhile is made in its turn.
func TestWhatCameDueBeforeAChangeWaitsForItsTurn(t *testing.T) {
	w := newWorld(t)
	w.make(func(s *makegood.Schedule) { s.Overlap, s.Missed = makegood.OverlapQueue, makegood.MissedAll })
	w.want("the first", w.at(10*time.Minute), "10m0s")
	w.want("while it runs", w.at(31*time.Minute))
	hourly := tick()
	hourly.Cron, hourly.Overlap, hourly.Missed = "@hourly", makegood.OverlapQueue, makegood.MissedAll
	changed, err := w.table.Change(t.Context(), hourly, 0, "")
	if err != nil || len(changed.Due) != 2 || !changed.Turn().Equal(start.Truncate(time.Hour).Add(20*time.Minute)) {
		t.Fatalf("got %v due, %v, want those at 20 and 30 minutes", changed.Due, err)
	}
	w.want("it runs still", w.at(32*time.Minute))
	for i, c := range []struct {
		at   time.Duration
		want []string
	}{{33 * time.Minute, []string{"20m0s"}}, {61 * time.Minute, []string{"30m0s"}}, {63 * time.Minute, []string{"1h0m0s"}}} {
		w.ends()
		w.want(fmt.Sprint("after the end of job ", i+1), w.at(c.at), c.want...)
	}
	if s := w.tick(); s.Skipped != 0 || len(s.Due) > 0 {
		t.Errorf("got %d skipped and %v due, want none", s.Skipped, s.Due)
	}
}

// Each change leaves more behind; what is kept of that has a bound, and a pause makes up for none of it.
func TestWhatCameDueBeforeAChangeIsBounded(t *testing.T) {
	w := newWorld(t)
	s := tick()
	s.Cron, s.Missed = "* * * * *", makegood.MissedAll
	if _, _, err := w.table.Create(t.Context(), s, ""); err != nil {
		t.Fatal(err)
	}
	for _, cron := range []string{"*/2 * * * *", "* * * * *", "*/2 * * * *"} {
		w.now = w.now.Add(time.Hour)
		s.Cron = cron
		if _, err := w.table.Change(t.Context(), s, 0, ""); err != nil {
			t.Fatal(err)
		}
	}
	if s := w.tick(); len(s.Due) != limits.MaxMissed || s.Skipped != 60+30+60-limits.MaxMissed {
		t.Errorf("got %d due and %d skipped, want the limit, and the rest skipped", len(s.Due), s.Skipped)
	}
	if _, err := w.table.Pause(t.Context(), "tick", ""); err != nil {
		t.Fatal(err)
	}
	if s, err := w.table.Resume(t.Context(), "tick", ""); err != nil || len(s.Due) > 0 || !s.Key.After(w.now) {
		t.Errorf("resumed: got %v due, the key %v, %v, want what is to come", s.Due, s.Key, err)
	}
}

// Hints that come twice, looks while a fire waits, and writes that are lost count nothing again.
func TestSkippedFiresAreCountedOnce(t *testing.T) {
	w := newWorld(t)
	w.make(func(s *makegood.Schedule) { s.Overlap = makegood.OverlapQueue })
	w.want("the first", w.at(10*time.Minute), "10m0s")
	for minute := 41; minute < 45; minute++ {
		w.want("it waits", w.at(time.Duration(minute)*time.Minute))
	}
	if s := w.tick(); s.Skipped != 2 {
		t.Errorf("while the fourth waits: got %d skipped, want the two before it", s.Skipped)
	}
	w.ends()
	w.now, w.crashed = w.now.Add(time.Minute), errors.New("crashed")
	key := w.tick().Key
	if err := w.table.Fire(t.Context(), "tick", key); err == nil {
		t.Error("got no error of a fire that was cut off")
	}
	for range 2 {
		if err := w.table.Fire(t.Context(), "tick", key); err != nil {
			t.Fatal(err)
		}
	}
	if s := w.tick(); s.Skipped != 2 {
		t.Errorf("got %d skipped, want 2", s.Skipped)
	}
	if got, want := w.table.Stats(), (timetable.Stats{Fired: 2, Missed: 2}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestWhatChangesLeaveOutIsAddedUp(t *testing.T) {
	w := newWorld(t)
	s := tick()
	w.make(nil)
	s.Missed = makegood.MissedSkip
	want := int64(0)
	for hour, cron := range []string{"*/7 * * * *", "*/9 * * * *", "*/11 * * * *"} {
		w.now = start.Truncate(time.Hour).Add(time.Duration(hour+1) * time.Hour)
		s.Cron = cron
		if _, err := w.table.Change(t.Context(), s, 0, ""); err != nil {
			t.Fatal(err)
		}
		if _, err := w.table.Pause(t.Context(), "tick", ""); err != nil {
			t.Fatal(err)
		}
		w.now = w.now.Add(time.Minute)
		if _, err := w.table.Resume(t.Context(), "tick", ""); err != nil {
			t.Fatal(err)
		}
		skipped := w.tick().Skipped
		if skipped <= want {
			t.Errorf("change %d: got %d skipped, want more than %d", hour+1, skipped, want)
		}
		if want = skipped; w.table.Stats().Missed != want {
			t.Errorf("change %d: got %+v, want %d missed", hour+1, w.table.Stats(), want)
		}
	}
}

// One fire is made by a clock that is a day ahead; the next who looks knows better.
func TestAClockThatWasAheadDoesNotSilenceASchedule(t *testing.T) {
	for name, look := range map[string]func(w *world, key time.Time) error{
		"an audit tells of it": func(w *world, key time.Time) error { return w.table.Fire(w.Context(), "tick", key) },
		"its file is read anew": func(w *world, _ time.Time) error {
			return w.table.Adopt(w.Context(), "order", []makegood.Schedule{tick()})
		},
		"its input is changed": func(w *world, _ time.Time) error {
			s := tick()
			s.Input = []byte(`1`)
			return w.table.Adopt(w.Context(), "order", []makegood.Schedule{s})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if err := w.table.Adopt(t.Context(), "order", []makegood.Schedule{tick()}); err != nil {
				t.Fatal(err)
			}
			w.at(24*time.Hour + 10*time.Minute)
			w.now = start.Add(15 * time.Minute)
			if err := look(w, w.tick().Key); err != nil {
				t.Fatal(err)
			}
			want := start.Truncate(time.Hour).Add(20 * time.Minute)
			if s := w.tick(); !s.Next.Equal(want) || !s.Key.Equal(want) {
				t.Errorf("got the next at %v, key %v, want %v", s.Next, s.Key, want)
			}
			w.want("the next", w.at(20*time.Minute), "20m0s")
		})
	}
}

// A fire waits for the end of a job, and a clock that is ahead says until when.
func TestAClockThatWasAheadDoesNotHoldUpAFireThatWaits(t *testing.T) {
	w := newWorld(t)
	w.make(func(s *makegood.Schedule) { s.Overlap, s.Missed = makegood.OverlapQueue, makegood.MissedAll })
	w.want("the first", w.at(10*time.Minute), "10m0s")
	w.want("a day ahead", w.at(24*time.Hour))
	w.ends()
	w.now = start.Add(20 * time.Minute)
	if err := w.table.Fire(t.Context(), "tick", w.tick().Key); err != nil {
		t.Fatal(err)
	}
	if s := w.tick(); s.Key.After(w.now.Add(10 * time.Minute)) {
		t.Errorf("got the key %v at %v, want it soon", s.Key, w.now)
	}
}

// What a clock that is right stores is left alone, whoever tells of it before its time.
func TestAKeyThatIsToComeIsLeftAlone(t *testing.T) {
	for name, c := range map[string]struct {
		missed  makegood.Missed
		overlap makegood.Overlap
	}{"a fire to come": {makegood.MissedOne, makegood.OverlapAllow}, "a fire that waits": {makegood.MissedAll, makegood.OverlapQueue}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.make(func(s *makegood.Schedule) {
				s.Cron, s.Every, s.Missed, s.Overlap = "", 10*makegood.Second, c.missed, c.overlap
			})
			w.at(10 * time.Minute)
			w.at(11 * time.Minute)
			before := w.tick()
			w.now = w.now.Add(-time.Second) // Another's clock is a little behind.
			if err := w.table.Fire(t.Context(), "tick", before.Key); err != nil {
				t.Fatal(err)
			}
			if after := w.tick(); after.Rev != before.Rev {
				t.Errorf("got %+v, want nothing written", after)
			}
		})
	}
	w := newWorld(t)
	paused, err := w.table.Pause(t.Context(), w.make(nil).Name, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.table.Fire(t.Context(), "tick", time.Time{}); err != nil || w.tick().Rev != paused.Rev {
		t.Errorf("paused: got %+v, %v, want nothing written", w.tick(), err)
	}
}

// A release that cannot read a schedule takes it out of the index, and the next that can puts it back.
func TestAScheduleThatCanBeReadAgainFiresAgain(t *testing.T) {
	w := newWorld(t)
	s := tick()
	if err := w.table.Adopt(t.Context(), "order", []makegood.Schedule{s}); err != nil {
		t.Fatal(err)
	}
	stopped := w.tick()
	stopped.Key, stopped.Next, stopped.Problem = time.Time{}, time.Time{}, "it does not fire any more"
	if err := w.store.PutSchedule(t.Context(), stopped); err != nil {
		t.Fatal(err)
	}
	if err := w.table.Adopt(t.Context(), "order", []makegood.Schedule{s}); err != nil {
		t.Fatal(err)
	}
	w.want("the next", w.at(10*time.Minute), "10m0s")
}

// A process makes the job of a fire and dies before the schedule moves on; the next fire is due before anybody comes back to it.
// The fire that made its job is neither left out nor forgotten: the next one waits for the end of that job.
func TestAFireThatMadeItsJobIsNotLeftOut(t *testing.T) {
	w := newWorld(t)
	w.make(func(s *makegood.Schedule) { s.Overlap = makegood.OverlapSkip })
	w.crashed = errors.New("dies here")
	w.now = start.Truncate(time.Hour).Add(10 * time.Minute)
	key := w.tick().Key
	if err := w.table.Fire(t.Context(), "tick", key); err == nil {
		t.Fatal("the process did not die")
	}
	w.now = w.now.Add(11 * time.Minute)
	if err := w.table.Fire(t.Context(), "tick", key); err != nil {
		t.Fatal(err)
	}
	first := domain.FireID("tick", key)
	if got := w.tick(); got.LastJob != first || got.Skipped != 1 {
		t.Errorf("the last job is %s, and %d fires are left out; want %s, and the one that found its job unfinished", got.LastJob, got.Skipped, first)
	}
	if len(w.jobs) != 1 {
		t.Errorf("got the jobs %v, want the first alone, which is unfinished", w.jobs)
	}
}

// A process leaves fires out, makes the job of the one whose turn it is then, and dies; more fires come due before anybody comes back to
// it. The fire that made its job is not left out, whoever lets it pass, and none begins beside its job.
func TestAFireThatMadeItsJobBehindThoseThatWereMissedIsNotLeftOut(t *testing.T) {
	hourly := tick()
	hourly.Cron, hourly.Overlap = "30 * * * *", makegood.OverlapSkip
	change := func(w *world) { w.must(w.table.Change(w.Context(), hourly, 0, "")) }
	pause := func(w *world) { w.must(w.table.Pause(w.Context(), "tick", "")) }
	resume := func(w *world) { w.must(w.table.Resume(w.Context(), "tick", "")) }
	for name, c := range map[string]struct {
		meanwhile []func(*world)
		skipped   int64
	}{
		"it fires":           {nil, 4}, // 10, 20 and 40 are missed, and 50 finds the job of 30 unfinished.
		"its times change":   {[]func(*world){change}, 4},
		"it stands still":    {[]func(*world){pause, resume}, 2},
		"it changes, paused": {[]func(*world){pause, change, resume}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.make(func(s *makegood.Schedule) { s.Overlap = makegood.OverlapSkip })
			w.now, w.broken = start.Truncate(time.Hour).Add(30*time.Minute), errors.New("dies here")
			if err := w.table.Fire(t.Context(), "tick", w.tick().Key); err == nil {
				t.Fatal("the process did not die")
			}
			w.want("before it dies", w.made(), "30m0s")
			w.broken, w.now = nil, w.now.Add(21*time.Minute)
			for _, act := range c.meanwhile {
				act(w)
			}
			w.want("after it died", w.at(51*time.Minute))
			if got := w.tick(); got.LastJob != "tick:2026-11-22T13:30:00Z" || got.Skipped != c.skipped {
				t.Errorf("the last job is %q, and %d fires are left out, want the one that is unfinished, and %d", got.LastJob, got.Skipped, c.skipped)
			}
			w.want("an hour later", w.at(111*time.Minute))
		})
	}
}

// must ends the test if a schedule could not be changed.
func (w *world) must(_ store.Scheduled, err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// The hint that led to a fire holds until that has made its job: who leaves others out before it, and dies, is told again by the same one.
func TestWhoLeavesFiresOutKeepsTheKey(t *testing.T) {
	w := newWorld(t)
	w.make(nil)
	key := w.tick().Key
	w.now, w.unsubmitted = start.Truncate(time.Hour).Add(51*time.Minute), errors.New("dies here")
	if err := w.table.Fire(t.Context(), "tick", key); !errors.Is(err, w.unsubmitted) {
		t.Fatalf("got %v, want that no job can be submitted", err)
	}
	if s := w.tick(); !s.Key.Equal(key) || s.Skipped != 4 || !s.Turn().Equal(key.Add(40*time.Minute)) {
		t.Errorf("got the key %v, %d left out and the turn of %v, want the key that was, and that of the last", s.Key, s.Skipped, s.Turn())
	}
	w.unsubmitted = nil
	if err := w.table.Fire(t.Context(), "tick", key); err != nil {
		t.Fatal(err)
	}
	w.want("made", w.made(), "50m0s")
	if s := w.tick(); s.Skipped != 4 || !s.Key.Equal(key.Add(50*time.Minute)) {
		t.Errorf("got the key %v and %d left out, want the next, and 4", s.Key, s.Skipped)
	}
	if got, want := w.table.Stats(), (timetable.Stats{Fired: 1, Missed: 4}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// Fires that came due before a change come before the next one, whatever a clock that is behind makes of it: none comes due twice.
func TestAClockThatIsBehindPutsNoFireBeforeThoseThatCameDue(t *testing.T) {
	for name, look := range map[string]func(w *world){
		"a hint is followed":    func(w *world) { w.fires() },
		"its times are changed": func(w *world) { w.changes("*/30 * * * *") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.make(func(s *makegood.Schedule) { s.Missed = makegood.MissedAll })
			w.now = start.Truncate(time.Hour).Add(25 * time.Minute)
			w.changes("*/15 * * * *")
			w.now = w.now.Add(-time.Hour)
			look(w)
			if s := w.tick(); !s.Next.Equal(start.Truncate(time.Hour).Add(30 * time.Minute)) {
				t.Errorf("got the next at %v, want it behind those that came due, %v", s.Next, s.Due)
			}
			w.want("made", w.at(31*time.Minute), "10m0s", "20m0s", "30m0s")
			if s := w.tick(); s.Skipped != 0 {
				t.Errorf("got %d left out, want none", s.Skipped)
			}
		})
	}
}

// fires follows the hint of tick, at whatever time it is.
func (w *world) fires() {
	w.Helper()
	if err := w.table.Fire(w.Context(), "tick", w.tick().Key); err != nil {
		w.Fatal(err)
	}
}

// changes gives tick another cron.
func (w *world) changes(cron string) {
	w.Helper()
	s := tick()
	s.Cron, s.Missed = cron, makegood.MissedAll
	w.must(w.table.Change(w.Context(), s, 0, ""))
}
