// Package sim plays the shipped Scheduler, agents and Supervisor in a simulated world: store, queues, index,
// clocks, remote services and people, in virtual time, from a seed. Everything that can go wrong does, at
// rates that differ from seed to seed, and after every write it is asked whether what must hold does.
//
// The shipped code is run as it is, goroutines and timers included, in a bubble of testing/synctest. That one
// thing happens at a time is the world's doing: whatever a process reaches of it takes a stretch of time of
// its own, which hangs on the seed and on the name of the call. So a seed is one course of events, whatever
// the machine does.
//
// One seed in five is of an embedded engine: one process, whose queues are lost when it dies, and its last claims with
// the power.
//
// It does not simulate the adapters (storetest holds them to the same contract as the store here), or the loss of the
// store.
package sim

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/agentrun"
	"github.com/makegood-dev/makegood/internal/holds"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/queue/together"
	"github.com/makegood-dev/makegood/internal/router"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/sqsbatch"
	"github.com/makegood-dev/makegood/internal/supervisor"
	"github.com/makegood-dev/makegood/internal/testkit/layers"
	"github.com/makegood-dev/makegood/lab/oracle"
)

const (
	// faultsLast is how long things go wrong; then everything must come to its end by itself, but for what
	// waits for a person.
	faultsLast = 8 * time.Minute
	// endsWithin is how long that may take: clocks that were an hour wrong have left their mark on what is
	// due, more than once; and a listener who is gone is given up after a day.
	endsWithin = 30 * time.Hour
	// sweepEvery is the schedule of the Supervisor.
	sweepEvery = time.Minute
	// sweepFor is how long a sweep may take.
	sweepFor = 48 * time.Second
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
	// Waits lets remotes answer that their step waits, and those outside complete it.
	Waits bool
	// Children lets jobs of their own do steps of some jobs.
	Children bool
	// Maps lets steps of some jobs be done for each item of a list.
	Maps bool
	// Changes lets somebody hear of every change.
	Changes bool
	// Limits lets agents have a limit of attempts that are with them at once.
	Limits bool
	// Keys lets these be limits for each value of a key.
	Keys bool
	// Breakers lets agents have a breaker, and services outages.
	Breakers bool
	// Repairs lets people repair; without it they do in some worlds.
	Repairs bool
	// Seen, if set, notes what is played.
	Seen *layers.Seen

	// What follows makes a run smaller, to find what a violation needs.
	off         map[Kind]bool
	unscheduled bool
	without     map[string]bool
	jobs, steps int
	// items is how many items a map has; zero: as rolled. For more of them the world is wider and faults last longer.
	items          int
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
	// Waits counts the attempts that handed their step to those outside, Words the answers that those gave.
	Waits, Words int
	// Approvals counts the answers of people that were taken by address.
	Approvals int
	// Heard counts the changes that somebody was told of, each as often as it was.
	Heard int
	// Breaks counts what breakers did.
	Breaks breaks
	// Queued counts the attempts that stood before the gate of their agent.
	Queued int
	// Tokens counts the tokens that were taken for a rate.
	Tokens int
	// Turned counts how often a fair queue delivered in another order.
	Turned int
	// Redriven counts the redrives that were granted, Tried the items tried again for them, Refused those that were
	// not and why is said, Left those that were not named, and Items those of the largest map that was done.
	Redriven, Tried, Refused, Left, Items int
	Edits                                 edits // of maps, that parts have got
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
	layer  *layers.Seen
	store  *Store
	queues map[string]*simQueue
	load   workload
	start  time.Time
	trace  io.Writer

	mu   sync.Mutex
	over bool
	// writer is the process that writes now, and ruled has the limits that it knew when it decided to.
	writer *life
	ruled  ruledBy
	// doing is what it does, late says that it was answered with an error a while ago.
	doing string
	late  bool
	// decidedBy is the Rev of the schedule that whoever makes a job now has decided by, if a fire does.
	decidedBy int64
	events    int
	hash      uint64
	// ledger is what the services know by key; runs counts the runs of attempts, told how often what was announced,
	// acked which jobs were promised.
	ledger map[string]*account
	// unclaimed are, by job and step, how many attempts were made that need no claim.
	unclaimed map[string]map[string]int
	// accounts are the same by job. definitions are those that jobs may have, by their hash.
	accounts map[string][]*account
	// bodies are what attempts were asked for, barred up to which attempt a person has stopped a key, and notDone of which
	// keys somebody has said that nothing stands.
	bodies map[string]body
	barred map[string]int
	// listed says of a step of a round that is over, by its key, that the job said then that what it did stands.
	listed      map[string]bool
	notDone     map[string]bool
	definitions map[string]makegood.Workflow
	runs        map[string]int
	// inline are the attempts that ran in the process which opened them. chained are those of a chain, each with the one
	// before it, and succeeded those with a success that their process knows.
	inline, succeeded map[string]bool
	chained           map[string]string
	// beganAt is when an inline attempt began that is the first of a chain.
	beganAt map[string]time.Time
	told    map[string]int
	acked   map[string]bool
	// lives counts the processes of a name. Of attempts, opened are the last ones that could be claimed,
	// claimed those that were (written says when), started how many of each job, leases until when each claim may reply.
	lives   map[string]int
	opened  map[string]int
	claimed map[string]int
	written map[string]time.Time
	started map[string]int
	leases  map[string]lasts
	// sent counts the tasks that were sent of each attempt, causes is what made it due, outputs are those
	// that finished steps.
	sent map[string]int
	// tried are the attempts whose tasks were to be sent, closings those whose end was asked for since the job said so,
	// answered which processes were told how that went, nobodys those that were closed unclaimed, looked how often each
	// was looked at since it was last said when, runOf the run of the embedded engine that opened each.
	tried    map[string]bool
	never    map[string]bool // see neverTakes
	closings map[string]bool
	answered map[string]map[string]string
	nobodys  map[string]bool
	looked   map[string]int
	runOf    map[string]int
	// owed is who is to be told of an announcement.
	owed    map[string]map[string]bool
	causes  map[string]map[string]bool
	outputs map[[2]string][]byte
	// referees judge the policy of each job.
	referees map[string]*oracle.Referee

	stale   window
	staleBy time.Duration
	// deafness is when the listener hears nothing.
	deafness    window
	deafForGood bool
	// exact: no clock goes wrong. period is how often the Supervisor looks at what is overdue.
	exact bool
	// mixed: processes are of two releases.
	mixed   bool
	period  time.Duration
	reading reading
	// engine is the run of the embedded engine, if that is what runs here.
	engine *engine
	result Result
	tales  map[string]*tale
	blamed string
	wg     sync.WaitGroup

	// repairs: people repair what is wrong.
	repairs bool
	// limits has the facts about the limits of agents; nil: none has one.
	limits *limiting
	// breaking has the facts about breakers; nil: no agent has one.
	breaking *breaking
	// waits: remotes hand steps to those outside. words are those who said that one is done.
	waits bool
	// children: jobs of their own do steps of some jobs.
	children bool
	// maps has the facts about them; nil: no step has one.
	maps  *mapping
	words map[string]bool
	// handed are the attempts whose agents answered that their step waits.
	handed map[string]bool
	// hearing is the receiver of every change; nil: none.
	hearing *hearing
	hanging *hanging
	// scheduled is the schedule that makes jobs, large are the payloads; nil: there is none.
	scheduled *scheduled
	large     *large
}

// Run plays a seed. It must be called in a bubble of testing/synctest, which is where its time comes from.
func Run(o Options) Result {
	c := chance{seed: o.Seed}
	embedded := oneIn(c.of("embedded"), 5)
	w := &world{
		chance: c, layer: o.Seen, faults: newFaults(c, o, embedded), store: NewStore(), load: newWorkload(c, o), start: time.Now(), trace: o.Trace,
		hash: 14695981039346656037, ledger: map[string]*account{}, unclaimed: map[string]map[string]int{}, accounts: map[string][]*account{}, bodies: map[string]body{}, barred: map[string]int{}, listed: map[string]bool{}, notDone: map[string]bool{}, definitions: map[string]makegood.Workflow{}, runs: map[string]int{}, inline: map[string]bool{}, succeeded: map[string]bool{}, chained: map[string]string{}, beganAt: map[string]time.Time{}, told: map[string]int{},
		lives: map[string]int{}, acked: map[string]bool{}, opened: map[string]int{}, claimed: map[string]int{}, written: map[string]time.Time{}, started: map[string]int{},
		leases: map[string]lasts{}, sent: map[string]int{}, closings: map[string]bool{}, tried: map[string]bool{}, never: map[string]bool{}, answered: map[string]map[string]string{}, nobodys: map[string]bool{},
		looked: map[string]int{}, runOf: map[string]int{}, owed: map[string]map[string]bool{}, causes: map[string]map[string]bool{}, outputs: map[[2]string][]byte{}, referees: map[string]*oracle.Referee{}, tales: map[string]*tale{}, queues: map[string]*simQueue{},
	}
	w.children = o.Children || o.Maps // A map is done by children.
	if o.Maps {
		w.maps = &mapping{under: map[mapped]int{}, owed: map[mapped][]owedItem{}, spared: map[mapped][]owedItem{}, edits: edits{most: map[mapped]int{}, opened: map[string]int{}}}
	}
	if o.Limits {
		w.limits = &limiting{keys: o.Keys, set: map[string][]limit{}, under: map[string]int{}, given: map[string]time.Time{}, at: map[string]string{}, taken: map[rated][]job.Permit{}, free: map[string]bool{}, queued: map[string]bool{}}
	}
	w.waits, w.words, w.handed = o.Waits, map[string]bool{}, map[string]bool{}
	w.store.Wrote, w.store.WroteClaim = w.wrote, w.wroteClaim
	w.stale = w.faults.window(StaleIndex, "index", w.start, 10*time.Minute)
	w.staleBy = between(c.of("stale"), time.Second, 10*time.Minute)
	w.store.Lag = w.lag
	w.deafness = w.faults.window(ListenerDeaf, "listener", w.start, faultsLast)
	w.deafForGood = w.deafness != window{} && oneIn(c.of("deaf"), 12)
	w.exact = w.faults.perMille[ClockSkewed] == 0 && w.faults.perMille[ClockJumped] == 0
	w.mixed = oneIn(c.of("mixed"), 4)
	w.repairs = o.Repairs || oneIn(c.of("repairs"), 4)
	w.hang()
	w.rollPayloads()
	w.rollSchedules(o)
	w.rollOutages(o)
	w.hear(o, embedded)
	processes := 2 + o.items/2000
	if o.storm() {
		processes = 1
	}
	w.build(embedded, processes)
	w.people()
	if embedded {
		w.wg.Go(w.supervise)
	} else {
		w.wg.Go(w.schedule)
	}
	w.untilEnd()
	w.gatesEmpty()
	w.pausesEnd()
	w.mu.Lock()
	w.over = true
	w.mu.Unlock()
	close(w.hanging.ended)
	if w.hearing != nil {
		w.hearing.over()
	}
	w.wg.Wait()
	time.Sleep(longest) // Whoever still waits for something finds the world at its end.
	return w.finish()
}

func (w *world) lag() time.Duration {
	if w.stale.holds(time.Now()) && !w.faults.over && w.engine == nil {
		return w.staleBy
	}
	return 0
}

// after does something after a while; what it does must bear that the world is over by then.
func (w *world) after(d time.Duration, do func()) {
	time.AfterFunc(d, do)
}

// life returns a new process. w.mu is held.
func (w *world) life(name string) *life {
	w.lives[name]++
	if n := w.lives[name]; n > 1 {
		name += "." + strconv.Itoa(n)
	}
	l := &life{
		w: w, name: name, engine: w.engine, counts: map[string]int{}, seen: map[string]job.Job{},
		loaded: map[string]int{}, lookedAt: map[string]int{}, submitted: map[string]bool{}, passedOn: map[string]bool{},
		hanging: map[string]int{}, rests: map[string]bool{}, ruled: ruledBy{},
	}
	l.gate = gatesOf(l)
	l.release = w.mixed && oneIn(w.chance.of("release", w.releaseOf(name)), 2)
	if l.engine == nil && w.faults.strikes(ClockSkewed, name) {
		l.clock = skew(w.chance.of("clock", name))
	}
	return l
}

// releaseOf returns the name of what has one release: a process, or a run of the embedded engine with all that is in it.
func (w *world) releaseOf(name string) string {
	if w.engine != nil {
		return "engine" + strconv.Itoa(w.engine.incarnation)
	}
	return name
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

var quiet = slog.New(slog.DiscardHandler)

func (w *world) scheduler(l *life, lane scheduler.Lane) *scheduler.Scheduler {
	random := w.chance.of("scheduler", l.name)
	incarnation := 0
	if l.engine != nil {
		incarnation = l.engine.incarnation
	}
	config := scheduler.Config{
		Jobs: l, Closings: l, Payloads: l, Definitions: l, Queue: l, Notifier: l, Listener: listener{l}, Events: eventsQueue, Quarantine: quarantineQueue,
		Tasks: func(agent string) string { return tasksPrefix + agent }, Replies: []string{"shop"}, Reminders: l.engine == nil, Incarnation: incarnation,
		Lane: lane, Instance: l.name, Now: l.now, Random: func() uint64 { return l.roll(random.Uint64) }, Logger: quiet,
		Bytes: func(n int) []byte { return l.bytes(random.Uint64, n) }, Period: w.period, Read: w.reading.definition,
	}
	if l.engine == nil {
		config.Queue = together.New(l)
	}
	if w.holds() {
		config.Held = knowing{holds.NewReader(l, l.now), l}
	}
	l.judges(&config)
	if w.limits != nil {
		config.Gate = l.gate
	}
	if w.large != nil {
		config.Large = payloads{l}
	}
	return w.heardBy(l, config)
}

// rolled takes a number from a source that several goroutines of a process share.
func (w *world) rolled(next func() uint64) uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return next()
}

// holds reports whether agents or workflows may be paused, or have limits.
func (w *world) holds() bool { return w.repairs || w.limits != nil || w.breaking != nil }

func (w *world) schedulerOf(l *life) queue.Handler {
	keeper := w.judgeOf(l)
	s := w.scheduler(l, w.laneOf(l))
	routed := router.Config{Jobs: s.HandleSQS, Logger: quiet, Fire: func(ctx context.Context, name string, key time.Time) error {
		return w.timetable(l, s).Fire(ctx, name, key)
	}}
	if w.holds() {
		routed.Release = keeper.Release
	}
	return w.withBackoff(l, eventsQueue, router.New(routed).Handle)
}

func (w *world) agentOf(l *life, name string) queue.Handler {
	config := agentrun.Config{
		Handlers: []agent.Handler{remote{l, name}}, Claims: l, Queue: l, Tasks: tasksPrefix + name, Quarantine: quarantineQueue, Instance: l.name,
		Now: l.now, Logger: quiet, Nonce: func(t makegood.Task) string { return l.calling("claims", on(t.Job, t.Step, t.Attempt)) },
	}
	if w.repairs || w.breaking != nil {
		config.Held = w.begunBy(l)
	}
	if w.large != nil {
		config.Large = payloads{l}
	}
	return w.withBackoff(l, tasksPrefix+name, agentrun.New(config).HandleSQS)
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
		every := sweepEvery
		if time.Since(w.start) > max(time.Hour, w.faults.last) {
			every *= 10 // What takes a day is not made different by it, and played faster.
		}
		time.Sleep(every + between(w.chance.of(tick), -2*time.Second, 2*time.Second))
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
					Index: l, Queue: together.New(l), Events: eventsQueue, Leases: l, Holder: l.name, Depth: depthLimit, Unpolled: time.Second,
					AtOnce: 2, AskAgain: 5 * time.Second, Now: l.now, Logger: quiet,
				})
				ctx, cancel := context.WithTimeout(context.Background(), sweepFor)
				defer cancel()
				_, _ = s.Sweep(ctx) // What it could not do, the next one does.
			})
			time.Sleep(time.Microsecond)
		}
	}
}
