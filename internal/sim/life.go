package sim

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/notify"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/wire"
)

// life is one process from its start to its death: what it may reach of the world goes through it, takes
// time, and can go wrong. A dead one reaches nothing more: whoever calls ends.
type life struct {
	w     *world
	name  string
	clock time.Duration
	dead  bool
	// counts numbers the calls of a kind, so that each has a name of its own.
	counts map[string]int
	// letters are the events that the process was last given, by job; for the story.
	letters map[string][]makegood.Event
	// looked is what it last saw on its clock, rolled its last random number; for the story.
	looked time.Time
	rolled uint64
	// seen are the jobs as it last loaded or saved them.
	seen map[string]makegood.Job
	// depth is that of the queue it last asked for, the time before that, and how often it asked.
	depth, before queue.Depth
	looks         int
}

var (
	_ store.Store     = (*life)(nil)
	_ store.Leases    = (*life)(nil)
	_ queue.Sender    = (*life)(nil)
	_ notify.Notifier = (*life)(nil)
)

// now is the time by the clock of the process. When all is well again, clocks are too: a Scheduler that
// stays an hour behind gives shared tasks out when they are over, for as long as somebody asks it to.
func (l *life) now() time.Time {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	if l.w.faults.over {
		l.clock = 0
	}
	l.looked = time.Now().Add(l.clock)
	return l.looked
}

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
	gone := l.dead || l.w.over
	l.w.mu.Unlock()
	if gone {
		runtime.Goexit()
	}
}

func (l *life) die(how string) {
	l.w.mu.Lock()
	l.dead = true
	l.w.note(l.name, how)
	l.w.mu.Unlock()
}

// wait lets time pass, and ends with its context.
func wait(ctx context.Context, d time.Duration) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// calling names a call: who, what, and the how-manieth of its kind.
func (l *life) calling(op, on string) string {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	key := op + " " + on
	l.counts[key]++
	return l.name + " " + key + " " + strconv.Itoa(l.counts[key])
}

// call carries something out, or does not, and gives its error, or another.
func (l *life) call(ctx context.Context, op, on string, do func() error) error {
	l.alive()
	name := l.calling(op, on)
	r := l.w.chance.of("call", name)
	if err := wait(ctx, between(r, 500*time.Microsecond, 4*time.Millisecond)); err != nil {
		l.alive()
		return err
	}
	l.alive()
	l.w.mu.Lock()
	fault := l.w.faults.first(name, CrashBefore, Throttled, Conflict, Paused, LandsLate, CrashAfter, AnswerLost, Repeated)
	jumped := l.w.faults.strikes(ClockJumped, name)
	if jumped {
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
		// when he has been answered.
		pause := between(r, time.Second, pick(r, 10*time.Second, 5*time.Minute))
		if oneIn(r, 2) {
			defer func() { time.Sleep(pause); l.alive() }()
			break
		}
		time.Sleep(pause)
		l.alive()
	case LandsLate:
		l.w.after(between(r, time.Second, pick(r, 10*time.Second, 2*time.Minute)), func() { _ = l.do(op, on, do) })
		return errNoAnswer
	}
	err := l.do(op, on, do)
	switch fault {
	case CrashAfter:
		l.die("dies after " + op + " " + on)
	case AnswerLost:
		err = errNoAnswer
	case Repeated:
		err = l.do(op, on, do)
	}
	if late := wait(ctx, between(r, 500*time.Microsecond, 4*time.Millisecond)); late != nil && err == nil {
		err = late
	}
	l.alive()
	return err
}

// do carries something out, at one moment.
func (l *life) do(op, on string, do func() error) error {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	if l.w.over {
		return errNoAnswer
	}
	l.w.writer = l
	err := do()
	l.w.writer = nil
	l.w.note(l.name, op+" "+on+answer(err))
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
func (l *life) Create(ctx context.Context, job makegood.Job) error {
	return l.call(ctx, "create", job.ID, func() error { return l.w.store.Create(ctx, job) })
}

// Load is what store.Jobs says, in a world.
func (l *life) Load(ctx context.Context, id string) (makegood.Job, error) {
	return ask(ctx, l, "load", id, func() (makegood.Job, error) {
		job, err := l.w.store.Load(ctx, id)
		l.seen[id] = job
		return job, err
	})
}

// Save is what store.Jobs says, in a world.
func (l *life) Save(ctx context.Context, c store.Change) error {
	return l.call(ctx, "save", c.Job.ID, func() error {
		err := l.w.store.Save(ctx, c)
		if err == nil {
			l.seen[c.Job.ID], _ = l.w.store.peek(c.Job.ID)
		}
		return err
	})
}

// Park is what store.Jobs says, in a world.
func (l *life) Park(ctx context.Context, id string, seen time.Time, reason string, completeBy time.Time) error {
	return l.call(ctx, "park", id, func() error { return l.w.store.Park(ctx, id, seen, reason, completeBy) })
}

// Claim is what store.Claims says, in a world.
func (l *life) Claim(ctx context.Context, job, step string, c makegood.Claim) error {
	l.leased(c.LockedBy, time.Now(), c.CompleteBy.Sub(c.StartedAt))
	return l.call(ctx, "claim", on(job, step, c.Attempt), func() error {
		err := l.w.store.Claim(ctx, job, step, c)
		l.w.own(job, step, c, err)
		return err
	})
}

// Beat is what store.Claims says, in a world.
func (l *life) Beat(ctx context.Context, job, step string, c makegood.Claim) error {
	began := time.Now()
	err := l.call(ctx, "beat", on(job, step, c.Attempt), func() error { return l.w.store.Beat(ctx, job, step, c) })
	if err == nil || errors.Is(err, store.ErrWithdrawn) {
		l.leased(c.LockedBy, began, 0)
	}
	return err
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

// lasts is until when a claim may reply, and for how long each heartbeat lets it go on.
type lasts struct {
	until   time.Time
	timeout time.Duration
}

func on(job, step string, attempt int) string { return job + "/" + step + "#" + strconv.Itoa(attempt) }

// Shards is what store.Index says.
func (l *life) Shards() int { return l.w.store.Shards() }

// Due is what store.Index says, in a world.
func (l *life) Due(ctx context.Context, shard int, now time.Time, after store.Entry, limit int) ([]store.Entry, error) {
	return ask(ctx, l, "due", "", func() ([]store.Entry, error) { return l.w.store.Due(ctx, shard, now, after, limit) })
}

// PutPayload is what store.Payloads says, in a world.
func (l *life) PutPayload(ctx context.Context, job, key string, value []byte) error {
	return l.call(ctx, "put", job+" "+key, func() error { return l.w.store.PutPayload(ctx, job, key, value) })
}

// Payload is what store.Payloads says, in a world.
func (l *life) Payload(ctx context.Context, job, key string) ([]byte, error) {
	return ask(ctx, l, "get", job+" "+key, func() ([]byte, error) { return l.w.store.Payload(ctx, job, key) })
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
	order := make([]int, len(messages))
	for i, m := range messages {
		order[i] = i
		l.w.mayReply(l, m)
		l.w.maySend(l, m)
	}
	slices.SortStableFunc(order, func(a, b int) int { return strings.Compare(about(messages[a]), about(messages[b])) })
	what := name
	for _, i := range order {
		what += about(messages[i])
	}
	errs := make([]error, len(messages))
	err := l.call(ctx, "send", what, func() error {
		for _, i := range order {
			errs[i] = l.w.queues[name].put(l.name+about(messages[i]), messages[i])
		}
		return nil
	})
	for i := range errs {
		if err != nil {
			errs[i] = err
		}
	}
	return errs
}

// about says in a word what a message is about.
func about(m queue.Message) string {
	if in, err := wire.DecodeIncoming(m.Body); err == nil && in.Event != nil {
		return " " + m.Group + ":" + in.Event.Cause()
	}
	if task, err := wire.DecodeTask(m.Body); err == nil {
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

// Announce is what notify.Notifier says, in a world.
func (l *life) Announce(ctx context.Context, n notify.Notice) error {
	return l.call(ctx, "announce", n.Job+"/"+strconv.Itoa(n.Seq), func() error {
		l.w.told[n.Job+"/"+strconv.Itoa(n.Seq)] = n.ProcessState
		return nil
	})
}

// AgentSilent is what notify.Notifier says, in a world.
func (l *life) AgentSilent(ctx context.Context, agent string) error {
	return l.call(ctx, "agent-silent", agent, func() error { return nil })
}

// given notes the events of a batch, for the story.
func (l *life) given(batch events.SQSEvent) {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	l.letters = map[string][]makegood.Event{}
	for _, record := range batch.Records {
		if in, err := wire.DecodeIncoming(record.Body); err == nil && in.Event != nil {
			l.letters[in.Job] = append(l.letters[in.Job], in.Event)
		}
	}
}

// asked notes a request, for the story.
func (l *life) asked(job string, e makegood.Event) {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	l.letters = map[string][]makegood.Event{job: {e}}
}

// missing reports whether an error says that there is no such job.
func (l *life) missing(err error) bool { return errors.Is(err, store.ErrNotFound) }
