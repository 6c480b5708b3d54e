package sim

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/notify"
	"github.com/makegood-dev/makegood/internal/pause"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/store"
)

// life is one process from its start to its death: what it may reach of the world goes through it, takes
// time, and can go wrong. A dead one reaches nothing more: whoever calls ends.
type life struct {
	w     *world
	name  string
	clock time.Duration
	dead  bool
	// engine is the run of the embedded engine that it is part of; nil: it is a process by itself.
	engine *engine
	// release: it is of the newer one. older: it was not when it was given its batch. passedOn are the events of the batch
	// that it has left to a newer one.
	release  bool
	older    bool
	passedOn map[string]bool
	// counts numbers the calls of a kind, so that each has a name of its own.
	counts map[string]int
	// batch is the events that the process was last given, by job; for the story.
	batch map[string][]job.Event
	// firsts are the attempts that were asked about first since then, by job.
	firsts map[string]string
	// looked is what it last saw on its clock, rolled its last random number; for the story.
	looked time.Time
	rolled uint64
	// seen are the jobs as it last loaded or saved them.
	seen map[string]job.Job
	// depth is that of the queue it last asked for, the time before that, and how often it asked.
	depth, before queue.Depth
	looks         int
	// answers numbers what it was told of jobs and claims: at which it first loaded a revision of a job, and last looked
	// at an attempt.
	answers          int
	loaded, lookedAt map[string]int
	// asks: it is a person's. submitted are the jobs that its batch has a submission of, and troubled says that a call
	// has failed since the batch came.
	asks, troubled bool
	// stood: it has stood still within its batch, and the time of what it was about may be over.
	stood     bool
	submitted map[string]bool
	// told are the attempts whose closings it was told of since its batch came.
	told []string
	// hanging counts the calls of each receiver that hang in it. rests are the receivers of which pause.MaxHanging hung at
	// some time within its batch: it may have left them alone.
	hanging map[string]int
	rests   map[string]bool
	// ruled has the agents without a limit that its batch was told of; gate is its gate, atGate when it looked at one.
	ruled  ruledBy
	gate   gates
	atGate time.Time
}

var (
	_ store.Store     = (*life)(nil)
	_ store.Leases    = (*life)(nil)
	_ queue.Sender    = (*life)(nil)
	_ notify.Notifier = (*life)(nil)
	_ store.Holds     = (*life)(nil)
)

// now is the time by the clock of the process. When all is well again, clocks are too: a Scheduler that
// stays an hour behind gives shared tasks out when they are over, for as long as somebody asks it to.
func (l *life) now() time.Time {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	clock := &l.clock
	if l.engine != nil {
		clock = &l.engine.clock
	}
	if l.w.faults.over {
		*clock = 0
	}
	l.looked = time.Now().Add(*clock)
	return l.looked
}

// gone reports whether the process is dead. w.mu is held.
func (l *life) gone() bool { return l.dead || l.engine != nil && l.engine.dead }

// roll gives a random number to the Scheduler's rules, one that a story can hold.
func (l *life) roll(next func() uint64) uint64 {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	l.rolled = next() >> 1
	return l.rolled
}

// alive ends the goroutine of whoever calls for a dead process, or after the end of the world.
func (l *life) alive() {
	l.w.mu.Lock()
	gone := l.gone() || l.w.over
	l.w.mu.Unlock()
	if gone {
		runtime.Goexit()
	}
}

func (l *life) die(how string) {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	l.dead = true
	l.w.note(l.name, how)
	if l.engine != nil {
		l.w.crash(l.engine)
	}
}

// wait lets time pass, and ends with its context.
func wait(ctx context.Context, d time.Duration) error {
	if pause.For(ctx, d) != nil {
		return context.Cause(ctx)
	}
	return nil
}

// calling names a call: who, what, and the how-manieth of its kind.
func (l *life) calling(op, on string) string {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	key := op + " " + on
	l.counts[key]++
	return l.name + " " + key + " " + strconv.Itoa(l.counts[key])
}

// call carries something out, or does not, and returns its error, or another.
func (l *life) call(ctx context.Context, op, on string, do func() error) error {
	err := l.reach(ctx, op, on, do)
	if err != nil {
		l.w.mu.Lock()
		defer l.w.mu.Unlock()
		l.troubled = true
	}
	return err
}

func (l *life) reach(ctx context.Context, op, on string, do func() error) error {
	l.alive()
	name := l.calling(op, on)
	r, asked := l.w.chance.of("call", name), asking{op, on, l.knows()}
	if err := wait(ctx, between(r, 500*time.Microsecond, 4*time.Millisecond)); err != nil {
		l.alive()
		return err
	}
	l.alive()
	l.w.mu.Lock()
	fault := l.w.faults.first(name, CrashBefore, Throttled, Conflict, Paused, LandsLate, CrashAfter, AnswerLost, Repeated)
	if fault == "" && l.later(op, on) && l.w.faults.strikes(FoldTorn, name) {
		fault = pick(r, CrashBefore, CrashAfter, Throttled, AnswerLost)
	}
	jumped := l.w.faults.strikes(ClockJumped, name)
	if jumped && l.engine != nil {
		l.engine.clock = skew(r)
	} else if jumped {
		l.clock = skew(r)
	}
	l.w.mu.Unlock()
	switch fault {
	case CrashBefore:
		l.die("dies before " + op + " " + on)
		l.alive()
	case Throttled:
		return errThrottled
	case Conflict:
		return errConflict
	case Paused:
		// Whatever its caller thinks by then, the request goes out; or it is the caller who stands still,
		// when they have been answered.
		away := between(r, time.Second, pick(r, 10*time.Second, 5*time.Minute))
		l.w.mu.Lock()
		l.stood = true
		l.w.mu.Unlock()
		if oneIn(r, 2) {
			defer func() { time.Sleep(away); l.alive() }()
			break
		}
		time.Sleep(away)
		l.alive()
	case LandsLate:
		l.w.after(between(r, time.Second, pick(r, 10*time.Second, 2*time.Minute)), func() { _ = l.do(asked, true, do) })
		return errNoAnswer
	}
	err := l.do(asked, false, do)
	switch fault {
	case CrashAfter:
		l.die("dies after " + op + " " + on)
	case AnswerLost:
		err = errNoAnswer
	case Repeated:
		err = l.do(asked, false, do)
	}
	if late := wait(ctx, between(r, 500*time.Microsecond, 4*time.Millisecond)); late != nil && err == nil {
		err = late
	}
	l.alive()
	return err
}

// do carries something out, at one moment. What comes late finds an embedded engine that died as it is: dead.
func (l *life) do(asked asking, late bool, do func() error) error {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	if l.w.over || l.engine != nil && l.engine.dead {
		return errNoAnswer
	}
	l.w.writer, l.w.ruled, l.w.doing, l.w.late = l, asked.ruled, asked.op, late
	err := do()
	l.w.writer, l.w.ruled, l.w.doing, l.w.late = nil, nil, "", false
	l.w.note(l.name, asked.op+" "+asked.on+answer(err))
	return err
}

func answer(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}

// ask is call for what gives an answer. One that lands late finds nobody who waits for it.
func ask[T any](ctx context.Context, l *life, op, on string, do func() (T, error)) (T, error) {
	var got, none T
	gone := false
	err := l.call(ctx, op, on, func() error {
		value, err := do()
		if err == nil && !gone {
			got = value
		}
		return err
	})
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	gone = true
	if err != nil {
		return none, err
	}
	return got, nil
}

// Create is what store.Jobs says, in a world.
func (l *life) Create(ctx context.Context, j job.Job) error {
	j = l.writes(j)
	by, _ := ctx.Value(decided{}).(store.Scheduled) // none: no schedule makes it
	return l.call(ctx, "create", j.ID, func() error {
		l.w.decidedBy = by.Rev
		err := l.w.store.Create(ctx, j)
		if err == nil && !l.w.late {
			l.seen[j.ID], _ = l.w.store.Stored(j.ID)
		}
		return err
	})
}

// Load is what store.Jobs says, in a world.
func (l *life) Load(ctx context.Context, id string) (job.Job, error) {
	return ask(ctx, l, "load", id, func() (job.Job, error) {
		j, err := l.w.store.Load(ctx, id)
		if err == nil {
			j, err = l.reads(j)
		}
		if l.w.late {
			return j, err
		}
		l.seen[id] = j
		l.answers++
		if rev := on(id, "", int(j.Rev)); l.loaded[rev] == 0 {
			l.loaded[rev] = l.answers
		}
		return j, err
	})
}

// Save is what store.Jobs says, in a world.
func (l *life) Save(ctx context.Context, c store.Change) error {
	c.Job = l.writes(c.Job)
	return l.call(ctx, "save", c.Job.ID, func() error {
		err := l.w.store.Save(ctx, c)
		if err == nil && !l.w.late {
			l.seen[c.Job.ID], _ = l.w.store.Stored(c.Job.ID)
		}
		return err
	})
}

// Park is what store.Jobs says, in a world.
func (l *life) Park(ctx context.Context, id string, seen time.Time, reason string, completeBy time.Time) error {
	return l.call(ctx, "park", id, func() error { return l.w.store.Park(ctx, id, seen, reason, completeBy) })
}

// Claim is what store.Claims says, in a world.
func (l *life) Claim(ctx context.Context, slot store.Slot, c job.Claim, until time.Time) error {
	l.leased(c.LockedBy, time.Now(), c.CompleteBy.Sub(c.StartedAt))
	return l.call(ctx, "claim", on(slot.Job, slot.Step, c.Attempt), func() error {
		err := l.w.store.Claim(ctx, slot, c, until)
		l.w.own(slot, c, err)
		return err
	})
}

// Heartbeat is what store.Claims says, in a world.
func (l *life) Heartbeat(ctx context.Context, slot store.Slot, c job.Claim, until time.Time) (time.Time, error) {
	began := time.Now()
	var stands time.Time
	gone := false
	err := l.call(ctx, "heartbeat", on(slot.Job, slot.Step, c.Attempt), func() error {
		at, err := l.w.store.Heartbeat(ctx, slot, c, until)
		if !gone {
			stands = at
		}
		return err
	})
	// One that lands late finds nobody who waits for it.
	l.w.mu.Lock()
	gone = true
	l.w.mu.Unlock()
	if err == nil || errors.Is(err, store.ErrWithdrawn) {
		l.leased(c.LockedBy, began.Add(min(0, stands.Sub(c.CompleteBy))), 0)
	}
	return stands, err
}

// Close is what store.Closings says, in a world.
func (l *life) Close(ctx context.Context, slot store.Slot, c store.Closing) (job.Found, error) {
	name := on(slot.Job, slot.Step, c.Attempt)
	found, err := ask(ctx, l, "close", name, func() (job.Found, error) {
		l.w.asksFor(name)
		return l.w.store.Close(ctx, slot, c)
	})
	if err == nil {
		l.w.knows(l, slot, c.Attempt)
	}
	return found, err
}

// Look is what store.Closings says, in a world.
func (l *life) Look(ctx context.Context, slot store.Slot, attempt int, until, now time.Time) (job.Found, error) {
	return ask(ctx, l, "look", on(slot.Job, slot.Step, attempt), func() (job.Found, error) {
		l.w.looks(l, slot, attempt)
		return l.w.store.Look(ctx, slot, attempt, until, now)
	})
}

// Overrule is what store.Closings says, in a world.
func (l *life) Overrule(ctx context.Context, slot store.Slot, attempt int, lie string, until time.Time) error {
	return l.call(ctx, "overrule", on(slot.Job, slot.Step, attempt), func() error {
		return l.w.store.Overrule(ctx, slot, attempt, lie, until)
	})
}

// leased notes until when a claim may reply, by the clock that nothing skews: a timeout from when it was
// first asked for, or from when a heartbeat that was granted was. Zero: the timeout of the claim.
func (l *life) leased(by string, began time.Time, timeout time.Duration) {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	held, known := l.w.leases[by]
	if !known {
		held = lasts{began.Add(timeout), timeout}
	}
	if until := began.Add(held.timeout); until.After(held.until) {
		held.until = until
	}
	l.w.leases[by] = held
}

func on(job, step string, attempt int) string { return job + "/" + step + "#" + strconv.Itoa(attempt) }

// Shards is 1: see Store.DueOfAll.
func (l *life) Shards() int { return 1 }

// Due is what store.Index says, in a world.
func (l *life) Due(ctx context.Context, _ int, now time.Time, after store.Entry, limit int) ([]store.Entry, error) {
	return ask(ctx, l, "due", "", func() ([]store.Entry, error) { return l.w.store.DueOfAll(ctx, now, after, limit), nil })
}

// PutPayload is what store.Payloads says, in a world.
func (l *life) PutPayload(ctx context.Context, job, key string, value []byte) error {
	return l.call(ctx, "put", job+" "+key, func() error { return l.w.store.PutPayload(ctx, job, key, value) })
}

// Payload is what store.Payloads says, in a world.
func (l *life) Payload(ctx context.Context, job, key string) ([]byte, error) {
	return ask(ctx, l, "get", job+" "+key, func() ([]byte, error) { return l.w.store.Payload(ctx, job, key) })
}

// HistoryPages is what store.Histories says, in a world.
func (l *life) HistoryPages(ctx context.Context, job string) (map[string][]byte, error) {
	return ask(ctx, l, "pages", job, func() (map[string][]byte, error) { return l.w.store.HistoryPages(ctx, job) })
}

// DropPages is what store.Histories says, in a world.
func (l *life) DropPages(ctx context.Context, job string, after, before int) error {
	return l.call(ctx, "drop", job, func() error { return l.w.store.DropPages(ctx, job, after, before) })
}

// PutDefinition is what store.Definitions says; definitions are there before the world begins.
func (l *life) PutDefinition(ctx context.Context, name, hash string, definition []byte) error {
	return l.w.store.PutDefinition(ctx, name, hash, definition)
}

// Definition is what store.Definitions says, in a world.
func (l *life) Definition(ctx context.Context, hash string) ([]byte, error) {
	return ask(ctx, l, "definition", "", func() ([]byte, error) { return l.w.store.Definition(ctx, hash) })
}

// CurrentDefinition is what store.Definitions says, in a world.
func (l *life) CurrentDefinition(ctx context.Context, name string) (string, error) {
	return ask(ctx, l, "current", name, func() (string, error) { return l.w.store.CurrentDefinition(ctx, name) })
}

// TakeLease is what store.Leases says, in a world.
func (l *life) TakeLease(ctx context.Context, name, holder string, now, until time.Time) error {
	return l.call(ctx, "lease", name, func() error { return l.w.store.TakeLease(ctx, name, holder, now, until) })
}

// ReleaseLease is what store.Leases says, in a world.
func (l *life) ReleaseLease(ctx context.Context, name, holder string) error {
	return l.call(ctx, "release", name, func() error { return l.w.store.ReleaseLease(ctx, name, holder) })
}

// Depth is what queue.Sender says, in a world.
func (l *life) Depth(ctx context.Context, name string) (queue.Depth, error) {
	depth, err := ask(ctx, l, "depth", name, func() (queue.Depth, error) { return l.w.queues[name].depth(), nil })
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	l.depth, l.before = depth, l.depth
	l.looks++
	return depth, err
}

// Send is what queue.Sender says, in a world: each message meets its own fate. They do so in the order of
// what they are about: several goroutines may have put them together at one moment.
func (l *life) Send(ctx context.Context, name string, messages ...queue.Message) []error {
	// A call that lands late has the messages as they were sent, though its caller has used the memory again.
	messages = slices.Clone(l.says(messages))
	order := make([]int, len(messages))
	for i, m := range messages {
		order[i] = i
		if left(m) {
			l.leaves(m)
			continue
		}
		l.w.mayReply(l, m)
		l.w.maySend(l, m)
	}
	slices.SortStableFunc(order, func(a, b int) int { return strings.Compare(l.about(messages[a]), l.about(messages[b])) })
	what := name
	for _, i := range order {
		what += l.about(messages[i])
	}
	errs, err := ask(ctx, l, "send", what, func() ([]error, error) {
		fates := make([]error, len(messages))
		for _, i := range order {
			fates[i] = l.w.queues[name].put(l.name+l.about(messages[i]), messages[i])
		}
		return fates, nil
	})
	if err != nil {
		errs = slices.Repeat([]error{err}, len(messages))
	}
	return errs
}

// about says in a word what a message is about.
func (l *life) about(m queue.Message) string {
	if in, err := l.w.reading.event(m.Body); err == nil && in.Event != nil {
		return " " + m.Group + ":" + in.Event.Cause()
	}
	if task, err := l.w.reading.task(m.Body); err == nil {
		return " " + on(task.Job, task.Step, task.Attempt)
	}
	return " " + m.Group
}

// Return is what queue.Receiver says, in a world.
func (l *life) Return(ctx context.Context, name string, after time.Duration, receipts ...string) error {
	return l.call(ctx, "return", name, func() error {
		for _, receipt := range receipts {
			l.w.queues[name].giveBack(receipt, after)
		}
		return nil
	})
}

// missing reports whether an error says that there is no such job.
func (l *life) missing(err error) bool { return errors.Is(err, store.ErrNotFound) }
