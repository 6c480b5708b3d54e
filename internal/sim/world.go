// Package sim plays the shipped Scheduler, agents and Supervisor in a simulated world: store, queues, index,
// clocks, remote services and people, in virtual time, from a seed. Everything that can go wrong does, at
// rates that differ from seed to seed, and after every write it is asked whether what must hold does.
//
// The shipped code is run as it is, goroutines and timers included, in a bubble of testing/synctest. That one
// thing happens at a time is the world's doing: whatever a process reaches of it takes a stretch of time of
// its own, which hangs on the seed and on the name of the call. So a seed is one course of events, whatever
// the machine does.
//
// It does not simulate the adapters (storetest holds them to the same contract as the store here), the
// embedded engine's restarts, or the loss of the store.
package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/agentrun"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/sqsbatch"
	"github.com/makegood-dev/makegood/internal/supervisor"
	"github.com/makegood-dev/makegood/internal/wire"
)

const (
	// faultsLast is how long things go wrong; then everything must come to its end by itself, but for what
	// waits for a person.
	faultsLast = 8 * time.Minute
	// endsWithin is how long that may take: clocks that were an hour wrong have left their mark on what is
	// due, more than once.
	endsWithin = 24 * time.Hour
	// sweepEvery is the schedule of the Supervisor.
	sweepEvery = time.Minute
	// operatorEvery is how often the person looks who is called at the end.
	operatorEvery = 2 * time.Minute

	// longest is how long anything waits for itself.
	longest = time.Hour

	// depthLimit is above how many waiting events the Supervisor holds back.
	depthLimit = 4

	eventsQueue     = "events"
	quarantineQueue = "quarantine"
	tasksPrefix     = "tasks-"
)

// Options say which run it is. The zero value of all but Seed is a whole run.
type Options struct {
	Seed uint64
	// Trace, if set, gets a line for each event.
	Trace io.Writer

	// What follows makes a run smaller, to find what a violation needs.
	off            map[Kind]bool
	without        map[string]bool
	jobs, steps    int
	quietOperators bool
}

// Result is what became of a run.
type Result struct {
	// Events is how many things happened, Hash tells their whole course.
	Events int
	Hash   uint64
	// Faults counts the faults by kind, Ends the jobs by the state they ended in.
	Faults map[Kind]int
	Ends   map[makegood.ProcessState]int
	// Violations say what must not have happened; none is what is hoped for.
	Violations []string
	// struck are the names of the faults; story is what happened to the job of the first violation.
	struck []string
	story  string
}

// world is one run: a store, queues, functions, services and people, in virtual time. One goroutine runs at
// a time: all others wait for a moment that is theirs alone. mu is for the race detector and for the few
// that start together.
type world struct {
	chance chance
	faults *faults
	store  *Store
	queues map[string]*simQueue
	load   workload
	start  time.Time
	trace  io.Writer

	mu   sync.Mutex
	over bool
	// writer is who writes now.
	writer *life
	events int
	hash   uint64
	// ledger is what the services know by key; runs counts the runs of attempts, told is what was announced,
	// acked which jobs were promised.
	ledger map[string]*account
	runs   map[string]int
	told   map[string]makegood.ProcessState
	acked  map[string]bool
	// lives counts the processes of a name. Of attempts, opened are the last ones that could be claimed,
	// claimed those that were, started how many of each job, leases until when each claim may reply.
	lives   map[string]int
	opened  map[string]int
	claimed map[string]int
	started map[string]int
	leases  map[string]lasts
	// sent counts the tasks that were sent of each attempt, causes is what made it due, outputs are those
	// that finished steps.
	sent    map[string]int
	causes  map[string]map[string]bool
	outputs map[[2]string][]byte

	stale   window
	staleBy time.Duration
	result  Result
	tales   map[string]*tale
	blamed  string
	wg      sync.WaitGroup
}

// Run plays a seed. It must be called in a bubble of testing/synctest, which is where its time comes from.
func Run(o Options) Result {
	c := chance{seed: o.Seed}
	w := &world{
		chance: c, faults: newFaults(c, o), store: NewStore(), load: newWorkload(c, o), start: time.Now(), trace: o.Trace,
		hash: 14695981039346656037, ledger: map[string]*account{}, runs: map[string]int{}, told: map[string]makegood.ProcessState{},
		lives: map[string]int{}, acked: map[string]bool{}, opened: map[string]int{}, claimed: map[string]int{}, started: map[string]int{},
		leases: map[string]lasts{}, sent: map[string]int{}, causes: map[string]map[string]bool{}, outputs: map[[2]string][]byte{}, tales: map[string]*tale{}, queues: map[string]*simQueue{},
	}
	w.store.Wrote = w.wrote
	w.stale = w.faults.window(StaleIndex, "index", w.start, 10*time.Minute)
	w.staleBy = between(c.of("stale"), time.Second, 10*time.Minute)
	w.store.Lag = w.lag
	w.build()
	w.people()
	w.wg.Go(w.schedule)
	w.untilEnd()
	w.mu.Lock()
	w.over = true
	w.mu.Unlock()
	w.wg.Wait()
	time.Sleep(longest) // Whoever still waits for something finds the world at its end.
	return w.finish()
}

func (w *world) lag() time.Duration {
	if w.stale.holds(time.Now()) && !w.faults.over {
		return w.staleBy
	}
	return 0
}

// after does something after a while; what it does must bear that the world is over by then.
func (w *world) after(d time.Duration, do func()) {
	time.AfterFunc(d, do)
}

// life gives a new process. w.mu is held.
func (w *world) life(name string) *life {
	w.lives[name]++
	if n := w.lives[name]; n > 1 {
		name += "." + strconv.Itoa(n)
	}
	l := &life{w: w, name: name, counts: map[string]int{}, seen: map[string]makegood.Job{}}
	if w.faults.strikes(ClockSkewed, name) {
		l.clock = skew(w.chance.of("clock", name))
	}
	return l
}

// note puts an event into the hash, and into the trace. w.mu is held.
func (w *world) note(who, what string) {
	if w.over {
		return
	}
	w.events++
	line := strconv.FormatInt(int64(time.Since(w.start)), 10) + " " + who + ": " + what
	for i := range len(line) {
		w.hash = (w.hash ^ uint64(line[i])) * 1099511628211
	}
	if w.trace != nil {
		fmt.Fprintf(w.trace, "%15s  %s: %s\n", time.Since(w.start), who, what)
	}
}

// violate notes what must not have happened. w.mu is held.
func (w *world) violate(job, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.note("VIOLATION", text)
	if w.blamed == "" {
		w.blamed = job
	}
	if len(w.result.Violations) < 10 {
		w.result.Violations = append(w.result.Violations, text)
	}
}

func (w *world) build() {
	for _, c := range w.load.workflows {
		_ = w.store.PutDefinition(context.Background(), c.Workflow.Name, c.Hash, c.Definition)
	}
	w.addQueue(quarantineQueue, 0, nil)
	w.addQueue(eventsQueue, 30*time.Second, &function{most: 2, timeout: 20 * time.Second, make: w.schedulerOf})
	for _, name := range agents {
		w.addQueue(tasksPrefix+name, 90*time.Second, &function{most: 2, timeout: 60 * time.Second, make: func(l *life) queue.Handler {
			return w.agentOf(l, name)
		}})
	}
}

func (w *world) addQueue(name string, visibility time.Duration, f *function) {
	q := &simQueue{w: w, name: name, visibility: visibility, messages: map[string]*message{}, function: f}
	q.stopped = w.faults.window(PollingStopped, name, w.start, 5*time.Minute)
	w.queues[name] = q
	if f != nil {
		f.w, f.name, f.queue = w, name+"-function-", q
	}
}

var quiet = slog.New(slog.DiscardHandler)

func (w *world) scheduler(l *life) *scheduler.Scheduler {
	random := w.chance.of("scheduler", l.name)
	return scheduler.New(scheduler.Config{
		Jobs: l, Payloads: l, Definitions: l, Queue: l, Notifier: l, Events: eventsQueue, Quarantine: quarantineQueue,
		Tasks: func(agent string) string { return tasksPrefix + agent }, Replies: []string{"shop"}, Reminders: true,
		Instance: l.name, Now: l.now, Random: func() uint64 { return l.roll(random.Uint64) }, Logger: quiet,
	})
}

// rolled takes a number from a source that several goroutines of a process share.
func (w *world) rolled(next func() uint64) uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return next()
}

func (w *world) schedulerOf(l *life) queue.Handler {
	return w.withBackoff(l, eventsQueue, w.scheduler(l).HandleSQS)
}

func (w *world) agentOf(l *life, name string) queue.Handler {
	runner := agentrun.New(agentrun.Config{
		Handlers: []agent.Handler{remote{l, name}}, Claims: l, Queue: l, Quarantine: quarantineQueue, Instance: l.name,
		Now: l.now, Logger: quiet, Nonce: func(t makegood.Task) string { return l.calling("claims", on(t.Job, t.Step, t.Attempt)) },
	})
	return w.withBackoff(l, tasksPrefix+name, runner.HandleSQS)
}

func (w *world) withBackoff(l *life, name string, h queue.Handler) queue.Handler {
	random := w.chance.of("backoff", l.name)
	return sqsbatch.Backoff(h, l, name, sqsbatch.BackoffOptions{Logger: quiet, Roll: func(longest time.Duration) time.Duration {
		return time.Duration(w.rolled(random.Uint64) % uint64(longest+1))
	}})
}

// schedule starts the Supervisor once a minute, more or less.
func (w *world) schedule() {
	for n := 0; ; n++ {
		tick := "tick" + strconv.Itoa(n)
		time.Sleep(sweepEvery + between(w.chance.of(tick), -2*time.Second, 2*time.Second))
		w.mu.Lock()
		over := w.over
		times := 1
		switch w.faults.first(tick, TickDropped, TickDoubled) {
		case TickDropped:
			times = 0
		case TickDoubled:
			times = 2
		}
		w.mu.Unlock()
		if over {
			return
		}
		for range times {
			w.process("supervisor", func(l *life) {
				s := supervisor.New(supervisor.Config{
					Index: l, Queue: l, Events: eventsQueue, Leases: l, Holder: l.name, Depth: depthLimit, Unpolled: time.Second, Now: l.now, Logger: quiet,
				})
				_, _ = s.Sweep(context.Background()) // What it could not do, the next one does.
			})
			time.Sleep(time.Microsecond)
		}
	}
}

// process runs something in a process of its own, and gives a channel that closes with it.
func (w *world) process(name string, do func(*life)) <-chan struct{} {
	w.mu.Lock()
	l := w.life(name)
	w.mu.Unlock()
	done := make(chan struct{})
	w.wg.Go(func() {
		defer close(done)
		do(l)
	})
	return done
}

// people start the submitters and operators, and who sends poison.
func (w *world) people() {
	n := 0
	someone := func(at time.Duration, do func(s *scheduler.Scheduler, l *life) bool) {
		n++
		name := "person" + strconv.Itoa(n)
		at += time.Duration(n) // No two at one moment.
		w.wg.Go(func() {
			time.Sleep(at)
			w.insist(name, do)
		})
	}
	for _, o := range w.load.jobs {
		for _, at := range append([]time.Duration{o.at}, o.again...) {
			someone(at, func(s *scheduler.Scheduler, l *life) bool { return w.submit(s, l, o, o.input) })
		}
		if o.other > 0 {
			other := json.RawMessage(`{"other":true}`)
			someone(o.other, func(s *scheduler.Scheduler, l *life) bool { return w.submit(s, l, o, other) })
		}
		for i, r := range o.requests {
			someone(r.at, func(s *scheduler.Scheduler, l *life) bool { return w.request(s, l, o.id, r.verb, "r"+strconv.Itoa(i)) })
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range []string{eventsQueue, tasksPrefix + agents[0]} {
		for i := range 2 {
			if w.faults.strikes(Poison, name+strconv.Itoa(i)) {
				w.after(between(w.chance.of("poison", name, strconv.Itoa(i)), time.Second, time.Minute), func() {
					w.mu.Lock()
					defer w.mu.Unlock()
					_ = w.queues[name].put("poisoner", queue.Message{Body: `{"v":1,"type":"Nonsense"}`})
				})
			}
		}
	}
}

// insist lets a person ask until there is an answer: one whose process died, or was told of an error, asks
// again.
func (w *world) insist(name string, do func(s *scheduler.Scheduler, l *life) bool) {
	for pause := time.Second; ; pause = min(2*pause, 30*time.Second) {
		answered := false
		<-w.process(name, func(l *life) { answered = do(w.scheduler(l), l) })
		w.mu.Lock()
		over := w.over
		w.mu.Unlock()
		if answered || over {
			return
		}
		time.Sleep(pause)
	}
}

// submit submits a job, and remembers that it was promised.
func (w *world) submit(s *scheduler.Scheduler, l *life, o order, input json.RawMessage) bool {
	ctx := context.Background()
	sub := scheduler.Submission{ID: o.id, Input: input, ReplyTo: o.replyTo}
	if o.startAt > 0 {
		sub.StartAt = w.start.Add(o.startAt)
	}
	if o.byMessage {
		body, err := wire.EncodeSubmit(wire.Submit{Workflow: o.workflow.Workflow.Name, ID: o.id, Input: input, StartAt: sub.StartAt, ReplyTo: o.replyTo})
		if err != nil {
			panic(err)
		}
		for _, err := range l.Send(ctx, eventsQueue, queue.Message{Body: body, Group: o.id}) {
			if err != nil {
				return false
			}
		}
		// A message is no promise yet: it asks until the job is there.
		_, err = l.Load(ctx, o.id)
		return err == nil
	}
	job, _, err := s.SubmitCurrent(ctx, o.workflow.Workflow.Name, sub)
	var mismatch *scheduler.MismatchError
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case errors.As(err, &mismatch):
		return true
	case err != nil:
		return false
	}
	w.acked[o.id] = true
	if hash, _ := scheduler.ContentHash(o.workflow.Workflow.Name, input); job.InputHash != hash {
		w.violate(o.id, "I2: a submission of job %s was granted, and the job has other content", o.id)
	}
	return true
}

// request asks for a verb; a refusal is an answer, and that there is no such job yet as well.
func (w *world) request(s *scheduler.Scheduler, l *life, job string, verb makegood.Verb, name string) bool {
	l.asked(job, makegood.Requested{Verb: verb, Request: name, Reason: "sim"})
	_, _, err := s.Request(context.Background(), job, makegood.Requested{Verb: verb, Request: name, Reason: "sim"})
	return err == nil || l.missing(err)
}

// untilEnd lets the faults end, and then waits for the jobs, with an operator who sees to what waits for
// one.
func (w *world) untilEnd() {
	time.Sleep(faultsLast)
	w.mu.Lock()
	w.faults.over = true
	w.note("world", "all is well from now on")
	w.mu.Unlock()
	for n := 0; ; n++ {
		time.Sleep(operatorEvery)
		var open []string
		for _, job := range w.store.All() {
			if !w.ended(job) {
				open = append(open, fmt.Sprintf("%s is %s (%s)", job.ID, job.ProcessState, job.Reason))
				w.attend(job, n)
			}
		}
		w.mu.Lock()
		waiting := w.waiting()
		late := time.Since(w.start) > endsWithin
		if late && len(open) > 0 {
			w.violate("", "I1: after %s of virtual time %s", endsWithin, strings.Join(open, ", "))
		}
		if late && len(waiting) > 0 {
			w.violate("", "I14: %d messages are still on the queues after %s of virtual time, the first is %s", len(waiting), endsWithin, waiting[0].body)
		}
		w.mu.Unlock()
		if late || len(open) == 0 && len(waiting) == 0 {
			return
		}
	}
}

// waiting are the messages that somebody has yet to deal with. w.mu is held.
func (w *world) waiting() []*message {
	var waiting []*message
	for _, name := range slices.Sorted(maps.Keys(w.queues)) {
		for _, m := range w.queues[name].order {
			if !m.gone && name != quarantineQueue {
				waiting = append(waiting, m)
			}
		}
	}
	return waiting
}

// ended reports whether nothing more is to be done about a job.
func (w *world) ended(job makegood.Job) bool {
	return job.ProcessState.Finished() && job.Told() && !job.Paused()
}

// attend is what an operator does about a job that waits for one.
func (w *world) attend(job makegood.Job, n int) {
	var verb makegood.Verb
	switch {
	case job.Paused():
		verb = makegood.Resume
	case job.ProcessState == makegood.Error:
		verb = makegood.Resubmit
	default:
		return
	}
	<-w.process("operator", func(l *life) {
		w.request(w.scheduler(l), l, job.ID, verb, "op"+strconv.Itoa(n))
	})
}
