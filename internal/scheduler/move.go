package scheduler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/notify"
	"github.com/makegood-dev/makegood/internal/spend"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// moved is a job after the events of a batch: saved, with the commands that must now be carried out.
type moved struct {
	job      job.Job
	compiled *workflowfile.Compiled
	verdicts []machine.Verdict // one for each of the events, in their order; first has room for one
	first    [1]machine.Verdict
	commands []job.Command
	values   values
	known    *knowledge
	// other is the definition that the job may be moved to; nil: no event asks for that.
	other *workflowfile.Compiled
	// entries are what the events add to the job's history.
	entries []job.Entry
	// happened is each event that has changed the job.
	happened []job.Happened
	// held are the agents and workflows that are paused, and the limits.
	held job.Holds
	// left has what the attempts have at gates that are over by the save.
	left []left
	// gates are the gates at which attempts stand.
	gates map[standing]string
	// alerts are the agents that the breaker has paused for these events.
	alerts []alert
	// loaded has the fields of the job as it was before the events.
	loaded loaded
	// lockedBy names the save, and lane is the right to run the inline attempts that it opens: inline.
	lockedBy string
	lane     machine.Lane
	inline   []inlined
	// since is a time before the save, on the monotonic clock: the attempts that it opens have their time from then on.
	since time.Time
	// room is memory for the steps of the job after the next event: those of a job in between, which has no other use.
	room []job.StepState
	// now is the one moment of the decision: a finding that depended on the time must still hold when it is used, and an
	// attempt that one event of a batch opens is not late for the next because a clock jumped between them.
	now time.Time
}

// loaded is what a move looks at of its job as it was loaded.
type loaded struct {
	id, workflow, definition string
	rev                      int64
	input                    job.Payload
	steps                    []job.StepState
}

func loadedOf(j job.Job) loaded {
	return loaded{j.ID, j.Workflow, j.Definition, j.Rev, j.Input, j.Steps}
}

// move folds events into one load and one save of their job. It fails with store.ErrNotFound for a job that is not
// there, with a *parkError for one that cannot be decided about, and with a *NewerError, before any decision, for one
// that is a newer release's. k is memory for the move.
func (s *Scheduler) move(ctx context.Context, id string, events []job.Event, k *knowledge) (*moved, error) {
	*k = knowledge{}
	for conflicts := 0; conflicts < maxConflicts; conflicts++ {
		m, err := s.tryMove(ctx, id, events, k)
		if errors.Is(err, errFull) {
			conflicts-- // There are not more of these than agents.
			continue
		}
		if !errors.Is(err, store.ErrConflict) {
			return m, err
		}
		s.stats.Add(func(t *Stats) { t.Conflicts++ })
		if ctx.Err() != nil {
			return m, err
		}
	}
	return nil, fmt.Errorf("save job %s: %w, %d times", id, store.ErrConflict, maxConflicts)
}

func (s *Scheduler) tryMove(ctx context.Context, id string, events []job.Event, k *knowledge) (*moved, error) {
	k.forgetLooks()
	loaded, err := s.config.Jobs.Load(ctx, id)
	if errors.Is(err, store.ErrDamaged) {
		return nil, &parkError{reason: err.Error(), seen: seenKey(events), keyless: askedWithoutKey(events)}
	}
	if errors.Is(err, store.ErrNewer) {
		return nil, errNewerJob
	}
	if err != nil {
		return nil, fmt.Errorf("load job %s: %w", id, err)
	}
	ctx = s.config.Watch.Context(ctx, loaded)
	compiled, err := s.definition(ctx, loaded.Definition)
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, workflowfile.ErrInvalid) {
		return nil, parked(fmt.Sprintf("definition %s: %v", loaded.Definition, err), loaded)
	}
	if err != nil {
		return nil, fmt.Errorf("definition %s of job %s: %w", loaded.Definition, id, err)
	}
	m := s.movedFrom(loaded, compiled, k)
	s.renew(ctx, loaded, &m.values)
	if m.held, err = s.held(ctx, loaded, events); err != nil {
		return nil, err
	}
	// The first event in this run of the engine finds the attempts of an earlier run ended, whichever event it is.
	telling := slices.ContainsFunc(events, machine.IsTelling) // Those begin no work.
	interrupted := loaded.Incarnation < s.config.Incarnation && !telling
	s.publishFirst(ctx, loaded)
	m.since, m.now = time.Now(), s.now()
	if !telling {
		m.lane = s.laneOf(ctx, compiled, k.full)
	}
	if m.lockedBy = m.lane.LockedBy; m.lockedBy == "" {
		m.lockedBy = s.lockedBy()
	}
	change := store.Change{Job: loaded, Seen: loaded.CompleteBy}
	applied, err := s.fold(ctx, m, &change, interrupted, events)
	if err != nil {
		if park := new(parkError); errors.As(err, &park) {
			err = parked(park.reason, loaded)
		}
		return nil, err
	}
	if full := s.enter(m, change.Job); full != nil {
		k.full = append(k.full, full...)
		return nil, errFull
	}
	if applied || s.awaits(change.Job, events) {
		if err := s.save(ctx, &change, m); errors.Is(err, store.ErrTooLarge) {
			return nil, parked(err.Error(), loaded)
		} else if err != nil {
			return nil, err
		}
		s.judge(ctx, m, events)
		s.config.Watch.Happened(ctx, m.happened)
		if len(m.entries) > 0 {
			s.shorten(ctx, change.Job)
		}
		if loaded.ProcessState != makegood.JobError && change.Job.ProcessState == makegood.JobError {
			s.stats.Add(func(t *Stats) { t.Stopped++ })
		}
	}
	m.job, m.left = change.Job, s.leftBy(ctx, m, change.Job, events)
	if interrupted || s.poked(events) {
		events = append([]job.Event{job.Interrupted{Incarnation: s.config.Incarnation}}, events...)
	}
	m.commands = pending(m.compiled.Workflow, m.job, events, s.now())
	return m, nil
}

// movedFrom returns what a move begins with.
func (s *Scheduler) movedFrom(j job.Job, compiled *workflowfile.Compiled, k *knowledge) *moved {
	m := &moved{compiled: compiled, values: s.newValues(compiled), known: k, loaded: loadedOf(j)}
	m.values.birth = j.Birth
	return m
}

// poked reports whether one of the events is what recovery sends to every unfinished job at start: a deadline without
// a key. Delivered again, it derives again what being interrupted made due.
func (s *Scheduler) poked(events []job.Event) bool {
	return s.config.Incarnation > 0 && askedWithoutKey(events)
}

// askedWithoutKey reports whether one of the events is a deadline without a key: its sender saw none, or did not look
// for it.
func askedWithoutKey(events []job.Event) bool {
	return slices.Contains(events, job.Event(job.DeadlinePassed{}))
}

// seenKey is the index key under which the Supervisor saw the job, if it did.
func seenKey(events []job.Event) time.Time {
	for _, e := range events {
		if d, ok := e.(job.DeadlinePassed); ok {
			return d.Key
		}
	}
	return time.Time{}
}

// fold applies events one after the other to the job of a change, which is as it was loaded.
func (s *Scheduler) fold(ctx context.Context, m *moved, change *store.Change, interrupted bool, events []job.Event) (applied bool, err error) {
	id, incarnation := change.Job.ID, change.Job.Incarnation
	apply := func(e job.Event) (machine.Verdict, error) {
		var next job.Job
		v, err := s.decide(ctx, m, &change.Job, e, &next)
		if err != nil {
			return v, err
		}
		if v.Kind == machine.Applied {
			m.follow(next.Definition)
			switch {
			case s.watched():
				m.happens(&change.Job, &next, e, v.Entries)
			case applied: // The first was loaded, and is not ours.
				m.room = change.Job.Steps
			}
			applied = true
			change.Job = next
			m.entries = append(m.entries, v.Entries...)
		}
		return v, nil
	}
	if interrupted {
		clean := s.config.Stopped > 0 && incarnation == s.config.Stopped
		if _, err := apply(job.Interrupted{Incarnation: s.config.Incarnation, Clean: clean}); err != nil {
			return false, err
		}
	}
	m.verdicts = m.first[:0]
	for _, e := range events {
		v, err := apply(e)
		if err != nil {
			return false, err
		}
		m.verdicts = append(m.verdicts, v)
		s.count(ctx, id, e, v)
	}
	m.values.enter(&change.Job, m.entries)
	return applied, nil
}

// happens notes an event that changes the job. It is apart from fold, whose goroutine needs no room for it without a
// Watch.
func (m *moved) happens(before, after *job.Job, e job.Event, entries []job.Entry) {
	m.happened = append(m.happened, job.Happened{Workflow: m.compiled.Workflow, Before: *before, After: *after, Event: e, Entries: entries, At: m.now})
}

// decide asks the core, and gives it the facts that it wants. next becomes the job as it is then. Both jobs are pointed
// to: the goroutine of a job that has just come needs room for every copy on its stack.
func (s *Scheduler) decide(ctx context.Context, m *moved, j *job.Job, e job.Event, next *job.Job) (v machine.Verdict, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &parkError{reason: fmt.Sprintf("%T cannot be applied: %v", e, r)}
		}
	}()
	if _, hint := e.(job.Admitted); hint {
		m.known.forgetQueued()
	}
	if e, err = s.keepReplied(ctx, *j, e); err != nil {
		return v, err
	}
	if e, err = m.answered(ctx, *j, e); err != nil {
		return v, err
	}
	e = m.values.spill(*j, e)
	facts := s.facts(m.known, m.held, j)
	facts.Lane, facts.Room, facts.Graph = m.lane, m.room, s.graph(m.compiled)
	m.room = nil
	if values, used := s.answers.Get().(map[machine.Want]machine.Fact); used {
		facts.Values = values
	}
	defer func() {
		if facts.Values != nil {
			clear(facts.Values)
			s.answers.Put(facts.Values)
		}
	}()
	for {
		*next, v = machine.Apply(m.compiled.Workflow, *j, e, facts, m.now)
		if v.Kind != machine.Wanting {
			return v, nil
		}
		if v.Definition != "" { // It is j that was returned, as where there are asks.
			if err := m.offer(ctx, s, &facts, offer{v.Definition, inputOf(e)}); err != nil {
				return v, err
			}
			continue
		}
		m.values.compiled = m.definitionOf(next.Definition)
		if err := s.findOut(ctx, m, *j, v.Asks); err != nil {
			return v, err
		}
		facts.Found = m.known.found
		if err := m.values.learn(ctx, &facts, *next, v.Wants); err != nil {
			return v, err
		}
		if len(v.Wants) > 0 {
			facts.Room = next.Steps
		}
	}
}

// watched reports whether a Watch is told of events: if not, they are not put together.
func (s *Scheduler) watched() bool {
	w, may := s.config.Watch.(interface{ Tells() bool })
	return !may || w.Tells()
}

// facts are those that need no event and no ask, and the claims known so far.
func (s *Scheduler) facts(k *knowledge, held job.Holds, j *job.Job) machine.Facts {
	facts := machine.Facts{
		Publishes: s.config.Changes != nil, Published: s.ledger.upTo(*j),
		Random: s.config.Random(), Found: k.found, Held: held,
		Period: s.config.Period, Incarnation: s.config.Incarnation,
	}
	if len(j.Secret) == 0 { // A job keeps the one that it has.
		facts.Secret = s.config.Bytes(limits.SecretBytes)
	}
	return facts
}

// held returns the holds that apply to a job: recent ones, or current ones where standing still or going on depends on
// them.
func (s *Scheduler) held(ctx context.Context, loaded job.Job, events []job.Event) (job.Holds, error) {
	switch {
	case s.config.Held == nil:
		return nil, nil
	case loaded.HeldBy != "" || slices.ContainsFunc(events, letGo):
		return s.config.Held.Surely(ctx)
	default:
		return s.config.Held.Now(ctx)
	}
}

// letGo reports whether an agent has let its task go because it is paused. The process of a chain names itself.
func letGo(e job.Event) bool {
	held, is := e.(job.StepHeld)
	return is && held.LockedBy == ""
}

// save stores a change and updates its job to the stored one. After an error no inline attempt of it begins.
func (s *Scheduler) save(ctx context.Context, change *store.Change, m *moved) (err error) {
	if len(m.inline) > 0 {
		defer func() {
			if err != nil {
				m.leave()
			}
		}()
	}
	if err := m.values.write(ctx, change.Job); err != nil {
		return err
	}
	change.Job.LockedBy = m.lockedBy
	if c := &change.Job.Changes; s.config.Changes != nil && c.Rev == change.Job.Rev {
		c.Rev++ // No event was applied (awaits), so there is no change that they do not know.
	}
	account := spend.On(ctx)
	due := account.Due()
	if change.Job.Spent.Counted() { // Of one that was born without a count, a part would look like all.
		change.Job.Spent = change.Job.Spent.Plus(due)
	}
	account.Store(change.Job.Spent)
	err = s.config.Jobs.Save(ctx, *change)
	if len(m.inline) > 0 && unclear(err) && s.isStored(ctx, change.Job.ID, change.Job.Birth, m.lockedBy) {
		err = nil
	}
	if err != nil {
		return fmt.Errorf("save job %s: %w", change.Job.ID, err)
	}
	account.Keep(due)
	if account != nil {
		change.Job.Spent = account.Stored()
	}
	change.Job.Rev++
	s.stats.Add(func(t *Stats) { t.Saves++ })
	if s.config.Saved != nil {
		s.config.Saved(change.Job)
	}
	return nil
}

// pending returns the commands of all events, each once.
func pending(w makegood.Workflow, j job.Job, events []job.Event, now time.Time) []job.Command {
	if len(events) == 1 {
		return machine.Pending(w, j, events[0], now)
	}
	var all []job.Command
	seen := make(map[job.Command]bool)
	for _, e := range events {
		for _, c := range machine.Pending(w, j, e, now) {
			if !seen[c] {
				seen[c] = true
				all = append(all, c)
			}
		}
	}
	return all
}

// parkError says that a job cannot be decoded or decided about.
type parkError struct {
	reason string
	// seen is CompleteBy as it is stored. Zero: it is not known, and the next sweep brings it; or, with keyless, there
	// is none that should be there, and no sweep ever would.
	seen    time.Time
	keyless bool
}

// parked says that a job as it was loaded cannot be decided about.
func parked(reason string, loaded job.Job) *parkError {
	return &parkError{reason: reason, seen: loaded.CompleteBy, keyless: !loaded.ProcessState.Finished()}
}

func (e *parkError) Error() string { return e.reason }

// park puts a job in front of a person by a raw write, so that it never blocks the sweep. The notice of it cannot be
// kept in the job, so the key keeps it: it is a minute ahead until the operator was told.
func (s *Scheduler) park(ctx context.Context, id string, e *parkError) error {
	s.config.Logger.ErrorContext(ctx, "job cannot be decided about", "job", id, "reason", e.reason)
	if e.seen.IsZero() && !e.keyless {
		return nil
	}
	reason, again := limits.Clip(e.reason), s.now().Add(limits.TellAgain)
	if won, err := s.parkUntil(ctx, id, e.seen, reason, again); !won {
		return err
	}
	s.stats.Add(func(t *Stats) { t.Parked++ })
	notice := job.Announcement{ProcessState: makegood.JobError, Reason: reason, At: s.now()}
	within, cancel := context.WithTimeout(ctx, tellWithin)
	defer cancel()
	announce := func() error { return s.config.Notifier.Announce(within, notify.Notice{Job: id, Announcement: notice}) }
	if err := s.receivers.Call(within, toOperator, grace, announce); err != nil {
		s.config.Logger.WarnContext(ctx, "telling of a parked job waits for the Supervisor", "job", id, "error", err)
		return nil
	}
	_, err := s.parkUntil(ctx, id, again, reason, s.now().Add(limits.FarKey))
	return err
}

// parkUntil parks a job that still has the key seen; if it has another, another writer moved it, and if it is overdue
// then, the next sweep says so.
func (s *Scheduler) parkUntil(ctx context.Context, id string, seen time.Time, reason string, key time.Time) (won bool, err error) {
	err = s.config.Jobs.Park(ctx, id, seen, reason, key)
	if errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("park job %s: %w", id, err)
	}
	if s.config.Parked != nil {
		s.config.Parked(id)
	}
	return true, nil
}

// count counts what became of an event.
func (s *Scheduler) count(ctx context.Context, id string, e job.Event, v machine.Verdict) {
	_, isDeadline := e.(job.DeadlinePassed)
	_, replied := e.(interface{ Said() job.Reply })
	stood := isDeadline && v.Kind == machine.Applied && v.Reason != ""
	s.stats.Add(func(t *Stats) {
		switch v.Kind {
		case machine.Applied:
			t.Applied++
			if replied {
				t.Replies++
			}
			if stood {
				t.Stood++
			}
		case machine.Duplicate:
			t.Duplicate++
		case machine.Stale:
			t.Stale++
		case machine.Refused:
			t.Refused++
		}
	})
	if s.config.Logger.Enabled(ctx, slog.LevelDebug) {
		s.config.Logger.DebugContext(ctx, "event", "job", id, "event", e.Cause(), "status", v.Kind, "reason", v.Reason)
	}
	if stood {
		s.config.Logger.WarnContext(ctx, "stray job", "job", id, "event", e.Cause(), "why", v.Reason)
	}
}
