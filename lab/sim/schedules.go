package sim

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/schedule"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/jobformat"
	"github.com/makegood-dev/makegood/internal/testkit/layers"
	"github.com/makegood-dev/makegood/internal/timetable"
)

// In some worlds a schedule makes jobs, which people make, change, pause, and at last remove.

const (
	// firesLast is how long a schedule goes on when all is well, before it is removed.
	firesLast = 10 * time.Minute
	// firesWithin is how far behind a schedule may be then.
	firesWithin = 5 * time.Minute
)

// scheduled is a schedule of a world.
type scheduled struct {
	name, workflow string
	says           []saying
	pauses         []window
	// rules are those that it has had, born says when each of its jobs was.
	rules []schedule.Rule
	born  map[string]time.Time
}

// saying is what a schedule says from a time on.
type saying struct {
	at  time.Duration
	say makegood.Schedule
}

// rollSchedules gives some worlds a schedule.
func (w *world) rollSchedules(o Options) {
	r := w.chance.of("schedules")
	if o.unscheduled || !oneIn(r, 5) {
		return
	}
	s := &scheduled{name: "every", workflow: pick(r, w.load.workflows...).Workflow.Name, born: map[string]time.Time{}}
	at := between(r, time.Second, time.Minute)
	for range 1 + r.IntN(3) {
		s.says = append(s.says, saying{at, rollSchedule(r, s)})
		at += between(r, time.Second, 4*time.Minute)
	}
	if oneIn(r, 3) {
		from := w.start.Add(s.says[0].at + between(r, time.Second, 4*time.Minute))
		s.pauses = append(s.pauses, window{from, from.Add(between(r, time.Second, 3*time.Minute))})
	}
	w.scheduled = s
}

func rollSchedule(r *rand.Rand, s *scheduled) makegood.Schedule {
	one := makegood.Schedule{
		Name: s.name, Workflow: s.workflow, Input: []byte(`{"n":3,"time":"${ .time }"}`),
		Missed: pick(r, makegood.MissedSkip, makegood.MissedOne, makegood.MissedAll), Overlap: pick(r, makegood.OverlapAllow, makegood.OverlapSkip, makegood.OverlapQueue),
	}
	if one.Missed == makegood.MissedAll {
		one.AtMost = 1 + r.IntN(4)
	}
	if oneIn(r, 3) {
		one.Cron = "*/2 * * * *"
		return one
	}
	one.Every = makegood.Duration(pick(r, 40, 60, 90, 150)) * makegood.Second
	return one
}

// firing is one who fires a schedule, or changes it, once: a process may have several, and each decides by what it has read itself.
type firing struct {
	*life
	// schedule is the schedule as it last read or wrote it, read when that was, and looked what it last saw on its clock.
	schedule     store.Scheduled
	read, looked time.Time
}

// decided is what whoever submits the job of a fire has decided by: the key of its schedule in a context.
type decided struct{}

// timetable is what keeps and fires schedules in a process, once.
func (w *world) timetable(l *life, s *scheduler.Scheduler) *timetable.Timetable {
	f := &firing{life: l}
	return timetable.New(timetable.Config{
		Schedules: f, Jobs: l, Now: f.now, Logger: quiet,
		Submit: func(ctx context.Context, workflow string, sub scheduler.Submission) (job.Job, bool, error) {
			j, created, err := s.SubmitCurrent(context.WithValue(ctx, decided{}, f.schedule), workflow, sub)
			if err == nil {
				w.mu.Lock()
				w.acked[sub.ID] = true
				w.mu.Unlock()
			}
			return j, created, err
		},
	})
}

// schedulers start the people who make, change and pause schedules.
func (w *world) schedulers(someone func(time.Duration, func(*scheduler.Scheduler, *life) bool)) {
	if w.scheduled == nil {
		return
	}
	for i, saying := range w.scheduled.says {
		someone(saying.at, func(s *scheduler.Scheduler, l *life) bool {
			ctx, t := context.Background(), w.timetable(l, s)
			if i == 0 {
				_, _, err := t.Create(ctx, saying.say, "anna")
				return err == nil || errors.Is(err, timetable.ErrExists)
			}
			_, err := t.Change(ctx, saying.say, 0, "bert")
			return err == nil || errors.Is(err, store.ErrNotFound)
		})
	}
	for _, p := range w.scheduled.pauses {
		someone(p.from.Sub(w.start), func(s *scheduler.Scheduler, l *life) bool {
			_, err := w.timetable(l, s).Pause(context.Background(), w.scheduled.name, "anna")
			return err == nil || errors.Is(err, store.ErrNotFound)
		})
		someone(p.to.Sub(w.start), func(s *scheduler.Scheduler, l *life) bool {
			_, err := w.timetable(l, s).Resume(context.Background(), w.scheduled.name, "bert")
			return err == nil || errors.Is(err, store.ErrNotFound)
		})
	}
}

// unschedule lets the schedule go on for a while, and removes it: SCH-4, by then it is not behind.
func (w *world) unschedule() {
	if w.scheduled == nil {
		return
	}
	time.Sleep(firesLast)
	s, err := w.store.Schedule(context.Background(), w.scheduled.name)
	late := time.Since(s.Turn())
	w.mu.Lock()
	if err == nil && w.exact && !s.Paused() && s.Overlap != makegood.OverlapQueue && late > firesWithin {
		w.violate("", "SCH-4: all is well, and the schedule is %s behind: %+v", late, s)
	}
	w.mu.Unlock()
	w.insist("remover", func(s *scheduler.Scheduler, l *life) bool {
		err := w.timetable(l, s).Remove(context.Background(), w.scheduled.name, 0)
		return err == nil || errors.Is(err, store.ErrNotFound)
	})
}

// fire returns the fire that a job was made by, if a schedule made it.
func (w *world) fire(id string) (at time.Time, is bool) {
	if w.scheduled == nil {
		return at, false
	}
	text, is := strings.CutPrefix(id, w.scheduled.name+":")
	if !is {
		return at, false
	}
	at, err := time.Parse(time.RFC3339, text)
	return at, err == nil
}

// fired: SCH-1. A job that a schedule makes is one of its fires, not before its time, with the input that it gives, and
// not beside the one before where that is not wanted. A job that lands late may have been decided when the schedule
// stood elsewhere: nothing can keep it from being made then any more, and what it is beside is not asked. w.mu is held.
func (c change) fired() {
	at, is := c.fire(c.after.ID)
	if !is || c.before.Rev != 0 {
		return
	}
	c.layer.Played(layers.Schedules)
	c.scheduled.born[c.after.ID] = time.Now()
	if !slices.ContainsFunc(c.scheduled.rules, func(r schedule.Rule) bool { return r.Next(at.Add(-1)).Equal(at) }) {
		c.wrong("SCH-1: is no fire of its schedule")
	}
	if early := time.Until(at); c.exact && early > 0 {
		c.wrong("SCH-1: is made %s before its time", early)
	}
	if input := string(c.after.Input.Inline); input != `{"n":3,"time":"`+at.Format(time.RFC3339)+`"}` {
		c.wrong("SCH-1: is made with the input %s", input)
	}
	s, err := c.store.Schedule(context.Background(), c.scheduled.name)
	if err != nil || c.decidedBy != s.Rev || s.Overlap == makegood.OverlapAllow || s.LastJob == "" {
		return
	}
	if last, there := c.store.Stored(s.LastJob); there && !last.ProcessState.Finished() {
		c.wrong("SCH-1: is made while %s is %s, and the schedule says overlap: %s", s.LastJob, last.ProcessState, s.Overlap)
	}
}

// fires: SCH-2. What comes due under a schedule is made, kept for later, or counted as left out. looked is what the
// process saw on its clock when it decided, and read when it read the schedule: what is made after that, by whoever
// stood still, may count as either. w.mu is held.
func (w *world) fires(before, after store.Scheduled, looked, read time.Time) {
	rule, err := schedule.New(after.Schedule)
	if err != nil {
		w.violate("", "SCH-2: a schedule cannot be read: %v", err)
		return
	}
	w.scheduled.rules = append(w.scheduled.rules, rule)
	w.passes(before, after, read)
	if before.Rev == 0 || before.Paused() || after.Paused() {
		return // What comes due in a pause is not made up for.
	}
	was, _ := schedule.New(before.Schedule) // it could be read when it was stored
	until := after.Next.Add(-1)
	changed := before.Cron != after.Cron || before.Every != after.Every
	if changed {
		until = looked
	}
	left, either := 0, 0
	for _, at := range append(slices.Clone(before.Due), was.Latest(before.Next, until, 1000)...) {
		born, made := w.scheduled.born[domain.FireID(after.Name, at)]
		waits := slices.ContainsFunc(after.Due, at.Equal)
		switch {
		case !made && !waits:
			left++
		case made && (born.After(read) || !w.exact):
			either++
		}
	}
	counted := int(after.Skipped - before.Skipped)
	if counted < left || counted > left+either {
		w.violate("", "SCH-2: %d fires of the schedule are left out, and %d are counted: %+v, then %+v", left, counted, before, after)
	}
}

// passes: SCH-1. Whatever lets the turn of a fire pass whose job is there says that this is the last one: by it the
// next fire knows whether it may begin. Where a clock is wrong, a turn may come again. w.mu is held.
func (w *world) passes(before, after store.Scheduled, read time.Time) {
	id := domain.FireID(after.Name, before.Turn())
	born, made := w.scheduled.born[id]
	if w.exact && made && !born.After(read) && !after.Turn().Equal(before.Turn()) && after.LastJob != id {
		w.violate(id, "SCH-1: the turn of a fire passes, and that its job is there is not noted: %+v, then %+v", before, after)
	}
}

// hinted: SCH-3. A hint is not deleted before its schedule has moved on. Where the job of the fire is there, and a newer release must
// decide about it, an older one leaves the fire, and each sweep tells of the key again. w.mu is held.
func (w *world) hinted(l *life, name string, key time.Time) {
	s, err := w.store.Schedule(context.Background(), name)
	if j, there := w.store.Stored(domain.FireID(name, s.Turn())); there && j.Needs > jobformat.Level && l.older {
		return
	}
	if err == nil && w.exact && s.Key.Equal(key) && !key.After(time.Now()) {
		w.violate("", "SCH-3: the hint that a schedule is due is deleted, and its key is %s still", key)
	}
}

// now is the time by the clock of the process.
func (f *firing) now() time.Time {
	f.looked = f.life.now()
	return f.looked
}

// has notes what stands in the store for whoever reads or writes it, if they hear of it. w.mu is held.
func (f *firing) has(s store.Scheduled) {
	if !f.w.late {
		f.schedule, f.read = s, time.Now()
	}
}

// Schedule is what store.Schedules says, in a world.
func (f *firing) Schedule(ctx context.Context, name string) (store.Scheduled, error) {
	return ask(ctx, f.life, "schedule", name, func() (store.Scheduled, error) {
		s, err := f.w.store.Schedule(ctx, name)
		if err == nil {
			f.has(s)
		}
		return s, err
	})
}

// PutSchedule is what store.Schedules says, in a world.
func (f *firing) PutSchedule(ctx context.Context, s store.Scheduled) error {
	looked, read := f.looked, f.read
	return f.call(ctx, "put-schedule", s.Name, func() error {
		before, _ := f.w.store.Schedule(ctx, s.Name) // none is none
		err := f.w.store.PutSchedule(ctx, s)
		if err != nil {
			return err
		}
		after, err := f.w.store.Schedule(ctx, s.Name)
		f.w.fires(before, after, looked, read)
		f.has(after)
		return err
	})
}

// RemoveSchedule is what store.Schedules says, in a world.
func (l *life) RemoveSchedule(ctx context.Context, name string, rev int64) error {
	return l.call(ctx, "remove-schedule", name, func() error { return l.w.store.RemoveSchedule(ctx, name, rev) })
}

// ListSchedules is what store.Schedules says, in a world.
func (l *life) ListSchedules(ctx context.Context) ([]store.Scheduled, error) {
	return ask(ctx, l, "list-schedules", "", func() ([]store.Scheduled, error) { return l.w.store.ListSchedules(ctx) })
}
