// Package embedded is the whole of Makegood in one process: SQLite in one file, queues in memory, and the same
// handlers that run on Lambda, fed with the same batches. It only wires its parts together.
//
// # Death and restart
//
// Jobs are in the file and queues are not. That is enough: commands are derived from jobs. Each Open is a new
// incarnation; attempts that an earlier one dispatched are over, because its agents can no longer claim or reply, and
// the first event for such a job makes their successors.
package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/agentdoor"
	"github.com/makegood-dev/makegood/internal/changes"
	"github.com/makegood-dev/makegood/internal/control"
	"github.com/makegood-dev/makegood/internal/gate"
	"github.com/makegood-dev/makegood/internal/holds"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/notify"
	"github.com/makegood-dev/makegood/internal/payload/filepayload"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/queue/localqueue"
	"github.com/makegood-dev/makegood/internal/quiet"
	"github.com/makegood-dev/makegood/internal/router"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/secret"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/supervisor"
	watch "github.com/makegood-dev/makegood/internal/telemetry"
	"github.com/makegood-dev/makegood/internal/timetable"
	"github.com/makegood-dev/makegood/internal/wire"
	"github.com/makegood-dev/makegood/telemetry"
)

// The names of the queues. An agent's are tasks- and undos-, and its name; of one outside the first, for both.
const (
	eventsQueue     = "events"
	quarantineQueue = "quarantine"
	deadQueue       = "dead-letters"
	tasksPrefix     = "tasks-"
	undosPrefix     = "undos-"
)

// Beside are the folders that may stand beside the store, and belong to it.
func Beside() []string { return []string{filepayload.Folder, repairsFolder} }

// repairsFolder is that of internal/bulk, which is above this package.
const repairsFolder = "repairs"

const (
	// defaultEventWorkers is how many batches of events are handled at once: enough that the writes of one group gather
	// while another is being flushed.
	defaultEventWorkers = 16
	// tick is how often the Supervisor looks at overdue keys, woken or not; keys younger than a tick have just been sent,
	// so every key is found within two ticks.
	tick = 500 * time.Millisecond
	// brakedFor is how long the Supervisor waits for the events queue to become shorter.
	brakedFor = 5 * time.Millisecond
	// retoldBelow is how many events may wait for the Supervisor to tell of anything again.
	retoldBelow = 1000
	// wholeEvery is how often it looks at keys that are older than that themselves, too. They were told of at each tick, in
	// vain: jobs of a newer release may be many and overdue for ever, and would crowd out the others.
	wholeEvery = time.Minute
	// fireAgain is how long a fire that waits for the end of the job before it is left alone.
	fireAgain = time.Second
	// auditEvery is how often the Supervisor looks at a page of all jobs, overdue or not.
	auditEvery = 10 * time.Second
	// maxReceives is how often a message is tried before it goes to the dead letters. Errors of the
	// infrastructure back off by visibility and are no poison, so it is high.
	maxReceives = 1000
)

// Queues is what an engine needs of its queues.
type Queues interface {
	queue.Sender
	queue.Receiver
}

// Config configures an engine. The zero value keeps its data in memory and has no agents.
type Config struct {
	// Dir is the folder for all data, made for its owner alone if it does not exist. Empty: all data is in memory.
	Dir string
	// Retention is how long a job is kept after its end, at least MinRetention. Zero: for ever.
	Retention time.Duration
	// Agents do the steps here, Outside those in other processes, which come to the Door.
	Agents  []agent.Handler
	Outside []Outside
	// Secrets gives the agents here what their tasks ask for. Default: MAKEGOOD_SECRET_NAME of the environment.
	Secrets agent.Secrets
	// Notifier receives Errors. Default: the log. Listener, if set, receives the announcements of jobs to listeners.
	Notifier, Listener notify.Notifier
	// Asker tells the people that are to complete waiting steps; Asked are their registered names. Link makes the link
	// under which a person can answer with a completion token.
	Asker notify.Asker
	Asked []string
	Link  func(completion string) string
	// Changes, if set, receives every change of every job, at least once and in the order of its numbers; Live shows
	// changes to watchers (Engine.Hub). Without both, no changes are kept.
	Changes changes.Sink
	Live    bool
	// Replies are the registered names that a submission may give as replyTo; Listener knows them.
	Replies []string
	// Saved, if set, sees every job after it was created or saved, in no order over jobs.
	Saved func(job.Job)
	// Parked, if set, hears of every job that was parked, which is no save.
	Parked func(id string)
	// Telemetry is where traces and metrics go; the zero value: nowhere.
	Telemetry telemetry.Telemetry
	// Logger logs failures, the same one once a minute (package quiet). Default: slog.Default().
	Logger *slog.Logger
	// EventWorkers is how many batches of events are handled at once. Default: 16.
	EventWorkers int
	// Concurrency is how many attempts run at once.
	Concurrency Concurrency
	// Breakers are agents that are paused by themselves when their attempts fail; "*": all of them.
	Breakers []string
	// Visibility is that of the events queue: after that long an event that was received and not
	// dealt with comes again. Default: 30s.
	Visibility time.Duration
	// TaskVisibility is that of the tasks queues. Default: an hour, the longest timeout: a task comes
	// again only if its agent's goroutine was lost, and is claimed by then.
	TaskVisibility time.Duration
	// Tick is how often the Supervisor looks round, woken or not, at least twice a second. Default: that; tests in which
	// months pass look less often.
	Tick time.Duration
	// OpenStore opens the store in a folder, or with an empty one in memory, and takes the lock of the folder; the lock
	// may be there with an error, and nil in memory. Default: SQLite, in DataFile.
	OpenStore func(ctx context.Context, dir string, logger *slog.Logger) (store.Embedded, store.FolderLock, error)
	// WrapStore and WrapQueues wrap the engine's parts; tests inject faults there.
	WrapStore  func(store.Store) store.Store
	WrapQueues func(Queues) Queues
}

// comparesMessages makes the engine read each remembered message as well, and compare. Tests of this package set it.
var comparesMessages = false

// Engine is a running Makegood. Make it with Open, let it Run, and Close it.
type Engine struct {
	config Config
	file   store.Embedded
	store  store.Store
	large  large
	local  *localqueue.Queues
	queues Queues
	alarm  *alarm
	life   life
	lock   store.FolderLock

	// events handles the events queue.
	events     *router.Router
	scheduler  *scheduler.Scheduler
	timetable  *timetable.Timetable
	holds      *holds.Keeper
	supervisor *supervisor.Supervisor
	watch      *watch.Watch
	// workers are the two of each agent, by its name.
	workers map[string][]worker
	lane    *lane
	memory  *wire.Memory
	door    *agentdoor.Door
	// hub and relay are set if changes are published.
	hub   *changes.Hub
	relay *changes.Relay

	// opened is the time of Open; progressed says that work was done since, and that this is stored.
	opened     time.Time
	progressed atomic.Bool
	// recovered says that recovery has touched every job that was overdue at Open.
	recovered atomic.Bool
	// touched is closed when it has touched all jobs.
	touched    chan struct{}
	allTouched func()

	mu sync.Mutex
	// defined are the hashes of the defined workflows, by name; agentsOf the agents that they use.
	defined  map[string]string
	agentsOf map[string][]string
}

// Open opens the folder and takes its lock; it refuses a folder that another engine holds, and names the holder. No
// work starts until Run.
func Open(ctx context.Context, c Config) (*Engine, error) {
	if c.Retention != 0 && c.Retention < MinRetention {
		return nil, fmt.Errorf("retention of %s: want at least %s, or none", c.Retention, MinRetention)
	}
	if err := c.checkBreakers(); err != nil {
		return nil, err
	}
	e := &Engine{config: c.withDefaults(), opened: time.Now(), defined: map[string]string{}, agentsOf: map[string][]string{}}
	e.alarm, e.touched = newAlarm(2*e.config.Tick), make(chan struct{})
	e.allTouched = sync.OnceFunc(func() { close(e.touched) })
	if err := e.openStore(ctx); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	if err := e.openQueues(); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	run, err := e.file.NextIncarnation(ctx, time.Now())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("count this start: %w", err), e.Close())
	}
	e.warnOfDeaths(ctx, run)
	e.wire(run)
	return e, nil
}

func (c Config) withDefaults() Config {
	if c.Secrets == nil {
		c.Secrets = secret.Environment(os.LookupEnv)
	}
	c.Logger = cmp.Or(c.Logger, slog.Default())
	if _, is := c.Logger.Handler().(*quiet.Handler); !is {
		c.Logger = slog.New(quiet.New(watch.LogLines(c.Logger.Handler()), time.Now))
	}
	if c.Notifier == nil {
		// A hundred jobs that stop at one step for one kind of reason are a line now, and one a minute that counts the others.
		c.Notifier = notify.Log{Logger: c.Logger}
	}
	if c.OpenStore == nil {
		c.OpenStore = openSQLite
	}
	c.Tick = max(c.Tick, tick)
	c.EventWorkers = cmp.Or(c.EventWorkers, defaultEventWorkers)
	c.Visibility = cmp.Or(c.Visibility, localqueue.DefaultVisibility)
	c.TaskVisibility = cmp.Or(c.TaskVisibility, limits.MaxTimeout)
	return c
}

func (e *Engine) openStore(ctx context.Context) error {
	file, lock, err := e.config.OpenStore(ctx, e.config.Dir, e.config.Logger)
	e.lock = lock
	if err != nil {
		return err
	}
	e.file, e.store = file, file
	if e.config.WrapStore != nil {
		e.store = e.config.WrapStore(file)
	}
	return e.openLarge()
}

func (e *Engine) openQueues() error {
	queues := []localqueue.Queue{
		{Name: eventsQueue, Visibility: e.config.Visibility, MaxReceives: maxReceives, DeadLetter: deadQueue},
		{Name: deadQueue},
	}
	names := map[string]bool{}
	for _, a := range e.config.Named() {
		names[tasksPrefix+a.Name()], names[e.undosOf(a.Name())] = true, true
	}
	for name := range names {
		queues = append(queues, localqueue.Queue{Name: name, Visibility: e.config.TaskVisibility, MaxReceives: maxReceives, DeadLetter: deadQueue})
	}
	local, err := localqueue.New(localqueue.Options{Queues: queues})
	if err != nil {
		return fmt.Errorf("queues: %w", err)
	}
	e.local, e.queues = local, keeping{local, e.file}
	if e.config.WrapQueues != nil {
		e.queues = e.config.WrapQueues(e.queues)
	}
	return nil
}

func (e *Engine) wire(run store.Incarnation) {
	instance := fmt.Sprintf("embedded-%d-%d", os.Getpid(), run.Number)
	to := e.config.Telemetry
	e.watch = watch.New(watch.Providers{Traces: to.Traces, Sampled: to.Sampled, Metrics: to.Metrics}, e.config.Logger)
	held := holds.NewReader(port[store.Holds](e), nil)
	gates := gate.New(gate.Config{Store: port[store.Gates](e), Jobs: e.store, Queue: e.queues, Events: eventsQueue, Logger: e.config.Logger})
	e.holds = holds.New(holds.Config{
		Store: port[store.Holds](e), Gates: gates, Queue: e.queues, Events: eventsQueue, Agents: e.agentNames(), Knows: e.knows, Logger: e.config.Logger,
		Changed: func(_ context.Context, key time.Time) {
			held.Forget()
			e.alarm.at(key)
		},
	})
	e.memory = wire.NewMemory(comparesMessages)
	e.makeWorkers(instance, held)
	e.lane = newLane(e.workers)
	e.scheduler = scheduler.New(scheduler.Config{
		Changes: e.publisher(), Lane: e.lane, Memory: e.memory,
		Held: held, Gate: gates, Breaker: e.holds, Breakers: e.config.Breakers,
		Jobs: e.store, Closings: e.store, Payloads: e.store, Definitions: e.store, Large: e.large, Queue: e.queues,
		Notifier: e.config.Notifier, Listener: e.config.Listener, Events: eventsQueue, Quarantine: quarantineQueue,
		Replies: e.config.Replies, Asker: e.config.Asker, Asked: e.config.Asked, Link: e.config.Link,
		Tasks:    e.tasksOf,
		Undos:    e.undosOf,
		Instance: instance, Incarnation: run.Number, Stopped: stoppedRun(run), Saved: e.saved, Parked: e.config.Parked, Watch: e.watch, Logger: e.config.Logger,
	})
	e.timetable = timetable.New(timetable.Config{
		Schedules: port[store.Schedules](e), Jobs: e.store, Submit: e.SubmitCurrent, Knows: e.mayFire, Again: fireAgain, Logger: e.config.Logger,
		Stored: func(_ context.Context, _ string, key time.Time) { e.alarm.at(key) },
	})
	e.events = router.New(router.Config{
		Jobs: e.scheduler.HandleSQS, Fire: e.timetable.Fire, Release: e.holds.Release, Logger: e.config.Logger,
	})
	e.supervisor = supervisor.New(supervisor.Config{
		Index: e.store, Queue: e.queues, Events: eventsQueue, Grace: tick, Logger: e.config.Logger,
		Auditor: port[store.Auditor](e), Strays: quiet.Loud(e.config.Logger),
	})
	e.door = e.config.door(e, held)
}

func (e *Engine) saved(j job.Job) {
	e.alarm.soon(j.CompleteBy)
	e.noteProgress()
	if e.config.Saved != nil {
		e.config.Saved(j)
	}
}

// Submit stores a job; see scheduler.Scheduler.Submit.
func (e *Engine) Submit(ctx context.Context, s scheduler.Submission) (job.Job, bool, error) {
	return e.scheduler.Submit(ctx, s)
}

// port is the store that the engine works on, if it is a T, or else its file.
func port[T any](e *Engine) T {
	if p, is := e.store.(T); is {
		return p
	}
	return e.file.(T)
}

// agentNames are those of all agents that workflows may name, but for those that wait by themselves.
func (e *Engine) agentNames() []string {
	var names []string
	for _, a := range e.config.Named() {
		names = append(names, a.Name())
	}
	return names
}

// Job reads a job, which must not be changed: others have it, too.
func (e *Engine) Job(ctx context.Context, id string) (job.Job, error) {
	return store.Shared(e.store).Load(ctx, id)
}

// Parts returns the parts of the engine that answer requests about its jobs. The caller adds the author of requests,
// the log, and the waiters that hear of saves.
func (e *Engine) Parts() control.Config {
	return control.Config{
		Reading: control.Reading{
			Store: reads{store.Shared(e.store), e.store, e.file, port[store.Auditor](e)}, Near: true, Totals: e.file,
			Workflows: func(context.Context) (map[string]string, error) { return e.workflows(), nil },
		},
		Scheduler: e.scheduler, Submit: e.SubmitCurrent, Timetable: e.timetable, Holds: e.holds, Agents: e, Quarantine: e.quarantine(), Large: e,
	}
}

// Jobs answers requests about the jobs of the engine. by is the author of requests that name none, and logger hears of
// every decision.
func (e *Engine) Jobs(by string, logger *slog.Logger) *control.Service {
	parts := e.Parts()
	parts.By, parts.Logger = by, logger
	return control.New(parts)
}

// reads is where an engine reads jobs.
type reads struct {
	// jobs are not copied: no reader changes one.
	jobs store.Jobs
	store.Store
	store.Lister
	store.Auditor
}

// Load reads a job.
func (r reads) Load(ctx context.Context, id string) (job.Job, error) { return r.jobs.Load(ctx, id) }

// Each calls f with every job, in bounded memory.
func (e *Engine) Each(ctx context.Context, f func(job.Job) error) error {
	return e.file.Each(ctx, f)
}

// Close stops Run, waits until it has returned, closes the store and frees the folder. If agents did not stop and
// were given up, the folder is freed when they or their attempts have ended: another engine here would work beside
// them.
func (e *Engine) Close() error { return e.end(e.noteStop) }

// end is Close, with a note of the end to store.
func (e *Engine) end(note func()) error {
	if e.door != nil {
		e.door.Close()
	}
	e.hub.Close()
	e.life.close()
	defer e.unlock()
	if e.file == nil {
		return nil
	}
	e.closeLarge()
	note()
	return e.file.Shut()
}
